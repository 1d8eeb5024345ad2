"""Elementwise ops: arithmetic, powers, exponentials, trigonometry, comparisons, rounding.

A rule is named for the input that it differentiates; ``g`` is the upstream gradient. Where an op
has no derivative (at a tie, at a bound) the rules follow TensorFlow.
"""

from __future__ import annotations

import cmath
import math
import operator
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Op, Tensor, as_tensor, ops
from ..common.families import SCALARS, cast_to, elementwise, named, op, standard

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "angle",
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
    "cast",
    "ceil",
    "clip",
    "conj",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "identity",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "not_equal",
    "positive",
    "pow",
    "power",
    "real",
    "reciprocal",
    "remainder",
    "rint",
    "round",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "stop_gradient",
    "subtract",
    "tan",
    "tanh",
    "trunc",
    "where",
]

LN2 = math.log(2.0)
LN10 = math.log(10.0)


def _nonzero(x: Any) -> Any:
    """Return ``x`` with ones for its zeros: a divisor that gives the subgradient 0 there."""
    return F.where(x == 0, 1.0, x)


# -- arithmetic ------------------------------------------------------------------------------------

add = elementwise(
    "add",
    x=lambda g: g,
    y=lambda g: g,
    doc="""Return ``x + y``, elementwise.

    Examples
    --------
    >>> gt.add([1.0, 2.0], [[10.0], [20.0]]).tolist()
    [[11.0, 12.0], [21.0, 22.0]]
    """,
)
subtract = elementwise(
    "subtract",
    x=lambda g: g,
    y=lambda g: -g,
    doc="""Return ``x - y``, elementwise.

    Examples
    --------
    >>> gt.subtract([5.0, 3.0], 1.0).tolist()
    [4.0, 2.0]
    """,
)
multiply = elementwise(
    "multiply",
    x=lambda g, y: g * y,
    y=lambda g, x: g * x,
    doc="""Return ``x * y``, elementwise.

    Examples
    --------
    >>> gt.multiply([1.0, 2.0], [3.0, 4.0]).tolist()
    [3.0, 8.0]
    """,
)
divide = elementwise(
    "divide",
    x=lambda g, y: g / y,
    y=lambda g, y, out: -g * (out / y),
    doc="""Return ``x / y``, elementwise; integers give floats.

    Notes
    -----
    A division by 0 gives an infinity or nan, as in NumPy.

    Examples
    --------
    >>> gt.divide([3.0, 4.0], 2.0).tolist()
    [1.5, 2.0]
    >>> gt.divide(1, 2).item()
    0.5
    """,
)
floor_divide = elementwise(
    "floor_divide",
    x=NONDIFF,
    y=NONDIFF,
    doc="""Return the largest integer not above ``x / y``, elementwise; it has no gradient.

    Examples
    --------
    >>> gt.floor_divide([7.0, -7.0], 2.0).tolist()
    [3.0, -4.0]
    >>> gt.floor_divide(7, 2).item()
    3
    """,
)
remainder = mod = elementwise(
    "remainder",
    x=lambda g: g,
    y=lambda g, x, y: -g * F.floor_divide(x, y),
    doc="""Return ``x - floor(x / y) * y``, elementwise: the sign is that of ``y``.

    Notes
    -----
    The gradient of ``x`` is 1 and that of ``y`` is ``-floor(x / y)``, at the jumps too.

    Examples
    --------
    >>> gt.remainder([7.0, -7.0], 3.0).tolist()
    [1.0, 2.0]
    >>> gt.fmod([7.0, -7.0], 3.0).tolist()
    [1.0, -1.0]
    """,
)
negative = elementwise(
    "negative",
    x=lambda g: -g,
    doc="""Return ``-x``, elementwise.

    Examples
    --------
    >>> gt.negative([1.0, -2.0]).tolist()
    [-1.0, 2.0]
    """,
)
positive = elementwise(
    "positive",
    x=lambda g: g,
    doc="""Return ``+x``, elementwise: ``x`` as a tensor of its own.

    Examples
    --------
    >>> gt.positive([1.0, -2.0]).tolist()
    [1.0, -2.0]
    """,
)
identity = elementwise(
    "identity",
    lambda xp, x: x,
    x=lambda g: g,
    doc="""Return ``x`` as a tensor of its own.

    Examples
    --------
    >>> gt.identity([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """,
)
stop_gradient = elementwise(
    "stop_gradient",
    lambda xp, x: x,
    x=NONDIFF,
    doc="""Return ``x`` as a constant: no gradient passes through.

    Examples
    --------
    >>> gt.grad(lambda x: x * gt.stop_gradient(x))(3.0).item()
    3.0
    """,
)


