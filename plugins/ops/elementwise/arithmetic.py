"""Elementwise arithmetic: sums, products, quotients, remainders, magnitudes, signs, limits.

Limits are the larger and the smaller of two values, and the nearest value in an interval.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Tensor, ops
from ..common.dynamic_shapes import LARGEST, SMALLEST, whole_division
from ..common.kernels import native
from ..common.op_builders import elementwise, named


def nonzero_divisor(x: Any) -> Any:
    """Return ``x`` with ones for zeros: a divisor that gives the subgradient 0 there."""
    return F.where(x == 0, 1.0, x)


add = elementwise(
    "add",
    x=lambda g: g,
    y=lambda g: g,
    record={"integers": operator.add},
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
    record={"integers": operator.sub},
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
    record={"integers": operator.mul},
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

true_divide = divide
floor_divide = elementwise(
    "floor_divide",
    x=NONDIFF,
    y=NONDIFF,
    record={"integers": whole_division(operator.floordiv)},
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
    record={"integers": whole_division(operator.mod)},
    doc="""Return ``x - floor(x / y) * y``, elementwise: the sign is that of ``y``.

    Notes
    -----
    The gradient of ``x`` is 1 and that of ``y`` is ``-floor(x / y)``, also at the jumps.

    Examples
    --------
    >>> gt.remainder([7.0, -7.0], 3.0).tolist()
    [1.0, 2.0]
    >>> gt.fmod([7.0, -7.0], 3.0).tolist()
    [1.0, -1.0]
    """,
)


def _fmod(xp: Any, x: Any, y: Any) -> Any:
    x = x if hasattr(x, "dtype") else xp.full_like(y, x)
    y = y if hasattr(y, "dtype") else xp.full_like(x, y)
    size = xp.remainder(xp.abs(x), xp.abs(y))  # exact, as a difference from x would not be
    return xp.where(x < 0, -size, size)


fmod = elementwise(
    "fmod",
    native("fmod", _fmod),
    x=lambda g: g,
    # a whole number already, except for rounding errors
    y=lambda g, x, y, out: -g * F.round((x - out) / y),
    doc="""Return the remainder of ``x / y`` with the sign of ``x``, as in C, elementwise.

    Notes
    -----
    The gradient of ``x`` is 1 and that of ``y`` is ``-trunc(x / y)``, also at the jumps.

    Examples
    --------
    >>> gt.fmod([7.0, -7.0], 3.0).tolist()
    [1.0, -1.0]
    >>> gt.remainder([7.0, -7.0], 3.0).tolist()
    [1.0, 2.0]
    """,
)


@named
def divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Return ``(x // y, x % y)``, elementwise; the quotient has no gradient.

    Parameters
    ----------
    x, y
        Real numbers or tensors; their shapes broadcast.

    Returns
    -------
    Two tensors of the broadcast shape and the promoted dtype, from :func:`gradtape.floor_divide`
    and from :func:`gradtape.remainder`.

    Raises
    ------
    TypeError
        If an argument is complex, or not a tensor, an array or a number.
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> [part.tolist() for part in gt.divmod([7.0, -7.0], 2.0)]
    [[3.0, -4.0], [1.0, 1.0]]
    """
    return ops["floor_divide"](x, y), ops["remainder"](x, y)


negative = elementwise(
    "negative",
    x=lambda g: -g,
    record={"integers": operator.neg},
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
    doc="""Return ``+x``, elementwise: ``x`` as a new tensor.

    Examples
    --------
    >>> gt.positive([1.0, -2.0]).tolist()
    [1.0, -2.0]
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

abs = absolute = elementwise(
    "abs",
    x=lambda g, x: g * F.sign(x),
    holomorphic=False,
    record={"integers": operator.abs},
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

fabs = elementwise(
    "fabs",
    native("fabs", lambda xp, x: xp.abs(x)),
    x=lambda g, x: g * F.sign(x),
    holomorphic=False,
    doc="""Return the absolute value of a real ``x`` as a float, elementwise.

    Notes
    -----
    The gradient is ``sign(x)``, which is 0 at 0.

    Examples
    --------
    >>> gt.fabs([-3, 2]).tolist()
    [3.0, 2.0]
    """,
)


def _sign_slope(g: Any, x: Any, out: Any) -> Any:
    if x.dtype.kind != "c":
        return F.zeros_like(g)
    # z/|z| moves across the radius only: what points along it is taken away
    along = F.real(F.conj(g) * out)
    return (g - along * out) / nonzero_divisor(F.abs(x))


sign = elementwise(
    "sign",
    x=_sign_slope,
    holomorphic=False,
    doc="""Return the sign of ``x``, -1, 0 or 1, elementwise; ``x / |x|`` if it is complex.

    Notes
    -----
    The gradient of a real ``x`` is 0. A complex ``x / |x|`` changes only perpendicular to the
    radius, and so does its gradient.

    Examples
    --------
    >>> gt.sign([-3.0, 0.0, 2.0]).tolist()
    [-1.0, 0.0, 1.0]
    """,
)


def _heaviside(xp: Any, x: Any, y: Any) -> Any:
    return xp.where(x == 0, y, xp.where(xp.isnan(x), x, xp.astype(x > 0, x.dtype)))


heaviside = elementwise(
    "heaviside",
    native(
        "heaviside",
        lambda xp, x, y: _heaviside(xp, x if hasattr(x, "dtype") else xp.full_like(y, x), y),
    ),
    x=lambda g: F.zeros_like(g),
    y=lambda g, x: F.where(x == 0, g, 0.0),
    doc="""Return 0 for ``x < 0``, 1 for ``x > 0`` and ``y`` at 0, elementwise.

    Notes
    -----
    The gradient of ``x`` is 0, and that of ``y`` is 1 where ``x`` is 0.

    Examples
    --------
    >>> gt.heaviside([-2.0, 0.0, 3.0], 0.5).tolist()
    [0.0, 0.5, 1.0]
    """,
)


# -- limits ----------------------------------------------------------------------------------------


def _is_nan(x: Any) -> Any:
    return x != x  # of integers and Python numbers, too


maximum = elementwise(
    "maximum",
    x=lambda g, x, y: F.where(F.logical_or(x >= y, _is_nan(x)), g, 0.0),
    y=lambda g, x, y: F.where(F.logical_or(x >= y, _is_nan(x)), 0.0, g),
    holomorphic=False,
    record={"integers": LARGEST},
    doc="""Return the larger of ``x`` and ``y``, elementwise; nan if either is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``, and at a nan to the argument that is nan.

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
    x=lambda g, x, y: F.where(F.logical_or(x <= y, _is_nan(x)), g, 0.0),
    y=lambda g, x, y: F.where(F.logical_or(x <= y, _is_nan(x)), 0.0, g),
    holomorphic=False,
    record={"integers": SMALLEST},
    doc="""Return the smaller of ``x`` and ``y``, elementwise; nan if either is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``, and at a nan to the argument that is nan.

    Examples
    --------
    >>> gt.minimum([1.0, 5.0], 3.0).tolist()
    [1.0, 3.0]
    >>> gt.grad(gt.minimum)(2.0, 2.0).item()
    1.0
    """,
)


