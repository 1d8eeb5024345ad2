"""Variances and standard deviations over axes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ....core.extend import F, Tensor, as_dtype, as_tensor, kind_of, numpy_dtype, on_device_of, ops
from ..common.axes import Axis, as_axis
from ..common.kernels import at_hand, cast_to, inexact, real_of
from ..shapes.adjoints import size_over
from .sums import chosen, count_of, degrees, in_dtype, kept_by, reduction


def _var_kernel(
    xp: Any, x: Any, *, axis: Axis = None, ddof: float = 0, keepdims: bool = False
) -> Any:
    half = x.dtype if numpy_dtype(x.dtype) == np.float16 else None  # its squares soon overflow
    if half is not None or kind_of(x.dtype) not in "fc":
        x = cast_to(xp, x, np.float64 if half is None else np.float32)
    d = x - xp.mean(x, axis=axis, keepdims=True)
    squares = d * d if kind_of(x.dtype) == "f" else xp.real(d) ** 2 + xp.imag(d) ** 2
    freedom = size_over(xp, squares, axis=axis) - ddof
    result = xp.sum(squares, axis=axis, keepdims=keepdims) / xp.maximum(freedom, 0.0)
    return result if half is None else cast_to(xp, result, half)


def std_kernel(
    xp: Any, x: Any, variance: Any, *, axis: Axis = None, ddof: float = 0, keepdims: bool = False
) -> Any:
    """Return the root of a variance, computed from scaled deviations if it over- or underflows."""
    with np.errstate(over="ignore", under="ignore"):
        squared = variance(x, axis=axis, ddof=ddof, keepdims=keepdims)
    limits = xp.finfo(squared.dtype)
    if (
        0 in x.shape
        or kind_of(x.dtype) not in "fc"
        or at_hand(
            xp.all((squared >= limits.smallest_normal / limits.eps) & (squared < np.inf)),
            unknown=False,
        )
    ):
        return xp.sqrt(squared)
    apart = x - xp.mean(x, axis=axis, keepdims=True)
    top = xp.max(xp.abs(apart), axis=axis, keepdims=True)
    top = xp.where((top > 0) & xp.isfinite(top), top, xp.ones_like(top))
    with np.errstate(under="ignore"):
        result = top * xp.sqrt(variance(apart / top, axis=axis, ddof=ddof, keepdims=True))
    return xp.reshape(result, squared.shape)


def _var_rule(g: Any, x: Any, axis: Axis, ddof: float, keepdims: bool) -> Any:
    # the mean's own dependence on x cancels: deviations sum to 0
    share = (g + g) / (F.size_over(x, axis=axis) - ddof)
    spread = F.unreduce_like(share, x, axis=axis, keepdims=keepdims)
    return spread * (x - F.mean(x, axis=axis, keepdims=True))


def _std_rule(g: Any, x: Any, out: Any, axis: Axis, ddof: float, keepdims: bool) -> Any:
    share = g / (F.size_over(x, axis=axis) - ddof)
    out = F.unreduce_like(out, x, axis=axis, keepdims=keepdims)
    mean = F.mean(x, axis=axis, keepdims=True)
    # elements that are all equal up to rounding of their mean have the subgradient 0
    size = F.abs(out) if kind_of(x.dtype) == "c" else out
    equal = size <= F.abs(mean) * (4.0 * float(np.finfo(x.dtype).eps))
    # a deviation in units of the whole first: 1 / out could overflow
    unit = F.where(equal, 0.0, (x - mean) / F.where(equal, 1.0, out))
    return unit * F.unreduce_like(share, x, axis=axis, keepdims=keepdims)


_var = reduction("var", _var_kernel, real_of, _var_rule, view=False)
_std = reduction(
    "std",
    lambda xp, x, *, axis=None, ddof=0, keepdims=False: std_kernel(
        xp, x, partial(_var_kernel, xp), axis=axis, ddof=ddof, keepdims=keepdims
    ),
    real_of,
    _std_rule,
    view=False,
)


def var(
    x: Any,
    axis: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    where: Any = None,
    mean: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Return the variance: the mean squared distance from the mean.

    Parameters
    ----------
    ddof
        The sum of squares is divided by ``n - ddof``: 0 gives the biased variance (the default),
        1 the unbiased one.
    dtype
        The dtype of the sums and of the result.
    mean
        The mean, of a shape that broadcasts with ``x``, if it is known already. Gradients reach it.
    correction
        Another word for ``ddof``, the array API's.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the real dtype of ``x``; ``float64`` for
    integers.

    Raises
    ------
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``, or
        ``ddof`` and ``correction`` are both given.

    Notes
    -----
    The variance of complex numbers uses absolute values: ``mean(abs(x - mean(x)) ** 2)``.

    Examples
    --------
    >>> gt.var(gt.constant([1.0, 2.0, 3.0, 6.0])).item()
    3.5
    >>> gt.var(gt.constant([1.0, 3.0]), ddof=1).item()
    2.0
    """
    ddof = degrees("var", ddof, correction)
    axis, keepdims = as_axis(axis, "var"), bool(keepdims)
    if dtype is None and where is None and mean is None:
        return _var(x, axis=axis, ddof=ddof, keepdims=keepdims)
    if dtype is not None and as_dtype(dtype).kind not in "fc":
        raise TypeError(f"var: dtype must be floating, to compute in, got {as_dtype(dtype)}")
    x = as_tensor(x)
    kept = kept_by(x, where, "var")
    result = inexact(x.dtype) if dtype is None else as_dtype(dtype)
    inside = np.dtype(np.float32) if result == np.float16 else result  # where sums soon overflow

    def total(terms: Any, keepdims: bool) -> Any:
        # sums are taken in the dtype: of a real one, only the real parts have a mean
        terms = chosen(in_dtype(terms, inside), kept, 0)
        return in_dtype(ops["sum"](terms, axis=axis, keepdims=keepdims), inside)

    counted = in_dtype(x, inside if inside.kind in "fc" else np.dtype(np.float64))
    if mean is None:
        mean = in_dtype(total(x, True) / count_of(kept, counted, axis, True), inside)
    apart = chosen(x - on_device_of(mean, x), kept, 0)
    squares = ops["real"](apart * ops["conj"](apart)) if x.dtype.kind == "c" else apart * apart
    freedom = ops["maximum"](count_of(kept, counted, axis, keepdims) - ddof, 0)
    variance = total(squares, keepdims) / freedom
    return in_dtype(variance, real_of(result) if dtype is None else result)


