"""The largest and the smallest elements over axes, their indices, and the range between.

Those that skip nan give it no gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Op, Tensor, as_tensor, is_open, kind_of, ops
from ..common.axes import Axis, axis_over, flattened, optional_axis, reduced_axes, reduced_shape
from ..common.dynamic_shapes import LARGEST, SMALLEST, empty, never_empty
from ..common.kernels import truth
from ..common.op_builders import named, op
from .nan_sums import skipping_nan
from .sums import chosen, kept_by, reduction, same_dtype, start_of


def _extreme_rule(g: Any, x: Any, out: Any, axis: Axis, keepdims: bool) -> Any:
    out = F.unreduce_like(out, x, axis=axis, keepdims=keepdims)
    hit = F.cast_like(F.logical_or(x == out, x != x), x)  # what is nan is the extreme
    share = g / F.sum(hit, axis=axis, keepdims=keepdims)
    return hit * F.unreduce_like(share, x, axis=axis, keepdims=keepdims)


_max = reduction(
    "max",
    lambda xp, x, *, axis=None, keepdims=False: xp.max(x, axis=axis, keepdims=keepdims),
    same_dtype,
    _extreme_rule,
    view=False,
    integers=LARGEST.reduce,
)
_min = reduction(
    "min",
    lambda xp, x, *, axis=None, keepdims=False: xp.min(x, axis=axis, keepdims=keepdims),
    same_dtype,
    _extreme_rule,
    view=False,
    integers=SMALLEST.reduce,
)


def _bounded_extreme(name: str, x: Any, axis: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    x = as_tensor(x)
    along = axis_over(x, axis, name)
    if initial is None:
        if where is True:
            return ops[name](x, axis=along, keepdims=keepdims)
        raise ValueError(f"{name}: where= needs initial=, for lines without selected elements")
    bound = start_of(initial, x, name)
    x = chosen(x, kept_by(x, where, name), bound)
    sizes: list[Any] = []
    if x.shape is not None:
        left = reduced_shape(x.shape, along, keepdims, name)
        axes = reduced_axes(along, len(x.shape), name)
        sizes = [x.shape[i] for i in axes]
        if empty(sizes):
            return ops["broadcast_to"](bound, shape=left)
        x = never_empty(x, axes)
    found = ops[name](x, axis=along, keepdims=keepdims)
    found = ops[f"{name}imum"](found, bound)
    for size in sizes:
        if is_open(size > 0):
            found = ops["where"](size > 0, found, bound)
    return found


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
    initial
        A bound of the result. It is required with ``where``, and if there may be no elements.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; nan if an element is
    nan.

    Raises
    ------
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
    return _max(x, axis=axis_over(x, axis, "max"), keepdims=bool(keepdims))


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
    initial
        A bound of the result; it is needed with ``where``, and where there may be no elements.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; nan if there is nan.

    Raises
    ------
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
    return _min(x, axis=axis_over(x, axis, "min"), keepdims=bool(keepdims))


amax, amin = max, min


@named
def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the range ("peak to peak"): the largest element minus the smallest.

    Parameters
    ----------
    x
        A tensor of numbers, of any shape.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If there are no elements, or an axis is given twice.
    TypeError
        If ``x`` is boolean.

    Notes
    -----
    Elements that tie for an extreme share its gradient evenly.

    Examples
    --------
    >>> gt.ptp(gt.constant([[1.0, 5.0], [7.0, 3.0]]), axis=1).tolist()
    [4.0, 4.0]
    """
    along = axis_over(x, axis, "ptp")
    return ops["max"](x, axis=along, keepdims=keepdims) - ops["min"](
        x, axis=along, keepdims=keepdims
    )


