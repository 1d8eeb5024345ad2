"""Activations that multiply their input by a gate.

Their slopes are 0 near irrational numbers, which ``Split`` holds to twice the precision.
"""

from __future__ import annotations

import math
from functools import cache
from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from ....core.extend import F, Op, Tensor, floats, numpy_dtype, ops
from ..common.axes import axis_of
from ..common.kernels import at_hand, cast_to, reals, renewed
from ..common.op_builders import elementwise, named
from ..shapes.splitting import split
from . import single_gelu
from .sigmoids import between, sigmoid_kernel


class Split(NamedTuple):
    """A number as the sum of two.

    Attributes
    ----------
    high
        The number, rounded to double precision.
    low
        What the rounding took.
    """

    high: float
    low: float

    def distance(self, x: Any, dtype: Any) -> Any:
        """Return ``x`` minus the number, exact to the last digits of ``dtype`` near the number.

        Parameters
        ----------
        x
            Tensors or arrays of real numbers.
        dtype
            Their dtype, of NumPy.
        """
        high, low = _parts(self, dtype)
        return (x - high) - low

    def cut(self, digits: int) -> tuple[float, float]:
        """Return the number's first binary digits, and the rest."""
        fraction, exponent = math.frexp(self.high)
        first = math.ldexp(round(math.ldexp(fraction, digits)), exponent - digits)
        return first, (self.high - first) + self.low


@cache
def _parts(number: Split, dtype: Any) -> tuple[float, float]:
    """Return a number, rounded to ``dtype``, and what the rounding took."""
    high = float(dtype.type(number.high)) if dtype.kind == "f" else number.high
    return high, (number.high - high) + number.low


# -- activations -----------------------------------------------------------------------------------

# beyond this, gates are open or closed in every dtype, up to rounding, as for an infinite x
_FAR = 1e3


def _within(x: Any) -> Any:
    return F.clip(x, -_FAR, _FAR)


silu = elementwise(
    "silu",
    lambda xp, x: xp.maximum(reals(x), -_FAR) * sigmoid_kernel(xp, x),
    holomorphic=False,
    floating=True,
    doc="""Return ``x * sigmoid(x)``, elementwise; also known as swish.

    References
    ----------
    Elfwing, Uchibe and Doya, "Sigmoid-weighted linear units for neural network function
    approximation in reinforcement learning", 2018.

    Examples
    --------
    >>> gt.round(gt.nn.silu(np.array([-1.0, 0.0, 1.0])), 3).tolist()
    [-0.269, 0.0, 0.731]
    """,
    x=lambda g, x: g * F.silu_slope(x),
)


#: Where the slope of silu is 0, and how near the formula for all numbers loses digits.
SILU_FLAT = Split(-1.2784645427610737, -1.0946994183093437e-16)
SILU_NEAR = 0.125
# where the slope's derivative is 0
_SILU_BEND = Split(2.3993572805154675, 1.8464872855353363e-16)


def silu_slope_kernel(xp: Any, x: Any) -> Any:
    x = xp.clip(reals(x), -_FAR, _FAR)
    root = xp.exp(xp.abs(x) * -0.5)  # its square can be subnormal where the slope is not
    e = root * root
    right, below = x >= 0, 1 + e
    inner = xp.where(right, e, xp.ones_like(e)) / below * x + 1
    outer = xp.where(right, xp.ones_like(root), root)
    slope = outer / below * inner * outer
    near = xp.abs(x - SILU_FLAT.high) < SILU_NEAR
    return renewed(xp, near, slope, lambda x: silu_slope_near(xp, x), x)


def silu_slope_near(xp: Any, x: Any) -> Any:
    """Return the slope of ``silu`` near its root: ``(1 + x + e) e / (1 + e)**2``, ``e = exp(x)``.

    The sum is taken less what it is at the root, which is 0.
    """
    past = SILU_FLAT.distance(x, numpy_dtype(x.dtype))
    grown = _SILU_EXP * xp.expm1(past)
    e = _SILU_EXP + grown
    below = 1 + e
    return e * (past + grown) / (below * below)


