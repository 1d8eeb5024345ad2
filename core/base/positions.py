"""NumPy whose positions are int64 on every platform.

Where addresses have 32 bits, as in WebAssembly, NumPy's positions are int32: ``argsort`` returns
int32, ``arange`` counts in int32, and ``take`` accepts no int64. Shape rules, files and traces must
not depend on the platform, so there the NumPy backend computes with :class:`Positions`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: Whether NumPy's positions have fewer than 64 bits here.
NARROW = np.dtype(np.intp).itemsize < 8


def narrowed(positions: Any) -> Any:
    """Return positions as the integers that NumPy accepts here: unchanged where these are int64.

    Parameters
    ----------
    positions
        A number, a sequence or an array.

    Raises
    ------
    IndexError
        If a position is larger than any array here can be.
    """
    return _narrowed(positions) if NARROW else positions


def _narrowed(positions: Any) -> Any:
    array = np.asarray(positions)
    if array.dtype.char not in "ql":
        return positions
    found = array.astype(np.int32)
    if not np.array_equal(found, array):
        wrong = array[found != array].flat[0]
        raise IndexError(f"index {wrong} is out of bounds: arrays have fewer than 2**31 elements")
    return found


def _widened(found: Any) -> Any:
    """Return NumPy's positions, or a tuple of arrays with some, as int64."""
    if isinstance(found, tuple):
        parts = [_widened(x) for x in found]
        return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    return found.astype(np.int64) if found.dtype == np.int32 else found


class Positions:
    """NumPy's namespace, where functions take and return positions as int64."""

    def __init__(self, names: Any) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        function = found = getattr(self._names, name)
        if name in _RETURNED:

            def found(*args: Any, **kwargs: Any) -> Any:
                return _widened(function(*args, **kwargs))

        setattr(self, name, found)
        return found

    def arange(self, *bounds: Any, dtype: Any = None, **kwargs: Any) -> Any:
        """Return numbers in steps; int64 unless a bound is floating or ``dtype`` is given."""
        found = self._names.arange(*bounds, dtype=dtype, **kwargs)
        return _widened(found) if dtype is None else found

    def take(self, x: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
        """Return elements by position."""
        return self._names.take(x, _narrowed(indices), *args, **kwargs)

    def repeat(self, x: Any, repeats: Any, axis: int | None = None) -> Any:
        """Return repeated elements."""
        return self._names.repeat(x, _narrowed(repeats), axis)

    def bincount(self, x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
        """Return how often each number occurs, or the sums of weights."""
        found = self._names.bincount(_narrowed(x), weights, minlength)
        return _widened(found) if weights is None else found

    def unique(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the values that occur, and positions as asked for."""
        found = self._names.unique(x, *args, **kwargs)
        return (found[0], *map(_widened, found[1:])) if isinstance(found, tuple) else found


_RETURNED = frozenset(
    "argmax argmin argpartition argsort argwhere count_nonzero flatnonzero nonzero "
    "searchsorted".split()
)

#: The namespace of the NumPy backend: NumPy itself wherever its positions are int64.
NUMPY: Any = Positions(np) if NARROW else np
