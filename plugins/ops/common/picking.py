"""Indices of slices and arrays, for libraries that index an array by whole axes or by one mask."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .kernels import at_hand, kind_of


def picked(xp: Any, x: Any, where: tuple[Any, ...]) -> Any:
    """Return ``x[where]`` for an index with arrays, as NumPy defines it.

    The array API takes arrays for all axes or for none, and some libraries take one array. What a
    library does not take is gathered from the flattened ``x``.

    Parameters
    ----------
    xp
        The array namespace.
    x
        An array.
    where
        An index of integers, slices, ``None``, ``...``, integer arrays and masks.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    """
    try:
        return x[where]
    except (IndexError, NotImplementedError):
        if writes_by_arrays(xp, x):  # the library takes all indices: this one is wrong
            raise
    axes, groups = _axes(xp, x, where)
    joined = np.broadcast_shapes(*[tuple(part.shape) for part, _ in groups])
    alone = [i for i, (part, _) in enumerate(axes) if part is _GROUP]
    adjacent = bool(alone) and alone == list(range(alone[0], alone[-1] + 1))
    front = alone[0] if adjacent else 0
    outer = [(part, axis) for part, axis in axes if part is not _GROUP]
    shape = [1 if part is None else part.shape[0] for part, _ in outer]
    shape[front:front] = joined
    strides = [prod(x.shape[axis + 1 :]) for axis in range(x.ndim)]
    places: Any = xp.zeros((1,) * len(shape), dtype=xp.int64)
    after = len(outer) - front
    for part, axis in groups:
        aligned = (1,) * (len(joined) - part.ndim) + tuple(part.shape)
        line = xp.reshape(part, (1,) * front + aligned + (1,) * after)
        places = places + line * strides[axis]
    for i, (part, axis) in enumerate(outer):
        if part is not None:
            place = i if i < front else i + len(joined)
            line = xp.reshape(part, (1,) * place + (-1,) + (1,) * (len(shape) - place - 1))
            places = places + line * strides[axis]
    places = xp.reshape(xp.broadcast_to(places, tuple(shape)), (-1,))
    return xp.reshape(xp.take(xp.reshape(x, (-1,)), places, axis=0), tuple(shape))


def index_along_axis(xp: Any, shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """Return the index arrays for ``x[...]`` that correspond to take_along_axis."""
    along, rank = axis % len(shape), len(shape)
    grid = [xp.reshape(xp.arange(n), (-1, *(1,) * (rank - i - 1))) for i, n in enumerate(shape)]
    grid[along] = indices
    return tuple(grid)


def along_axis(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    """Return ``xp.take_along_axis``, which libraries of the standard before 2024 lack."""
    own = getattr(xp, "take_along_axis", None)
    if own is not None:
        return own(x, indices, axis=axis)
    return picked(xp, x, index_along_axis(xp, x.shape, indices, axis))


def writes_by_arrays(xp: Any, x: Any) -> bool:
    """Return whether a library can assign at index arrays; the array API cannot."""
    return hasattr(x, "at") or hasattr(getattr(xp, "add", None), "at")


#: Where arrays and integers stand, which together give one group of axes.
_GROUP = object()


def _axes(xp: Any, x: Any, where: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """Return the parts of an index in order, and its arrays, each with the axis that it reads.

    A slice is given as the positions that it selects, without signs.
    """
    used = sum(_used(part) for part in where)
    rest = [slice(None)] * (x.ndim - used)
    at = next((i for i, part in enumerate(where) if part is Ellipsis), len(where))
    axes: list[Any] = []
    groups: list[Any] = []
    axis = 0
    for part in (*where[:at], *rest, *where[at + 1 :]):
        if part is None:
            axes.append((None, axis))
        elif isinstance(part, slice):
            line = np.arange(x.shape[axis])[part]
            axes.append((xp.asarray(line), axis))
        else:
            mask = not isinstance(part, int) and kind_of(part.dtype) == "b"
            for found in xp.nonzero(part) if mask else (part,):
                groups.append((_counted(xp, found, x.shape[axis], axis), axis))
                axis += 1
            axes.append((_GROUP, axis))
            continue
        axis += _used(part)
    return axes, groups


def _used(part: Any) -> int:
    """Return the number of axes that a part of an index reads."""
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, (int, slice)) or kind_of(part.dtype) != "b":
        return 1
    return int(part.ndim)


def _counted(xp: Any, places: Any, size: int, axis: int) -> Any:
    """Return positions counted from the start; raise if they are known not to exist."""
    places = xp.astype(xp.asarray(places), xp.int64)
    wrong = xp.any((places < -size) | (places >= size))
    if at_hand(wrong, unknown=False):
        raise IndexError(f"an index is out of bounds for axis {axis} with size {size}")
    return xp.where(places < 0, places + size, places)