abs = absolute = elementwise(
    "abs",
    x=lambda g, x: g * F.sign(x),
    holomorphic=False,
    doc="""Return the absolute value of ``x``, elementwise.

    Notes
    -----
    The gradient is ``sign(x)``, which is 0 at 0. A complex ``x`` has the gradient ``x / |x|``.

    Examples
    --------
    >>> gt.abs([-3.0, 2.0]).tolist()
    [3.0, 2.0]
    >>> gt.abs(3 + 4j).item()
    5.0
    >>> gt.grad(gt.abs)(0.0).item()
    0.0
    """,
)


def _sign_slope(g: Any, x: Any, out: Any) -> Any:
    if x.dtype.kind != "c":
        return F.zeros_like(g)
    # z/|z| moves across the radius only: what points along it is taken away
    along = F.real(F.conj(g) * out)
    return (g - along * out) / _nonzero(F.abs(x))


sign = elementwise(
    "sign",
    x=_sign_slope,
    holomorphic=False,
    doc="""Return -1, 0 or 1 by the sign of ``x``, elementwise; ``x / |x|`` if it is complex.

    Notes
    -----
    The gradient of a real ``x`` is 0. A complex ``x / |x|`` moves only across the radius, and its
    gradient lies there too.

    Examples
    --------
    >>> gt.sign([-3.0, 0.0, 2.0]).tolist()
    [-1.0, 0.0, 1.0]
    """,
)

# -- powers ----------------------------------------------------------------------------------------


class Power(Op):
    """``x ** y``, which leaves Python exponents as they are, so that common ones are quick."""

    __slots__ = ()

    def __call__(self, x: Any, y: Any) -> Tensor:
        if type(y) is int and y == 2:
            return square(x)
        return super().__call__(x, y)


def _power_base(g: Any, x: Any, y: Any) -> Any:
    if type(y) in SCALARS:
        if y == 0:
            return F.zeros_like(g)
        return g * y if y == 1 else g * (y * x ** (y - 1))
    # y - 1 would give 0 * inf where both are 0
    both = F.logical_and(x == 0, y == 0)
    return g * (y * x ** F.where(both, 1, y - 1))


def _power_exponent(g: Any, x: Any, out: Any) -> Any:
    if type(x) in SCALARS:
        if x == 0 or (type(x) is not complex and x < 0):
            return F.zeros_like(g)
        return g * (out * (cmath.log(x) if type(x) is complex else math.log(x)))
    # 0 outside the logarithm's domain; the inner choice keeps its nan out
    valid = x != 0 if x.dtype.kind == "c" else x > 0
    return g * F.where(valid, out * F.log(F.where(valid, x, 1)), 0)


power = pow = elementwise(
    "power",
    lambda xp, x, y: x**y,
    kind=Power,
    x=_power_base,
    y=_power_exponent,
    doc="""Return ``x ** y``, elementwise.

    Raises
    ------
    ValueError
        If the shapes do not broadcast, or an integer has a negative integer exponent.
    TypeError
        If an argument is not a tensor, an array or a number.

    Notes
    -----
    The gradient of ``x`` is ``y * x**(y - 1)``, and 0 where ``y`` is 0. That of ``y`` is
    ``x**y * log(x)``, and 0 for real ``x <= 0``, as in TensorFlow.

    Examples
    --------
    >>> gt.power([1.0, 2.0, 3.0], 2).tolist()
    [1.0, 4.0, 9.0]
    >>> gt.grad(gt.power, argnums=1)(0.0, 2.0).item()
    0.0
    """,
)
square = elementwise(
    "square",
    x=lambda g, x: g * (x + x),
    doc="""Return ``x * x``, elementwise.

    Examples
    --------
    >>> gt.square([1.0, -3.0]).tolist()
    [1.0, 9.0]
    """,
)
sqrt = elementwise(
    "sqrt",
    x=lambda g, out: g / (out + out),
    doc="""Return the square root of ``x``, elementwise; nan for negative real numbers.

    Notes
    -----
    The gradient is ``1 / (2 * sqrt(x))``, which is infinite at 0.

    Examples
    --------
    >>> gt.sqrt([1.0, 4.0]).tolist()
    [1.0, 2.0]
    """,
)
reciprocal = elementwise(
    "reciprocal",
    x=lambda g, out: -g * (out * out),
    doc="""Return ``1 / x``, elementwise.

    Examples
    --------
    >>> gt.reciprocal([2.0, -4.0]).tolist()
    [0.5, -0.25]
    """,
)