def std(
    x: Any,
    axis: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    where: Any = None,
    mean: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Return the standard deviation, the square root of :func:`var`.

    Parameters
    ----------
    ddof
        The sum of squares is divided by ``n - ddof``; 0 by default.
    dtype
        The dtype of the sums and of the result.
    mean
        The mean, of a shape that broadcasts with ``x``, if it is known already. Gradients reach it.
    correction
        Another word for ``ddof``, the array API's.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the real dtype of ``x``; ``float64`` for
    integers.

    Raises
    ------
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``, or
        ``ddof`` and ``correction`` are both given.

    Notes
    -----
    Where all elements are equal the gradient is 0, a subgradient.

    Examples
    --------
    >>> gt.std(gt.constant([[1.0, 3.0], [2.0, 2.0]]), axis=1).tolist()
    [1.0, 0.0]
    """
    ddof = degrees("std", ddof, correction)
    if dtype is None and where is None and mean is None:
        return _std(x, axis=as_axis(axis, "std"), ddof=ddof, keepdims=bool(keepdims))
    return root_of_variance(
        var(x, axis, ddof, keepdims, dtype=dtype, where=where, mean=mean), "std"
    )


def root_of_variance(variance: Any, name: str) -> Any:
    """Return the square root, with the gradient 0, a subgradient, at 0."""
    if variance.dtype.kind not in "fc" and variance.shape != ():  # NumPy cuts off a single one
        raise TypeError(f"{name}: square roots do not fit dtype {variance.dtype}")
    equal = variance == 0
    root = ops["where"](equal, 0.0, ops["sqrt"](ops["where"](equal, 1.0, variance)))
    return in_dtype(root, variance.dtype)
