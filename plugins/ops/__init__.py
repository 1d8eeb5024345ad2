"""The ops, as one plugin: a folder for each family of ops, and all rules of each op.

The families in ``late`` are imported when one of their ops is first needed. ``common`` holds the
tools that the folders share. Folders import each other in one direction only, which
``.importlinter`` checks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from ...core.extend import Op, hookimpl
from ...public import COMPLETING, HOMES
from .common.docstrings import complete_docstring
from .common.op_builders import OPS
from .late import LATE

__all__ = ["gradtape_late_ops", "gradtape_modules", "gradtape_ops", "gradtape_services"]

#: The meaning of what files name has never changed.
gradtape_compatible_since = "0.1"

_AT_ONCE = ("common", "elementwise", "indexing", "reductions", "shapes")
_LATE_NAMES = {name for names in LATE.values() for name in names}


def _import_family(family: str) -> None:
    """Make the ops of a family: its modules do when they are imported."""
    whole = import_module(f"{__name__}.{family}")
    for module in iter_modules(whole.__path__, f"{whole.__name__}."):
        import_module(module.name)


for _family in _AT_ONCE:
    _import_family(_family)
COMPLETING[f"{__name__}."] = complete_docstring


@hookimpl(trylast=True)
def gradtape_modules() -> dict[str, str]:
    """Provide the module classes of this package to saved files."""
    return {"random.Generator": f"{__name__}.random.generator:Generator"}


@hookimpl(trylast=True)
def gradtape_ops() -> list[Op]:
    """Provide the ops of the families that most programs need."""
    return [op for op in OPS if op.name not in _LATE_NAMES]


@hookimpl(trylast=True)
def gradtape_late_ops() -> dict[tuple[str, ...], Callable[[], list[Op]]]:
    """Provide the other ops by their names, which the registry looks up."""
    return {names: partial(_made, family) for family, names in LATE.items()}


def _made(family: str) -> list[Op]:
    before = {id(op) for op in gradtape_ops()}
    _import_family(family)
    others = {name for other, names in LATE.items() if other != family for name in names}
    return [op for op in OPS if id(op) not in before and op.name not in others]


@hookimpl(trylast=True)
def gradtape_services() -> dict[str, Any]:
    """Provide the public functions to packages below: methods of tensors call them."""
    package, _, inside = __name__.partition(".")
    found = {
        f"ops.{name}": f"{package}{home}:{name}"
        for name, home in HOMES.items()
        if home.startswith(f".{inside}.")
    }
    return {**found, "ops.random_generator": f"{__name__}.random.functions:shared"}
