"""Parameters that are Python numbers, which no derivative passes."""

from __future__ import annotations

from typing import Any

from ....core.errors import GradientError
from ....core.extend import (
    Operators,
    Tensor,
    active_graph,
    active_tapes,
    flatten,
    is_transformed,
)


def is_differentiated(given: Any) -> bool:
    """Return whether a tape or forward mode follows a tensor in ``given``."""
    return any(isinstance(leaf, Operators) and _is_followed(leaf) for leaf in flatten(given))


def _is_followed(x: Any) -> bool:
    held = x if isinstance(x, Tensor) else x.handle()
    if held.dtype.kind not in "fc":
        return False
    if is_transformed(held.array) and active_graph.get() is None:
        return True
    tapes = active_tapes.get()
    return any(held.id in tape.records or getattr(x, "trainable", False) for tape in tapes)


def plain_number(given: Any, function: str, argument: str, instead: str) -> Any:
    """Return ``given``, a number or a container of numbers, unless a derivative would be lost.

    A function that makes a Python number of a tensor reads it where no tape sees the read.

    Raises
    ------
    GradientError
        If a tape or forward mode follows a tensor in ``given``.
    """
    if is_differentiated(given):
        raise GradientError(
            f"{function}: {argument} must be a number, and no derivative passes a number: "
            f"{instead}. If {argument} is a constant, pass {argument}=x.numpy()"
        )
    return given
