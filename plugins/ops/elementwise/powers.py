"""Elementwise powers, roots, exponentials and logarithms."""

from __future__ import annotations

import cmath
import math
from functools import cache
from typing import Any

import numpy as np

from ....core.extend import F, Op, Tensor, UnaryOp, as_tensor, kind_of, ops
from ..common.kernels import SCALARS, all_between, native, reals
from ..common.op_builders import elementwise, named

LN2 = math.log(2.0)
LN10 = math.log(10.0)


class Power(Op):
    """``x ** y``, which keeps Python exponents as numbers, so that common ones are fast."""

    __slots__ = ()

    def __call__(self, x: Any, y: Any) -> Tensor:
        if type(y) is int and y == 2:
            if getattr(x, "dtype", None) == np.bool_:  # whose square is of int8
                x = ops["cast"](x, dtype="int64")
            return square(int(x) if type(x) is bool else x)
        return super().__call__(x, y)


def _power_base(g: Any, x: Any, y: Any, out: Any) -> Any:
    """Return ``g * y * x**(y - 1)``.

    Where ``y - 1`` is rounded, this is ``g * y * x**y / x``: times the logarithm of ``x``, the
    rounding would be an error of the slope. There, the power cannot overflow before the slope does.
    """
    if type(y) in SCALARS:
        if y == 0:
            return F.zeros_like(g)
        y, before, exact = _one_less(y, out.dtype)
        if exact:
            return g * y if y == 1 else g * (y * x**before)
        if not 0 < y < 1:
            return g * (y * out / x)
        nowhere = x == 0  # where the slope is infinite
        return g * F.where(nowhere, math.inf, y * out / F.where(nowhere, 1.0, x))
    if all_between(y, 0.5, 1e7) and out.dtype == y.dtype:  # then y - 1 is exact, and not at 0
        return g * (y * x ** (y - 1))
    # y - 1 would give 0 * inf where both are 0
    both = F.logical_and(x == 0, y == 0)
    if out.dtype.kind != "f" or type(x) in SCALARS or y.dtype.kind != "f":
        return g * (y * x ** F.where(both, 1, y - 1))
    before = y - 1
    rounded = F.logical_or(before + 1 != y, y - before != 1)
    rounded = F.logical_and(rounded, F.logical_and(x != 0, F.isfinite(x)))
    power = x ** F.where(F.logical_or(rounded, both), 1, before)
    return g * F.where(rounded, y * out / F.where(rounded, x, 1), y * power)


def _one_less(y: Any, dtype: Any) -> tuple[Any, Any, bool]:
    """Return ``y`` and ``y - 1`` as arithmetic with arrays rounds them, and if that is exact."""
    if type(y) is not float or dtype.kind != "f":
        return y, y - 1, True
    y = _in_dtype(y, dtype)
    before = _in_dtype(y - 1.0, dtype)
    return y, before, before + 1.0 == y and y - before == 1.0


def _in_dtype(number: float, dtype: Any) -> float:
    """Return a number as arithmetic with arrays of a dtype rounds it."""
    return float(dtype.type(number)) if dtype.kind == "f" else number


def _power_exponent(g: Any, x: Any, out: Any) -> Any:
    if type(x) in SCALARS:
        if x == 0 or (type(x) is not complex and x < 0):
            return F.zeros_like(g)
        if x == math.inf:
            return g * F.where(out == 0, 0.0, F.where(out == 0, 1.0, out) * x)
        if type(x) is float:
            x = _in_dtype(x, out.dtype)
        log = cmath.log(x) if type(x) is complex else math.log(x)
        return g * log * out if abs(log) < 1 else g * out * log
    if all_between(x, 0.0, math.inf):
        return _logarithmic(g, F.log(x), out)
    # 0 outside the logarithm's domain, and where 0 meets its infinity
    if x.dtype.kind == "c":
        valid = x != 0
    else:
        valid = F.logical_and(x > 0, F.logical_or(x < math.inf, out != 0))
    log = F.log(F.where(valid, x, 1))  # the inner choice keeps nan out
    return F.where(valid, _logarithmic(g, log, out), 0)


