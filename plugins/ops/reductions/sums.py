"""Sums, means and products over axes, and the logarithm of a sum of exponentials.

Counts of true elements, and whether any or all are true, have no gradients.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Op, Tensor, kind_of, ops
from ..common.axes import Axis, as_axis, axis_over, reduced_shape
from ..common.kernels import cast_to, in_float32, inexact, reals
from .builder import (
    averaged,
    chosen,
    count_of,
    counted,
    in_dtype,
    reduction,
    started_from,
    summed_dtype,
    widened,
)


def _mean_rule(g: Any, x_like: Any, axis: Axis, keepdims: bool) -> Any:
    share = g / F.size_over(x_like, axis=axis)
    return F.unreduce_like(share, x_like, axis=axis, keepdims=keepdims)


_sum = reduction(
    "sum",
    in_float32(
        lambda xp, x, *, axis=None, keepdims=False: xp.sum(
            widened(xp, x, summed_dtype), axis=axis, keepdims=keepdims
        )
    ),
    summed_dtype,
    lambda g, x_like, axis, keepdims: F.unreduce_like(g, x_like, axis=axis, keepdims=keepdims),
    jvp="linear",
    view=False,
    integers=np.add.reduce,
)
_mean = reduction(
    "mean",
    lambda xp, x, *, axis=None, keepdims=False: xp.mean(
        widened(xp, x, inexact), axis=axis, keepdims=keepdims
    ),
    inexact,
    _mean_rule,
    jvp="linear",
    view=False,
)


def sum(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: Any = None,
    where: Any = None,
) -> Tensor:
    """Return the sum of elements.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to sum over; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype to sum in, and of the result.
    initial
        What the sum starts from, a number or a tensor; gradients reach it.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; small integers and
    booleans give NumPy's default integer.

    Raises
    ------
    OverflowError
        If ``initial`` is an integer that the result's dtype cannot hold.

    Examples
    --------
    >>> gt.sum(gt.constant([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    <Tensor shape=(2,) dtype=float32 value=[4., 6.]>
    >>> gt.sum(gt.constant([1, 2, 3]), initial=10, where=[True, False, True]).item()
    14
    """
    if dtype is not None or where is not None or initial is not None:
        x = counted(x, dtype, where, 0, "sum")
        total = _sum(x, axis=axis_over(x, axis, "sum"), keepdims=bool(keepdims))
        return started_from(initial, ops["add"], total, dtype, "sum")
    return _sum(x, axis=axis_over(x, axis, "sum"), keepdims=bool(keepdims))


def mean(
    x: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None, where: Any = None
) -> Tensor:
    """Return the average of elements.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to average over; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype of the result, in which the mean is computed.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; ``float64`` for
    integers. The mean of no elements is nan.

    Examples
    --------
    >>> gt.mean(gt.constant([[1.0, 2.0], [3.0, 6.0]]), axis=1).tolist()
    [1.5, 4.5]
    """
    axis, keepdims = as_axis(axis, "mean"), bool(keepdims)
    if dtype is None and where is None:
        return _mean(x, axis=axis, keepdims=keepdims)
    x, kept, result = averaged(x, dtype, where, "mean")
    if kept is None:
        average = _mean(x, axis=axis, keepdims=keepdims)
    else:
        total = _sum(chosen(x, kept, 0), axis=axis, keepdims=keepdims)
        average = total / count_of(kept, x, axis, keepdims)
    return in_dtype(average, result)


def _prod_rule(g: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    if axis is not None and x.shape in (None, ()):  # of unknown rank, it may be a number
        row = F.insert_axes(x, places=((0,),))
        others = F.reshape_like(F.product_of_others(row, axis=axis), x)
    else:
        others = F.product_of_others(x, axis=axis)
    return F.unreduce_like(g, x, axis=axis, keepdims=keepdims) * others


_prod = reduction(
    "prod",
    in_float32(
        lambda xp, x, *, axis=None, keepdims=False: xp.prod(
            widened(xp, x, summed_dtype), axis=axis, keepdims=keepdims
        )
    ),
    summed_dtype,
    _prod_rule,
    holomorphic=True,
    view=False,
    integers=np.multiply.reduce,
)


def prod(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: Any = None,
    where: Any = None,
) -> Tensor:
    """Return the product of elements.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to multiply over; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype to multiply in, and of the result.
    initial
        What the product starts from, a number or a tensor; gradients reach it.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; small integers and
    booleans give NumPy's default integer.

    Notes
    -----
    The gradient with respect to an element is the product of all others, computed without a
    division. It is correct at zeros, at every order.

    Examples
    --------
    >>> gt.prod(gt.constant([2.0, 3.0, 4.0])).item()
    24.0
    >>> gt.grad(gt.prod)(gt.constant([2.0, 0.0, 4.0])).tolist()
    [0.0, 8.0, 0.0]
    """
    if dtype is not None or where is not None or initial is not None:
        x = counted(x, dtype, where, 1, "prod")
        product = _prod(x, axis=axis_over(x, axis, "prod"), keepdims=bool(keepdims))
        return started_from(initial, ops["multiply"], product, dtype, "prod")
    return _prod(x, axis=axis_over(x, axis, "prod"), keepdims=bool(keepdims))


@in_float32
def _logsumexp_kernel(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    if kind_of(x.dtype) != "f":
        x = cast_to(xp, reals(x), np.float64)
    if 0 in x.shape:
        return xp.log(xp.sum(x, axis=axis, keepdims=keepdims))
    top = xp.max(x, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    total = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    if keepdims or x.ndim == 0:
        return total
    return xp.reshape(total, reduced_shape(x.shape, axis, False, "logsumexp"))


def _logsumexp_rule(g: Any, x: Any, out: Any, axis: Axis, keepdims: bool) -> Any:
    # the softmax is the same for any shift; inf - inf would be nan
    shift = F.stop_gradient(F.where(out == -inf, 0.0, out))
    shift = F.unreduce_like(shift, x, axis=axis, keepdims=keepdims)
    terms = F.exp(F.where(x == inf, 0.0, x - shift))
    # the sum is 1 up to what a large shift has lost, and 0 where nothing is possible
    total = F.sum(terms, axis=axis, keepdims=keepdims)
    share = g / F.where(total == 0, 1.0, total)
    return terms * F.unreduce_like(share, x, axis=axis, keepdims=keepdims)


_logsumexp = reduction("logsumexp", _logsumexp_kernel, inexact, _logsumexp_rule)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return ``log(sum(exp(x)))`` without overflow.

    Parameters
    ----------
    x
        A real tensor of any shape.
    axis
        The axis or axes to sum over; all by default.
    keepdims
        Leave the axes in the result, with size 1.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; ``float64`` for
    integers. It is -inf for no elements, and where all are -inf.

    Raises
    ------
    TypeError
        If ``x`` is complex.

    Notes
    -----
    The largest element is factored out of the sum first. The gradient is the softmax of ``x``.

    References
    ----------
    Blanchard, Higham and Higham, "Accurately computing the log-sum-exp and softmax functions", IMA
    Journal of Numerical Analysis 41, 2021.

    Examples
    --------
    >>> gt.logsumexp(gt.constant([1000.0, -1000.0])).item()
    1000.0
    >>> gt.grad(gt.logsumexp)(gt.constant([3.0, 3.0])).tolist()
    [0.5, 0.5]
    """
    return _logsumexp(x, axis=axis_over(x, axis, "logsumexp"), keepdims=bool(keepdims))


# -- truth -----------------------------------------------------------------------------------------


def _truth_op(name: str) -> Op:
    def kernel(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    return reduction(name, kernel, lambda dtype: np.bool_, NONDIFF)


_any, _all = _truth_op("any"), _truth_op("all")
_count_nonzero = reduction(
    "count_nonzero",
    lambda xp, x, *, axis=None, keepdims=False: xp.asarray(
        xp.count_nonzero(x, axis=axis, keepdims=keepdims)
    ),
    lambda dtype: np.intp,
    NONDIFF,
)


def any(x: Any, axis: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """Return whether any element is true (not 0); it has no gradient.

    Parameters
    ----------
    x
        A tensor of any shape and dtype; nan is true.
    axis
        The axis or axes to reduce; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A boolean tensor of the shape of ``x`` without the axes; false if there are no elements.

    Examples
    --------
    >>> gt.any(gt.constant([[0.0, 2.0], [0.0, 0.0]]), axis=1).tolist()
    [True, False]
    """
    if where is not None:
        x = counted(ops["cast"](x, dtype="bool"), None, where, False, "any")
    return _any(x, axis=axis_over(x, axis, "any"), keepdims=bool(keepdims))


def all(x: Any, axis: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """Return whether all elements are true (not 0); it has no gradient.

    Parameters
    ----------
    x
        A tensor of any shape and dtype; nan is true.
    axis
        The axis or axes to reduce; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A boolean tensor of the shape of ``x`` without the axes; true if there are no elements.

    Examples
    --------
    >>> gt.all(gt.constant([[1.0, 2.0], [0.0, 3.0]]), axis=1).tolist()
    [True, False]
    """
    if where is not None:
        x = counted(ops["cast"](x, dtype="bool"), None, where, True, "all")
    return _all(x, axis=axis_over(x, axis, "all"), keepdims=bool(keepdims))


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return how many elements are not 0; it has no gradient.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to count over; all by default.
    keepdims
        Leave the axes in the result, with size 1.

    Returns
    -------
    An integer tensor of the shape of ``x`` without the axes.

    Examples
    --------
    >>> gt.count_nonzero(gt.constant([[1.0, 0.0], [2.0, 3.0]]), axis=1).tolist()
    [1, 2]
    """
    return _count_nonzero(x, axis=axis_over(x, axis, "count_nonzero"), keepdims=bool(keepdims))
