"""Random numbers inside compiled programs: NumPy's Philox, with arithmetic that XLA has.

A key gives the same numbers on every backend. Outside JAX's traces the host draws them. While JAX
traces, a key has no value yet, and these kernels turn it into numbers when the program runs. XLA
refuses numbers that NumPy draws by rejection (normal, exponential, gamma).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..ops.random import philox
from .compiling import Refused, portable


def _uniform(key: Any, *, shape: tuple[int, ...], dtype: Any = "float32") -> Any:
    return philox.uniform(jnp, key, shape, dtype)


def _uniform_like(key: Any, like: Any) -> Any:
    return philox.uniform(jnp, key, like.shape[key.ndim - 1 :], like.dtype)


def _split(key: Any, like: Any) -> Any:
    return philox.split(jnp, key, like.shape[0])


def _integers(key: Any, *, shape: tuple[int, ...], low: int, high: int) -> Any:
    bound = high - low
    if not 0 < bound <= philox.MOST_INTEGERS:
        raise Refused(
            f"op 'random_integers' draws from {bound} integers: XLA supports 2**32 at most"
        )
    return philox.integers(jnp, key, shape, low, high)


def _traced(name: str, draw: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a kernel that draws on the host, or in XLA while JAX traces."""

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
