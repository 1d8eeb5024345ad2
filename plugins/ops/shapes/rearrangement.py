"""Axes in another order, and elements along axes: reversed, rotated, rolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.extend import F, Op, Tensor, as_shape, as_tensor, ops, rank_of
from ..common.axes import along, as_axis, axis_of, batch_axes, one_axis, reduced_axes
from ..common.dynamic_shapes import any_unknown, as_sizes, fixed, known_rank, needs_axes
from ..common.op_builders import named, op, same_shape


def _order(axes: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(rank))[::-1]
    if len(axes) != rank:
        raise ValueError(f"transpose: axes {axes} do not match an array of dimension {rank}")
    return reduced_axes(axes, rank, "transpose")


def _inverse(axes: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if axes is None:
        return None
    order = _order(axes, len(axes))
    return tuple(order.index(i) for i in range(len(order)))


def _transpose_spec(x: Any, *, axes: tuple[int, ...] | None) -> tuple[Any, Any]:
    if x.shape is None:
        return (None if axes is None else (None,) * len(axes)), x.dtype
    return tuple(x.shape[i] for i in _order(axes, len(x.shape))), x.dtype


def transposed(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``transpose``."""
    (x,), axes = xs, params["axes"]
    rank = rank_of(x, op) - 1
    order = tuple(range(rank))[::-1] if axes is None else axes
    if len(order) != rank:
        raise ValueError(f"transpose: axes {axes} do not match an array of dimension {rank}")
    return op.raw(x, axes=(0, *batch_axes(tuple(order), rank, op.name)))


_transpose = op(
    "transpose",
    lambda xp, x, *, axes=None: xp.permute_dims(x, _order(axes, x.ndim)),
    gradients={"x": lambda g, axes: F.transpose(g, axes=_inverse(axes))},
    infer=_transpose_spec,
    holomorphic=True,
    batch=transposed,
    jvp="linear",
    view=True,
    integers="moves",
    doc="Permute the axes, or reverse their order.",
)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """Return ``x`` with its axes in the order ``axes``; in reverse order by default.

    Parameters
    ----------
    axes
        Every axis of ``x`` once: axis ``i`` of the result is axis ``axes[i]`` of ``x``.

    Returns
    -------
    Tensor
        A tensor of shape ``tuple(x.shape[i] for i in axes)`` and the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``axes`` does not name every axis once.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.transpose(gt.ones((2, 3, 4))).shape
    (4, 3, 2)
    >>> gt.transpose(gt.ones((2, 3, 4)), (0, 2, 1)).shape
    (2, 4, 3)
    """
    return _transpose(x, axes=None if axes is None else as_shape(axes, "transpose"))


