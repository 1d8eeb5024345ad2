"""``tf.random``: random tensors, from the shared generator or from one with a seed."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import gradtape

from ...core.extend import as_size
from .dtypes import as_dtype, cast, float32, int64
from .names import adapts, lookup
from .tensors import convert_to_tensor, sizes

__all__ = [
    "Generator",
    "categorical",
    "gamma",
    "get_global_generator",
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


def source(seed: Any) -> Any:
    """Return what draws: the shared generator, or one made from a seed."""
    if hasattr(seed, "normal"):  # a generator itself
        return seed
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


def _drawing(function: Any) -> Any:
    """Return a function of this module as a method of a generator."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return function(*args, **options, seed=super(Generator, self))

    return method


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


@adapts("random.Generator")
class Generator(gradtape.random.Generator):
    """A source of random numbers, see :class:`gradtape.random.Generator`."""

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Return one that draws the same numbers for the same seed."""
        return cls(int(np.asarray(seed).reshape(-1)[0]))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Return one with a seed from the operating system."""
        return cls()

    def reset_from_seed(self, seed: Any) -> None:
        """Begin anew."""
        self.set_seed(int(seed))

    def split(self, count: int = 1) -> list[Generator]:
        """Return generators with seeds that this one draws."""
        return [Generator(int(n)) for n in np.asarray(self.randint((count,), 0, 2**62))]

    normal = _drawing(normal)
    truncated_normal = _drawing(truncated_normal)
    uniform = _drawing(uniform)


@adapts("random")
def get_global_generator() -> Any:
    """Return what draws where no generator is named."""
    return gradtape.random


__getattr__ = lookup(__name__)