# -- exponentials and logarithms -------------------------------------------------------------------

exp = elementwise(
    "exp",
    x=lambda g, out: g * out,
    doc="""Return e to the power ``x``, elementwise.

    Examples
    --------
    >>> gt.exp([0.0, -np.inf]).tolist()
    [1.0, 0.0]
    >>> round(gt.exp(1.0).item(), 4)
    2.7183
    """,
)
exp2 = elementwise(
    "exp2",
    lambda xp, x: 2.0**x,
    x=lambda g, out: g * (out * LN2),
    doc="""Return 2 to the power ``x``, elementwise.

    Examples
    --------
    >>> gt.exp2([3.0, -1.0]).tolist()
    [8.0, 0.5]
    """,
)
expm1 = elementwise(
    "expm1",
    x=lambda g, out: g * (out + 1.0),
    doc="""Return ``exp(x) - 1``, elementwise, exact near 0.

    Examples
    --------
    >>> gt.expm1(-np.inf).item()
    -1.0
    >>> round(gt.expm1(1e-8).item() * 1e8, 4)
    1.0
    """,
)
log = elementwise(
    "log",
    x=lambda g, x: g / x,
    doc="""Return the natural logarithm of ``x``, elementwise.

    It is -inf at 0, and nan for negative real numbers.

    Notes
    -----
    The gradient is ``1 / x``.

    Examples
    --------
    >>> gt.log([1.0, np.inf]).tolist()
    [0.0, inf]
    >>> gt.grad(gt.log)(4.0).item()
    0.25
    """,
)
log2 = elementwise(
    "log2",
    x=lambda g, x: g / (x * LN2),
    doc="""Return the logarithm of ``x`` to base 2, elementwise.

    It is -inf at 0, and nan for negative real numbers.

    Examples
    --------
    >>> gt.log2(1.0).item()
    0.0
    >>> round(gt.log2(8.0).item(), 4)
    3.0
    """,
)
log10 = elementwise(
    "log10",
    x=lambda g, x: g / (x * LN10),
    doc="""Return the logarithm of ``x`` to base 10, elementwise.

    It is -inf at 0, and nan for negative real numbers.

    Examples
    --------
    >>> gt.log10(1.0).item()
    0.0
    >>> round(gt.log10(1000.0).item(), 4)
    3.0
    """,
)
log1p = elementwise(
    "log1p",
    x=lambda g, x: g / (x + 1.0),
    doc="""Return ``log(1 + x)``, elementwise, exact near 0; nan for real ``x < -1``, -inf at -1.

    Examples
    --------
    >>> gt.log1p(0.0).item()
    0.0
    >>> round(gt.log1p(1e-8).item() * 1e8, 4)
    1.0
    """,
)


def lead(x: Any, y: Any) -> Any:
    """Return ``x - y``, and for equal infinities 0, or -inf for two impossible events."""
    same = F.logical_and(F.isinf(x), x == y)
    return F.where(same, F.minimum(x, 0.0), x - y)


logaddexp = elementwise(
    "logaddexp",
    x=lambda g, x, y: g * F.sigmoid(lead(x, y)),
    y=lambda g, x, y: g * F.sigmoid(lead(y, x)),
    doc="""Return ``log(exp(x) + exp(y))``, elementwise, without overflow.

    Notes
    -----
    The gradient of ``x`` is ``sigmoid(x - y)``, that of ``y`` is ``sigmoid(y - x)``.

    Examples
    --------
    >>> round(gt.logaddexp(1000.0, 1000.0).item(), 3)
    1000.693
    >>> gt.logaddexp(-np.inf, 2.0).item()
    2.0
    """,
)

