"""NumPy's Philox generator for any array library: the same numbers, made on the key's device.

Numbers that NumPy draws by rejection (normal, exponential, gamma) cannot be made in this way: the
number of words that each takes depends on the numbers before it.

References
----------
Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011: Philox4x64-10.
Lemire, "Fast random integer generation in an interval", 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod, sqrt
from typing import Any

import numpy as np

from ....core.extend import numpy_dtype, registry

_FACTORS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
#: The largest ``high - low`` that :func:`integers` takes.
MOST_INTEGERS = 2**32 - 1


def _u64(value: int) -> Any:
    return np.uint64(value)


def _wide_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the high and the low half of a product of 64-bit numbers."""
    half, mask = _u64(32), _u64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    low = a_low * b_low
    middle = a_high * b_low + (low >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half), a * b


def _words(xp: Any, key: Any, count: int) -> Any:
    """Return the first 64-bit words of each key's stream, in the last axis."""
    blocks = -(-count // 4)
    key = key.astype(np.uint64)
    k0, k1 = key[..., 0:1], key[..., 1:2]  # never without axes: NumPy's scalars warn of overflow
    shape = (*key.shape[:-1], blocks)
    zero = xp.zeros(shape, dtype=np.uint64)
    c0 = xp.broadcast_to(xp.arange(1, blocks + 1, dtype=np.uint64), shape)
    c1 = c2 = c3 = zero
    for _ in range(10):
        high0, low0 = _wide_product(_u64(_FACTORS[0]), c0)
        high1, low1 = _wide_product(_u64(_FACTORS[1]), c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + _u64(_WEYL[0]), k1 + _u64(_WEYL[1])
    words = xp.stack([c0, c1, c2, c3], axis=-1)
    return xp.reshape(words, (*shape[:-1], 4 * blocks))[..., :count]


def _halves(xp: Any, key: Any, count: int) -> Any:
    """Return the first 32-bit words: the low half of each 64-bit word, then its high half."""
    words = _words(xp, key, -(-count // 2))
    halves = xp.stack([words & _u64(0xFFFFFFFF), words >> _u64(32)], axis=-1)
    return xp.reshape(halves, (*words.shape[:-1], 2 * words.shape[-1]))[..., :count]


def _shaped(xp: Any, numbers: Any, key: Any, shape: tuple[int, ...]) -> Any:
    return xp.reshape(numbers, (*key.shape[:-1], *shape))


def uniform(xp: Any, key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return numbers in [0, 1), for each key."""
    dtype, count = np.dtype(dtype), prod(shape)
    if dtype == np.float64:
        numbers = (_words(xp, key, count) >> _u64(11)).astype(dtype) * 2.0**-53
    else:
        halves = _halves(xp, key, count) >> _u64(8)
        numbers = halves.astype(np.float32) * np.float32(2.0**-24)
    if dtype == np.float16:  # rounding may reach the bound
        numbers = xp.minimum(numbers, np.float32(np.nextafter(np.float16(1), np.float16(0))))
    return _shaped(xp, numbers.astype(dtype), key, shape)


def split(xp: Any, key: Any, count: int) -> Any:
    """Return keys derived from each key, along a new first axis."""
    # NumPy redraws one of 2**63 words: that is ignored here
    high, _ = _wide_product(_words(xp, key, 2 * count), _u64(2**63 - 1))
    keys = xp.reshape(high.astype(np.int64), (*key.shape[:-1], count, 2))
    return xp.moveaxis(keys, -2, 0).astype(key.dtype)


def integers(xp: Any, key: Any, shape: tuple[int, ...], low: int, high: int) -> Any:
    """Return integers for each key, at most ``MOST_INTEGERS`` apart, without those redrawn."""
    bound, count = high - low, prod(shape)
    below = (2**32 - bound) % bound
    again = below / 2**32
    spare = 0 if below == 0 else ceil(count * again * 2 + 20 * sqrt(count * again) + 64)
    products = _halves(xp, key, count + spare) * _u64(bound)
    numbers = (products >> _u64(32)).astype(np.int64)
    if spare:
        kept = (products & _u64(0xFFFFFFFF)) >= _u64(below)
        order = xp.argsort(~kept, axis=-1, stable=True)
        numbers = xp.take_along_axis(numbers, order, axis=-1)
    return _shaped(xp, numbers[..., :count] + low, key, shape)


# -- kernels ---------------------------------------------------------------------------------------


def _uniform(xp: Any, key: Any, *, shape: tuple[int, ...], dtype: Any = "float32") -> Any:
    return uniform(xp, key, shape, dtype)


def _uniform_like(xp: Any, key: Any, like: Any) -> Any:
    return uniform(xp, key, like.shape[key.ndim - 1 :], numpy_dtype(like.dtype))


def _split(xp: Any, key: Any, like: Any) -> Any:
    return split(xp, key, like.shape[0])


def _integers(xp: Any, key: Any, *, shape: tuple[int, ...], low: int, high: int) -> Any:
    if 0 < high - low <= MOST_INTEGERS:
        return integers(xp, key, shape, low, high)
    host: Any = registry().op("random_integers").kernel
    return host(xp, key, shape=shape, low=low, high=high)


#: Kernels by op, for backends that draw where the key is.
KERNELS: dict[str, Callable[..., Any]] = {
    "random_integers": _integers,
    "random_split": _split,
    "random_uniform": _uniform,
    "random_uniform_like": _uniform_like,
}