_SILU_EXP = -1.0 - SILU_FLAT.high  # its exponential, as 1 + x + exp(x) is 0 there


def _silu_bend(g: Any, x: Any) -> Any:
    """Return the derivative of the slope: that of the sigmoid, times ``2 - x * tanh(x / 2)``."""
    x = _within(x)
    past = _SILU_BEND.distance(F.abs(x), x.dtype)
    near = F.abs(past) < 0.5
    # less what is 0 at the root
    close, half = F.where(near, past, 0.0), F.where(near, 0.5 * F.abs(x), 0.0)
    grown = F.sinh(0.5 * close) / (F.cosh(half) * math.cosh(0.5 * _SILU_BEND.high))
    root = -(close * F.tanh(half) + _SILU_BEND.high * grown)
    gate = _root_of_slope(x)
    return g * (gate * F.where(near, root, 2.0 - x * F.tanh(0.5 * x)) * gate)


def _root_of_slope(x: Any) -> Any:
    """Return the root of the sigmoid's slope, which can be subnormal where products are not."""
    e = F.exp(0.5 * F.where(x >= 0, -x, x))
    return e / (1.0 + e * e)


_silu_slope = elementwise(
    "silu_slope",
    silu_slope_kernel,
    holomorphic=False,
    x=_silu_bend,
    doc="Return the derivative of ``silu``, elementwise.",
)


hard_silu = elementwise(
    "hard_silu",
    # the gate first, so that fewer arrays are alive at a time
    lambda xp, x: between(xp, x + 3, 0, 6) / 6 * xp.maximum(x, -3),
    holomorphic=False,
    floating=True,
    doc="""Return ``x * hard_sigmoid(x)``, elementwise; also known as hard swish.

    References
    ----------
    Howard and others, "Searching for MobileNetV3", 2019.

    Examples
    --------
    >>> gt.nn.hard_silu([0.0, 3.0, 4.0]).tolist()
    [0.0, 3.0, 4.0]
    """,
    x=lambda g, x: g * F.where(F.abs(x) < 3, (x + x + 3.0) * (1 / 6), F.hard_sigmoid(x)),
)


mish = elementwise(
    "mish",
    lambda xp, x: (
        xp.maximum(reals(x), -_FAR)
        * xp.tanh(xp.maximum(x, xp.zeros_like(x)) + xp.log1p(xp.exp(-xp.abs(x))))
    ),
    holomorphic=False,
    floating=True,
    doc="""Return ``x * tanh(softplus(x))``, elementwise.

    References
    ----------
    Misra, "Mish: a self regularized non-monotonic activation function", 2019.

    Examples
    --------
    >>> gt.round(gt.nn.mish(np.array([-1.0, 0.0, 1.0])), 3).tolist()
    [-0.303, 0.0, 0.865]
    """,
    x=lambda g, x: g * F.mish_slope(x),
)

# where the slope of mish is 0, and where its derivative is
_MISH_FLAT = Split(-1.1924312145154952, -4.8484829848031044e-17)
_MISH_BENDS = (
    Split(1.4905711794854284, 7.126036715834263e-17),
    Split(-2.256376396360793, -1.0703174875019247e-16),
)


def _mish_slope_kernel(xp: Any, x: Any) -> Any:
    """Return ``e**x * w / d**2`` with the polynomials of Misra's paper, for either sign of ``x``.

    ``w = 4(x + 1) + 4e**2x + e**3x + e**x (4x + 6)`` and ``d = 2e**x + e**2x + 2``.
    """
    x = xp.clip(reals(x), -_FAR, _FAR)
    root = xp.exp(xp.abs(x) * -0.5)  # its square can be subnormal where the slope is not
    e = root * root
    ee = e * e
    right = 1 + e * (4 + (4 * x + 6) * e + (4 * x + 4) * ee)
    left = 4 * (x + 1) + e * ((4 * x + 6) + e * (4 + e))
    past = _MISH_FLAT.distance(x, numpy_dtype(x.dtype))
    left = renewed(xp, xp.abs(past) < 0.25, left, lambda past: _mish_root(xp, past), past)
    positive = x >= 0
    below = xp.where(positive, 1 + 2 * e + 2 * ee, 2 + 2 * e + ee)
    outer = xp.where(positive, xp.ones_like(root), root)
    return outer * (xp.where(positive, right, left) / below / below) * outer


