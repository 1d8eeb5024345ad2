"""Random numbers: generators, and functions that share a global one."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
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
