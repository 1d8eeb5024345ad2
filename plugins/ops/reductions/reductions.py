"""Reductions over axes.

Every rule sends the upstream gradient back along the axes that were lost with ``unreduce_like``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Op, Tensor, as_tensor, beside, ops
from ..common.axes import Axis, as_axis, reduced_axes, reduced_shape
from ..common.batching import along, flattened
from ..common.kernels import cast_to, reals
from ..common.op_builders import op
from ..shapes.like import size_over
from .options import averaged, chosen, count_of, counted, in_dtype, kept_by, start_of, started_from
from .scans import cumprod, cumsum

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


def _reduction(
    name: str,
    kernel: Callable[..., Any],
    dtype: Callable[[Any], Any],
    rule: Callable[..., Any] | None,
    holomorphic: bool = False,
    batch: Any = None,
    jvp: Any = None,
) -> Op:
    """Make a reduction; ``dtype`` gives the result's dtype from the input's."""

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
    )


def _same(dtype: Any) -> Any:
    return dtype


def _summed(dtype: Any) -> Any:
    return np.sum(np.empty(0, dtype)).dtype  # NumPy widens small integers


def _inexact(dtype: Any) -> Any:
    return dtype if dtype.kind in "fc" else np.float64


def _real(dtype: Any) -> Any:
    return np.empty(0, _inexact(dtype)).real.dtype


# -- sums and means --------------------------------------------------------------------------------


def _mean_rule(g: Any, x_like: Any, axis: Axis, keepdims: bool) -> Any:
    share = g / F.size_over(x_like, axis=axis)
    return F.unreduce_like(share, x_like, axis=axis, keepdims=keepdims)


_sum = _reduction(
    "sum",
    lambda xp, x, *, axis=None, keepdims=False: xp.sum(x, axis=axis, keepdims=keepdims),
    _summed,
    lambda g, x_like, axis, keepdims: F.unreduce_like(g, x_like, axis=axis, keepdims=keepdims),
    jvp="linear",
)
_mean = _reduction(
    "mean",
    lambda xp, x, *, axis=None, keepdims=False: xp.mean(x, axis=axis, keepdims=keepdims),
    _inexact,
    _mean_rule,
    jvp="linear",
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
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.
    TypeError
        If ``axis`` holds no integers, or ``dtype`` is no dtype.
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
        total = _sum(x, axis=as_axis(axis, "sum"), keepdims=bool(keepdims))
        return started_from(initial, ops["add"], total, dtype, "sum")
    return _sum(x, axis=as_axis(axis, "sum"), keepdims=bool(keepdims))


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
    integers. The mean of nothing is nan.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

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


# -- products --------------------------------------------------------------------------------------


def _prod_rule(g: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    # all others: the product of those before times that of those after, so that zeros do no harm
    before = F.cumprod(F.shift(x, axis=axis, fill=1), axis=axis)
    after = F.shift(x, axis=axis, fill=1, reverse=True)
    others = before * F.cumprod(after, axis=axis, reverse=True)
    return F.unreduce_like(g, x, axis=axis, keepdims=keepdims) * others


_prod = _reduction(
    "prod",
    lambda xp, x, *, axis=None, keepdims=False: xp.prod(x, axis=axis, keepdims=keepdims),
    _summed,
    _prod_rule,
    holomorphic=True,
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

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Notes
    -----
    The gradient with respect to an element is the product of all others, computed without a
    division: it is right at zeros too, at every order.

    Examples
    --------
    >>> gt.prod(gt.constant([2.0, 3.0, 4.0])).item()
    24.0
    >>> gt.grad(gt.prod)(gt.constant([2.0, 0.0, 4.0])).tolist()
    [0.0, 8.0, 0.0]
    """
    if dtype is not None or where is not None or initial is not None:
        x = counted(x, dtype, where, 1, "prod")
        product = _prod(x, axis=as_axis(axis, "prod"), keepdims=bool(keepdims))
        return started_from(initial, ops["multiply"], product, dtype, "prod")
    return _prod(x, axis=as_axis(axis, "prod"), keepdims=bool(keepdims))


# -- variance --------------------------------------------------------------------------------------


