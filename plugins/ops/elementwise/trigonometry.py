"""Elementwise trigonometric and hyperbolic functions, their inverses, and angles in degrees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core.extend import F, kind_of
from ..common.kernels import at_hand, native, standard
from ..common.op_builders import elementwise
from .arithmetic import nonzero_divisor

sin = elementwise(
    "sin",
    x=lambda g, x: g * F.cos(x),
    doc="""Return the sine of ``x``, an angle in radians, elementwise.

    Examples
    --------
    >>> round(gt.sin(np.pi / 6).item(), 4)
    0.5
    >>> gt.grad(gt.sin)(0.0).item()
    1.0
    """,
)
cos = elementwise(
    "cos",
    x=lambda g, x: -g * F.sin(x),
    doc="""Return the cosine of ``x``, an angle in radians, elementwise.

    Examples
    --------
    >>> gt.cos(0.0).item()
    1.0
    >>> round(gt.cos(np.pi).item(), 4)
    -1.0
    """,
)
tan = elementwise(
    "tan",
    x=lambda g, out: g * (1.0 + out * out),
    doc="""Return the tangent of ``x``, an angle in radians, elementwise.

    Examples
    --------
    >>> round(gt.tan(np.pi / 4).item(), 4)
    1.0
    >>> gt.grad(gt.tan)(0.0).item()
    1.0
    """,
)
# exact near -1 and 1; its own rule keeps two products that cancel out of second derivatives
_one_minus_square = elementwise(
    "one_minus_square",
    lambda xp, x: (1 - x) * (1 + x),
    x=lambda g, x: g * (-2.0 * x),
    doc="Return ``1 - x**2``, elementwise.",
)
arcsin = asin = elementwise(
    "arcsin",
    lambda xp, x: standard(xp, "asin", "arcsin")(x),
    x=lambda g, x: g / F.sqrt(F.one_minus_square(x)),
    doc="""Return the angle in [-pi/2, pi/2] whose sine is ``x``, elementwise.

    Real numbers are from -1 to 1; others give nan.

    Notes
    -----
    The gradient is ``1 / sqrt(1 - x**2)``, which is infinite at -1 and 1.

    Examples
    --------
    >>> round(gt.arcsin(1.0).item(), 4)
    1.5708
    >>> gt.grad(gt.arcsin)(0.0).item()
    1.0
    """,
)
arccos = acos = elementwise(
    "arccos",
    lambda xp, x: standard(xp, "acos", "arccos")(x),
    x=lambda g, x: -g / F.sqrt(F.one_minus_square(x)),
    doc="""Return the angle in [0, pi] whose cosine is ``x``, elementwise.

    Real numbers are from -1 to 1; others give nan.

    Notes
    -----
    The gradient is ``-1 / sqrt(1 - x**2)``, which is infinite at -1 and 1.

    Examples
    --------
    >>> round(gt.arccos(-1.0).item(), 4)
    3.1416
    >>> gt.grad(gt.arccos)(0.0).item()
    -1.0
    """,
)
arctan = atan = elementwise(
    "arctan",
    lambda xp, x: standard(xp, "atan", "arctan")(x),
    x=lambda g, x: g * F.arctan_slope(x),
    doc="""Return the angle in [-pi/2, pi/2] whose tangent is ``x``, elementwise.

    Examples
    --------
    >>> round(gt.arctan(1.0).item(), 4)
    0.7854
    >>> gt.grad(gt.arctan)(1.0).item()
    0.5
    """,
)


_arctan_slope = elementwise(
    "arctan_slope",
    lambda xp, x: 1 / (1 + x * x),
    # one factor after the other: the slope's square could underflow
    x=lambda g, x, out: g * (-2.0 * (x * out) * out),
    doc="Return ``1 / (1 + x**2)``, the derivative of ``arctan``, elementwise.",
)


def _scaled(xp: Any, x: Any, y: Any, distance: Any) -> tuple[Any, Any, Any]:
    """Return ``x`` and its distance from the origin times a factor, and the factor.

    The factor, a power of two, makes the distance a normal number. It is None for 1.
    """
    limits = xp.finfo(distance.dtype)
    least, most = 64 * float(limits.smallest_normal) / float(limits.eps), float(limits.max) / 4
    extreme = (distance < least) | (distance > most)
    if not at_hand(xp.any(extreme), unknown=True):
        return x, distance, None
    tiny = 2.0 ** math.floor(math.log2(most) / 2)
    one = xp.ones_like(distance)
    factor = xp.where(distance < least, tiny * one, xp.where(distance > most, 0.25 * one, one))
    return x * factor, xp.hypot(x * factor, y * factor), factor


def _angle_slope_kernel(xp: Any, x: Any, y: Any) -> Any:
    x, distance, factor = _scaled(xp, x, y, xp.hypot(x, y))
    nowhere = (distance == 0) | xp.isinf(distance)
    distance = xp.where(nowhere, xp.ones_like(distance), distance)
    # twice, since the square could overflow
    slope = xp.where(nowhere, xp.zeros_like(distance), x) / distance
    slope = slope / distance
    return slope if factor is None else slope * factor


def _angle_bend(g: Any, x: Any, y: Any) -> Any:
    # with x = y + d: the difference of squares over the fourth power of the distance
    r = nonzero_divisor(F.hypot(x, y))
    return g * (((y - x) / r) * ((0.5 * y + 0.5 * x) / r) * 2.0 / r / r)


_angle_slope = elementwise(
    "arctan2_slope",
    _angle_slope_kernel,
    x=_angle_bend,
    y=lambda g, x, y, out: g * (-2.0 * out * F.arctan2_slope(y, x)),
    doc="Return ``x / (x**2 + y**2)``, elementwise, and 0 at the origin.",
)
arctan2 = atan2 = elementwise(
    "arctan2",
    lambda xp, x, y: standard(xp, "atan2", "arctan2")(x, y),
    x=lambda g, x, y: g * F.arctan2_slope(y, x),
    y=lambda g, x, y: -g * F.arctan2_slope(x, y),
    doc="""Return the angle in [-pi, pi] of the point with ordinate ``x`` and abscissa ``y``.

    Angles are in radians.

    Parameters
    ----------
    x
        The ordinates: a real tensor, array or number.
    y
        The abscissas, of a shape that broadcasts with ``x``.

    Notes
    -----
    The gradients are ``y / (x**2 + y**2)`` and ``-x / (x**2 + y**2)``. At the origin, where there
    are none, they are 0.

    Examples
    --------
    >>> round(gt.arctan2(1.0, -1.0).item(), 4)
    2.3562
    >>> gt.arctan2(0.0, 1.0).item()
    0.0
    """,
)


def hypot_slope_kernel(xp: Any, x: Any, y: Any, distance: Any) -> Any:
    x, distance, _ = _scaled(xp, x, y, distance)
    return x / xp.where(distance == 0, xp.ones_like(distance), distance)


def _shares(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return ``y`` and ``x`` over the square root of ``factor`` times the cubed distance.

    The third value is the factor. The products of the first two neither overflow nor underflow
    before the second derivatives do.
    """
    distance = F.hypot(x, y)
    least = np.finfo(distance.dtype).smallest_normal / np.finfo(distance.dtype).eps
    factor = F.where(distance < float(least), 2.0**64, F.ones_like(distance))
    root = F.sqrt(nonzero_divisor(F.hypot(x * factor, y * factor)))
    return F.hypot_slope(y, x, distance) / root, F.hypot_slope(x, y, distance) / root, factor