def _logarithmic(g: Any, log: Any, out: Any) -> Any:
    """Return ``g * (log * out)``; no product overflows or underflows before the result does."""
    inner = log * out
    if out.dtype.kind == "f":
        least, most = _limits(out.dtype)
        # the logarithm of a number is between a unit of rounding and a thousand
        if all_between(out, least * 1e16, most * 1e-4):
            return g * inner
        normal = F.logical_and(F.abs(inner) >= least, F.abs(inner) <= most)
    else:
        normal = False
    small = F.abs(log) < 1
    apart = F.where(small, g * log, g * out) * F.where(small, out, log)
    return apart if normal is False else F.where(normal, g * inner, apart)


@cache
def _limits(dtype: Any) -> tuple[float, float]:
    """Return the smallest and the largest normal number."""
    limits = np.finfo(dtype)
    return float(limits.smallest_normal), float(limits.max)


power = pow = elementwise(
    "power",
    "pow",
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


@named
def float_power(x: Any, y: Any) -> Tensor:
    """Return ``x ** y`` in at least double precision.

    Parameters
    ----------
    x, y
        Numbers or tensors of any dtype; their shapes broadcast.

    Returns
    -------
    A ``float64`` tensor of the broadcast shape, ``complex128`` if ``x`` or ``y`` is complex.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Integers may have negative integer exponents, which :func:`gradtape.power` refuses. A negative
    base with a fractional exponent gives nan.

    Examples
    --------
    >>> gt.float_power([2, 4], -1).tolist()
    [0.5, 0.25]
    """
    if type(x) in SCALARS and type(y) in SCALARS:
        x = as_tensor(x)
    # numbers are weak, and take the dtype of the tensor
    x, y = (v if type(v) in SCALARS else as_tensor(v) for v in (x, y))
    mixed = np.result_type(*(v if type(v) in SCALARS else v.dtype for v in (x, y)))
    wide = "complex128" if mixed.kind == "c" else "float64"
    x, y = (v if type(v) in SCALARS else ops["cast"](v, dtype=wide) for v in (x, y))
    return ops["power"](x, y)


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


def _cbrt_slope_kernel(xp: Any, x: Any, y: Any) -> Any:
    ends = (x == 0) | xp.isinf(x)
    # NumPy's cube root has an error of some units: its square would double that
    slope = y / xp.where(ends, xp.ones_like(x), x) / 3
    return xp.where(ends, xp.where(x == 0, xp.full_like(y, math.inf), xp.zeros_like(y)), slope)


_cbrt_slope = elementwise(
    "cbrt_slope",
    _cbrt_slope_kernel,
    kind=Op,
    x=lambda g, x, out: g * (out * (-2 / 3) / x),
    y=lambda g: F.zeros_like(g),  # it is there to save time; the slope of x counts it
    doc="Return ``y / (3 * x)`` for ``y = cbrt(x)``, elementwise, and inf at 0.",
)
cbrt = elementwise(
    "cbrt",
    native("cbrt", lambda xp, x: xp.sign(x) * xp.abs(x) ** (1.0 / 3.0)),
    x=lambda g, x, out: g * F.cbrt_slope(x, out),
    doc="""Return the real cube root of ``x``, elementwise.

    Notes
    -----
    The gradient is ``1 / (3 * cbrt(x)**2)``, which is infinite at 0.

    Examples
    --------
    >>> gt.round(gt.cbrt([8.0, -27.0]), 4).tolist()
    [2.0, -3.0]
    """,
)

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
    native("exp2", lambda xp, x: 2.0**x),
    x=lambda g, out: g * (out * LN2),
    doc="""Return 2 to the power ``x``, elementwise.

    Examples
    --------
    >>> gt.exp2([3.0, -1.0]).tolist()
    [8.0, 0.5]
    """,
)


