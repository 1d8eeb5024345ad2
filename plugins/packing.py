"""Packed variables: flat arrays that hold the values of many, so that one call updates them all.

Optimizers, and plans of compiled functions, compute on such arrays. Each variable holds a part, a
view. Memory is reused only if reference counts show that nothing else refers to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, islice
from math import prod
from operator import attrgetter, is_
from sys import getrefcount
from typing import Any, TypeAlias

import numpy as np

from ..core.extend import COUNTS, Variable, backend_of

__all__ = ["Bounds", "FlatArrays", "bounds_of", "hold", "joined"]

#: The start and the end of a part in a flat array, and its shape.
Bounds: TypeAlias = tuple[int, int, tuple[int, ...]]

# the slot itself, as the property takes three times as long
_array_of = attrgetter("_array")


def bounds_of(shapes: Sequence[tuple[int, ...]]) -> list[Bounds]:
    """Return the bounds of parts of these shapes, one after another."""
    ends = list(accumulate(map(prod, shapes)))
    return list(zip([0, *ends[:-1]], ends, shapes, strict=True))


def joined(variables: Iterable[Variable], xp: Any) -> Any:
    """Return a new flat array of the values of variables, made by their array namespace."""
    return xp.concat([v.array for v in variables], axis=None)


def hold(variables: Iterable[Variable], parts: Iterable[Any]) -> bool:
    """Return whether variables still hold these parts: nothing else was assigned to them."""
    return all(map(is_, map(_array_of, variables), parts))


class FlatArrays:
    """Flat arrays, one for each column of variables, and their parts, one for each variable.

    Parameters
    ----------
    bounds
        The bounds of the parts, the same for all columns.
    columns
        The number of columns.

    Attributes
    ----------
    arrays
        The flat array of each column; None before :meth:`put`.
    columns
        The places of each column's parts.
    parts
        Views of the arrays, column by column; None for a column that was not cut into parts.
    """

    __slots__ = ("arrays", "bounds", "columns", "parts")

    def __init__(self, bounds: Sequence[Bounds], columns: int) -> None:
        count = len(bounds)
        self.bounds = bounds
        self.columns = [slice(k * count, (k + 1) * count) for k in range(columns)]
        self.arrays: list[Any] = [None] * columns
        self.parts: list[Any] = [None] * (count * columns)

    @classmethod
    def of(cls, bounds: Sequence[Bounds], arrays: Sequence[Any]) -> FlatArrays:
        """Return flat arrays, cut into parts."""
        found = cls(bounds, len(arrays))
        for k, array in enumerate(arrays):
            found.put(k, array)
        return found

    def put(self, k: int, array: Any) -> list[Any]:
        """Set a column's flat array; return its parts, which variables may hold."""
        # every library has the function, but the method is faster
        reshape = getattr(type(array), "reshape", None) or backend_of(array).xp.reshape
        parts = [
            array[a:b] if len(shape) == 1 else reshape(array[a:b], shape)
            for a, b, shape in self.bounds
        ]
        self.arrays[k], self.parts[self.columns[k]] = array, parts
        return parts

    def gather(self, k: int, variables: Iterable[Variable], xp: Any) -> None:
        """Set a column's flat array to the values of variables, which hold no parts of it."""
        self.arrays[k] = joined(variables, xp)
        self.parts[self.columns[k]] = [None] * len(self.bounds)

    def is_cut(self, k: int) -> bool:
        """Return whether a column's flat array has parts."""
        return self.parts[self.columns[k].start] is not None

    def is_alone(self, k: int | None = None, others: int = 0) -> bool:
        """Return whether nothing else refers to a column's flat array, its parts or their memory.

        Parameters
        ----------
        k
            The column; all by default.
        others
            The number of further references to each part that the caller has.
        """
        if _ALONE is None:
            return False
        part, whole = self.references(k)
        return part == _ALONE[0] + others and whole == _ALONE[1] + len(self.bounds)

    def references(self, k: int | None = None) -> tuple[int, int]:
        """Return the most references to a part, and to a flat array, including its parts."""
        parts: Iterable[Any] = self.parts
        arrays: Iterable[Any] = self.arrays
        if k is not None:  # without lists, which would refer to them
            column = self.columns[k]
            parts = islice(parts, column.start, column.stop)
            arrays = islice(arrays, k, k + 1)
        return max(map(getrefcount, parts)), max(map(getrefcount, arrays))


def _calibrated() -> tuple[int, int] | None:
    """Return the references to a part and a flat array (without parts) that no other code holds.

    The counts come from this very Python, because versions count differently. They must show a
    reference to a part, to a part of a part, and to memory without an array; otherwise the result
    is None.
    """
    if not COUNTS:
        return None
    flats = FlatArrays.of([(0, 2, (2,)), (2, 4, (2, 1))], [np.zeros(4, np.float32)])
    alone = flats.references()
    holds: list[Callable[[], Any]] = [
        lambda: flats.parts[0],
        lambda: flats.parts[1][:1].view(np.int32),
        lambda: memoryview(flats.parts[1]),
        lambda: flats.arrays[0],
    ]
    for held_by in holds:
        held = held_by()
        if flats.references() == alone:
            return None
        del held
    return (alone[0], alone[1] - 2) if flats.references() == alone else None


_ALONE = _calibrated()