def _var_kernel(
    xp: Any, x: Any, *, axis: Axis = None, ddof: float = 0, keepdims: bool = False
) -> Any:
    half = x.dtype if x.dtype.name == "float16" else None  # its squares soon overflow
    if half is not None or x.dtype.kind not in "fc":
        x = cast_to(xp, x, np.float64 if half is None else np.float32)
    d = x - xp.mean(x, axis=axis, keepdims=True)
    squares = d * d if x.dtype.kind == "f" else xp.real(d) ** 2 + xp.imag(d) ** 2
    freedom = size_over(xp, squares, axis=axis) - ddof
    result = xp.sum(squares, axis=axis, keepdims=keepdims) / xp.maximum(freedom, 0.0)
    return result if half is None else cast_to(xp, result, half)


def _deviation(share: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    spread = F.unreduce_like(share, x, axis=axis, keepdims=keepdims)
    return spread * (x - F.mean(x, axis=axis, keepdims=True))


def _var_rule(g: Any, x: Any, axis: Axis, ddof: float, keepdims: bool) -> Any:
    # the mean's own dependence on x cancels: deviations sum to 0
    share = (g + g) / (F.size_over(x, axis=axis) - ddof)
    return _deviation(share, x, axis, keepdims)


def _std_rule(g: Any, x: Any, out: Any, axis: Axis, ddof: float, keepdims: bool) -> Any:
    slope = g / F.where(out == 0, 1.0, out)
    return _deviation(slope / (F.size_over(x, axis=axis) - ddof), x, axis, keepdims)


_var = _reduction("var", _var_kernel, _real, _var_rule)
_std = _reduction(
    "std",
    lambda xp, x, *, axis=None, ddof=0, keepdims=False: xp.sqrt(
        _var_kernel(xp, x, axis=axis, ddof=ddof, keepdims=keepdims)
    ),
    _real,
    _std_rule,
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
) -> Tensor:
    """Return the variance: the mean squared distance from the mean.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to reduce; all by default.
    ddof
        The sum of squares is divided by ``n - ddof``: 0 gives the biased variance (the default),
        1 the unbiased one.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype to compute in.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.
    mean
        The mean, of a shape that broadcasts with ``x``, if it is known already. Gradients reach it.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the real dtype of ``x``; ``float64`` for
    integers.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Notes
    -----
    The variance of complex numbers is that of the distances: ``mean(abs(x - mean(x)) ** 2)``.

    Examples
    --------
    >>> gt.var(gt.constant([1.0, 2.0, 3.0, 6.0])).item()
    3.5
    >>> gt.var(gt.constant([1.0, 3.0]), ddof=1).item()
    2.0
    """
    axis, keepdims = as_axis(axis, "var"), bool(keepdims)
    if dtype is None and where is None and mean is None:
        return _var(x, axis=axis, ddof=ddof, keepdims=keepdims)
    x, kept, result = averaged(x, dtype, where, "var")
    if kept is None and mean is None:
        variance = _var(x, axis=axis, ddof=ddof, keepdims=keepdims)
    else:
        if mean is None:
            total = _sum(chosen(x, kept, 0), axis=axis, keepdims=True)
            mean = total / count_of(kept, x, axis, True)
        else:
            mean = in_dtype(beside(mean, x), x.dtype)
        apart = chosen(x - mean, kept, 0)
        squares = ops["real"](apart * ops["conj"](apart))
        freedom = ops["maximum"](count_of(kept, x, axis, keepdims) - ddof, 0)
        variance = _sum(squares, axis=axis, keepdims=keepdims) / freedom
    return in_dtype(variance, _real(result) if dtype is None else result)


def std(
    x: Any,
    axis: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    where: Any = None,
    mean: Any = None,
) -> Tensor:
    """Return the standard deviation, the square root of :func:`var`.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to reduce; all by default.
    ddof
        The sum of squares is divided by ``n - ddof``; 0 by default.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype to compute in.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.
    mean
        The mean, of a shape that broadcasts with ``x``, if it is known already. Gradients reach it.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the real dtype of ``x``; ``float64`` for
    integers.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Notes
    -----
    Where all elements are equal the gradient is 0, a subgradient.

    Examples
    --------
    >>> gt.std(gt.constant([[1.0, 3.0], [2.0, 2.0]]), axis=1).tolist()
    [1.0, 0.0]
    """
    if dtype is None and where is None and mean is None:
        return _std(x, axis=as_axis(axis, "std"), ddof=ddof, keepdims=bool(keepdims))
    return root_of_variance(var(x, axis, ddof, keepdims, dtype=dtype, where=where, mean=mean))


def root_of_variance(variance: Any) -> Any:
    """Return the square root, with the gradient 0, a subgradient, where it is 0."""
    equal = variance == 0
    return ops["where"](equal, 0.0, ops["sqrt"](ops["where"](equal, 1.0, variance)))


# -- extremes --------------------------------------------------------------------------------------


def _extreme_rule(g: Any, x: Any, out: Any, axis: Axis, keepdims: bool) -> Any:
    hit = F.cast_like(x == F.unreduce_like(out, x, axis=axis, keepdims=keepdims), x)
    share = g / F.sum(hit, axis=axis, keepdims=keepdims)
    return hit * F.unreduce_like(share, x, axis=axis, keepdims=keepdims)


_max = _reduction(
    "max",
    lambda xp, x, *, axis=None, keepdims=False: xp.max(x, axis=axis, keepdims=keepdims),
    _same,
    _extreme_rule,
)
_min = _reduction(
    "min",
    lambda xp, x, *, axis=None, keepdims=False: xp.min(x, axis=axis, keepdims=keepdims),
    _same,
    _extreme_rule,
)


def _bounded_extreme(name: str, x: Any, axis: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    x, along = as_tensor(x), as_axis(axis, name)
    if initial is None:
        if where is True:
            return ops[name](x, axis=along, keepdims=keepdims)
        raise ValueError(f"{name}: where= needs initial=, for lines in which nothing counts")
    bound = start_of(initial, x, name)
    x = chosen(x, kept_by(x, where, name), bound)
    if x.shape is not None:
        left = reduced_shape(x.shape, along, keepdims, name)
        if 0 in [x.shape[i] for i in reduced_axes(along, len(x.shape), name)]:
            return ops["broadcast_to"](bound, shape=left)
    found = ops[name](x, axis=along, keepdims=keepdims)
    return ops[f"{name}imum"](found, bound)


def max(
    x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """Return the largest element.

    Parameters
    ----------
    x
        A real tensor of any shape.
    axis
        The axis or axes to search; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    initial
        A bound of the result; it is needed with ``where``, and where there may be no elements.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; nan if there is nan.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If there is no element to choose from, or ``where`` comes without ``initial``.

    Notes
    -----
    Elements that tie share the gradient evenly.

    Examples
    --------
    >>> gt.max(gt.constant([[1.0, 5.0], [7.0, 3.0]]), axis=0).tolist()
    [7.0, 5.0]
    >>> gt.grad(gt.max)(gt.constant([2.0, 4.0, 4.0])).tolist()
    [0.0, 0.5, 0.5]
    """
    if initial is not None or where is not None:
        return _bounded_extreme("max", x, axis, bool(keepdims), initial, where)
    return _max(x, axis=as_axis(axis, "max"), keepdims=bool(keepdims))


def min(
    x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """Return the smallest element.

    Parameters
    ----------
    x
        A real tensor of any shape.
    axis
        The axis or axes to search; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    initial
        A bound of the result; it is needed with ``where``, and where there may be no elements.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; nan if there is nan.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If there is no element to choose from, or ``where`` comes without ``initial``.

    Notes
    -----
    Elements that tie share the gradient evenly.

    Examples
    --------
    >>> gt.min(gt.constant([[1.0, 5.0], [7.0, 3.0]]), axis=0).tolist()
    [1.0, 3.0]
    """
    if initial is not None or where is not None:
        return _bounded_extreme("min", x, axis, bool(keepdims), initial, where)
    return _min(x, axis=as_axis(axis, "min"), keepdims=bool(keepdims))


amax, amin = max, min


def _logsumexp_kernel(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    if x.dtype.kind != "f":
        x = cast_to(xp, reals(x), np.float64)
    if 0 in x.shape:
        return xp.log(xp.sum(x, axis=axis, keepdims=keepdims))
    top = xp.max(x, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    total = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    if keepdims:
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


_logsumexp = _reduction("logsumexp", _logsumexp_kernel, _inexact, _logsumexp_rule)


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
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    TypeError
        If ``x`` is complex.

    Notes
    -----
    The largest element is taken out of the sum first. The gradient is the softmax of ``x``.

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
    return _logsumexp(x, axis=as_axis(axis, "logsumexp"), keepdims=bool(keepdims))


# -- positions, truth and counts: without gradients ------------------------------------------------


def _index_op(name: str) -> Op:
    def kernel(xp: Any, x: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
        return xp.asarray(getattr(xp, name)(x, axis=axis, keepdims=keepdims))

    return _reduction(name, kernel, lambda dtype: np.intp, NONDIFF, batch=flattened)


def _truth_op(name: str) -> Op:
    def kernel(xp: Any, x: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    return _reduction(name, kernel, lambda dtype: np.bool_, NONDIFF)


_argmax, _argmin = _index_op("argmax"), _index_op("argmin")
_any, _all = _truth_op("any"), _truth_op("all")
_count_nonzero = _reduction(
    "count_nonzero",
    lambda xp, x, *, axis=None, keepdims=False: xp.asarray(
        xp.count_nonzero(x, axis=axis, keepdims=keepdims)
    ),
    lambda dtype: np.intp,
    NONDIFF,
)


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the largest element, the first if several tie; it has no gradient.

    Parameters
    ----------
    x
        A real tensor.
    axis
        The axis to search along; by default the index is that in the flattened tensor.
    keepdims
        Leave the axis in the result, with size 1.

    Returns
    -------
    An integer tensor of the shape of ``x`` without the axis. Where there is nan, it is the index of
    the first nan.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    ValueError
        If there is no element to choose from.
    TypeError
        If ``axis`` is neither None nor one integer.

    Examples
    --------
    >>> gt.argmax(gt.constant([[1.0, 5.0], [7.0, 7.0]]), axis=1).tolist()
    [1, 0]
    """
    return _argmax(x, axis=_one_axis(axis, "argmax"), keepdims=bool(keepdims))


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the smallest element, the first if several tie; it has no gradient.

    Parameters
    ----------
    x
        A real tensor.
    axis
        The axis to search along; by default the index is that in the flattened tensor.
    keepdims
        Leave the axis in the result, with size 1.

    Returns
    -------
    An integer tensor of the shape of ``x`` without the axis. Where there is nan, it is the index of
    the first nan.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    ValueError
        If there is no element to choose from.
    TypeError
        If ``axis`` is neither None nor one integer.

    Examples
    --------
    >>> gt.argmin(gt.constant([[1.0, 5.0], [7.0, 3.0]]), axis=1).tolist()
    [0, 1]
    """
    return _argmin(x, axis=_one_axis(axis, "argmin"), keepdims=bool(keepdims))


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
    A boolean tensor of the shape of ``x`` without the axes; of no elements it is false.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Examples
    --------
    >>> gt.any(gt.constant([[0.0, 2.0], [0.0, 0.0]]), axis=1).tolist()
    [True, False]
    """
    if where is not None:
        x = counted(ops["cast"](x, dtype="bool"), None, where, False, "any")
    return _any(x, axis=as_axis(axis, "any"), keepdims=bool(keepdims))


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
    A boolean tensor of the shape of ``x`` without the axes; of no elements it is true.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Examples
    --------
    >>> gt.all(gt.constant([[1.0, 2.0], [0.0, 3.0]]), axis=1).tolist()
    [True, False]
    """
    if where is not None:
        x = counted(ops["cast"](x, dtype="bool"), None, where, True, "all")
    return _all(x, axis=as_axis(axis, "all"), keepdims=bool(keepdims))


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

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice.

    Examples
    --------
    >>> gt.count_nonzero(gt.constant([[1.0, 0.0], [2.0, 3.0]]), axis=1).tolist()
    [1, 2]
    """
    return _count_nonzero(x, axis=as_axis(axis, "count_nonzero"), keepdims=bool(keepdims))


def _one_axis(axis: Any, name: str) -> int | None:
    try:
        return None if axis is None else operator.index(axis)
    except TypeError:
        raise TypeError(f"{name}: axis must be None or one integer, got {axis!r}") from None