class _Expm1(UnaryOp):
    """``exp(x) - 1``, of which complex numbers have a kernel of their own."""

    __slots__ = ()

    def __call__(self, x: Any, name: str | None = None) -> Tensor:
        if type(x) in (list, tuple):
            x = as_tensor(x)
        if type(x) is complex or getattr(getattr(x, "dtype", None), "kind", None) == "c":
            return _complex_expm1(x)
        return super().__call__(x)


def _complex_expm1_kernel(xp: Any, x: Any) -> Any:
    out = xp.expm1(x)
    if kind_of(x.dtype) != "c":
        return out
    # next to infinities, products of infinities and zeros make nan of what is known; a real part
    # of -0 becomes 0, as in exp(x) - 1, and an imaginary one stays
    known = xp.isfinite(x) & xp.isfinite(out)
    return xp.where(known, out - complex(-0.0, 0.0), xp.exp(x) - 1)


_complex_expm1 = elementwise(
    "complex_expm1",
    _complex_expm1_kernel,
    x=lambda g, x: g * F.exp(x),
    doc="Return ``exp(x) - 1`` of complex numbers, elementwise, with its limits at infinities.",
)
expm1 = elementwise(
    "expm1",
    kind=_Expm1,
    x=lambda g, x: g * F.exp(x),  # out + 1 loses the digits of a small slope
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
    x=lambda g, x: g * (1 / LN2) / x,
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
    x=lambda g, x: g * (1 / LN10) / x,
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


def _share(xp: Any, x: Any, y: Any, *, binary: bool = False) -> Any:
    behind = reals(y - x)
    if all_between(behind, -8.0, 8.0):  # where rounding takes too little to matter
        return 1.0 / (1.0 + (_EXP2(xp, behind) if binary else xp.exp(behind)))
    none = xp.zeros_like(behind)
    # equal infinities: a half, or nothing of two impossible events
    behind = xp.where(xp.isnan(behind) & (x == y), -xp.minimum(none + x, none), behind)
    e = _EXP2(xp, -xp.abs(behind)) if binary else xp.exp(-xp.abs(behind))
    smaller = behind > 0
    # what rounding took from the difference (Knuth's two-sum)
    back = behind - y
    lost = (y - (behind - back)) - (x + back)
    lost = xp.where(xp.isfinite(lost), lost, none) * (LN2 if binary else 1.0)
    e = e - e * xp.where(smaller, lost, -lost)
    return xp.where(smaller, e, xp.ones_like(e)) / (1.0 + e)


def _share_rule(g: Any, x: Any, y: Any, out: Any, binary: bool) -> Any:
    return g * (out * F.logaddexp_slope(y, x, binary=binary) * (LN2 if binary else 1.0))


_EXP2 = native("exp2", lambda xp, x: xp.exp(x * LN2))
_slope = elementwise(
    "logaddexp_slope",
    _share,
    kind=Op,
    x=_share_rule,
    y=lambda g, x, y, out, binary: -_share_rule(g, x, y, out, binary),
    doc="""Return ``exp(x) / (exp(x) + exp(y))``, elementwise, or of powers of 2 if ``binary``.

    It is exact also where the difference is rounded.
    """,
)
logaddexp = elementwise(
    "logaddexp",
    x=lambda g, x, y: g * F.logaddexp_slope(x, y, binary=False),
    y=lambda g, x, y: g * F.logaddexp_slope(y, x, binary=False),
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
logaddexp2 = elementwise(
    "logaddexp2",
    native("logaddexp2", lambda xp, x, y: xp.logaddexp(x * LN2, y * LN2) / LN2),
    x=lambda g, x, y: g * F.logaddexp_slope(x, y, binary=True),
    y=lambda g, x, y: g * F.logaddexp_slope(y, x, binary=True),
    doc="""Return ``log2(2**x + 2**y)``, elementwise, without overflow.

    Examples
    --------
    >>> gt.logaddexp2(1000.0, 1000.0).item()
    1001.0
    """,
)
