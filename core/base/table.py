"""Ops by name, found when first asked for.

``ops["sin"]`` is the op as users call it: tensors in, tensors out, recorded by tapes.
``F.sin`` is the op on arrays, whatever their type: gradient rules are written with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ops.op import Op

__all__ = ["F", "ops"]


# Any: what an op with several outputs returns is no tensor, as `Op.__call__` tells type checkers
class OpTable(dict[str, Any]):
    """A dictionary of ops that asks the registry for a name that it does not hold yet."""

    def __missing__(self, name: str) -> Op:
        from ..ops.registry import registry  # the registry imports ops; it is needed on a miss only

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