def _took_x(x: Any, out: Any) -> Any:
    return F.logical_or(x == out, out != out)  # nan only where both are


def _skip_nan(name: str) -> Callable[..., Any]:
    def kernel(xp: Any, x: Any, y: Any) -> Any:
        # either may be a Python number
        x, y = (
            v if hasattr(v, "shape") else xp.asarray(v, dtype=w.dtype) for v, w in ((x, y), (y, x))
        )
        best = getattr(xp, name)(x, y)
        return xp.where(xp.isnan(x), y, xp.where(xp.isnan(y), x, best))

    return kernel


fmax = elementwise(
    "fmax",
    native("fmax", _skip_nan("maximum")),
    x=lambda g, x, out: F.where(_took_x(x, out), g, 0.0),
    y=lambda g, x, out: F.where(_took_x(x, out), 0.0, g),
    holomorphic=False,
    doc="""Return the larger of ``x`` and ``y``, elementwise; the other where one is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``.

    Examples
    --------
    >>> gt.fmax([1.0, 5.0, np.nan], 3.0).tolist()
    [3.0, 5.0, 3.0]
    """,
)
fmin = elementwise(
    "fmin",
    native("fmin", _skip_nan("minimum")),
    x=lambda g, x, out: F.where(_took_x(x, out), g, 0.0),
    y=lambda g, x, out: F.where(_took_x(x, out), 0.0, g),
    holomorphic=False,
    doc="""Return the smaller of ``x`` and ``y``, elementwise; the other where one is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``.

    Examples
    --------
    >>> gt.fmin([1.0, 5.0, np.nan], 3.0).tolist()
    [1.0, 3.0, 3.0]
    """,
)


def _took_lower(x: Any, lower: Any, upper: Any) -> Any:
    """Return where ``clip`` gives the lower bound; among several nans it gives the first."""
    return (x < lower) & (lower <= upper) | _is_nan(lower) & (x == x)


def _took_upper(x: Any, lower: Any, upper: Any) -> Any:
    return (x > upper) | (lower > upper) | _is_nan(upper) & (x == x) & (lower == lower)


def _clip_kernel(xp: Any, x: Any, lower: Any, upper: Any) -> Any:
    if type(lower) is float and getattr(upper, "dtype", x.dtype) != x.dtype:
        lower = lower + xp.zeros_like(upper)  # unrounded by a narrower x
    return xp.minimum(xp.maximum(x, lower), upper)


_clip = elementwise(
    "clip",
    _clip_kernel,
    x=lambda g, x, lower, upper: F.where((x >= lower) & (x <= upper) | _is_nan(x), g, 0.0),
    lower=lambda g, x, lower, upper: F.where(_took_lower(x, lower, upper), g, 0.0),
    upper=lambda g, x, lower, upper: F.where(_took_upper(x, lower, upper), g, 0.0),
    holomorphic=False,
    doc="Limit ``x`` to the interval from ``lower`` to ``upper``.",
)


@named
def clip(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """Limit ``x`` to an interval, elementwise.

    Parameters
    ----------
    x
        A real tensor.
    min, max
        The bounds: numbers or tensors that broadcast with ``x``. None, the default, means no bound.

    Returns
    -------
    ``minimum(maximum(x, min), max)``: a tensor of the broadcast shape and the promoted dtype.

    Raises
    ------
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
    min, max = _attainable(x, min, max)
    if min is None:
        return ops["identity"](x) if max is None else minimum(x, max)
    return maximum(x, min) if max is None else _clip(x, min, max)


def _attainable(x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return bounds, None for an integer outside the range of the dtype of ``x``, as NumPy does."""
    if type(low) is int or type(high) is int:
        dtype = getattr(x, "dtype", None)
        if dtype is not None and dtype.kind in "iu":
            info = np.iinfo(dtype)
            low = None if type(low) is int and low <= info.min else low
            high = None if type(high) is int and high >= info.max else high
    return low, high