def _mish_root(xp: Any, past: Any) -> Any:
    """Return ``w`` at a distance from its root, less what is 0 there."""
    at, line = math.exp(_MISH_FLAT.high), 4 * _MISH_FLAT.high + 6
    one, two, three = (xp.expm1(k * past) for k in (1, 2, 3))
    change = 4 * (1 + at) * past + at * (line + 4 * past) * one
    return change + 4 * at**2 * two + at**3 * three


def _mish_bend(g: Any, x: Any) -> Any:
    """Return the derivative of the slope: ``sech(p)**2 s (2 + x (1 - s - 2 s tanh(p)))``.

    Here ``p`` is ``softplus(x)`` and ``s`` is ``sigmoid(x)``.
    """
    x = _within(x)
    right = x >= 0
    root = F.exp(0.5 * F.where(right, -x, x))
    e = root * root
    ee = e * e
    below = F.where(right, 1.0 + 2.0 * e + 2.0 * ee, 2.0 + 2.0 * e + ee)
    # the last factor over (1 + n)(n n + 2 n + 2), where n = exp(x)
    cubic = F.where(right, 2.0 * (((2.0 * e + 4.0) * e + 3.0) * e + 1.0),
                    2.0 * (((e + 3.0) * e + 4.0) * e + 2.0))  # fmt: skip
    slanted = F.where(right, ((2.0 * e + 2.0) * e - 3.0) * e - 2.0,
                      2.0 + (2.0 - (2.0 * e + 3.0) * e) * e)  # fmt: skip
    last = cubic + x * slanted
    for zero in _MISH_BENDS:
        last = _mish_near(zero, x, slanted, last)
    # the exponentials last: they can be subnormal where the result is not
    outer = F.where(right, e, root)
    return g * (outer * (4.0 * last / below / below / below) * outer)


def _mish_near(zero: Split, x: Any, slanted: Any, last: Any) -> Any:
    """Return the last factor less what is 0 at a root, near the root."""
    past = zero.distance(x, x.dtype)
    near = F.abs(past) < 0.25
    d, n = F.where(near, past, 0.0), math.exp(zero.high)
    one, two, three = (F.expm1(k * d) for k in (1.0, 2.0, 3.0))
    cubic = 8.0 * n * one + 6.0 * n**2 * two + 2.0 * n**3 * three
    change = 2.0 * n * one - 3.0 * n**2 * two - 2.0 * n**3 * three
    root = cubic + zero.high * change + (2 + 2 * n - 3 * n**2 - 2 * n**3) * d + d * change
    # for positive x, all terms are over exp(3 x)
    scale = F.exp(-3.0 * F.where(near, x, 0.0)) if zero.high > 0 else 1.0
    return F.where(near, root * scale, last)


_mish_slope = elementwise(
    "mish_slope",
    _mish_slope_kernel,
    holomorphic=False,
    x=_mish_bend,
    doc="Return the derivative of ``mish``, elementwise.",
)


HALF = sqrt(0.5)
DENSITY = 1 / sqrt(2 * pi)
_TANH = sqrt(2 / pi)
_CUBE = 0.044715


def gelu_kernel(xp: Any, x: Any, *, approximate: bool = False) -> Any:
    if not approximate and single_gelu.is_single(x):
        return single_gelu.gelu_kernel(xp, x, -_FAR)
    half = 0.5 * xp.maximum(reals(x), -_FAR)
    if approximate:
        return half * (1 + xp.tanh(_TANH * (x + _CUBE * (x * x * x))))
    return half * F.erfc(-HALF * x)


