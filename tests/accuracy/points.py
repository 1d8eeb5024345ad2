"""Points at which derivatives are measured: dense at kinks, tails, powers of two, cancellations."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from .row import Row

__all__ = ["points"]

Array = np.ndarray[Any, Any]


def points(row: Row, count: int, dtype: Any) -> list[Array]:
    """Return about ``count`` points, as one array for each argument; always the same ones."""
    random = np.random.default_rng(zlib.crc32(f"{row.call} {np.dtype(dtype).name}".encode()))
    dtype = np.dtype(dtype)
    with np.errstate(all="ignore"):  # infinite numbers are dropped
        if len(row.first) == 1:
            drawn = [_singles(random, row, count * 2, dtype)]
        else:
            drawn = _PAIRS[row.pairs](random, count * 2, dtype)
    inside = (drawn[0] > row.low) & (drawn[0] < row.high)
    for x in drawn:
        inside &= np.isfinite(x) & ~np.isin(x, row.kinks)
    rows = np.flatnonzero(inside)
    chosen = random.permutation(rows)[:count]
    return [np.ascontiguousarray(x[chosen]) for x in drawn]


def _sizes(random: Any, count: int, dtype: Any) -> Array:
    """Return numbers of every magnitude, subnormal ones included, of both signs."""
    limits = np.finfo(dtype)
    low, high = np.log2(float(limits.smallest_subnormal)), np.log2(float(limits.max))
    exponents = random.uniform(low, high, count)
    return (np.exp2(exponents) * random.choice([-1.0, 1.0], count)).astype(dtype)


def _ranges(random: Any, count: int, dtype: Any) -> Array:
    """Return numbers from ranges in which exponentials neither overflow nor vanish."""
    widths = [1.0, 5.0, 40.0, 120.0] + ([760.0, 1100.0] if dtype == np.float64 else [])
    return (random.uniform(-1, 1, count) * random.choice(widths, count)).astype(dtype)


def _steps(random: Any, x: Array) -> Array:
    """Return floating-point numbers up to 8 steps away."""
    for _ in range(3):
        x = np.nextafter(x, random.choice([-np.inf, np.inf], x.shape).astype(x.dtype))
    return x


def _near(random: Any, count: int, dtype: Any, centres: Any) -> Array:
    """Return numbers around centres, at every distance."""
    at = random.choice(np.asarray(centres, np.float64), count)
    distance = 10.0 ** random.uniform(-17, 0, count) * random.choice([-1.0, 1.0], count)
    close = (at + distance * np.maximum(np.abs(at), 1.0)).astype(dtype)
    return np.where(random.random(count) < 0.3, _steps(random, at.astype(dtype)), close)


def _powers(random: Any, count: int, dtype: Any) -> Array:
    limits = np.finfo(dtype)
    exact = np.exp2(random.integers(limits.minexp, limits.maxexp, count).astype(np.float64))
    exact = np.where(random.random(count) < 0.5, np.exp2(random.integers(-9, 10, count)), exact)
    exact = (exact * random.choice([-1.0, 1.0], count)).astype(dtype)
    return np.where(random.random(count) < 0.5, exact, _steps(random, exact))


def _singles(random: Any, row: Row, count: int, dtype: Any) -> Array:
    few = max(count // 10, 8)
    numbers = [
        _sizes(random, 3 * few, dtype),
        _ranges(random, 4 * few, dtype),
        _near(random, 2 * few, dtype, row.near),
        _powers(random, few, dtype),
    ]
    x = np.concatenate(numbers)
    if row.low >= 0 or row.high <= 0:
        x = np.abs(x)
    if row.low == 1.0:  # the other half lies below
        x = np.where(x < 1, (1 + x.astype(np.float64)).astype(dtype), x)
    if row.high == 1.0:  # most sizes lie beyond
        return np.where(np.abs(x) > 1, (1 / x.astype(np.float64)).astype(dtype), x)
    return x


def _any(random: Any, count: int, dtype: Any) -> list[Array]:
    """Return pairs of any size, of one size, and nearly equal ones of either sign."""
    third = count // 3
    x, y = (
        np.concatenate([_sizes(random, third, dtype), _ranges(random, third, dtype)])
        for _ in range(2)
    )
    close = np.concatenate([_sizes(random, third // 2, dtype), _ranges(random, third // 2, dtype)])
    turned = _steps(random, close) * random.choice([-1.0, 1.0], close.shape).astype(dtype)
    alike = x[:third] * random.uniform(-3, 3, third).astype(dtype)
    return [np.concatenate([x, close, x[:third]]), np.concatenate([y, turned, alike])]


def _apart(random: Any, count: int, dtype: Any) -> list[Array]:
    x, y = _any(random, count, dtype)
    different = x != y
    return [x[different], y[different]]


def _exponents(random: Any, count: int, dtype: Any) -> list[Array]:
    x, y = (_ranges(random, count, dtype) for _ in range(2))
    close = random.random(count) < 0.2
    return [x, np.where(close, _near(random, count, dtype, (0.0,)) + x, y).astype(dtype)]


def _power(random: Any, count: int, dtype: Any) -> list[Array]:
    """Return bases, and exponents for which the power is a normal number."""
    x = (
        np.abs(
            np.concatenate(
                [
                    _sizes(random, count // 2, dtype),
                    _ranges(random, count // 4, dtype),
                    _near(random, count // 4, dtype, (1.0,)),
                ]
            )
        )
        + np.finfo(dtype).smallest_normal
    )
    x = x[np.isfinite(x) & (x > 0)]
    most = 0.95 * np.log(np.finfo(dtype).max) / np.maximum(np.abs(np.log(x)), 1e-30)
    span = np.minimum(most, np.finfo(dtype).max)
    y = (
        span
        * random.choice([-1.0, 1.0], x.shape)
        * random.random(x.shape) ** random.choice([1.0, 20.0], x.shape)
    )
    y = y.astype(dtype)
    return [x[y != 0], y[y != 0]]


def _labels(random: Any, count: int, dtype: Any) -> list[Array]:
    kinds = random.choice(3, count)
    shares = random.random(count)
    labels = np.where(kinds == 0, 0.0, np.where(kinds == 1, 1.0, shares))
    return [_ranges(random, count, dtype), labels.astype(dtype)]


_PAIRS = {
    "any": _any,
    "apart": _apart,
    "exponents": _exponents,
    "labels": _labels,
    "power": _power,
}
