"""Floating-point numbers: rounding, sign, fraction, exponent and adjacent numbers.

Rounding has no gradients.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Op, Tensor, as_tensor, kind_of, numpy_dtype, ops
from ..common.kernels import cast_to, complex_of, native, reals
from ..common.op_builders import elementwise, named, op, result_dtype
from ..common.parameters import plain_number

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

fix = trunc


def _round_kernel(xp: Any, x: Any, *, decimals: int = 0) -> Any:
    kind = kind_of(x.dtype)
    if decimals == 0:
        return xp.round(x)
    if kind == "c":  # part by part, since an infinite one would make the other nan
        parts = (_round_kernel(xp, part, decimals=decimals) for part in (xp.real(x), xp.imag(x)))
        return complex_of(xp, *parts)
    if kind == "i" or kind == "u":
        return x if decimals > 0 else cast_to(xp, _scaled(xp, x, decimals), x.dtype)
    # the scale soon overflows half precision
    wide = cast_to(xp, x, np.float32) if numpy_dtype(x.dtype) == np.float16 else x
    return cast_to(xp, _scaled(xp, wide, decimals), x.dtype)


def _scaled(xp: Any, x: Any, decimals: int) -> Any:
    scale = 10.0 ** abs(decimals)
    return xp.round(x * scale) / scale if decimals > 0 else xp.round(x / scale) * scale


_round = op(
    "round",
    _round_kernel,
    gradients={"x": NONDIFF},
    infer=lambda x, decimals: (x.shape, result_dtype(_round_kernel, [x], decimals=decimals)),
    batch="elementwise",
)


@named
def round(x: Any, decimals: int = 0) -> Tensor:
    """Round to the nearest, halves to even; it has no gradient.

    Parameters
    ----------
    decimals
        The decimal places to keep, 0 by default; a negative number rounds before the point.

    Returns
    -------
    A tensor of the shape and dtype of ``x``; booleans become ``float16``, as in NumPy.

    Examples
    --------
    >>> gt.round([0.5, 1.5, -1.7]).tolist()
    [0.0, 2.0, -2.0]
    >>> gt.round(1234.0, decimals=-2).item()
    1200.0
    """
    x, places = as_tensor(x), operator.index(decimals)
    if places and x.dtype.kind == "b":
        raise TypeError("round: booleans have no decimal places")
    return _round(x, decimals=places)


@named
def around(x: Any, decimals: int = 0) -> Tensor:
    """Round to the nearest, halves to even, as :func:`gradtape.round`; it has no gradient.

    Parameters
    ----------
    decimals
        The decimal places to keep, 0 by default; a negative number rounds before the point.

    Returns
    -------
    A tensor of the shape and dtype of ``x``; booleans become ``float16``, as in NumPy.

    Examples
    --------
    >>> gt.around([0.5, 1.5, -1.7]).tolist()
    [0.0, 2.0, -2.0]
    """
    return round(x, decimals)


@named
def rint(x: Any) -> Tensor:
    """Round to the nearest integer, halves to even; it has no gradient.

    Returns
    -------
    A tensor of the shape and dtype of ``x``. Integers become floats of the same width as in NumPy.

    Examples
    --------
    >>> gt.rint([0.5, 1.5, -1.7]).tolist()
    [0.0, 2.0, -2.0]
    """
    x = as_tensor(x)
    return _round(x if x.dtype.kind in "fc" else x.astype(np.rint(np.empty(0, x.dtype)).dtype))


# -- parts and neighbours --------------------------------------------------------------------------


def _exponent_kernel(xp: Any, x: Any) -> Any:
    if hasattr(xp, "frexp"):
        return xp.frexp(x)[1]
    usual = xp.isfinite(reals(x)) & (x != 0)
    size = xp.abs(xp.where(usual, x, xp.ones_like(x)))
    # numbers below the normal ones are scaled up, or the logarithm would round them
    tiny = size < xp.finfo(x.dtype).smallest_normal
    size = xp.where(tiny, size * 2.0**60, size)
    exponent = xp.floor(xp.log2(size)) + 1
    share = size / 2.0 ** (exponent - 1)  # twice the mantissa: 2**exponent may be infinite
    exponent = exponent + xp.astype(share >= 2, x.dtype) - xp.astype(share < 1, x.dtype)
    exponent = xp.where(tiny, exponent - 60, exponent)
    return xp.astype(xp.where(usual, exponent, xp.zeros_like(x)), xp.int32)


_exponent = op(
    "frexp_exponent",
    _exponent_kernel,
    gradients={"x": NONDIFF},
    infer=lambda x: (x.shape, np.dtype(np.int32)),
    batch="elementwise",
    doc="Return the exponent ``e`` of ``x = m * 2**e`` with ``0.5 <= abs(m) < 1``.",
)


@named
def frexp(x: Any) -> tuple[Tensor, Tensor]:
    """Return mantissa and exponent: ``x = m * 2**e`` with ``0.5 <= abs(m) < 1``.

    Parameters
    ----------
    x
        A real tensor of any shape; integers become floats of the same width as in NumPy.

    Returns
    -------
    m
        A tensor of the shape and dtype of ``x``. It is 0 at 0, and infinite or nan where ``x`` is.
    e
        Integers (``int32``) of that shape, which have no gradient.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    Notes
    -----
    The gradient of the mantissa is ``2**-e``.

    Examples
    --------
    >>> [part.tolist() for part in gt.frexp([8.0, -0.75])]
    [[0.5, -0.75], [4, 0]]
    """
    x = as_tensor(x)
    if x.dtype.kind == "c":
        raise TypeError(f"frexp: expected real numbers, got dtype {x.dtype}")
    if x.dtype.kind != "f":
        x = ops["cast"](x, dtype=np.frexp(np.empty(0, x.dtype))[0].dtype.name)
    exponent = _exponent(x)
    return ops["ldexp"](x, -exponent), exponent


ldexp = elementwise(
    "ldexp",
    native(
        "ldexp", lambda xp, x, y: x * 2.0 ** (xp.astype(y, x.dtype) if hasattr(y, "dtype") else y)
    ),
    kind=Op,  # a Python integer stays one: it must not follow the dtype of ``x``
    x=lambda g, y: F.ldexp(g, y),
    y=NONDIFF,
    doc="""Return ``x * 2**y`` for integers ``y``, elementwise.

    Parameters
    ----------
    x
        A real tensor, array or number.
    y
        The exponents: integers, of a shape that broadcasts with ``x``. They have no gradient.

    Returns
    -------
    A tensor of the broadcast shape and the dtype of ``x``; integers give floats.

    Raises
    ------
    TypeError
        If ``x`` is complex, or ``y`` does not hold integers.
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> gt.ldexp([1.0, 3.0], [4, -1]).tolist()
    [16.0, 1.5]
    """,
)


@named
def modf(x: Any) -> tuple[Tensor, Tensor]:
    """Return the fractional part of ``x`` and its integral part, which has no gradient.

    Parameters
    ----------
    x
        A real tensor of any shape.

    Returns
    -------
    Two tensors of the shape and dtype of ``x``; integers give floats. Both have the sign of ``x``.
    The fraction of an infinite value is 0 with the sign of that value.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    Examples
    --------
    >>> [part.tolist() for part in gt.modf([1.5, -2.25])]
    [[0.5, -0.25], [1.0, -2.0]]
    """
    x = as_tensor(x)
    if x.dtype.kind not in "fc":
        x = ops["cast"](x, dtype=np.modf(np.empty(0, x.dtype))[0].dtype.name)
    whole = ops["trunc"](x)
    fraction = ops["where"](ops["isinf"](x), 0.0, x - whole)
    return ops["copysign"](fraction, ops["stop_gradient"](x)), whole


copysign = elementwise(
    "copysign",
    "copysign",
    x=lambda g, x, out: g * (F.sign(x) * F.sign(out)),
    y=lambda g: F.zeros_like(g),
    holomorphic=False,
    doc="""Return ``x`` with the sign of ``y``, elementwise.

    Notes
    -----
    The gradient of ``x`` is 1 where its sign stays the same, -1 where it changes, and 0 at 0. That
    of ``y`` is 0.

    Examples
    --------
    >>> gt.copysign([1.0, -2.0], [-0.0, 3.0]).tolist()
    [-1.0, 2.0]
    """,
)

signbit = elementwise(
    "signbit",
    x=NONDIFF,
    doc="""Return whether the sign of ``x`` is negative, elementwise; that of -0.0 is.

    Examples
    --------
    >>> gt.signbit([-1.0, -0.0, 2.0]).tolist()
    [True, True, False]
    """,
)
nextafter = elementwise(
    "nextafter",
    # a step that does not depend on where x is, nor on how far y is
    x=lambda g: g,
    y=lambda g: F.zeros_like(g),
    doc="""Return the float next to ``x`` towards ``y``, elementwise.

    Notes
    -----
    The gradient is 1 for ``x`` and 0 for ``y``.

    Examples
    --------
    >>> gt.nextafter(gt.constant(1.0), 2.0).item() == 1.0 + 2.0**-23
    True
    """,
)


def _spacing_kernel(xp: Any, x: Any) -> Any:
    if hasattr(xp, "spacing"):
        return xp.spacing(x)
    x = reals(x)
    if kind_of(x.dtype) != "f":
        x = cast_to(xp, x, np.result_type(numpy_dtype(x.dtype), np.float16))
    size = xp.abs(x)
    step = xp.nextafter(size, xp.full_like(size, math.inf)) - size
    return xp.where(xp.signbit(x), -step, step)


spacing = elementwise(
    "spacing",
    _spacing_kernel,
    x=NONDIFF,
    doc="""Return the distance from ``x`` to the next float away from 0, with the sign of ``x``.

    It has no gradient.

    Examples
    --------
    >>> gt.spacing(gt.constant([1.0, -2.0])).tolist() == [2.0**-23, -(2.0**-22)]
    True
    """,
)


def _real_finite(xp: Any, x: Any, nan: float, posinf: float | None, neginf: float | None) -> Any:
    limits = xp.finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    infinite = xp.isinf(x)
    # numbers as arrays without axes: the standard requires that here
    nan, high, low = (xp.asarray(value, dtype=x.dtype) for value in (nan, float(high), float(low)))
    return xp.where(xp.isnan(x), nan, xp.where(infinite, xp.where(x > 0, high, low), x))


def _finite_kernel(
    xp: Any,
    x: Any,
    *,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Any:
    kind = kind_of(x.dtype)
    if kind == "f":
        return _real_finite(xp, x, nan, posinf, neginf)
    if kind != "c":
        return x
    imaginary = _real_finite(xp, xp.imag(x), nan, posinf, neginf)
    return _real_finite(xp, xp.real(x), nan, posinf, neginf) + 1j * imaginary


def _finite_rule(g: Any, x: Any) -> Any:
    if x.dtype.kind != "c":
        return F.where(F.isfinite(x), g, 0.0)
    real = F.where(F.isfinite(F.real(x)), F.real(g), 0.0)
    return real + 1j * F.where(F.isfinite(F.imag(x)), F.imag(g), 0.0)


_nan_to_num = op(
    "nan_to_num",
    _finite_kernel,
    gradients={"x": _finite_rule},
    infer=lambda x, nan, posinf, neginf: (x.shape, x.dtype),
    batch="elementwise",
    doc="Replace nan and infinities by numbers.",
)


@named
def nan_to_num(
    x: Any,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Return ``x`` with nan and infinities replaced by numbers.

    Parameters
    ----------
    x
        A tensor of any shape and dtype. In a complex tensor, both parts are replaced.
    copy
        Only for NumPy's signature: tensors never change, so the result is always new.
    nan, posinf, neginf
        The replacements for nan, positive and negative infinity. The defaults are 0, the largest
        and the lowest number of the dtype.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    ValueError
        If ``copy`` is false.
    GradientError
        If a derivative with respect to ``nan``, ``posinf`` or ``neginf`` is requested.

    Notes
    -----
    Replaced elements have the gradient 0.

    Examples
    --------
    >>> gt.nan_to_num([1.0, np.nan, np.inf], posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """
    if not copy:
        raise ValueError("nan_to_num: a tensor is not changed in place; leave copy=True")
    for argument, value in {"nan": nan, "posinf": posinf, "neginf": neginf}.items():
        test = {"nan": "isnan(x)", "posinf": "isposinf(x)", "neginf": "isneginf(x)"}[argument]
        how = f"write gradtape.where(gradtape.{test}, {argument}, x)"
        plain_number(value, "nan_to_num", argument, how)
    limits = [None if value is None else float(value) for value in (posinf, neginf)]
    return _nan_to_num(x, nan=float(nan), posinf=limits[0], neginf=limits[1])