def _index_op(name: str) -> Op:
    def kernel(xp: Any, x: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
        return xp.asarray(getattr(xp, name)(x, axis=axis, keepdims=keepdims))

    return reduction(name, kernel, lambda dtype: np.int64, NONDIFF, batch=flattened, view=False)


_argmax, _argmin = _index_op("argmax"), _index_op("argmin")


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the largest element, the first if tied; it has no gradient.

    Parameters
    ----------
    x
        A real tensor.
    axis
        The axis to search along; by default the index refers to the flattened tensor.
    keepdims
        Leave the axis in the result, with size 1.

    Returns
    -------
    An integer tensor of the shape of ``x`` without the axis. If there are nan, it is the index of
    the first nan.

    Raises
    ------
    ValueError
        If there is no element to choose from.

    Examples
    --------
    >>> gt.argmax(gt.constant([[1.0, 5.0], [7.0, 7.0]]), axis=1).tolist()
    [1, 0]
    """
    return _argmax(
        x, axis=axis_over(x, optional_axis(axis, "argmax"), "argmax"), keepdims=bool(keepdims)
    )


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the smallest element, the first if tied; it has no gradient.

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
    ValueError
        If there is no element to choose from.

    Examples
    --------
    >>> gt.argmin(gt.constant([[1.0, 5.0], [7.0, 3.0]]), axis=1).tolist()
    [0, 1]
    """
    return _argmin(
        x, axis=axis_over(x, optional_axis(axis, "argmin"), "argmin"), keepdims=bool(keepdims)
    )


# -- skipping nan ----------------------------------------------------------------------------------


def _extreme_like(x: Any, fill: float) -> float | complex:
    """Return an infinity that comes before, or after, all numbers of the dtype of ``x``."""
    return complex(fill, fill) if kind_of(x.dtype) == "c" else fill


def _nan_extreme(
    extreme: Callable[..., Any],
    x: Any,
    axis: Any,
    keepdims: bool,
    fill: float,
    initial: Any,
    where: Any,
) -> Any:
    x = as_tensor(x)
    along = axis_over(x, axis, f"nan{extreme.__name__}")
    missing, filled = skipping_nan(x, _extreme_like(x, fill))
    result = extreme(filled, along, keepdims, initial=initial, where=where)
    if missing is None or initial is not None:  # which is what there is at the least
        return result
    nothing = ops["all"](missing, axis=along, keepdims=keepdims)
    return ops["where"](nothing, float("nan"), result)


@named
def nanmax(
    x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """Return the largest element that is not nan, nan if there is none; as :func:`gradtape.max`.

    Parameters
    ----------
    x
        A real tensor of any shape.
    axis
        The axis or axes to search; all by default.
    initial
        A bound of the result; it is needed with ``where``, and where there may be no elements.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If there are no elements at all, or ``where`` comes without ``initial``.

    Notes
    -----
    Elements that tie share the gradient evenly.

    Examples
    --------
    >>> gt.nanmax(gt.constant([[1.0, np.nan], [3.0, 2.0]]), axis=1).tolist()
    [1.0, 3.0]
    """
    return _nan_extreme(max, x, axis, keepdims, -float("inf"), initial, where)


@named
def nanmin(
    x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """Return the smallest element that is not nan, nan if there is none; as :func:`gradtape.min`.

    Parameters
    ----------
    x
        A real tensor of any shape.
    axis
        The axis or axes to search; all by default.
    initial
        A bound of the result; it is needed with ``where``, and where there may be no elements.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If there are no elements at all, or ``where`` comes without ``initial``.

    Notes
    -----
    Elements that tie share the gradient evenly.

    Examples
    --------
    >>> gt.nanmin(gt.constant([[1.0, np.nan], [3.0, 2.0]]), axis=1).tolist()
    [1.0, 2.0]
    """
    return _nan_extreme(min, x, axis, keepdims, float("inf"), initial, where)


def _nan_position(name: str, fill: float) -> Any:
    def kernel(xp: Any, x: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
        missing = xp.isnan(x)
        if truth(xp.any(xp.all(missing, axis=axis)), unknown=False):
            raise ValueError("all elements to choose from are nan")
        filled = xp.where(missing, xp.asarray(_extreme_like(x, fill), dtype=x.dtype), x)
        return xp.asarray(getattr(xp, name)(filled, axis=axis, keepdims=keepdims))

    return op(
        f"nan{name}",
        kernel,
        gradients={"x": NONDIFF},
        infer=lambda x, axis, keepdims: (
            reduced_shape(x.shape, axis, keepdims, f"nan{name}"),
            np.dtype(np.int64),
        ),
        batch=flattened,
        doc=f"Return the {name} of the elements that are not nan.",
    )


_nanargmax = _nan_position("argmax", -float("inf"))
_nanargmin = _nan_position("argmin", float("inf"))


@named
def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the largest element that is not nan; it has no gradient.

    Parameters
    ----------
    x
        A tensor; complex numbers are ordered by their real parts, then by their imaginary parts.
    axis
        The axis to search along; by default the index is that in the flattened tensor.
    keepdims
        Leave the axis in the result, with size 1.

    Returns
    -------
    An integer tensor of the shape of ``x`` without the axis; the first index if several tie.

    Raises
    ------
    ValueError
        If all of the elements to choose from are nan, or there are none.

    Examples
    --------
    >>> gt.nanargmax(gt.constant([np.nan, 2.0, 3.0])).item()
    2
    """
    x = as_tensor(x)
    along = axis_over(x, optional_axis(axis, "nanargmax"), "nanargmax")
    known = ops["argmax"] if x.dtype.kind not in "fc" else _nanargmax
    return known(x, axis=along, keepdims=bool(keepdims))


@named
def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the smallest element that is not nan; it has no gradient.

    Parameters
    ----------
    x
        A tensor; complex numbers are in the order of their real parts, then imaginary parts.
    axis
        The axis to search along; by default the index is that in the flattened tensor.
    keepdims
        Leave the axis in the result, with size 1.

    Returns
    -------
    An integer tensor of the shape of ``x`` without the axis; the first index if several tie.

    Raises
    ------
    ValueError
        If all of the elements to choose from are nan, or there are none.

    Examples
    --------
    >>> gt.nanargmin(gt.constant([np.nan, 2.0, 3.0])).item()
    1
    """
    x = as_tensor(x)
    along = axis_over(x, optional_axis(axis, "nanargmin"), "nanargmin")
    known = ops["argmin"] if x.dtype.kind not in "fc" else _nanargmin
    return known(x, axis=along, keepdims=bool(keepdims))
