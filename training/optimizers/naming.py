"""Warns about attributes of optimizers that nothing reads, such as ``lr``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import unwrap
from types import CodeType
from typing import Any

from ...core.extend import warn_user
from ..nearest import nearest
from .options import OPTIONS

__all__ = ["warn_of_name"]

#: Other libraries' names, and what they are here.
_ELSEWHERE = {
    "alpha": "learning_rate",
    "betas": "beta_1 and beta_2",
    "decay": "weight_decay",
    "eps": "epsilon",
    "eta": "learning_rate",
    "lr": "learning_rate",
    "param_groups": "learning_rate",
    "wd": "weight_decay",
}


def warn_of_name(optimizer: Any, name: str) -> None:
    """Warn if a new attribute resembles a setting, and is set from outside the optimizer.

    Parameters
    ----------
    optimizer
        The optimizer. What its own methods set is never meant otherwise.
    name
        The name of the attribute.
    """
    if name.startswith("_") or _is_own(optimizer):
        return
    held = [x for x in vars(optimizer) if not x.startswith("_") and x not in optimizer.slots]
    known = [*dict.fromkeys([*held, *OPTIONS])]
    meant = _ELSEWHERE.get(name) or nearest(name, known)
    if meant is None and name not in _arguments_of_all(type(optimizer)):
        return
    if any(name in (*code.co_names, *code.co_consts) for code in _code_of(type(optimizer))):
        return  # the formula reads it
    hint = "" if meant is None else f" Did you mean {meant}?"
    warn_user(
        f"{type(optimizer).__name__} has no attribute {name!r}, so setting it has no effect on the "
        f"steps.{hint} It has {', '.join(known)}",
        UserWarning,
    )


def _root(kind: Any) -> Any:
    """Return the base class of all optimizers."""
    return next(x for x in reversed(kind.__mro__) if "_arguments" in vars(x))


def _code_of(kind: Any) -> Iterator[CodeType]:
    """Yield the code of the methods that a class adds to the base class."""
    added = kind.__mro__[: kind.__mro__.index(_root(kind))]
    for method in [x for found in added for x in vars(found).values()]:
        function = getattr(method, "fget", None) or getattr(method, "__func__", method)
        waiting = [getattr(unwrap(function), "__code__", None)]
        for code in waiting:  # grows in the loop
            if isinstance(code, CodeType):
                waiting += [x for x in code.co_consts if isinstance(x, CodeType)]
                yield code


def _arguments_of_all(kind: Any) -> set[str]:
    """Return the settings of all classes of optimizers."""
    waiting = [_root(kind)]
    for found in waiting:  # grows in the loop
        waiting += found.__subclasses__()
    return {name for found in waiting for name in vars(found).get("_arguments", ())}


def _is_own(optimizer: Any) -> bool:
    """Return whether the attribute is set by a method of the optimizer."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name == "__setattr__":
        frame = frame.f_back
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    return bool(names) and frame.f_locals.get(names[0]) is optimizer
