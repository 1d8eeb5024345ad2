"""Statistics of arrays: the distribution of values, and the distance of two arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.extend import NUMPY

_BLOCK = 2**20
BINS = 32


@dataclass(frozen=True)
class Spread:
    """The distribution of an array's elements; for complex ones, of their absolute values.

    Attributes
    ----------
    counts
        A histogram of the finite elements, in equal steps from ``low`` to ``high``; empty if there
        are none.
    low, high, mean, deviation
        Statistics of the finite elements.
    zeros, nans, infinities
        The number of such elements.
    """

    counts: list[int]
    low: float = 0.0
    high: float = 0.0
    mean: float = 0.0
    deviation: float = 0.0
    zeros: int = 0
    nans: int = 0
    infinities: int = 0


@dataclass(frozen=True)
class Distance:
    """The distance between two arrays of the same shape.

    Attributes
    ----------
    changed, size
        How many elements differ in any bit, and how many there are.
    largest
        The largest difference of two elements that are not NaN.
    relative
        The L2 norm of the difference relative to that of the first array, where both are finite.
    nans
        How many elements are NaN in each.
    """

    changed: int
    size: int
    largest: float
    relative: float
    nans: tuple[int, int]


def _blocks(*arrays: np.ndarray[Any, Any]) -> Iterator[list[np.ndarray[Any, Any]]]:
    flat = [np.ascontiguousarray(x).reshape(-1) for x in arrays]
    for start in range(0, flat[0].size, _BLOCK):
        yield [x[start : start + _BLOCK] for x in flat]


def _wide(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def spread(array: np.ndarray[Any, Any]) -> Spread:
    """Return the distribution of an array's elements, using limited memory."""
    low, high = math.inf, -math.inf
    zeros = nans = infinities = 0
    for (block,) in _blocks(array):
        values = np.abs(_wide(block)) if block.dtype.kind == "c" else block
        zeros += values.size - int(np.count_nonzero(values))
        least, most = float(values.min()), float(values.max())
        if not (math.isfinite(least) and math.isfinite(most)):
            nans += int(np.count_nonzero(np.isnan(values)))
            infinities += int(np.count_nonzero(np.isinf(values)))
            finite = values[np.isfinite(values)].astype(np.float64)
            least, most = float(finite.min(initial=low)), float(finite.max(initial=high))
        low, high = min(low, least), max(high, most)
    if low > high:
        return Spread([], nans=nans, infinities=infinities)
    counts = np.zeros(BINS, np.int64)
    scale = max(abs(low), abs(high)) or 1.0  # the squares of huge numbers are not finite
    mean = squares = 0.0
    count = 0
    for (block,) in _blocks(array):
        values = _real(block)
        if nans or infinities:
            values = values[np.isfinite(values)]
        if not values.size:
            continue
        counts += _histogram(values, low, high)
        values /= scale
        middle = float(values.mean())
        # two parts of a whole: their means and sums of squares (Chan, Golub, LeVeque)
        step, total = middle - mean, count + values.size
        around = float(np.sum(np.square(values - middle)))
        squares += around + step * step * count * values.size / total
        mean += step * values.size / total
        count = total
    deviation = math.sqrt(squares / count) * scale
    return Spread(counts.tolist(), low, high, mean * scale, deviation, zeros, nans, infinities)


def _real(block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    wide = _wide(block)
    return np.abs(wide) if wide.dtype.kind == "c" else wide


def _histogram(values: np.ndarray[Any, Any], low: float, high: float) -> np.ndarray[Any, Any]:
    if not high / 2 > low / 2:
        return np.bincount([BINS // 2], [values.size], BINS).astype(np.int64)
    # halves: the distance of the largest two numbers is not finite
    place = (values / 2 - low / 2) / (high / 2 - low / 2) * BINS
    return NUMPY.bincount(np.clip(place.astype(np.int64), 0, BINS - 1), minlength=BINS)


def distance(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Distance:
    """Return the distance between two arrays of the same shape."""
    changed = sum(_changed(left, right) for left, right in _blocks(a, b))
    if not changed:
        return Distance(0, a.size, 0.0, 0.0, (0, 0))
    first = second = 0
    largest = apart = norm = 0.0
    for left, right in _blocks(a, b):
        x, y = _wide(left), _wide(right)
        first += int(np.count_nonzero(np.isnan(x)))
        second += int(np.count_nonzero(np.isnan(y)))
        gap = _gap(left, right, x, y)
        largest = max(largest, float(np.max(gap, initial=0.0, where=~np.isnan(gap))))
        both = np.isfinite(x) & np.isfinite(y)
        apart, norm = math.hypot(apart, _norm(gap[both])), math.hypot(norm, _norm(x[both]))
    relative = apart / norm if norm else math.inf if apart else 0.0
    return Distance(changed, a.size, largest, relative, (first, second))


def _gap(a: Any, b: Any, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Any:
    """Return the differences of two arrays, given in their dtype and as doubles."""
    if a.dtype == b.dtype and a.dtype.kind in "iu":  # doubles would lose that of large integers
        high, low = np.maximum(a, b).astype(np.uint64), np.minimum(a, b).astype(np.uint64)
        return (high - low).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(x == y, 0.0, np.abs(x - y))


def _changed(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> int:
    if a.dtype != b.dtype:
        equal = (a == b) | ((a != a) & (b != b))
        return int(np.count_nonzero(~equal))
    word = f"u{min(8, a.dtype.itemsize)}"
    differ = a.view(word) != b.view(word)
    return int(np.count_nonzero(differ.reshape(a.size, -1).any(axis=1)))


def _norm(x: np.ndarray[Any, Any]) -> float:
    scale = float(np.max(np.abs(x), initial=0.0))
    if not scale or not math.isfinite(scale):
        return scale
    return scale * math.sqrt(float(np.sum(np.square(np.abs(x) / scale))))
