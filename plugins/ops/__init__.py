"""The ops, as one plugin: a folder for each family of ops, and all rules of each op.

``common`` holds the tools that the folders share. Folders import each other in one direction only,
which ``.importlinter`` checks.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from ...core.extend import Op, hookimpl
from ...public import COMPLETING, HOMES
from .common.docstrings import complete_docstring
from .common.op_builders import OPS
from .random.functions import shared
from .random.generator import Generator

__all__ = ["gradtape_modules", "gradtape_ops", "gradtape_services"]

#: The meaning of what files name has never changed.
gradtape_compatible_since = "0.1"

for _module in walk_packages(__path__, f"{__name__}."):  # all ops are made by imports
    import_module(_module.name)
COMPLETING[f"{__name__}."] = complete_docstring


@hookimpl(trylast=True)
def gradtape_modules() -> dict[str, type]:
    """Provide the module classes of this package to saved files."""
    return {"random.Generator": Generator}


@hookimpl(trylast=True)
def gradtape_ops() -> list[Op]:
    """Provide every op defined in this package."""
    return OPS


@hookimpl(trylast=True)
def gradtape_services() -> dict[str, Any]:
    """Provide the public functions to packages below: methods of tensors call them."""
    inside = f".{__name__.partition('.')[2]}."
    found = {
        f"ops.{name}": getattr(import_module(f".{home.removeprefix(inside)}", __name__), name)
        for name, home in HOMES.items()
        if home.startswith(inside)
    }
    return {**found, "ops.random_generator": shared}