#: Where the slope of gelu is 0, and how near the formula for all numbers loses digits.
GELU_FLAT = Split(-0.7517915246935645, 1.4956759177009883e-17)
GELU_NEAR = 0.2
# the slope of the slope is 0 at the square root of 2
_GELU_BEND = Split(1.4142135623730951, -9.667293313452913e-17)


def _hermite(count: int, x: float) -> list[float]:
    """Return the first derivatives of the normal density, as multiples of it."""
    values = [1.0, -x]
    for n in range(1, count - 1):
        values.append(-x * values[n] - n * values[n - 1])
    return values


def _gelu_series() -> list[float]:
    """Return the Taylor series of the slope around its zero, without the constant."""
    x = GELU_FLAT.high
    density, h = DENSITY * math.exp(-x * x / 2), _hermite(20, x)
    # the slope's derivative is (2 - x**2) times the density: the density less its second derivative
    return [density * (h[n] - h[n + 2]) / math.factorial(n + 1) for n in range(16)]


GELU_SERIES = _gelu_series()


_LINE, _BEND = (
    Split(2 * _TANH, -9.96930880911092e-17),
    Split(2 * _TANH * _CUBE, -4.1218577217431825e-18),
)


def _gelu_exponent(x: Any) -> tuple[Any, Any]:
    """Return ``a = 2 sqrt(2 / pi) (x + 0.044715 x**3)``, and what rounding took from ``abs(a)``.

    An error of the exponent, times the exponential, is an error of the slope. The second value is
    0 where the exponent is small.
    """
    size = 2 * _TANH * (x * (1.0 + _CUBE * (x * x)))
    dtype = numpy_dtype(x.dtype)
    far = F.logical_and(F.abs(x) > 2.0, F.abs(x) < 24.0)
    if dtype.char not in "fd" or not at_hand(F.any(far), unknown=True):
        return size, F.zeros_like(size)
    x, absolute = F.stop_gradient(x), F.stop_gradient(F.abs(size))
    if type(x) is np.ndarray and x.ndim:  # compute only what is needed
        lost = np.zeros_like(x)
        lost[far] = _lost_of_exponent(np.abs(x[far]), absolute[far])
        return size, lost
    x = F.where(far, F.abs(x), 0.0)
    return size, F.where(far, _lost_of_exponent(x, absolute), 0.0)


def _lost_of_exponent(x: Any, size: Any) -> Any:
    # the products of numbers with few digits are exact
    steps, digits = (4.0, (12, 6)) if numpy_dtype(x.dtype).char == "f" else (16.0, (26, 26))
    near = F.round(x * steps) / steps
    rest = x - near
    (a, a_rest), (b, b_rest) = (c.cut(n) for c, n in zip((_LINE, _BEND), digits, strict=True))
    line, cube = a * near, b * (near * near * near)
    total = line + cube
    lost = line - (total - cube)
    cubes = rest * (x * x + x * near + near * near)
    lost = lost + (a * rest + b * cubes + (a_rest * x + b_rest * (x * x * x)))
    return (total - size) + lost


def gelu_slope_kernel(xp: Any, x: Any, *, approximate: bool = False) -> Any:
    if not approximate and single_gelu.is_single(x):
        return single_gelu.slope_kernel(xp, x, GELU_FLAT, GELU_SERIES)
    x = xp.clip(reals(x), -50.0, 50.0)  # the slope is constant beyond
    if approximate:
        size, lost = _gelu_exponent(x)
        root = xp.exp(xp.abs(size) * -0.5)  # its square can be subnormal where the slope is not
        e = root * root * (1 - lost)
        below = 1 + e
        # on NumPy, the maximum is faster than a choice by condition
        left = cast_to(xp, size < 0, x.dtype)
        rest = xp.maximum(e, left) / below
        share = 1 + x * (rest * (2 * _TANH * (1 + 3 * _CUBE * (x * x))))
        right = 1 - left
        return xp.maximum(root * (1 - lost), right) / below * share * xp.maximum(root, right)
    density = F.exp_minus_square(x, scale=0.25)  # its root, as the density can be subnormal
    slope = F.erfc(x * -HALF) * 0.5 + x * density * (DENSITY * density)
    slope = renewed(xp, x < -30, slope, lambda x: _gelu_tail(xp, x), x)
    past = GELU_FLAT.distance(x, numpy_dtype(x.dtype))
    return renewed(xp, xp.abs(past) < GELU_NEAR, slope, _gelu_root, past)


