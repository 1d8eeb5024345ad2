"""Elementwise trigonometric and hyperbolic functions, their inverses, and angles in degrees."""

from __future__ import annotations

import math
from typing import Any

from ....core.extend import F
from ..common.kernels import native, standard
from ..common.op_builders import elementwise
from .arithmetic import nonzero_divisor

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "hypot",
    "rad2deg",
    "radians",
    "sin",
    "sinh",
    "tan",
    "tanh",
]

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
arcsin = asin = elementwise(
    "arcsin",
    lambda xp, x: standard(xp, "asin", "arcsin")(x),
    x=lambda g, x: g / F.sqrt((1.0 - x) * (1.0 + x)),  # exact near the ends
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
    x=lambda g, x: -g / F.sqrt((1.0 - x) * (1.0 + x)),  # exact near the ends
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
    x=lambda g, x: g / (1.0 + x * x),
    doc="""Return the angle in [-pi/2, pi/2] whose tangent is ``x``, elementwise.

    Examples
    --------
    >>> round(gt.arctan(1.0).item(), 4)
    0.7854
    >>> gt.grad(gt.arctan)(1.0).item()
    0.5
    """,
)


def _over_square(x: Any, distance: Any) -> Any:
    nowhere = F.logical_or(distance == 0, F.isinf(distance))
    distance = F.where(nowhere, 1.0, distance)
    # twice, since the square could overflow; zeros of its shape, since x may be a number
    return F.where(nowhere, F.zeros_like(distance), x) / distance / distance


arctan2 = atan2 = elementwise(
    "arctan2",
    lambda xp, x, y: standard(xp, "atan2", "arctan2")(x, y),
    x=lambda g, x, y: g * _over_square(y, F.hypot(x, y)),
    y=lambda g, x, y: -g * _over_square(x, F.hypot(x, y)),
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
hypot = elementwise(
    "hypot",
    x=lambda g, x, out: g * (x / nonzero_divisor(out)),
    y=lambda g, y, out: g * (y / nonzero_divisor(out)),
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
tanh = elementwise(
    "tanh",
    x=lambda g, out: g * (1.0 - out * out),
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
    x=lambda g, x: g / ((1.0 - x) * (1.0 + x)),  # exact near the ends
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
