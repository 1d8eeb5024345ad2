"""Whether elements are true over axes, and how many. These ops have no gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import NONDIFF, Op, Tensor, ops
from ..common.axes import Axis, axis_over
from .builder import reduction
from .options import counted


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
    return _count_nonzero(x, axis=axis_over(x, axis, "count_nonzero"), keepdims=bool(keepdims))