def _gelu_root(past: Any) -> Any:
    """Return the slope at a distance from its root, by Taylor's series."""
    series = GELU_SERIES[-1] + 0 * past
    for factor in reversed(GELU_SERIES[:-1]):
        series = series * past + factor
    return series * past


def _gelu_tail(xp: Any, x: Any) -> Any:
    """Return the slope for ``x`` below -30, where erfc can be subnormal."""
    x = xp.clip(x, -50.0, -30.0)
    density, q = F.exp_minus_square(x, scale=0.25), 1 / (x * x)
    ratio = x - (1 - q * (1 - q * (3 - q * (15 - q * (105 - q * 945))))) / x
    return ratio * density * (DENSITY * density)


def _gelu_bend(g: Any, x: Any, approximate: bool) -> Any:
    x = F.clip(x, -50.0, 50.0)
    if not approximate:
        left, right = _GELU_BEND.distance(x, x.dtype), _GELU_BEND.distance(-x, x.dtype)
        density = F.exp_minus_square(x, scale=0.25)
        return g * (density * (left * right) * (DENSITY * density))
    size, lost = _gelu_exponent(x)
    slope, bend = 2 * _TANH * (1.0 + 3 * _CUBE * (x * x)), 12 * _TANH * _CUBE * x
    gate = _root_of_slope(size)
    steep = gate * slope
    curved = bend * gate * gate - steep * steep * F.tanh(0.5 * size)
    return g * ((1.0 - lost) * (2.0 * gate * steep + x * curved))


_gelu_slope = elementwise(
    "gelu_slope",
    gelu_slope_kernel,
    kind=Op,
    holomorphic=False,
    x=_gelu_bend,
    doc="Return the derivative of ``gelu``, elementwise.",
)
_gelu = elementwise(
    "gelu",
    gelu_kernel,
    kind=Op,
    holomorphic=False,
    floating=True,
    doc="Return ``x`` times the normal distribution function of ``x``.",
    x=lambda g, x, approximate: g * F.gelu_slope(x, approximate=approximate),
)


def gelu(x: Any, approximate: bool = False) -> Tensor:
    """Return ``x * P(X <= x)`` for a standard normal ``X``, elementwise.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    approximate
        Use ``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))`` instead, which is faster
        and off by less than 0.0005. False by default: the exact form needs SciPy's error function.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    BackendUnavailable
        If the exact form is requested and SciPy is not installed.
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    References
    ----------
    Hendrycks and Gimpel, "Gaussian error linear units (GELUs)", 2016.

    Examples
    --------
    >>> gt.round(gt.nn.gelu(np.array([-1.0, 0.0, 1.0])), 3).tolist()
    [-0.159, 0.0, 0.841]
    >>> gt.round(gt.nn.gelu(np.array([-1.0, 0.0, 1.0]), approximate=True), 3).tolist()
    [-0.159, 0.0, 0.841]
    """
    return _gelu(x, approximate=bool(approximate))


@named
def glu(x: Any, axis: int = -1) -> Tensor:
    """Return one half of ``x`` times the sigmoid of the other: a gated linear unit.

    Parameters
    ----------
    x
        A floating tensor.
    axis
        The axis to halve, the last by default; its size must be even.

    Returns
    -------
    A tensor of the dtype and shape of ``x``, except for half the size along the axis.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.
    ValueError
        If the size is odd.

    References
    ----------
    Dauphin, Fan, Auli and Grangier, "Language modeling with gated convolutional networks", 2017.

    Examples
    --------
    >>> gt.nn.glu([[1.0, 2.0, 0.0, 0.0]]).tolist()
    [[0.5, 1.0]]
    """
    (x,) = floats(x)
    values, gates = split(x, 2, axis_of(x, axis, "glu"))
    return values * ops["sigmoid"](gates)