# -- trigonometry ----------------------------------------------------------------------------------

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
    x=lambda g, x: g / F.sqrt(1.0 - x * x),
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
    x=lambda g, x: -g / F.sqrt(1.0 - x * x),
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
arctan2 = atan2 = elementwise(
    "arctan2",
    lambda xp, x, y: standard(xp, "atan2", "arctan2")(x, y),
    x=lambda g, x, y: g * (y / (x * x + y * y)),
    y=lambda g, x, y: -g * (x / (x * x + y * y)),
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
    The gradients are ``y / (x**2 + y**2)`` and ``-x / (x**2 + y**2)``; at the origin they are nan.

    Examples
    --------
    >>> round(gt.arctan2(1.0, -1.0).item(), 4)
    2.3562
    >>> gt.arctan2(0.0, 1.0).item()
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
arcsinh = asinh = elementwise(
    "arcsinh",
    lambda xp, x: standard(xp, "asinh", "arcsinh")(x),
    x=lambda g, x: g / F.sqrt(x * x + 1.0),
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
    x=lambda g, x: g / (1.0 - x * x),
    doc="""Return the inverse hyperbolic tangent of ``x``, elementwise, for ``-1 < x < 1``.

    Real numbers beyond give nan, and the bounds infinities.

    Examples
    --------
    >>> round(gt.arctanh(0.5).item(), 4)
    0.5493
    >>> gt.grad(gt.arctanh)(0.0).item()
    1.0
    """,
)
hypot = elementwise(
    "hypot",
    x=lambda g, x, out: g * (x / _nonzero(out)),
    y=lambda g, y, out: g * (y / _nonzero(out)),
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

# -- choice ----------------------------------------------------------------------------------------

maximum = elementwise(
    "maximum",
    x=lambda g, x, y: F.where(x >= y, g, 0.0),
    y=lambda g, x, y: F.where(x >= y, 0.0, g),
    holomorphic=False,
    doc="""Return the larger of ``x`` and ``y``, elementwise; nan if either is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``.

    Examples
    --------
    >>> gt.maximum([1.0, 5.0], 3.0).tolist()
    [3.0, 5.0]
    >>> gt.grad(gt.maximum)(2.0, 2.0).item()
    1.0
    """,
)
minimum = elementwise(
    "minimum",
    x=lambda g, x, y: F.where(x <= y, g, 0.0),
    y=lambda g, x, y: F.where(x <= y, 0.0, g),
    holomorphic=False,
    doc="""Return the smaller of ``x`` and ``y``, elementwise; nan if either is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``.

    Examples
    --------
    >>> gt.minimum([1.0, 5.0], 3.0).tolist()
    [1.0, 3.0]
    >>> gt.grad(gt.minimum)(2.0, 2.0).item()
    1.0
    """,
)
_clip = elementwise(
    "clip",
    lambda xp, x, lower, upper: xp.minimum(xp.maximum(x, lower), upper),
    x=lambda g, x, lower, upper: F.where(F.logical_and(x >= lower, x <= upper), g, 0.0),
    lower=lambda g, x, lower, upper: F.where(F.logical_and(x < lower, lower <= upper), g, 0.0),
    upper=lambda g, x, lower, upper: F.where(F.logical_or(x > upper, lower > upper), g, 0.0),
    holomorphic=False,
    doc="Limit ``x`` to the interval from ``lower`` to ``upper``.",
)


_NOTHING = object()  # an argument that was not given


class Where(Op):
    """``where(condition, x, y)``, which gives Python numbers the default dtype if both are.

    Of a condition alone it is :func:`gradtape.nonzero`.
    """

    __slots__ = ()

    def __call__(self, condition: Any, x: Any = _NOTHING, y: Any = _NOTHING) -> Any:
        if y is _NOTHING:
            if x is _NOTHING:
                return tuple(ops["nonzero"](condition))
            raise ValueError("where: give both x and y, or neither of them")
        if type(x) in SCALARS and type(y) in SCALARS:
            # NumPy would make float64 of where(condition, 1.0, 0.0)
            if SCALARS.index(type(x)) >= SCALARS.index(type(y)):
                x = as_tensor(x)
            else:
                y = as_tensor(y)
        return super().__call__(condition, x, y)


where = elementwise(
    "where",
    kind=Where,
    condition=NONDIFF,
    x=lambda g, condition: F.where(condition, g, 0.0),
    y=lambda g, condition: F.where(condition, 0.0, g),
    holomorphic=False,
    doc="""Return ``x`` where ``condition`` is true and ``y`` elsewhere; the three broadcast.

    Of a condition alone, return the indices of what is true, as :func:`gradtape.nonzero` does.

    Parameters
    ----------
    condition
        A tensor, an array or a number; what is not 0 is true.
    x, y
        Tensors, arrays or numbers; give both or neither.

    Returns
    -------
    A tensor of the broadcast shape and the dtype to which ``x`` and ``y`` promote; of a condition
    alone, a tuple of integer tensors, one per axis.

    Raises
    ------
    TypeError
        If an argument is not a tensor, an array or a number.
    ValueError
        If the shapes do not broadcast, or only ``x`` is given.

    Notes
    -----
    The gradient of an element goes to where it came from; the other has 0 there. The condition has
    no gradient.

    Examples
    --------
    >>> gt.where([True, False], [1.0, 2.0], 0.0).tolist()
    [1.0, 0.0]
    >>> [i.tolist() for i in gt.where([[0, 3], [4, 0]])]
    [[0, 1], [1, 0]]
    """,
)


@named
def clip(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """Limit ``x`` to an interval, elementwise.

    Parameters
    ----------
    x
        A real tensor.
    min, max
        The bounds: numbers or tensors that broadcast with ``x``; no bound if None, the default.

    Returns
    -------
    ``minimum(maximum(x, min), max)``: a tensor of the broadcast shape and the promoted dtype.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, an array or a number.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    The gradient of ``x`` is 1 inside the interval and on its bounds, 0 outside, as in
    ``tf.clip_by_value``. A bound has the gradient of the elements that it replaces.

    Examples
    --------
    >>> gt.clip([-2.0, 0.5, 3.0], 0.0, 1.0).tolist()
    [0.0, 0.5, 1.0]
    >>> gt.clip([-2.0, 0.5, 3.0], max=1.0).tolist()
    [-2.0, 0.5, 1.0]
    """
    if min is None:
        return identity(x) if max is None else minimum(x, max)
    return maximum(x, min) if max is None else _clip(x, min, max)


# -- rounding --------------------------------------------------------------------------------------

floor = elementwise(
    "floor",
    x=NONDIFF,
    doc="""Round down; it has no gradient.

    Examples
    --------
    >>> gt.floor([1.7, -1.2]).tolist()
    [1.0, -2.0]
    """,
)
ceil = elementwise(
    "ceil",
    x=NONDIFF,
    doc="""Round up; it has no gradient.

    Examples
    --------
    >>> gt.ceil([1.2, -1.7]).tolist()
    [2.0, -1.0]
    """,
)
trunc = elementwise(
    "trunc",
    x=NONDIFF,
    doc="""Round towards 0; it has no gradient.

    Examples
    --------
    >>> gt.trunc([1.7, -1.7]).tolist()
    [1.0, -1.0]
    """,
)


def _round_kernel(xp: Any, x: Any, *, decimals: int = 0) -> Any:
    if decimals == 0:
        return xp.round(x)
    scale = 10.0**decimals
    return cast_to(xp, xp.round(x * scale) / scale, x.dtype)


_round = op(
    "round",
    _round_kernel,
    gradients={"x": NONDIFF},
    infer=lambda x, decimals: (x.shape, x.dtype),
    batch="elementwise",
)


@named
def round(x: Any, decimals: int = 0) -> Tensor:
    """Round to the nearest, halves to even; it has no gradient.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    decimals
        The decimal places to keep, 0 by default; a negative number rounds before the point.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``decimals`` is not an integer, or ``x`` is not a tensor, an array or a number.

    Examples
    --------
    >>> gt.round([0.5, 1.5, -1.7]).tolist()
    [0.0, 2.0, -2.0]
    >>> gt.round(1234.0, decimals=-2).item()
    1200.0
    """
    return _round(x, decimals=operator.index(decimals))


@named
def rint(x: Any) -> Tensor:
    """Round to the nearest integer, halves to even; it has no gradient.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.

    Returns
    -------
    A tensor of the shape and dtype of ``x``. Integers become floats, of the width that NumPy gives
    them.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, an array or a number.

    Examples
    --------
    >>> gt.rint([0.5, 1.5, -1.7]).tolist()
    [0.0, 2.0, -2.0]
    """
    x = as_tensor(x)
    return _round(x if x.dtype.kind in "fc" else x.astype(np.rint(np.empty(0, x.dtype)).dtype))


# -- complex numbers -------------------------------------------------------------------------------


def _angle_kernel(xp: Any, x: Any) -> Any:
    atan2 = standard(xp, "atan2", "arctan2")
    if x.dtype.kind == "b":
        x = cast_to(xp, x, np.int64)  # as for NumPy, which measures them from an integer 0
    return atan2(xp.imag(x), xp.real(x)) if x.dtype.kind == "c" else atan2(xp.zeros_like(x), x)


def _angle_slope(g: Any, x: Any) -> Any:
    if x.dtype.kind != "c":
        return F.zeros_like(g)
    # i z / |z|**2, which is i / conj(z); 0, a subgradient, at 0
    return F.where(x == 0, 0.0, (g * 1j) / F.conj(_nonzero(x)))


def _conj_kernel(xp: Any, x: Any) -> Any:
    if x.dtype.kind == "b":
        return cast_to(xp, x, np.int8)  # NumPy has no loop for booleans
    return xp.conj(x) if x.dtype.kind == "c" else x


conj = elementwise(
    "conj",
    _conj_kernel,
    x=lambda g: F.conj(g),
    holomorphic=False,
    doc="""Return the complex conjugate of ``x``, elementwise.

    Examples
    --------
    >>> gt.conj([1 + 2j, 1 - 1j]).tolist()
    [(1-2j), (1+1j)]
    """,
)
real = elementwise(
    "real",
    lambda xp, x: xp.real(x) if x.dtype.kind == "c" else x,
    x=lambda g, x_like: F.cast_like(g, x_like),
    holomorphic=False,
    doc="""Return the real part of ``x``, elementwise.

    Notes
    -----
    The gradient is real: the imaginary part of ``x`` has none.

    Examples
    --------
    >>> gt.real([1 + 2j, 3.0]).tolist()
    [1.0, 3.0]
    """,
)
imag = elementwise(
    "imag",
    lambda xp, x: xp.imag(x) if x.dtype.kind == "c" else xp.zeros_like(x),
    x=lambda g, x_like: F.cast_like(g * 1j, x_like),
    holomorphic=False,
    doc="""Return the imaginary part of ``x``, elementwise; 0 for real numbers.

    Notes
    -----
    The gradient is imaginary: the real part of ``x`` has none.

    Examples
    --------
    >>> gt.imag([1 + 2j, 3.0]).tolist()
    [2.0, 0.0]
    """,
)
_angle = elementwise(
    "angle",
    _angle_kernel,
    x=_angle_slope,
    holomorphic=False,
    doc="Return the angle of ``x`` in the complex plane, in radians.",
)


@named
def angle(z: Any, deg: bool = False) -> Tensor:
    """Return the angle of ``z`` in the complex plane, from -pi to pi.

    Parameters
    ----------
    z
        A tensor of any shape and dtype; negative real numbers have the angle pi, and 0 has 0.
    deg
        Return degrees instead of radians; false by default.

    Returns
    -------
    A real tensor of the shape of ``z``.

    Raises
    ------
    TypeError
        If ``z`` is not a tensor, an array or a number.

    Notes
    -----
    The gradient is ``1j / conj(z)``, and 0 at 0 and for real dtypes.

    Examples
    --------
    >>> gt.round(gt.angle([1.0, 1j, -1.0], deg=True), 3).tolist()
    [0.0, 90.0, 180.0]
    """
    turned = _angle(z)
    return turned * (180.0 / math.pi) if deg else turned


_cast = op(
    "cast",
    lambda xp, x, *, dtype: cast_to(xp, x, dtype),
    gradients={"x": lambda g, x_like: F.cast_like(g, x_like)},
    infer=lambda x, dtype: (x.shape, np.dtype(dtype)),
    batch="elementwise",
)


def cast(x: Any, dtype: Any) -> Tensor:
    """Return ``x`` in another dtype.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    dtype
        A dtype or its name. A complex value cast to a real dtype keeps its real part.

    Returns
    -------
    A tensor of the shape of ``x``.

    Raises
    ------
    TypeError
        If ``dtype`` is not one of numbers or booleans.

    Notes
    -----
    Between floating and complex dtypes gradients pass, cast back to the dtype of ``x``; to and from
    integers there are none.

    Examples
    --------
    >>> gt.cast([1.7, -1.7], "int32").tolist()
    [1, -1]
    >>> gt.cast([0, 2], bool).tolist()
    [False, True]
    """
    try:
        wanted = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"cast: {dtype!r} is not a dtype; use a name such as 'float32'") from error
    if wanted.kind not in "biufc":
        raise TypeError(f"cast: a tensor holds numbers or booleans, not dtype {wanted}")
    return _cast(x, dtype=wanted.name)


# -- tests and comparisons: without gradients ------------------------------------------------------


def _test(name: str, doc: str, *inputs: str) -> Op:
    rules: dict[str, Any] = dict.fromkeys(inputs, NONDIFF)
    return elementwise(name, doc=doc, **rules)


isnan = _test(
    "isnan",
    """Return whether ``x`` is not a number, elementwise.

    Examples
    --------
    >>> gt.isnan([1.0, np.nan]).tolist()
    [False, True]
    """,
    "x",
)
isinf = _test(
    "isinf",
    """Return whether ``x`` is infinite, elementwise.

    Examples
    --------
    >>> gt.isinf([1.0, -np.inf, np.nan]).tolist()
    [False, True, False]
    """,
    "x",
)
isfinite = _test(
    "isfinite",
    """Return whether ``x`` is neither infinite nor nan, elementwise.

    Examples
    --------
    >>> gt.isfinite([1.0, -np.inf, np.nan]).tolist()
    [True, False, False]
    """,
    "x",
)
equal = _test(
    "equal",
    """Return whether ``x == y``, elementwise.

    Examples
    --------
    >>> gt.equal([1.0, 2.0], 2.0).tolist()
    [False, True]
    """,
    "x",
    "y",
)
not_equal = _test(
    "not_equal",
    """Return whether ``x != y``, elementwise.

    Examples
    --------
    >>> gt.not_equal([1.0, 2.0], 2.0).tolist()
    [True, False]
    """,
    "x",
    "y",
)
less = _test(
    "less",
    """Return whether ``x < y``, elementwise.

    Examples
    --------
    >>> gt.less([1.0, 2.0, 3.0], 2.0).tolist()
    [True, False, False]
    """,
    "x",
    "y",
)
less_equal = _test(
    "less_equal",
    """Return whether ``x <= y``, elementwise.

    Examples
    --------
    >>> gt.less_equal([1.0, 2.0, 3.0], 2.0).tolist()
    [True, True, False]
    """,
    "x",
    "y",
)
greater = _test(
    "greater",
    """Return whether ``x > y``, elementwise.

    Examples
    --------
    >>> gt.greater([1.0, 2.0, 3.0], 2.0).tolist()
    [False, False, True]
    """,
    "x",
    "y",
)
greater_equal = _test(
    "greater_equal",
    """Return whether ``x >= y``, elementwise.

    Examples
    --------
    >>> gt.greater_equal([1.0, 2.0, 3.0], 2.0).tolist()
    [False, True, True]
    """,
    "x",
    "y",
)
logical_and = _test(
    "logical_and",
    """Return whether both are true, elementwise; what is not 0 is true.

    Examples
    --------
    >>> gt.logical_and([True, True, False], [True, False, False]).tolist()
    [True, False, False]
    """,
    "x",
    "y",
)
logical_or = _test(
    "logical_or",
    """Return whether either is true, elementwise; what is not 0 is true.

    Examples
    --------
    >>> gt.logical_or([True, True, False], [True, False, False]).tolist()
    [True, True, False]
    """,
    "x",
    "y",
)
logical_xor = _test(
    "logical_xor",
    """Return whether just one is true, elementwise; what is not 0 is true.

    Examples
    --------
    >>> gt.logical_xor([True, True, False], [True, False, False]).tolist()
    [False, True, False]
    """,
    "x",
    "y",
)
logical_not = _test(
    "logical_not",
    """Return whether ``x`` is false, elementwise; 0 is false.

    Examples
    --------
    >>> gt.logical_not([True, False]).tolist()
    [False, True]
    """,
    "x",
)
