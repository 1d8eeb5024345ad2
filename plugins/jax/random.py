"""Random numbers inside compiled programs: NumPy's Philox, in arithmetic that XLA has.

The numbers are those that a key gives on every backend. Elsewhere the host draws them; a key that
JAX traces has no value yet, and these kernels turn it into numbers when the program runs. What
NumPy draws by rejection (normal, exponential, gamma numbers) has no such form: XLA refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod, sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .compiling import Refused, portable

__all__ = ["KERNELS"]

# Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011: Philox4x64-10
_FACTORS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)


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


def _words(key: Any, count: int) -> Any:
    """Return the first 64-bit words of a key's stream."""
    blocks = -(-count // 4)
    zero = jnp.zeros(blocks, jnp.uint64)
    c0, c1, c2, c3 = jnp.arange(1, blocks + 1, dtype=jnp.uint64), zero, zero, zero
    k0, k1 = key.astype(jnp.uint64)
    for _ in range(10):
        high0, low0 = _wide_product(_u64(_FACTORS[0]), c0)
        high1, low1 = _wide_product(_u64(_FACTORS[1]), c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + _u64(_WEYL[0]), k1 + _u64(_WEYL[1])
    return jnp.stack([c0, c1, c2, c3], axis=1).reshape(-1)[:count]


def _halves(key: Any, count: int) -> Any:
    """Return the first 32-bit words: of each of 64 bits the low half, then the high one."""
    words = _words(key, -(-count // 2))
    return jnp.stack([words & _u64(0xFFFFFFFF), words >> _u64(32)], axis=1).reshape(-1)[:count]


def _for_each(key: Any, draw: Callable[[Any], Any]) -> Any:
    """Return what is drawn for a key; for an array of keys, one draw for each, stacked."""
    for _ in range(key.ndim - 1):
        draw = jax.vmap(draw)
    drawn: Any = draw(key)
    return drawn


def _uniform(key: Any, *, shape: tuple[int, ...], dtype: Any = "float32") -> Any:
    dtype, count = np.dtype(dtype), prod(shape)

    def draw(one: Any) -> Any:
        if dtype == np.float64:
            numbers = (_words(one, count) >> _u64(11)).astype(dtype) * 2.0**-53
        else:
            numbers = (_halves(one, count) >> _u64(8)).astype(jnp.float32) * np.float32(2.0**-24)
        if dtype == np.float16:  # rounding reaches the bound
            numbers = jnp.minimum(numbers, np.nextafter(np.float16(1), np.float16(0)))
        return numbers.astype(dtype).reshape(shape)

    return _for_each(key, draw)


def _uniform_like(key: Any, like: Any) -> Any:
    return _uniform(key, shape=like.shape[key.ndim - 1 :], dtype=like.dtype)


def _split(key: Any, like: Any) -> Any:
    count, bound = like.shape[0], 2**63 - 1

    def draw(one: Any) -> Any:  # that one is drawn again comes once in 2**63
        high, _ = _wide_product(_words(one, 2 * count), _u64(bound))
        return high.astype(jnp.int64).reshape(count, 2)

    return jnp.moveaxis(_for_each(key, draw), -2, 0).astype(key.dtype)


def _integers(key: Any, *, shape: tuple[int, ...], low: int, high: int) -> Any:
    """Return integers as NumPy draws them: Lemire's products, those drawn again left out."""
    bound, count = high - low, prod(shape)
    if not 0 < bound < 2**32:
        raise Refused(f"op 'random_integers' draws from {bound} integers: XLA has 2**32 at most")
    below = (2**32 - bound) % bound
    again = below / 2**32
    spare = 0 if below == 0 else ceil(count * again * 2 + 20 * sqrt(count * again) + 64)

    def draw(one: Any) -> Any:
        products = _halves(one, count + spare) * _u64(bound)
        numbers = (products >> _u64(32)).astype(jnp.int64)
        if spare:
            kept = (products & _u64(0xFFFFFFFF)) >= _u64(below)
            numbers = numbers[jnp.argsort(~kept, stable=True)]
        return (numbers[:count] + low).reshape(shape)

    return _for_each(key, draw)


def _traced(name: str, draw: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a kernel that draws on the host, and in XLA while JAX traces."""

    def kernel(*arrays: Any, **params: Any) -> Any:
        if not isinstance(arrays[0], jax.core.Tracer):
            return portable(name)(*arrays, **params)
        if draw is None:
            raise Refused(
                f"op {name!r} draws by rejection, which XLA cannot do; draw outside the function"
            )
        with jax.enable_x64(True):
            return draw(*arrays, **params)

    return kernel


_DRAWS: dict[str, Callable[..., Any]] = {
    "random_integers": _integers,
    "random_split": _split,
    "random_uniform": _uniform,
    "random_uniform_like": _uniform_like,
}
_REJECTING = ("exponential", "gumbel", "normal", "truncated_normal")
_NAMES = [
    *_DRAWS,
    "random_gamma",
    "random_permutation",
    *(f"random_{kind}{like}" for kind in _REJECTING for like in ("", "_like")),
]
KERNELS: dict[str, Callable[..., Any]] = {name: _traced(name, _DRAWS.get(name)) for name in _NAMES}
