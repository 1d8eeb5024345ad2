"""Dispatch of ops by the types of their arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.dtypes import SCALARS, numpy_dtype
from ..base.sizes import Open, as_symbol
from ..base.unknown import user_line
from ..errors import TraceError

# Array type -> (rank, handler). The highest rank among an op's inputs decides.
transforms: dict[type, tuple[int, Callable[[Any], Callable[..., Any]]]] = {}


def register_array_type(
    array_type: type, rank: int, handler: Callable[[Any], Callable[..., Any]]
) -> None:
    """Make ops run on ``array_type``: they call ``handler(op)`` with their arrays.

    Parameters
    ----------
    array_type
        A type of arrays that no backend owns.
    rank
        If several types meet in one op, the type with the highest rank handles it.
    handler
        ``handler(op)`` returns a function of the op's arrays and parameters.
    """
    transforms[array_type] = (rank, handler)


def is_transformed(array: Any) -> bool:
    """Return whether ``array`` is a symbol, a batch or another of gradtape's own array types."""
    return type(array) in transforms


def check_alive(array: Any) -> Any:
    """Return ``array``; raise ``TraceError`` if its trace or batch has ended."""
    if type(array) in transforms:
        gone = array.gone()
        if gone is not None:
            raise TraceError(f"{user_line()}: {gone}")
    return array


class ScalarTable(dict[tuple[Any, Any], Any]):
    """Python scalars of one type as arrays of a backend, by value and dtype.

    NumPy takes longer to convert a Python float than to multiply a small array by it, and every
    step uses the same constants.
    """

    def __init__(self, convert: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.convert = convert

    def __missing__(self, key: tuple[Any, Any]) -> Any:
        value, dtype = key
        array = self.convert(value, dtype)
        if value:  # not 0.0 and -0.0, which would share a key
            if len(self) >= 1024:
                self.clear()
            self[key] = array
        return array


# By the scalar's type (1, 1.0 and True are equal, and hash alike), then by the array's.
scalar_tables: dict[type, dict[type, ScalarTable]] = {kind: {} for kind in SCALARS}


def with_symbols(values: Sequence[Any]) -> list[Any]:
    """Return an op's arrays with weak symbols instead of unknown numbers."""
    dtypes = [numpy_dtype(x.dtype) for x in values if hasattr(x, "dtype")]
    return [as_symbol(x, dtypes) if isinstance(x, Open) else x for x in values]
