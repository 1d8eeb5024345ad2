"""Ops by name, found when first asked for; and what stands above but is needed below.

``ops["sin"]`` is the op as users call it: tensors in, tensors out, recorded by tapes.
``F.sin`` is the op on arrays, whatever their type: gradient rules are written with it.

Arrows between rooms go down. What points up goes through here, and is found late, by name: the
registry, and the public functions. So is what is slow to import and seldom needed.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...public import IMPORTING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ops.registry import Registry
    from ..tensors.op import Op

__all__ = ["F", "face", "late", "op_named", "ops", "public", "registry"]

PACKAGE = __name__.partition(".")[0]


@cache
def late(name: str) -> Any:
    """Return a module of the package, which is imported now if it has not been before."""
    with IMPORTING:  # and not half of it, while another thread imports it
        return import_module(f"{PACKAGE}.{name}")


def registry() -> Registry:
    """Return the registry; plugins are discovered on the first call."""
    found: Registry = late("core.ops.host").registry()
    return found


def op_named(name: str) -> Op:
    """Return an op by its name, which is what pickles have of it."""
    found: Op = ops[name]
    return found


def face() -> Any:
    """Return the package, whose attributes are the public functions."""
    return sys.modules[PACKAGE]


def public(name: str) -> Any:
    """Return a public function, by its name in the package."""
    return getattr(sys.modules[PACKAGE], name)


# Any: what an op with several outputs returns is no tensor, as `Op.__call__` tells type checkers
class OpTable(dict[str, Any]):
    """A dictionary of ops that asks the registry for a name that it does not hold yet."""

    def __missing__(self, name: str) -> Op:
        op = self[name] = registry().op(name)
        return op


class ArrayFunctions:
    """Ops as attributes, applied to arrays: ``F.exp(x)``, ``F["package::op"]``."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        function = ops[name].raw
        setattr(self, name, function)
        return function

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return ops[name].raw


ops = OpTable()
F = ArrayFunctions()


def forget() -> None:
    """Empty the tables, so that a changed registry is asked again."""
    ops.clear()
    vars(F).clear()
