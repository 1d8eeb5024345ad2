"""``tf.random``: random tensors, from the shared generator or a seed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import gradtape

from ...core.extend import as_size
from .dtypes import as_dtype, cast, float32
from .names import adapts, lookup
from .tensors import convert_to_tensor, sizes

__all__ = ["Generator", "SeedGenerator", "gamma", "get_global_generator", "uniform"]


class _Seeded(gradtape.random.Generator):
    """Draws from a seed without state: each run of a trace gives the same numbers."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.draws = 0

    def _count_on(self) -> Any:
        key = gradtape.constant([self.state.seed, self.draws])
        self.draws += 1
        return key


def source(seed: Any) -> Any:
    """Return the shared generator, or one for a seed."""
    if seed is None:
        return gradtape.random
    return seed if hasattr(seed, "normal") else _Seeded(seed)  # a seed may be a generator


@adapts("random.uniform", "random.randint")
def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = float32,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Return uniformly distributed numbers in ``[minval, maxval)``.

    ``maxval`` is 1 by default, and required for an integer ``dtype``.
    """
    dtype = float32 if dtype is None or dtype is float32 else as_dtype(dtype)
    if dtype is float32 or dtype.kind not in "iu":
        return source(seed).uniform(shape, minval, 1.0 if maxval is None else maxval, dtype)
    if maxval is None:
        raise ValueError(f"uniform: pass maxval, which dtype {dtype} needs")
    low, high = as_size(minval, "uniform"), as_size(maxval, "uniform")
    return cast(source(seed).randint(sizes(shape, "uniform"), low, high), dtype)


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


def _drawing(name: str) -> Any:
    """Return a function of this module as a method of a generator."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        function = getattr(sys.modules[__name__], name)
        return function(*args, **options, seed=super(Generator, self))

    method.__doc__ = f"Do what ``tf.random.{name}`` does, with this generator."
    return method


def combined(seed: Any) -> int:
    """Combine a pair of seeds into one."""
    a, b = (int(n) for n in np.asarray(seed).reshape(-1))
    return (a % 2**31) * 2**31 + b % 2**31


@adapts("random.Generator")
class Generator(gradtape.random.Generator):
    """A source of random numbers; see :class:`gradtape.random.Generator`."""

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Return a generator that draws the same numbers for the same seed."""
        return cls(int(np.asarray(seed).reshape(-1)[0]))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Return a generator with a seed from the operating system."""
        return cls()

    def reset_from_seed(self, seed: Any) -> None:
        """Restart from a seed."""
        self.set_seed(int(seed))

    def split(self, count: int = 1) -> list[Generator]:
        """Return generators whose seeds this one draws."""
        return [Generator(int(n)) for n in np.asarray(self.randint((count,), 0, 2**62))]


@adapts("random.Generator")
class SeedGenerator(Generator):
    """A source of seeds, and of random numbers as the ``seed`` of a function."""

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        super().__init__(seed)

    def next(self, ordered: bool = True) -> Any:
        """Return a seed: two integers."""
        return cast(self.randint((2,), 0, 2**31 - 1), "uint32")


for _name in ("normal", "truncated_normal", "uniform"):
    setattr(Generator, _name, _drawing(_name))


@adapts("random")
def get_global_generator() -> Any:
    """Return the generator that ops use by default."""
    return gradtape.random


__getattr__ = lookup(__name__)
