"""Random numbers: generators, and functions that share one."""

from __future__ import annotations

# as a whole, before its parts: threads that began with different parts would wait for each other
from ..plugins import ops  # noqa: F401
from ..plugins.ops.random.functions import (
    bernoulli,
    categorical,
    choice,
    exponential,
    gamma,
    normal,
    permutation,
    randint,
    set_seed,
    shuffle,
    truncated_normal,
    uniform,
)
from ..plugins.ops.random.generator import Generator
from ..public import publish

__all__ = [
    "Generator",
    "bernoulli",
    "categorical",
    "choice",
    "exponential",
    "gamma",
    "normal",
    "permutation",
    "randint",
    "set_seed",
    "shuffle",
    "truncated_normal",
    "uniform",
]

publish(__name__)
