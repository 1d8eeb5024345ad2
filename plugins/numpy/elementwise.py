"""Elementwise functions that NumPy computes in one ufunc, or in fewer steps than others."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.extend import ScalarTable
from ..ops.elementwise.trigonometry import TANH_DIGITS, tanh_slope_kernel
from ..ops.network.activations.sigmoids import SIGMOID_DIGITS, sigmoid_slope_kernel

__all__ = ["KERNELS"]

Array = NDArray[Any]

_NUMBERS = ScalarTable(np.array)


# The kernels of both slopes compute as the portable ones do. Of double precision, they take
# exponentials only of the elements that need them.


def _tanh_slope(x: Array, y: Array) -> Array:
    if _uncommon(x, y):
        return tanh_slope_kernel(np, x, y)
    if x.dtype.char == "f":
        e = np.absolute(x)
        return _over_square(np.multiply(e, _NUMBERS[-2.0, e.dtype], e), _NUMBERS[4.0, e.dtype])
    slope = np.multiply(y, y)
    np.subtract(_NUMBERS[1.0, x.dtype], slope, slope)
    if not np.minimum.reduce(slope, None) > TANH_DIGITS:
        again = ~(slope > TANH_DIGITS)
        slope[again] = tanh_slope_kernel(np, x[again], y[again])
    return slope


def _sigmoid_slope(x: Array, y: Array) -> Array:
    if _uncommon(x, y):
        return sigmoid_slope_kernel(np, x, y)
    if x.dtype.char == "f":
        e = np.absolute(x)
        return _over_square(np.negative(e, e))
    rest = np.subtract(_NUMBERS[1.0, x.dtype], y)
    if np.minimum.reduce(rest, None) > SIGMOID_DIGITS:
        return np.multiply(rest, y, rest)
    again = ~(rest > SIGMOID_DIGITS)
    np.multiply(rest, y, rest)
    rest[again] = sigmoid_slope_kernel(np, x[again], y[again])
    return rest


def _over_square(x: Array, factor: Any = None) -> Array:
    """Return ``e / (1 + e)**2`` for ``e = exp(x)``, times a factor, in the memory of ``x``."""
    np.exp(x, x)
    below = np.add(x, _NUMBERS[1.0, x.dtype])
    np.multiply(below, below, below)
    np.divide(x, below, x)
    return x if factor is None else np.multiply(x, factor, x)


def _uncommon(x: Array, y: Array) -> bool:
    return (
        x.dtype.char not in "fd" or x.dtype != y.dtype or x.shape != y.shape or not x.size * x.ndim
    )


#: Kernels by op.
KERNELS: dict[str, Callable[..., Any]] = {
    "arccos": np.arccos,
    "arccosh": np.arccosh,
    "arcsin": np.arcsin,
    "arcsinh": np.arcsinh,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "arctanh": np.arctanh,
    "exp2": np.exp2,
    "power": operator.pow,
    "sigmoid_slope": _sigmoid_slope,
    "tanh_slope": _tanh_slope,
}