@named
def permute_dims(x: Any, axes: Sequence[int]) -> Tensor:
    """Return ``x`` with its axes in the order ``axes``: the array API's name for transpose.

    Parameters
    ----------
    axes
        Every axis of ``x`` once: axis ``i`` of the result is axis ``axes[i]`` of ``x``.

    Returns
    -------
    Tensor
        A tensor of shape ``tuple(x.shape[i] for i in axes)`` and the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``axes`` does not name every axis once.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.permute_dims(gt.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return _transpose(x, axes=as_shape(axes, "permute_dims"))


def _moved(rank: int, source: tuple[int, ...], destination: tuple[int, ...]) -> tuple[int, ...]:
    taken = reduced_axes(source, rank, "moveaxis")
    places = reduced_axes(destination, rank, "moveaxis")
    if len(taken) != len(places):
        raise ValueError(f"moveaxis: {len(taken)} axes cannot move to {len(places)} positions")
    order = [i for i in range(rank) if i not in taken]
    for place, axis in sorted(zip(places, taken, strict=True)):
        order.insert(place, axis)
    return tuple(order)


_moveaxis = op(
    "moveaxis",
    lambda xp, x, *, source, destination: xp.permute_dims(x, _moved(x.ndim, source, destination)),
    gradients={
        "x": lambda g, source, destination: F.moveaxis(g, source=destination, destination=source)
    },
    infer=lambda x, source, destination: _permuted(x, lambda n: _moved(n, source, destination)),
    holomorphic=True,
    batch=along("source", "destination"),
    jvp="linear",
    view=True,
    doc="Move axes to other positions; the others stay in order.",
)


def _permuted(x: Any, order: Callable[[int], tuple[int, ...]]) -> tuple[Any, Any]:
    return None if x.shape is None else tuple(x.shape[i] for i in order(len(x.shape))), x.dtype


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Return ``x`` with the axes ``source`` moved to the positions ``destination``.

    Parameters
    ----------
    source
        The axis or axes to move; the others keep their order.
    destination
        The positions in the result, as many as in ``source``.

    Returns
    -------
    Tensor
        The tensor with its axes in the new order; the dtype of ``x``.

    Raises
    ------
    ValueError
        If there are not as many positions as axes, or one is repeated.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.moveaxis(gt.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return _moveaxis(
        x, source=as_shape(source, "moveaxis"), destination=as_shape(destination, "moveaxis")
    )


@named
def rollaxis(x: Any, axis: int, start: int = 0) -> Tensor:
    """Return ``x`` with an axis moved back until it is before axis ``start``.

    Prefer :func:`gradtape.moveaxis`, which is clearer.

    Parameters
    ----------
    axis
        The axis to move.
    start
        The axis before which it is moved; the first by default.

    Returns
    -------
    Tensor
        The tensor with its axes in the new order; the dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If ``axis`` or ``start`` is out of bounds.

    Examples
    --------
    >>> gt.rollaxis(gt.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_tensor(x)
    rank = known_rank(x, "rollaxis")
    along = axis_of(x, axis, "rollaxis") % rank
    start = one_axis(start, "rollaxis")
    before = start + rank if start < 0 else start
    if not 0 <= before <= rank:
        raise np.exceptions.AxisError(
            f"rollaxis: start {start} is out of bounds for an array of dimension {rank}"
        )
    return moveaxis(x, along, before - 1 if along < before else before)


def _swapped(rank: int, axis1: int, axis2: int) -> tuple[int, ...]:
    order = list(range(rank))
    (i,), (j,) = (reduced_axes(axis, rank, "swapaxes") for axis in (axis1, axis2))
    order[i], order[j] = j, i
    return tuple(order)


_swapaxes = op(
    "swapaxes",
    lambda xp, x, *, axis1, axis2: xp.permute_dims(x, _swapped(x.ndim, axis1, axis2)),
    gradients={"x": lambda g, axis1, axis2: F.swapaxes(g, axis1=axis1, axis2=axis2)},
    infer=lambda x, axis1, axis2: _permuted(x, lambda n: _swapped(n, axis1, axis2)),
    holomorphic=True,
    batch=along("axis1", "axis2"),
    jvp="linear",
    view=True,
    doc="Exchange two axes.",
)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Return ``x`` with two axes exchanged.

    Parameters
    ----------
    x
        A tensor of any dtype.
    axis1, axis2
        The axes to exchange.

    Returns
    -------
    Tensor
        The tensor with the two axes exchanged; the dtype of ``x``.

    Examples
    --------
    >>> gt.swapaxes(gt.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return _swapaxes(x, axis1=one_axis(axis1, "swapaxes"), axis2=one_axis(axis2, "swapaxes"))


@named
def matrix_transpose(x: Any) -> Tensor:
    """Return ``x`` with its last two axes exchanged.

    Parameters
    ----------
    x
        Matrices of any dtype, of shape ``(..., m, n)``.

    Returns
    -------
    Tensor
        The transposed matrices, of shape ``(..., n, m)``; complex elements are not conjugated.

    Raises
    ------
    numpy.exceptions.AxisError
        If ``x`` has fewer than two axes.

    Examples
    --------
    >>> gt.matrix_transpose(gt.constant([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    return _swapaxes(x, axis1=-1, axis2=-2)


# -- elements --------------------------------------------------------------------------------------

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
    if any_unknown(shift):
        return as_sizes(shift, "roll")
    return as_axis(shift, "roll")
