"""Sums, products, means and variances that skip nan, which has no gradient."""

from __future__ import annotations

from typing import Any

from ....core.extend import Tensor, as_dtype, as_tensor, ops
from ..common.axes import as_axis, axis_over
from ..common.op_builders import named
from .cumulative import cumprod, cumsum
from .sums import degrees, kept_by, mean, prod
from .sums import sum as total
from .variance import root_of_variance, var


def skipping_nan(x: Any, fill: complex) -> tuple[Any, Any]:
    """Return where ``x`` is nan (None if it cannot be), and ``x`` with ``fill`` there."""
    x = as_tensor(x)
    if x.dtype.kind not in "fc":
        return None, x
    missing = ops["isnan"](x)
    return missing, ops["where"](missing, fill, x)


@named
def nansum(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: Any = None,
    where: Any = None,
) -> Tensor:
    """Return the sum of the elements that are not nan; as :func:`gradtape.sum`.

    Parameters
    ----------
    axis
        The axis or axes to sum over; all by default.
    dtype
        The dtype to sum in, and of the result.
    initial
        The start value of the sum, a number or a tensor; gradients reach it.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; small integers and
    booleans give NumPy's default integer. It is 0 where all elements are nan.

    Notes
    -----
    Elements that are nan have the gradient 0.

    Examples
    --------
    >>> gt.nansum(gt.constant([1.0, np.nan, 3.0])).item()
    4.0
    """
    _, filled = skipping_nan(x, 0.0)
    return total(filled, axis, keepdims, dtype=dtype, initial=initial, where=where)


@named
def nanprod(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: Any = None,
    where: Any = None,
) -> Tensor:
    """Return the product of the elements that are not nan; as :func:`gradtape.prod`.

    Parameters
    ----------
    axis
        The axis or axes to multiply over; all by default.
    dtype
        The dtype to multiply in, and of the result.
    initial
        The start value of the product, a number or a tensor; gradients reach it.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; small integers and
    booleans give NumPy's default integer. It is 1 where all elements are nan.

    Notes
    -----
    Elements that are nan have the gradient 0.

    Examples
    --------
    >>> gt.nanprod(gt.constant([2.0, np.nan, 3.0])).item()
    6.0
    """
    _, filled = skipping_nan(x, 1.0)
    return prod(filled, axis, keepdims, dtype=dtype, initial=initial, where=where)


@named
def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the running sum, with nan treated as 0; as :func:`gradtape.cumsum`.

    Parameters
    ----------
    axis
        The axis to sum along; by default the flattened tensor is summed.
    dtype
        The dtype to sum in, and of the result.

    Returns
    -------
    A tensor of the shape and dtype of ``x``, or one-dimensional if ``axis`` is None; small integers
    give NumPy's default integer.

    Examples
    --------
    >>> gt.nancumsum(gt.constant([1.0, np.nan, 3.0])).tolist()
    [1.0, 1.0, 4.0]
    """
    return cumsum(skipping_nan(x, 0.0)[1], axis, dtype)


@named
def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the running product, with nan treated as 1; as :func:`gradtape.cumprod`.

    Parameters
    ----------
    axis
        The axis to multiply along; by default the flattened tensor.
    dtype
        The dtype to multiply in, and of the result.

    Returns
    -------
    A tensor of the shape and dtype of ``x``, or one-dimensional if ``axis`` is None; small integers
    give NumPy's default integer.

    Examples
    --------
    >>> gt.nancumprod(gt.constant([2.0, np.nan, 3.0])).tolist()
    [2.0, 2.0, 6.0]
    """
    return cumprod(skipping_nan(x, 1.0)[1], axis, dtype)


def _present(missing: Any, filled: Any, where: Any, name: str) -> Any:
    """Return which of the elements that are not nan count."""
    present, kept = ops["logical_not"](missing), kept_by(filled, where, name)
    return present if kept is None else ops["logical_and"](present, kept)


