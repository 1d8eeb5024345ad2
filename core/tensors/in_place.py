"""``v -= g`` of a variable: Python binds the name to a new tensor.

NumPy-style code means that in a formula. As an update of the variable it does nothing, so it warns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..base.context import active_tapes
from ..base.operators import BINARY
from ..base.recorder import Everything
from ..base.sizes import same_shape
from ..base.unknown import warn_user
from .tensor import Operators, Tensor
from .variable import Variable

#: A name in modules whose functions call formulas of the user, which may use ``v -= ...``.
FORMULAS = "_gradtape_formulas"
#: The operators, as Python writes them.
_SYMBOLS = dict(zip(BINARY, "+ - * / // % ** @ & | ^ << >>".split(), strict=True))
#: The methods that update in place; other operators need ``assign``.
_UPDATES = {"add": "assign_add(...)", "sub": "assign_sub(...)"}


def _in_place(name: str) -> Callable[[Variable, Any], Tensor]:
    compute, symbol = getattr(Operators, f"__{name}__"), _SYMBOLS[name]

    def operator(self: Variable, other: Any) -> Tensor:
        result: Tensor = compute(self, other)
        if _seems_an_update(self, result):
            update = _UPDATES.get(name, f"assign(v {symbol} ...)")
            warn_user(
                f"v {symbol}= ... made a new tensor; variable {self.name!r} keeps its value. Write "
                f"v.{update} to change the variable, or v = v {symbol} ... to compute a tensor",
                UserWarning,
            )
        return result

    operator.__name__, operator.__qualname__ = f"__i{name}__", f"Variable.__i{name}__"
    return operator


def _seems_an_update(variable: Variable, result: Tensor) -> bool:
    """Return whether the variable could hold the result, and no formula is being computed."""
    if not same_shape(result.array.shape, variable.shape):
        return False
    if any(type(tape.records) is not Everything for tape in active_tapes.get()):
        return False
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:  # a module that computes its output, a loss, a metric
        if FORMULAS in frame.f_globals:
            return False
        frame = frame.f_back
    return True


for _name in BINARY:
    setattr(Variable, f"__i{_name}__", _in_place(_name))
