"""The largest and the smallest elements over axes, their indices, and the range between."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Op, Tensor, as_tensor, is_open, ops
from ..common.axes import Axis, axis_over, optional_axis, reduced_axes, reduced_shape
from ..common.batching import flattened
from ..common.op_builders import named
from ..common.sizes import LARGEST, SMALLEST, empty, never_empty
from .builder import reduction, same_dtype
from .options import chosen, kept_by, start_of


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
    keepdims
        Leave the axes in the result, with size 1.
    initial
        A bound of the result. It is required with ``where``, and if there may be no elements.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; nan if an element is
    nan.

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
    return _min(x, axis=axis_over(x, axis, "min"), keepdims=bool(keepdims))


amax, amin = max, min


@named
def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the range ("peak to peak"): the largest element minus the smallest.

    Parameters
    ----------
    x
        A tensor of numbers, of any shape.
    axis
        The axis or axes to reduce; all by default.
    keepdims
        Leave the axes in the result, with size 1.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If there are no elements, or an axis is given twice.
    TypeError
        If ``x`` is boolean.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

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

    return reduction(name, kernel, lambda dtype: np.intp, NONDIFF, batch=flattened, view=False)


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
    return _argmin(
        x, axis=axis_over(x, optional_axis(axis, "argmin"), "argmin"), keepdims=bool(keepdims)
    )
