"""Piecewise linear functions through points: their values, and their integral."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import Tensor, among, beside, broadcast_shapes, ops
from ..common.axes import axis_of, part_of
from ..common.blending import blended
from ..common.dtypes import as_floating, inexact
from ..common.op_builders import named
from ..common.ranks import known_rank, needs_axes
from ..common.sizes import empty, ensured_alike
from ..indexing.sorting import searchsorted
from .differences import EARLIER, LATER, steps_between


@named
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> Tensor:
    """Return linear interpolations between sampled values.

    Parameters
    ----------
    x
        The points to interpolate at, of any shape.
    xp
        The coordinates of the samples, a vector in ascending order (in any order with ``period``).
    fp
        The samples, a vector of the same size.
    left, right
        The values beyond the first and last coordinate; by default those of the ends.
    period
        The period of the coordinates, if the values repeat.

    Returns
    -------
    A tensor of the shape of ``x``, of the promoted dtype; ``float64`` for integers.

    Raises
    ------
    ValueError
        If ``xp`` and ``fp`` are not vectors of the same size, have no elements, or the period is 0.
    TypeError
        If ``x`` or ``xp`` is complex.

    Notes
    -----
    Gradients reach ``x``, ``xp`` and ``fp``. At a coordinate, the slope of ``x`` is that of the
    next piece. It is not checked that ``xp`` ascends.

    Examples
    --------
    >>> x, y = gt.constant([0.0, 1.0, 2.0]), gt.constant([10.0, 20.0, 40.0])
    >>> gt.interp(gt.constant([0.5, 1.5, 3.0]), x, y).tolist()
    [15.0, 30.0, 40.0]
    """
    fp = as_floating(among((fp, x, xp))[0])
    like = ops["real"](fp) if fp.dtype.kind == "c" else fp
    x, xp = map(as_floating, among((x, xp, like))[:2])
    if "c" in (x.dtype.kind, xp.dtype.kind):
        raise TypeError(
            f"interp: coordinates must be real, got dtypes {x.dtype} for x and {xp.dtype} for xp"
        )
    shapes = (xp.shape, fp.shape)
    if any(shape is not None and (len(shape) != 1 or empty(shape)) for shape in shapes):
        raise ValueError(f"interp: xp and fp must be vectors of samples, got {shapes}")
    broadcast_shapes(*shapes, op="interp")
    fp = ensured_alike(
        fp, xp.shape, f"interp: xp and fp must have one size, got shapes {xp.shape} and {fp.shape}"
    )
    # in double precision: coordinates near to each other, or many periods away, lose it all else
    dtype = np.result_type(x.dtype, xp.dtype, fp.dtype)
    x, xp = (ops["cast"](v, dtype="float64") for v in (x, xp))
    fp = ops["cast"](fp, dtype=np.result_type(fp.dtype, np.float64).name)
    if period is not None:
        if period == 0:
            raise ValueError("interp: the period must not be 0")
        x, xp, fp = _unrolled(x, xp, fp, abs(period))
        left = right = None
    result = _between_samples(x, xp, fp)
    result = ops["where"](x < xp[0], fp[0] if left is None else left, result)
    result = ops["where"](x > xp[-1], fp[-1] if right is None else right, result)
    return ops["cast"](result, dtype=np.result_type(dtype, result.dtype.kind + dtype.str[2:]).name)


def _unrolled(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Return coordinates within a period, and samples in order with another one at each end."""
    x, xp = ops["remainder"](x, period), ops["remainder"](xp, period)
    order = ops["argsort"](xp, axis=-1)
    xp, fp = (ops["take"](v, order, axis=0) for v in (xp, fp))
    ends = [(part_of(v, 0, slice(-1, None)), part_of(v, 0, slice(0, 1))) for v in (xp, fp)]
    xp = ops["concatenate"](ends[0][0] - period, xp, ends[0][1] + period, axis=0)
    return x, xp, ops["concatenate"](ends[1][0], fp, ends[1][1], axis=0)


def _between_samples(x: Any, xp: Any, fp: Any) -> Any:
    inside = ops["clip"](x, xp[0], xp[-1])
    # the end of the piece; the last piece for the last coordinate, the only sample for one alone
    last = ops["size_over"](xp, axis=0)
    after = ops["cast"](ops["minimum"](searchsorted(xp, inside, "right"), last - 1), dtype="int64")
    before = ops["maximum"](after - 1, 0)
    x0, x1, f0, f1 = (
        ops["take"](v, i, axis=0) for v, i in ((xp, before), (xp, after), (fp, before), (fp, after))
    )
    width = x1 - x0
    single = width == 0  # of coordinates that are the same, the last
    share = (inside - x0) / ops["where"](single, 1.0, width)
    result = blended(f0, f1, ops["cast_like"](share, f0))
    ends = ops["logical_and"](inside == x1, ops["logical_not"](ops["isfinite"](result)))
    ends = ops["logical_or"](ends, ops["logical_and"](single, inside == x0))
    return ops["where"](ends, f1, result)


@named
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Return the integral of sampled values, by the trapezoidal rule.

    Parameters
    ----------
    y
        The samples, a tensor of at least one axis.
    x
        The points: a vector, or a tensor that broadcasts with ``y``; gradients reach it.
    dx
        Their distance, if ``x`` is not given; 1 by default.
    axis
        The axis to integrate along; the last by default.

    Returns
    -------
    A tensor of the shape of ``y`` without the axis, of its dtype; ``float64`` for integers.

    Raises
    ------
    ValueError
        If ``y`` has no axes, or ``x`` does not match it.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    The result is the sum of ``(x[i + 1] - x[i]) * (y[i + 1] + y[i]) / 2``.

    Examples
    --------
    >>> gt.trapezoid(gt.constant([1.0, 2.0, 3.0])).item()
    4.0
    >>> gt.trapezoid(gt.constant([1.0, 2.0, 3.0]), x=gt.constant([0.0, 1.0, 3.0])).item()
    6.5
    """
    y = needs_axes(y, 1, "trapezoid")
    along = axis_of(y, axis, "trapezoid")
    if x is not None:
        x = beside(x, y)
    # integers would wrap: unsigned ones in differences, small ones in sums
    kind = inexact(np.result_type(y.dtype, y.dtype if x is None else x.dtype)).name
    y, width = ops["cast"](y, dtype=kind), dx
    if x is not None:
        x = ops["cast"](x, dtype=kind)
        if known_rank(x, "trapezoid") == 1:
            width = steps_between(x, 0)
            if known_rank(y, "trapezoid") > 1:
                shape = [1] * y.ndim
                shape[along] = -1
                width = ops["reshape"](width, shape=tuple(shape))
        else:
            width = steps_between(x, along)
    middle = (part_of(y, along, LATER) + part_of(y, along, EARLIER)) * 0.5
    return ops["sum"](width * middle, axis=along, keepdims=False)