def _hypot_bend(g: Any, x: Any, y: Any) -> Any:
    share, _, factor = _shares(x, y)
    return g * (share * share * factor)


def _hypot_twist(g: Any, x: Any, y: Any) -> Any:
    one, other, factor = _shares(x, y)
    return -g * (one * other * factor)


_hypot_slope = elementwise(
    "hypot_slope",
    hypot_slope_kernel,
    x=_hypot_bend,
    y=_hypot_twist,
    distance=lambda g: F.zeros_like(g),  # it is there to save time; the others count it
    doc="Return ``x / distance`` for ``distance = hypot(x, y)``, elementwise; 0 at the origin.",
)
hypot = elementwise(
    "hypot",
    x=lambda g, x, y, out: g * F.hypot_slope(x, y, out),
    y=lambda g, x, y, out: g * F.hypot_slope(y, x, out),
    doc="""Return ``sqrt(x**2 + y**2)``, elementwise, without overflow.

    Notes
    -----
    The gradients are ``x / hypot(x, y)`` and ``y / hypot(x, y)``; at (0, 0) they are 0.

    Examples
    --------
    >>> gt.hypot(3.0, [4.0, 0.0]).tolist()
    [5.0, 3.0]
    >>> gt.grad(gt.hypot)(0.0, 0.0).item()
    0.0
    """,
)
sinh = elementwise(
    "sinh",
    x=lambda g, x: g * F.cosh(x),
    doc="""Return the hyperbolic sine of ``x``, elementwise.

    Examples
    --------
    >>> round(gt.sinh(1.0).item(), 4)
    1.1752
    >>> gt.grad(gt.sinh)(0.0).item()
    1.0
    """,
)
cosh = elementwise(
    "cosh",
    x=lambda g, x: g * F.sinh(x),
    doc="""Return the hyperbolic cosine of ``x``, elementwise.

    Examples
    --------
    >>> round(gt.cosh(1.0).item(), 4)
    1.5431
    >>> gt.grad(gt.cosh)(0.0).item()
    0.0
    """,
)


