"""Extremes and their indices that skip nan, which has no gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, Tensor, as_tensor, ops
from ..common.axes import axis_over, optional_axis, reduced_shape
from ..common.batching import flattened
from ..common.kernels import kind_of, truth
from ..common.op_builders import named, op
from .extrema import max as largest
from .extrema import min as least
from .nan_sums import skipping_nan


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
    keepdims
        Leave the axes in the result, with size 1.
    initial
        A bound of the result; it is needed with ``where``, and where there may be no elements.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
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
    return _nan_extreme(largest, x, axis, keepdims, -float("inf"), initial, where)


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
    keepdims
        Leave the axes in the result, with size 1.
    initial
        A bound of the result; it is needed with ``where``, and where there may be no elements.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
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
    return _nan_extreme(least, x, axis, keepdims, float("inf"), initial, where)


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
            np.dtype(np.intp),
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
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    TypeError
        If ``axis`` is neither None nor one integer.

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
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    TypeError
        If ``axis`` is neither None nor one integer.

    Examples
    --------
    >>> gt.nanargmin(gt.constant([np.nan, 2.0, 3.0])).item()
    1
    """
    x = as_tensor(x)
    along = axis_over(x, optional_axis(axis, "nanargmin"), "nanargmin")
    known = ops["argmin"] if x.dtype.kind not in "fc" else _nanargmin
    return known(x, axis=along, keepdims=bool(keepdims))
