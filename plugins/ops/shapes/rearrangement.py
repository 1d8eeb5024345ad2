"""Elements in another order along axes: reversed, rotated, rolled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.extend import F, Op, Tensor, as_shape, as_tensor, ops, rank_of
from ..common.axes import as_axis, reduced_axes
from ..common.batching import along, batch_axes
from ..common.op_builders import named, op, same_shape
from ..common.ranks import needs_axes
from ..common.sizes import as_sizes, fixed, open_among
from .transposition import swapaxes

_flip = op(
    "flip",
    lambda xp, x, *, axis=None: xp.flip(x, axis=axis),
    gradients={"x": lambda g, axis: F.flip(g, axis=axis)},
    infer=same_shape("flip"),
    holomorphic=True,
    batch=along("axis"),
    jvp="linear",
    integers="moves",
    doc="Reverse the order of elements along axes.",
)


def flip(x: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    """Return ``x`` with the order of elements reversed along ``axis`` (all axes by default).

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to reverse.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is named twice.

    Examples
    --------
    >>> gt.flip(gt.constant([[1, 2], [3, 4]]), axis=1).tolist()
    [[2, 1], [4, 3]]
    """
    return _flip(x, axis=as_axis(axis, "flip"))


@named
def fliplr(x: Any) -> Tensor:
    """Return ``x`` with the order of its columns (axis 1) reversed.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least two axes.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    ValueError
        If ``x`` has fewer than two axes.

    Examples
    --------
    >>> gt.fliplr(gt.constant([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    return ops["flip"](needs_axes(x, 2, "fliplr"), axis=1)


@named
def flipud(x: Any) -> Tensor:
    """Return ``x`` with the order of its rows (axis 0) reversed.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least one axis.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    ValueError
        If ``x`` has no axes.

    Examples
    --------
    >>> gt.flipud(gt.constant([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    return ops["flip"](needs_axes(x, 1, "flipud"), axis=0)


@named
def rot90(x: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Rotate a tensor by multiples of 90 degrees in the plane of two axes.

    Parameters
    ----------
    x
        A tensor of at least two axes.
    k
        How many times 90 degrees, from the first of the axes towards the second.
    axes
        The two axes of the plane; the first two by default.

    Returns
    -------
    Tensor
        The rotated tensor, of the dtype of ``x``; an odd ``k`` exchanges the sizes of the axes.

    Raises
    ------
    ValueError
        If there are not two different axes.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.rot90(gt.constant([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    x = as_tensor(x)
    plane = as_shape(axes, "rot90")
    if len(plane) != 2:
        raise ValueError(f"rot90: two axes are needed, got {plane}")
    first, second = plane if x.shape is None else reduced_axes(plane, len(x.shape), "rot90")
    turns = fixed(k, "rot90", "the number of right angles") % 4
    if turns == 0:
        return x
    if turns == 2:
        return ops["flip"](x, axis=(first, second))
    if turns == 1:
        return swapaxes(ops["flip"](x, axis=second), first, second)
    return ops["flip"](swapaxes(x, first, second), axis=second)


def _roll_spec(x: Any, *, shift: Any, axis: Any) -> tuple[Any, Any]:
    if x.shape is not None and axis is not None:
        for n in axis if isinstance(axis, tuple) else (axis,):  # one may come twice
            reduced_axes(n, len(x.shape), "roll")
    return x.shape, x.dtype


def rolled(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``roll``."""
    (x,), axis = xs, params["axis"]
    rank = rank_of(x, op) - 1
    if axis is not None:
        # one by one: an axis may come twice
        axes = axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(batch_axes(n, rank, op.name) for n in axes)
        return op.raw(x, shift=params["shift"], axis=axes)
    flat = F.flatten_last(x, count=rank)
    return F.reshape_like(op.raw(flat, shift=params["shift"], axis=1), x)


_roll = op(
    "roll",
    lambda xp, x, *, shift, axis=None: xp.roll(x, shift, axis=axis),
    gradients={"x": lambda g, shift, axis: F.roll(g, shift=_negative(shift), axis=axis)},
    infer=_roll_spec,
    holomorphic=True,
    batch=rolled,
    jvp="linear",
    integers="moves",
    doc="Shift elements along axes; elements past the end come back at the start.",
)


def _negative(shift: int | tuple[int, ...]) -> int | tuple[int, ...]:
    return tuple(-n for n in shift) if isinstance(shift, tuple) else -shift


def roll(x: Any, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """Return ``x`` shifted along ``axis``; elements past the end come back at the start.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    shift
        How many positions elements move towards higher indices: one number, or one for each axis.
    axis
        The axis or axes to shift along. Without it, the flattened tensor is shifted, and the result
        has the shape of ``x``.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    TypeError
        If a shift or an axis is not an integer.

    Examples
    --------
    >>> gt.roll(gt.arange(5), 2).tolist()
    [3, 4, 0, 1, 2]
    """
    return _roll(x, shift=_shift(shift), axis=as_axis(axis, "roll"))


def _shift(shift: Any) -> Any:
    """Return a shift as a parameter; in a trace it may be unknown."""
    if open_among(shift):
        return as_sizes(shift, "roll")
    return as_axis(shift, "roll")
