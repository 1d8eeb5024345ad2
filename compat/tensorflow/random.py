"""``tf.random``: random tensors, from the shared generator or from one with a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape

from ...core.extend import as_size
from .dtypes import as_dtype, cast, float32, int64
from .names import adapts, lookup
from .tensors import convert_to_tensor, sizes

__all__ = [
    "categorical",
    "gamma",
    "normal",
    "shuffle",
    "stateless_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]


class _Seeded(gradtape.random.Generator):
    """What draws the numbers of a seed, the same in each run of a trace: it has no state."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.draws = 0

    def _count_on(self) -> Any:
        key = gradtape.constant([self.state.seed, self.draws])
        self.draws += 1
        return key


def source(seed: int | None) -> Any:
    """Return what draws: the shared generator, or one made from a seed."""
    return gradtape.random if seed is None else _Seeded(seed)


@adapts("random.normal")
def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Return normally distributed numbers; with a ``seed``, the same at each call."""
    return source(seed).normal(sizes(shape, "normal"), mean, stddev, as_dtype(dtype))


@adapts("random.truncated_normal")
def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Return normally distributed numbers, cut off at two standard deviations."""
    shape = sizes(shape, "truncated_normal")
    return source(seed).truncated_normal(shape, mean, stddev, as_dtype(dtype))


@adapts("random.uniform", "random.randint")
def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Return evenly distributed numbers from ``minval`` up to ``maxval``, that one not included.

    ``maxval`` is 1 by default; for an integer ``dtype`` it must be given.
    """
    shape, dtype = sizes(shape, "uniform"), as_dtype(dtype)
    if dtype.kind not in "iu":
        return source(seed).uniform(shape, minval, 1.0 if maxval is None else maxval, dtype)
    if maxval is None:
        raise ValueError(f"uniform: give maxval for numbers of dtype {dtype}")
    low, high = as_size(minval, "uniform"), as_size(maxval, "uniform")
    return cast(source(seed).randint(shape, low, high), dtype)


@adapts("random.gamma")
def gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Return gamma-distributed numbers, of shape ``shape + alpha.shape``."""
    alpha = convert_to_tensor(alpha, None if hasattr(alpha, "dtype") else dtype)
    scale = 1.0 if beta is None else 1.0 / convert_to_tensor(beta, alpha.dtype)
    whole = (*sizes(shape, "gamma"), *(alpha + 0.0 * scale).shape)
    return source(seed).gamma(whole, alpha, scale, dtype=alpha.dtype)


@adapts("random.categorical")
def categorical(
    logits: Any, num_samples: Any, dtype: Any = int64, seed: int | None = None, name: Any = None
) -> Any:
    """Return for each row of logits ``num_samples`` class numbers drawn by them."""
    drawn = source(seed).categorical(convert_to_tensor(logits), sizes(num_samples, "categorical"))
    return cast(gradtape.matrix_transpose(drawn), dtype)


@adapts("random.shuffle")
def shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Any:
    """Return the slices along the first axis in a random order."""
    return source(seed).permutation(convert_to_tensor(value))


def _combined(seed: Any) -> int:
    a, b = (int(n) for n in np.asarray(seed).reshape(-1))
    return (a % 2**31) * 2**31 + b % 2**31


@adapts("random.Generator.normal")
def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: Any = None,
) -> Any:
    """Return normally distributed numbers that follow from the pair ``seed`` alone."""
    return normal(shape, mean, stddev, dtype, _combined(seed))


@adapts("random.Generator.uniform")
def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    name: Any = None,
) -> Any:
    """Return evenly distributed numbers that follow from the pair ``seed`` alone."""
    return uniform(shape, minval, maxval, dtype, _combined(seed))


__getattr__ = lookup(__name__)
