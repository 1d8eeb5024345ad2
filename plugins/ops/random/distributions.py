"""Ops that turn a key into numbers of a distribution.

See ``keys`` for what a key is, and ``generator`` for what users call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....core.extend import NONDIFF, backend_of, numpy_dtype
from ..common.op_builders import op
from .keys import for_each, keyed, on_backend, rows_drawn, shape_for_each

__all__: list[str] = []

Draw = Callable[[np.random.Generator, tuple[int, ...], np.dtype[Any]], Any]


def _drawn(
    draw: Draw,
    key: Any,
    shape: tuple[int, ...],
    dtype: Any,
    below: float | None,
    like: bool = False,
) -> Any:
    """Return numbers on the backend and device of ``key``, below ``below`` if it is given."""
    dtype = numpy_dtype(dtype) if not isinstance(dtype, str) else np.dtype(dtype)
    wide = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float32)
    # bounded numbers take one word each
    each = 0 if below is None else 32 // wide.itemsize
    numbers = rows_drawn(key, shape, lambda rng, size: draw(rng, size, wide), like, each)
    if below is not None and dtype is not wide:  # rounding to half precision may reach the bound
        numbers = np.minimum(numbers, np.nextafter(dtype.type(below), dtype.type(0)))
    if type(key) is np.ndarray:  # a subclass may be of another backend
        return np.asarray(numbers, dtype)
    return on_backend(np.asarray(numbers), key, dtype)


def random_op(name: str, draw: Draw, doc: str, below: float | None = None) -> None:
    """Make an op that draws numbers, and its variant that takes shape and dtype from a tensor."""

    def kernel(xp: Any, key: Any, *, shape: tuple[int, ...], dtype: str = "float32") -> Any:
        return _drawn(draw, key, shape, dtype, below)

    def like_kernel(xp: Any, key: Any, like: Any) -> Any:
        return _drawn(draw, key, like.shape[key.ndim - 1 :], like.dtype, below, True)

    op(
        name,
        kernel,
        gradients={"key": NONDIFF},
        infer=lambda key, shape, dtype: (shape_for_each(key, shape), np.dtype(dtype)),
        batch=keyed,
        random=True,
        doc=f"Return {doc}, determined by ``key``.",
    )
    op(
        f"{name}_like",
        like_kernel,
        gradients={"key": NONDIFF, "like": NONDIFF},
        infer=lambda key, like: (like.shape, like.dtype),
        batch=keyed,
        random=True,
        doc=f"Return {doc}, determined by ``key``, of the shape and dtype of ``like``.",
    )


random_op(
    "random_normal",
    lambda rng, shape, dtype: rng.standard_normal(shape, dtype),
    "standard normal numbers",
)
random_op(
    "random_uniform",
    lambda rng, shape, dtype: rng.random(shape, dtype),
    "numbers uniformly distributed over [0, 1)",
    below=1.0,
)


Array = NDArray[Any]


def _truncated(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Draw normal numbers; redraw those beyond two standard deviations."""
    numbers: Array = np.asarray(rng.standard_normal(shape, dtype))
    while (far := np.abs(numbers) > 2).any():
        numbers[far] = rng.standard_normal(int(far.sum()), dtype)
    return numbers


random_op(
    "random_truncated_normal",
    _truncated,
    "standard normal numbers from -2 to 2",
)


random_op(
    "random_exponential",
    lambda rng, shape, dtype: rng.standard_exponential(shape, dtype),
    "exponentially distributed numbers of mean 1",
)
random_op(
    "random_gumbel",
    lambda rng, shape, dtype: -np.log(rng.standard_exponential(shape, dtype)),
    "numbers of the standard Gumbel distribution",
)


# -- integers --------------------------------------------------------------------------------------


op(
    "random_integers",
    lambda xp, key, *, shape, low, high: on_backend(
        np.asarray(
            rows_drawn(key, shape, lambda rng, size: rng.integers(low, high, size, np.int64))
        ),
        key,
    ),
    gradients={"key": NONDIFF},
    infer=lambda key, shape, low, high: (shape_for_each(key, shape), np.dtype(np.int64)),
    batch=keyed,
    random=True,
    doc="Return integers from ``low`` up to, but not including, ``high``, determined by ``key``.",
)


op(
    "random_permutation",
    lambda xp, key, *, n: backend_of(key).asarray(
        for_each(key, lambda rng: rng.permutation(n)), dtype=np.int64
    ),
    gradients={"key": NONDIFF},
    infer=lambda key, n: (shape_for_each(key, (n,)), np.dtype(np.int64)),
    batch=keyed,
    random=True,
    doc="Return the integers below ``n`` in an order determined by ``key``.",
)
