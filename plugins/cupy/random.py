"""Random numbers made on the GPU: NumPy's Philox, bit for bit.

Normal, exponential and gamma numbers and permutations are drawn on the host, and copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.extend import numpy_dtype, registry
from ..ops.random import philox


def _uniform(xp: Any, key: Any, *, shape: tuple[int, ...], dtype: Any = "float32") -> Any:
    return philox.uniform(xp, key, shape, dtype)


def _uniform_like(xp: Any, key: Any, like: Any) -> Any:
    return philox.uniform(xp, key, like.shape[key.ndim - 1 :], numpy_dtype(like.dtype))


def _split(xp: Any, key: Any, like: Any) -> Any:
    return philox.split(xp, key, like.shape[0])


def _integers(xp: Any, key: Any, *, shape: tuple[int, ...], low: int, high: int) -> Any:
    if 0 < high - low <= philox.MOST_INTEGERS:
        return philox.integers(xp, key, shape, low, high)
    on_host: Any = registry().op("random_integers").kernel
    return on_host(xp, key, shape=shape, low=low, high=high)


KERNELS: dict[str, Callable[..., Any]] = {
    "random_integers": _integers,
    "random_split": _split,
    "random_uniform": _uniform,
    "random_uniform_like": _uniform_like,
}
