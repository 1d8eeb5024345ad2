"""Arrays for samples, drawn once, so that every run uses the same."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_generators: dict[str, np.random.Generator] = {}


def _rng() -> np.random.Generator:
    """Return the generator of the calling table, so that tables do not affect each other."""
    frame = sys._getframe()
    while frame.f_back and frame.f_globals is globals():
        frame = frame.f_back
    table = frame.f_globals["__name__"]
    if table not in _generators:
        _generators[table] = np.random.default_rng(11)
    return _generators[table]


def real(*shape: int) -> Array:
    """Return numbers of both signs, 0.3 to 2 in absolute value: away from kinks at 0."""
    rng = _rng()
    return np.asarray(rng.uniform(0.3, 2.0, shape) * rng.choice([-1.0, 1.0], shape))


def positive(*shape: int) -> Array:
    """Return numbers from 0.3 to 2."""
    return np.asarray(_rng().uniform(0.3, 2.0, shape))


def unit(*shape: int) -> Array:
    """Return numbers of both signs, 0.2 to 0.8 in absolute value."""
    rng = _rng()
    return np.asarray(rng.uniform(0.2, 0.8, shape) * rng.choice([-1.0, 1.0], shape))


def complexes(*shape: int) -> Array:
    """Return complex numbers, with both parts from 0.2 to 0.8 in absolute value."""
    return np.asarray(unit(*shape) + 1j * unit(*shape))


def spread_numbers(*shape: int) -> Array:
    """Return numbers that all differ by 0.1 or more, and are not near 0."""
    count = int(np.prod(shape))
    spread = np.linspace(-0.1 * count - 0.35, 0.1 * count + 0.27, count)
    return np.asarray(_rng().permutation(spread).reshape(shape))


def near_identity(*shape: int) -> Array:
    """Return well-conditioned matrices."""
    return np.asarray(0.3 * real(*shape) + 2.0 * np.eye(shape[-2], shape[-1]))
