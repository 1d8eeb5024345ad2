"""Errors for Python asking an array without values for what only a run can know."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from ..errors import TraceError
from .table import PACKAGE

__all__ = ["not_known", "user_line"]

# The packages whose frames are not the user's line.
_NOT_USERS = frozenset({PACKAGE, "numpy", "contextlib"})


def user_line() -> str:
    """Return FILE:LINE of the innermost frame outside gradtape and NumPy."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _package_of(frame) in _NOT_USERS:
        frame = frame.f_back
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def not_known(array: Any, what: str) -> TypeError:
    """Return the error for Python asking ``array`` for what it does not know (say, its truth)."""
    if not hasattr(array, "why_unknown"):
        return TypeError(
            f"{user_line()}: a Tensor is a handle of an array, and this one was made of "
            f"{type(array).__name__}; make tensors with gradtape.constant"
        )
    return TraceError(f"{user_line()}: {what} is not known {array.why_unknown()}")
