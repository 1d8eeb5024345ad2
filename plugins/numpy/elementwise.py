"""Elementwise functions that NumPy computes in fewer steps than others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ...core.extend import F, ScalarTable
from ..ops.common.kernels import all_between
from ..ops.elementwise.trigonometry import (
    TANH_DIGITS,
    hypot_slope_kernel,
    tanh_slope_kernel,
)
from ..ops.network.gated_activations import (
    DENSITY,
    GELU_FLAT,
    GELU_NEAR,
    GELU_SERIES,
    HALF,
    SILU_FLAT,
    SILU_NEAR,
    gelu_kernel,
    gelu_slope_kernel,
    silu_slope_kernel,
    silu_slope_near,
)
from ..ops.network.sigmoids import SIGMOID_DIGITS, sigmoid_slope_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

_NUMBERS = ScalarTable(np.array)
#: The number of elements of a block.
_BLOCK = 2**15


class _Constants(NamedTuple):
    """What kernels need for a dtype."""

    #: As an array, which ufuncs take faster than a number.
    one: Array
    #: Exponentials of smaller numbers are normal.
    far: float
    #: Whether NumPy computes exponentials about as fast as products.
    quick_exp: bool
    gelu_series: Array


def _constants(dtype: type, far: float, quick_exp: bool) -> _Constants:
    return _Constants(np.array(1, dtype), far, quick_exp, np.array(GELU_SERIES, dtype))


#: By the character of a dtype.
_CONSTANTS = {"f": _constants(np.float32, 80.0, True), "d": _constants(np.float64, 700.0, False)}

# These kernels work in the memory of their first results, and treat only those elements specially
# that need it. For few elements, each call matters: ``argmin`` costs a third of ``minimum.reduce``.


# the slopes of tanh and sigmoid are those of the portable kernels, bit for bit
def tanh_slope_on_numpy(x: Array, y: Array) -> Array:
    known = _CONSTANTS.get(x.dtype.char)
    if known is None or x.shape != y.shape or not x.size * x.ndim:
        return tanh_slope_kernel(np, x, y)
    if known.quick_exp:
        return _tanh_tail(x)
    slope: Array = y * y
    np.subtract(known.one, slope, slope)
    if slope.item(slope.argmin()) > TANH_DIGITS:  # nan counts as the least
        return slope
    return _renew(slope, slope, TANH_DIGITS, _tanh_tail, x)


def _tanh_tail(x: Array) -> Array:
    """Return ``4 e / (1 + e)**2`` for ``e = exp(-2 abs(x))``."""
    e: Array = np.absolute(x)
    e *= _NUMBERS[-2.0, x.dtype]
    slope = _over_square(e)
    slope *= _NUMBERS[4.0, x.dtype]
    return slope


def sigmoid_slope_on_numpy(x: Array, y: Array) -> Array:
    known = _CONSTANTS.get(x.dtype.char)
    if known is None or x.shape != y.shape or not x.size * x.ndim:
        return sigmoid_slope_kernel(np, x, y)
    if known.quick_exp:
        return _sigmoid_tail(x)
    rest: Array = np.subtract(known.one, y)
    if rest.item(rest.argmin()) > SIGMOID_DIGITS:
        rest *= y
        return rest
    return _renew(rest * y, rest, SIGMOID_DIGITS, _sigmoid_tail, x)


def _sigmoid_tail(x: Array) -> Array:
    e: Array = np.absolute(x)
    return _over_square(np.negative(e, e))


def _over_square(x: Array) -> Array:
    """Return ``e / (1 + e)**2`` for ``e = exp(x)``, in the memory of ``x``."""
    np.exp(x, x)
    below = x + _NUMBERS[1.0, x.dtype]
    below *= below
    x /= below
    return x


def silu_slope_on_numpy(x: Array) -> Array:
    known = _CONSTANTS.get(x.dtype.char)
    if known is None or not (x.ndim and all_between(x, -known.far, known.far)):
        return silu_slope_kernel(np, x)
    # (1 + x e / (1 + e)) / (1 + e) for e = exp(-abs(x)), with e for the first 1 if x is negative
    e: Array = np.absolute(x)
    np.negative(e, e)
    np.exp(e, e)
    below = e + known.one
    slope = np.maximum(e, x >= 0)  # a choice by condition takes longer
    e *= x
    e /= below
    slope += e
    slope /= below
    return _exact_near(SILU_FLAT.high, SILU_NEAR, slope, _silu_root, x)


def _silu_root(x: Array) -> Array:
    slope: Array = silu_slope_near(np, x)
    return slope


def gelu_on_numpy(x: Array, *, approximate: bool = False) -> Array:
    return _in_blocks(partial(gelu_kernel, np, approximate=approximate), x)


def _in_blocks(kernel: Callable[[Array], Array], x: Array) -> Array:
    """Return an elementwise formula of many steps, in blocks that stay in the cache."""
    if x.size <= _BLOCK or x.dtype.char != "f" or not x.flags.c_contiguous:
        return kernel(x)
    out = np.empty_like(x)
    flat, target = x.reshape(-1), out.reshape(-1)
    for start in range(0, x.size, _BLOCK):
        target[start : start + _BLOCK] = kernel(flat[start : start + _BLOCK])
    return out


def gelu_slope_on_numpy(x: Array, *, approximate: bool = False) -> Array:
    if x.dtype.char == "f" and not approximate:
        return _in_blocks(partial(gelu_slope_kernel, np), x)
    # below -4, the rounded square is an error of the exponential
    if approximate or x.dtype.char not in _CONSTANTS or not (x.ndim and all_between(x, -4, 50)):
        return gelu_slope_kernel(np, x, approximate=approximate)
    density: Array = x * x
    density *= _NUMBERS[-0.5, x.dtype]
    np.exp(density, density)
    density *= _NUMBERS[DENSITY, x.dtype]
    density *= x
    slope: Array = F.erfc(x * _NUMBERS[-HALF, x.dtype])
    slope *= _NUMBERS[0.5, x.dtype]
    slope += density
    return _exact_near(GELU_FLAT.high, GELU_NEAR, slope, _gelu_root, x)


def _gelu_root(x: Array) -> Array:
    """Return the slope of gelu near its root, by Taylor's series in few calls."""
    series = _CONSTANTS[x.dtype.char].gelu_series
    powers = np.empty((len(series), len(x)), x.dtype)
    powers[0] = GELU_FLAT.distance(x, x.dtype)
    known = 1
    while known < len(series):
        more = min(known, len(series) - known)
        np.multiply(powers[:more], powers[known - 1], powers[known : known + more])
        known += more
    slope: Array = series.dot(powers)
    return slope


def hypot_slope_on_numpy(x: Array, y: Array, distance: Array) -> Array:
    # neither 0 nor so small or large that rounding takes digits
    if type(x) is np.ndarray and x.dtype.char == "d" and all_between(distance, 1e-200, 1e200):
        return x / distance
    return hypot_slope_kernel(np, x, y, distance)


def _exact_near(
    root: float, most: float, slope: Array, function: Callable[[Array], Array], x: Array
) -> Array:
    """Return ``slope`` with ``function(x)`` where ``x`` is within ``most`` of a root."""
    distance = x - _NUMBERS[root, x.dtype]
    np.absolute(distance, distance)
    if distance.item(distance.argmin()) < most:
        _renew(slope, distance, most, function, x)
    return slope


def _renew(
    found: Array, size: Array, most: float, function: Callable[[Array], Array], x: Array
) -> Array:
    """Return ``found`` with ``function(x)`` where ``size`` is not more than ``most``."""
    places = (size <= most).ravel().nonzero()[0]
    found.put(places, function(x.take(places)))
    return found
