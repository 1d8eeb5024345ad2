"""The elements of arrays in golden vectors, and the weights of the differentiated sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.extend import TensorSpec

# A larger array is stored in part: one in _PART elements, within these limits.
_LEAST, _PART, _MOST = 2**8, 64, 2**14
# Weights of larger arrays are made piece by piece, and not kept.
_PIECE = 2**16


def spread(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array, or evenly spread elements of it, as section 8 of the format says."""
    size = array.size
    count = min(max(_LEAST, size // _PART), _MOST)
    if size <= count:
        return array
    step = -(-size * 46368 // 75025)  # near the golden ratio, which no shape is in step with
    while math.gcd(step, size) > 1:
        step += 1
    places = np.unravel_index(np.arange(count) * step % size, array.shape)
    return np.asarray(array[places])


def weights(dtype: str, shape: tuple[int, ...], i: int) -> np.ndarray[Any, Any]:
    """Return the weights of the elements of output or gradient ``i`` of a dtype and shape."""
    size = math.prod(shape)
    if size <= _PIECE:
        return _kept_weights(dtype, size, i).reshape(shape)
    return _weights(dtype, size, i).reshape(shape)


def _weights(dtype: str, size: int, i: int) -> np.ndarray[Any, Any]:
    found = np.empty(size, dtype)
    real = found.real.dtype
    for start in range(0, size, _PIECE):
        stop = min(start + _PIECE, size)
        piece = np.cos(np.arange(start, stop) + (1.0 + i)).astype(real)
        found[start:stop] = piece * (1 + 1j) if found.dtype.kind == "c" else piece
    return found


@lru_cache(maxsize=64)
def _kept_weights(dtype: str, size: int, i: int) -> np.ndarray[Any, Any]:
    found = _weights(dtype, size, i)
    found.flags.writeable = False
    return found


def packed(arrays: Sequence[np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Return arrays as one flat array per dtype: thousands of small datasets are slow to open."""
    flat: dict[str, list[np.ndarray[Any, Any]]] = {}
    for array in arrays:
        flat.setdefault(array.dtype.name, []).append(array.reshape(-1))
    return {dtype: np.concatenate(parts) for dtype, parts in flat.items()}


def unpacked(
    specs: Sequence[TensorSpec], flat: Mapping[str, np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that :func:`packed` received.

    Raises
    ------
    ValueError
        If the number of elements is not that of the shapes, or they have several axes.
    """
    if any(held.ndim != 1 for held in flat.values()):
        raise ValueError("a dataset is not flat")
    position = dict.fromkeys(flat, 0)
    arrays = []
    for spec in specs:
        dtype, shape = spec.dtype.name, spec.shape or ()
        start = position.get(dtype, 0)
        position[dtype] = start + math.prod(n or 0 for n in shape)
        held = flat.get(dtype, np.empty(0, spec.dtype))
        arrays.append(held[start : position[dtype]].reshape(tuple(n or 0 for n in shape)))
    if position != {dtype: held.size for dtype, held in flat.items()}:
        raise ValueError("the elements are not as many as the shapes ask for")
    return arrays