def _check_inexact(dtype: Any) -> None:
    if dtype is not None and as_dtype(dtype).kind not in "fc":
        raise TypeError(f"for floating numbers dtype must be floating too, got {as_dtype(dtype)}")


@named
def nanmean(
    x: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None, where: Any = None
) -> Tensor:
    """Return the average of the elements that are not nan, nan if there are none.

    Parameters
    ----------
    axis
        The axis or axes to average over; all by default.
    dtype
        The dtype of the result, in which the mean is computed.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; ``float64`` for
    integers.

    Raises
    ------
    TypeError
        If ``x`` is floating or complex, and ``dtype`` is neither.

    Notes
    -----
    Elements that are nan have the gradient 0.

    Examples
    --------
    >>> gt.nanmean(gt.constant([1.0, np.nan, 4.0])).item()
    2.5
    """
    missing, filled = skipping_nan(x, 0.0)
    if missing is None:
        return mean(filled, axis, keepdims, dtype=dtype, where=where)
    axis = axis_over(filled, axis, "nanmean")
    _check_inexact(dtype)
    kept = _present(missing, filled, where, "nanmean")
    return mean(filled, axis, keepdims, dtype=dtype, where=kept)


@named
def nanvar(
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
    """Return the variance of the elements that are not nan; as :func:`gradtape.var`.

    Parameters
    ----------
    ddof
        The sum of squares is divided by ``n - ddof``, for ``n`` elements that are not nan; 0 by
        default.
    dtype
        The dtype to compute in.
    mean
        The mean, of a shape that broadcasts with ``x``, if you have it already. Gradients reach it.
    correction
        The array API's name for ``ddof``.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the real dtype of ``x``; ``float64`` for
    integers. It is nan where there are no more than ``ddof`` elements.

    Raises
    ------
    TypeError
        If ``x`` is floating or complex, and ``dtype`` neither.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``, or
        ``ddof`` and ``correction`` are both given.

    Examples
    --------
    >>> gt.nanvar(gt.constant([1.0, np.nan, 3.0])).item()
    1.0
    """
    ddof = degrees("nanvar", ddof, correction)
    along, options = as_axis(axis, "nanvar"), {"dtype": dtype, "mean": mean}
    missing, filled = skipping_nan(x, 0.0)
    if missing is None:
        return var(filled, along, ddof, keepdims, where=where, **options)
    along = axis_over(filled, along, "nanvar")
    _check_inexact(dtype)
    kept = _present(missing, filled, where, "nanvar")
    variance = var(filled, along, ddof, keepdims, where=kept, **options)
    enough = ops["count_nonzero"](kept, axis=along, keepdims=bool(keepdims)) > ddof
    return ops["where"](enough, variance, float("nan"))


@named
def nanstd(
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
    """Return the standard deviation of the elements that are not nan; as :func:`gradtape.std`.

    Parameters
    ----------
    ddof
        The sum of squares is divided by ``n - ddof``, for ``n`` elements that are not nan; 0 by
        default.
    dtype
        The dtype to compute in.
    mean
        The mean, of a shape that broadcasts with ``x``, if it is known already. Gradients reach it.
    correction
        Another word for ``ddof``, the array API's.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the real dtype of ``x``; ``float64`` for
    integers. It is nan where there are no more than ``ddof`` elements.

    Raises
    ------
    TypeError
        If ``x`` is floating or complex, and ``dtype`` neither.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``, or
        ``ddof`` and ``correction`` are both given.

    Notes
    -----
    Where all elements are equal the gradient is 0, a subgradient.

    Examples
    --------
    >>> gt.nanstd(gt.constant([1.0, np.nan, 5.0])).item()
    2.0
    """
    ddof = degrees("nanstd", ddof, correction)
    variance = nanvar(x, axis, ddof, keepdims, dtype=dtype, where=where, mean=mean)
    return root_of_variance(variance, "nanstd")
