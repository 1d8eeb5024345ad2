"""Sums, means and products over axes, the logarithm of a sum of exponentials, and any reduction.

Every gradient rule sends the upstream gradient back along the reduced axes with ``unreduce_like``.
NumPy's ``where=``, ``initial=`` and ``dtype=`` are made of other ops. Counts of true elements, and
whether any or all are true, have no gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Tensor,
    as_dtype,
    as_tensor,
    broadcast_shapes,
    kind_of,
    numpy_dtype,
    on_device_of,
    ops,
    shapes_differ,
)
from ..common.axes import Axis, along, as_axis, axis_over, reduced_shape
from ..common.kernels import cast_to, in_float32, inexact, real_of, reals
from ..common.op_builders import op


def reduction(
    name: str,
    kernel: Callable[..., Any],
    dtype: Callable[[Any], Any],
    rule: Callable[..., Any] | None,
    holomorphic: bool = False,
    batch: Any = None,
    jvp: Any = None,
    **traits: Any,
) -> Op:
    """Make a reduction; ``dtype`` gives the result's dtype from the input's.

    ``traits`` are further arguments of :class:`Op`.
    """

    def infer(x: Any, axis: Axis, keepdims: bool, **params: Any) -> tuple[Any, Any]:
        return reduced_shape(x.shape, axis, keepdims, name), np.dtype(dtype(x.dtype))

    return op(
        name,
        kernel,
        gradients={"x": rule},
        infer=infer,
        holomorphic=holomorphic,
        batch=batch or along("axis"),
        jvp=jvp,
        **traits,
    )


def widened(xp: Any, x: Any, dtype: Callable[[Any], Any]) -> Any:
    """Return booleans and integers in the dtype of the result, others unchanged.

    NumPy's reductions widen them; other libraries refuse some, or widen to another dtype.
    """
    return cast_to(xp, x, dtype(numpy_dtype(x.dtype))) if kind_of(x.dtype) in "biu" else x


def same_dtype(dtype: Any) -> Any:
    return dtype


def summed_dtype(dtype: Any) -> Any:
    return np.sum(np.empty(0, dtype)).dtype  # NumPy widens small integers


# -- NumPy's options -------------------------------------------------------------------------------


def degrees(name: str, ddof: float, correction: float | None) -> float:
    """Return the number to subtract from the count: ``ddof`` or ``correction``."""
    if correction is None:
        return ddof
    if ddof:
        raise ValueError(f"{name}: ddof and correction mean the same; pass one of them")
    return correction


def kept_by(x: Any, where: Any, name: str) -> Any:
    """Return which elements of ``x`` count, as booleans of its shape; None for all."""
    if where is None or where is True:
        return None
    where = on_device_of(where, x)
    where = where if where.dtype.kind == "b" else where != 0
    joined = broadcast_shapes(x.shape, where.shape, op=name)
    if shapes_differ(joined, x.shape):
        raise ValueError(
            f"{name}: where of shape {where.shape} does not broadcast to shape {x.shape}"
        )
    # in the dtype of booleans, so that only the shape of x matters
    return ops["broadcast_like"](where, ops["equal"](x, x))


def chosen(x: Any, kept: Any, fill: Any) -> Any:
    """Return ``x`` with ``fill`` instead of the elements that do not count."""
    return x if kept is None else ops["where"](kept, x, fill)


def counted(x: Any, dtype: Any, where: Any, fill: Any, name: str) -> Any:
    """Return ``x`` in the dtype to reduce in, with ``fill`` where elements do not count."""
    x = as_tensor(x)
    if dtype is not None:
        x = in_dtype(x, as_dtype(dtype))
    return chosen(x, kept_by(x, where, name), bool(fill) if x.dtype.kind == "b" else fill)


def started_from(initial: Any, join: Any, result: Any, dtype: Any, name: str) -> Any:
    """Return a reduction started from ``initial``, in its own dtype."""
    result = result if dtype is None else in_dtype(result, as_dtype(dtype))
    if initial is None:
        return result
    return join(result, start_of(initial, result, name))


def start_of(initial: Any, like: Any, name: str) -> Any:
    """Return the start value of a reduction, in the dtype of ``like``.

    Raises
    ------
    OverflowError
        If it is a Python number that the integer dtype cannot hold.
    """
    if type(initial) in (int, float) and like.dtype.kind in "iu":
        try:
            initial = np.asarray(int(initial), like.dtype)
        except (OverflowError, ValueError) as error:
            raise OverflowError(f"{name}: initial={initial}: {error}") from None
    return in_dtype(on_device_of(initial, like), like.dtype)


def averaged(x: Any, dtype: Any, where: Any, name: str) -> tuple[Any, Any, Any]:
    """Return ``x`` in the dtype to average in, which elements count, and the result's dtype."""
    x = as_tensor(x)
    result = inexact(x.dtype) if dtype is None else as_dtype(dtype)
    if result.name == "float16":  # its sums soon overflow
        x = in_dtype(x, np.dtype(np.float32))
    else:
        x = x if dtype is None else in_dtype(x, result)  # integers are cut off before the sum
        x = in_dtype(x, result if result.kind in "fc" else np.dtype(np.float64))
    return x, kept_by(x, where, name), result


def count_of(kept: Any, like: Any, axis: Axis, keepdims: bool) -> Any:
    """Return how many elements count (all, if ``kept`` is None), in the real dtype of ``like``."""
    if kept is None:
        return ops["size_over"](like, axis=axis)
    return ops["sum"](
        ops["cast"](kept, dtype=real_of(like.dtype).name), axis=axis, keepdims=keepdims
    )


def in_dtype(x: Any, dtype: Any) -> Any:
    """Return ``x`` in a dtype, or ``x`` itself if it has that dtype."""
    return x if x.dtype == dtype else ops["cast"](x, dtype=np.dtype(dtype).name)


# -- sums, means and products ----------------------------------------------------------------------


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
    axis
        The axis or axes to sum over; all by default.
    dtype
        The dtype to sum in, and of the result.
    initial
        What the sum starts from, a number or a tensor; gradients reach it.

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
    axis
        The axis or axes to average over; all by default.
    dtype
        The dtype of the result, in which the mean is computed.

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
    axis
        The axis or axes to multiply over; all by default.
    dtype
        The dtype to multiply in, and of the result.
    initial
        What the product starts from, a number or a tensor; gradients reach it.

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
    lambda dtype: np.int64,
    NONDIFF,
)


def any(x: Any, axis: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """Return whether any element is true (not 0); it has no gradient.

    Parameters
    ----------
    x
        A tensor of any shape and dtype; nan is true.

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
    axis
        The axis or axes to count over; all by default.

    Returns
    -------
    An integer tensor of the shape of ``x`` without the axes.

    Examples
    --------
    >>> gt.count_nonzero(gt.constant([[1.0, 0.0], [2.0, 3.0]]), axis=1).tolist()
    [1, 2]
    """
    return _count_nonzero(x, axis=axis_over(x, axis, "count_nonzero"), keepdims=bool(keepdims))
