"""How ops find what to run: by the types of the arrays that they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.dtypes import SCALARS
from ..base.unknown import user_line
from ..errors import TraceError

__all__ = [
    "ScalarTable",
    "check_alive",
    "is_transformed",
    "register_array_type",
    "scalar_tables",
    "transforms",
]

# Array type -> (rank, what an op does with it). The highest rank among an op's inputs decides.
transforms: dict[type, tuple[int, Callable[[Any], Callable[..., Any]]]] = {}


def register_array_type(
    array_type: type, rank: int, handler: Callable[[Any], Callable[..., Any]]
) -> None:
    """Let ops run on ``array_type``: ``handler(op)`` is called with the op's arrays.

    Parameters
    ----------
    array_type
        A type of arrays that no backend owns.
    rank
        The order of types that meet in one op: the outermost (highest) handles it.
    handler
        ``handler(op)`` returns what runs the op: a function of its arrays and parameters.
    """
    transforms[array_type] = (rank, handler)


def is_transformed(array: Any) -> bool:
    """Return whether ``array`` is no backend's: a symbol, a batch or another of our array types."""
    return type(array) in transforms


def check_alive(array: Any) -> Any:
    """Return ``array``; raise ``TraceError`` if the trace or batch that it belongs to has ended."""
    if type(array) in transforms:
        gone = array.gone()
        if gone is not None:
            raise TraceError(f"{user_line()}: {gone}")
    return array


class ScalarTable(dict[tuple[Any, Any], Any]):
    """Python scalars of one type as arrays of a backend, by value and dtype.

    NumPy takes longer to convert a Python float than to multiply a small array by it, and the same
    constants come again with every step.
    """

    def __init__(self, convert: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.convert = convert

    def __missing__(self, key: tuple[Any, Any]) -> Any:
        value, dtype = key
        array = self.convert(value, dtype)
        if value:  # 0.0 and -0.0 would share a key
            if len(self) >= 1024:
                self.clear()
            self[key] = array
        return array


# By the scalar's type (1, 1.0 and True are equal, and hash alike), then by the array's.
scalar_tables: dict[type, dict[type, ScalarTable]] = {kind: {} for kind in SCALARS}