#: Above this slope, ``1 - y**2`` has digits enough in double precision.
TANH_DIGITS = 0.0625


def tanh_slope_kernel(xp: Any, x: Any, y: Any) -> Any:
    """Return ``1 - y**2`` for ``y = tanh(x)``, exact where ``y`` is near 1.

    NumPy's exponential is fast in single precision, and slow in double precision.
    """
    if kind_of(x.dtype) == "c":
        return 1 - y * y
    e = xp.exp(xp.abs(x) * -2)  # at most 1
    below = e + 1
    slope = e / (below * below) * 4
    if str(x.dtype).endswith("float64"):
        quick = 1 - y * y
        return xp.where(quick > TANH_DIGITS, quick, slope)
    return slope


_tanh_slope = elementwise(
    "tanh_slope",
    tanh_slope_kernel,
    x=lambda g, y, out: g * (-2.0 * (y * out)),
    y=lambda g: F.zeros_like(g),  # it is there to save time; the slope of x counts it
    record={"inline": True},
    doc="Return ``1 - y**2`` for ``y = tanh(x)``, elementwise, exact where ``y`` is near 1.",
)
tanh = elementwise(
    "tanh",
    x=lambda g, x, out: g * F.tanh_slope(x, out),
    doc="""Return the hyperbolic tangent of ``x``, elementwise.

    Notes
    -----
    The gradient is ``1 - tanh(x)**2``.

    Examples
    --------
    >>> gt.tanh([0.0, np.inf]).tolist()
    [0.0, 1.0]
    >>> round(gt.tanh(1.0).item(), 4)
    0.7616
    """,
)


def _arcsinh_rule(g: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        return g / F.sqrt(x * x + 1.0)
    return g / F.hypot(x, 1.0)  # the square could overflow


arcsinh = asinh = elementwise(
    "arcsinh",
    lambda xp, x: standard(xp, "asinh", "arcsinh")(x),
    x=_arcsinh_rule,
    doc="""Return the inverse hyperbolic sine of ``x``, elementwise.

    Examples
    --------
    >>> round(gt.arcsinh(1.0).item(), 4)
    0.8814
    >>> gt.grad(gt.arcsinh)(0.0).item()
    1.0
    """,
)
arccosh = acosh = elementwise(
    "arccosh",
    lambda xp, x: standard(xp, "acosh", "arccosh")(x),
    # two roots: right on the whole complex plane, and exact near 1
    x=lambda g, x: g / (F.sqrt(x - 1.0) * F.sqrt(x + 1.0)),
    doc="""Return the inverse hyperbolic cosine of ``x``, elementwise, for ``x >= 1``.

    Smaller real numbers give nan.

    Notes
    -----
    The gradient is ``1 / sqrt(x**2 - 1)``, which is infinite at 1.

    Examples
    --------
    >>> gt.arccosh(1.0).item()
    0.0
    >>> round(gt.arccosh(2.0).item(), 4)
    1.317
    """,
)
arctanh = atanh = elementwise(
    "arctanh",
    lambda xp, x: standard(xp, "atanh", "arctanh")(x),
    x=lambda g, x: g / F.one_minus_square(x),
    doc="""Return the inverse hyperbolic tangent of ``x``, elementwise, for ``-1 < x < 1``.

    Real numbers outside give nan, and the bounds give infinities.

    Examples
    --------
    >>> round(gt.arctanh(0.5).item(), 4)
    0.5493
    >>> gt.grad(gt.arctanh)(0.0).item()
    1.0
    """,
)

RADIANS = math.pi / 180.0

deg2rad = radians = elementwise(
    "deg2rad",
    native("deg2rad", lambda xp, x: x * RADIANS),
    x=lambda g: g * RADIANS,
    doc="""Return degrees as radians, elementwise.

    Examples
    --------
    >>> round(gt.deg2rad(180.0).item(), 4)
    3.1416
    """,
)
rad2deg = degrees = elementwise(
    "rad2deg",
    native("rad2deg", lambda xp, x: x / RADIANS),
    x=lambda g: g / RADIANS,
    doc="""Return radians as degrees, elementwise.

    Examples
    --------
    >>> round(gt.rad2deg(np.pi).item(), 2)
    180.0
    """,
)
