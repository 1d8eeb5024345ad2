"""Tensors joined along an existing axis or a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.extend import (
    F,
    Op,
    Tensor,
    TensorSpec,
    as_operands,
    as_tensor,
    common_size,
    on_device_of,
    ops,
    rank_of,
    sizes_differ,
)
from ..common.axes import along, axis_number, batch_axes, one_axis, reduced_axes, together
from ..common.dynamic_shapes import known_rank, with_axes
from ..common.kernels import SCALARS, as_like, cast_to
from ..common.op_builders import named, op
from .broadcasting import atleast_1d, atleast_2d, atleast_3d


def common_dtype(specs: Sequence[Any]) -> Any:
    """Return the dtype that arrays of these specs promote to."""
    return np.result_type(*(x if isinstance(x, SCALARS) else x.dtype for x in specs))


def _concatenate_spec(*arrays: TensorSpec, axis: int) -> tuple[Any, Any]:
    dtype = common_dtype(arrays)
    shapes = [x.shape for x in arrays if x.shape is not None]
    if not shapes:
        return None, dtype
    along = axis_number(shapes[0], axis, "concatenate")
    described = ", ".join(str(shape) for shape in shapes)
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        raise ValueError(f"concatenate: arrays must have the same number of axes, got {described}")
    sizes: list[int | None] = []
    for i, column in enumerate(zip(*shapes, strict=True)):
        if i == along:
            whole = len(shapes) == len(arrays) and all(n is not None for n in column)
            sizes.append(sum(column) if whole else None)
            continue
        size, same = _one_size(column)
        if not same:
            raise ValueError(f"concatenate: shapes {described} differ outside axis {along}")
        sizes.append(size)
    return tuple(sizes), dtype


def _one_size(sizes: Sequence[Any]) -> tuple[Any, bool]:
    """Return the common size, a known one if any, and whether arrays may have one."""
    size = common_size(*sizes)
    return size, not any(sizes_differ(n, size) for n in sizes)


def _split_like(xp: Any, x: Any, *likes: Any, axis: int) -> tuple[Any, ...]:
    along = axis_number(x.shape, axis, "split_like")
    before = (slice(None),) * along
    parts, start = [], 0
    for like in likes:
        stop = start + like.shape[along]
        part = x[(*before, slice(start, stop), ...)]
        parts.append(cast_to(xp, part, like.dtype) if like.dtype != x.dtype else part)
        start = stop
    return tuple(parts)


_concatenate = op(
    "concatenate",
    lambda xp, *arrays, axis=0: xp.concat(arrays, axis=axis),
    vjp=lambda gs, inputs, outputs, needed, axis: F.split_like(gs[0], *inputs, axis=axis),
    shapes_only=("*arrays", "out"),
    infer=_concatenate_spec,
    batch=along("axis"),
    jvp="linear",
    integers="moves",
    doc="Join arrays along an existing axis.",
)
op(
    "split_like",
    _split_like,
    vjp=lambda gs, inputs, outputs, needed, axis: (
        as_like(F.concatenate(*gs, axis=axis), inputs[0]),
        *[None] * len(gs),
    ),
    shapes_only=("x", "*likes", "out"),
    infer=lambda x, *likes, axis: [(like.shape, like.dtype) for like in likes],
    batch=along("axis"),
    jvp="linear",
    doc="Cut ``x`` along an axis into parts of the sizes and dtypes of ``likes``.",
)


@named
def concatenate(arrays: Sequence[Any], axis: int | None = 0) -> Tensor:
    """Join tensors along an existing axis.

    Parameters
    ----------
    arrays
        Tensors of equal shape except for the size of ``axis``; dtypes promote.
    axis
        The axis; the first by default. ``None`` joins the flattened tensors.

    Returns
    -------
    Tensor
        A tensor whose size along ``axis`` is the sum of the arrays' sizes.

    Raises
    ------
    ValueError
        If there are no arrays, or shapes differ in other axes than ``axis``.

    Notes
    -----
    The gradient of each tensor is its part of the upstream gradient, in its own dtype.

    Examples
    --------
    >>> gt.concatenate([gt.constant([1, 2]), gt.constant([3])]).tolist()
    [1, 2, 3]
    >>> gt.concatenate([gt.ones((2, 1)), gt.zeros((2, 1))], axis=1).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    parts = _sequence(arrays, "concatenate")
    if axis is None:
        return _concatenate(*(ops["reshape"](x, shape=(-1,)) for x in parts), axis=0)
    return _concatenate(*parts, axis=one_axis(axis, "concatenate"))


concat = concatenate


def _sequence(arrays: Any, name: str) -> list[Any]:
    items = as_operands(arrays) if isinstance(arrays, (list, tuple)) else list(as_tensor(arrays))
    if not items:
        raise ValueError(f"{name}: at least one array is needed, got none")
    return items


def _stack_spec(*arrays: TensorSpec, axis: int) -> tuple[Any, Any]:
    dtype = common_dtype(arrays)
    shapes = [() if isinstance(x, SCALARS) else x.shape for x in arrays]
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None, dtype
    first = known[0]
    for shape in known[1:]:
        if len(shape) != len(first) or not all(_one_size(p)[1] for p in zip(shape, first)):
            raise ValueError(f"stack: arrays must have the same shape, got {first} and {shape}")
    sizes = [_one_size(column)[0] for column in zip(*known, strict=True)]
    (along,) = reduced_axes(axis, len(first) + 1, "stack")
    return (*sizes[:along], len(arrays), *sizes[along:]), dtype


def _stack_kernel(xp: Any, *arrays: Any, axis: int = 0) -> Any:
    return xp.stack([xp.asarray(x) if type(x) in SCALARS else x for x in arrays], axis=axis)


def _stack_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, *, axis: int) -> list[Any]:
    parts = F.unstack(gs[0], axis=axis, num=len(inputs))
    return [
        F.cast_like(g, x) if need and g.dtype != x.dtype else g
        for g, x, need in zip(parts, inputs, needed, strict=True)
    ]


def stacked(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``stack``."""
    xs = together(xs, batched)
    rank = max(rank_of(x, op) for x in xs if type(x) not in SCALARS)
    xs = [F.zeros_like(xs[batched.index(True)]) + x if type(x) in SCALARS else x for x in xs]
    return op.raw(*xs, axis=batch_axes(params["axis"], rank, op.name))


_stack = op(
    "stack",
    _stack_kernel,
    vjp=_stack_vjp,
    shapes_only=("*arrays", "out"),
    infer=_stack_spec,
    batch=stacked,
    jvp="linear",
    integers="moves",
    doc="Join arrays of the same shape along a new axis.",
)


@named
def stack(arrays: Sequence[Any], axis: int = 0) -> Tensor:
    """Join tensors of the same shape along a new axis.

    Parameters
    ----------
    arrays
        Tensors of the same shape; dtypes promote.
    axis
        Where the new axis goes in the result; first by default.

    Returns
    -------
    Tensor
        A tensor with one more axis, of size ``len(arrays)``.

    Raises
    ------
    ValueError
        If there are no arrays, or shapes differ.
    numpy.exceptions.AxisError
        If the axis is out of bounds for the result.

    Examples
    --------
    >>> gt.stack([gt.constant([1, 2]), gt.constant([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    return _stack(*_sequence(arrays, "stack"), axis=one_axis(axis, "stack"))


@named
def hstack(arrays: Sequence[Any]) -> Tensor:
    """Join tensors side by side: along axis 1, vectors along their only axis.

    Parameters
    ----------
    arrays
        Tensors with the same number of axes, equal in shape except for the joined axis; dtypes
        promote. A number is a vector of size 1.

    Returns
    -------
    Tensor
        The joined tensor.

    Raises
    ------
    ValueError
        If there are no arrays, or shapes differ in other axes.

    Examples
    --------
    >>> gt.hstack([gt.constant([1, 2]), gt.constant([3])]).tolist()
    [1, 2, 3]
    >>> gt.hstack([gt.ones((2, 1)), gt.zeros((2, 1))]).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    items = [atleast_1d(x) for x in _sequence(arrays, "hstack")]
    return concatenate(items, axis=0 if known_rank(items[0], "hstack") == 1 else 1)


@named
def vstack(arrays: Sequence[Any]) -> Tensor:
    """Join tensors on top of each other, along axis 0; vectors are rows.

    Parameters
    ----------
    arrays
        Tensors with the same number of axes, equal in shape except for axis 0; dtypes promote.

    Returns
    -------
    Tensor
        The joined tensor, with at least two axes.

    Raises
    ------
    ValueError
        If there are no arrays, or shapes differ elsewhere.

    Examples
    --------
    >>> gt.vstack([gt.constant([1, 2]), gt.constant([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    return concatenate([atleast_2d(x) for x in _sequence(arrays, "vstack")], axis=0)


@named
def dstack(arrays: Sequence[Any]) -> Tensor:
    """Join tensors behind each other, along axis 2; matrices and vectors are layers.

    Parameters
    ----------
    arrays
        Tensors with the same number of axes, equal in shape except for axis 2; dtypes promote. A
        vector of size n counts as shape ``(1, n, 1)``, a matrix as ``(m, n, 1)``.

    Returns
    -------
    Tensor
        The joined tensor, with at least three axes.

    Raises
    ------
    ValueError
        If there are no arrays, or shapes differ elsewhere.

    Examples
    --------
    >>> gt.dstack([gt.constant([1, 2]), gt.constant([3, 4])]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concatenate([atleast_3d(x) for x in _sequence(arrays, "dstack")], axis=2)


@named
def column_stack(arrays: Sequence[Any]) -> Tensor:
    """Join vectors as the columns of a matrix; matrices are joined unchanged.

    Parameters
    ----------
    arrays
        Vectors of size m, and matrices of m rows; dtypes promote.

    Returns
    -------
    Tensor
        A matrix of m rows.

    Raises
    ------
    ValueError
        If there are no arrays, or they have different numbers of rows.

    Examples
    --------
    >>> gt.column_stack([gt.constant([1, 2]), gt.constant([3, 4])]).tolist()
    [[1, 3], [2, 4]]
    """
    items = _sequence(arrays, "column_stack")
    return concatenate([with_axes(x, ((0, 1), (1,))) for x in items], axis=1)


@named
def block(arrays: Any) -> Tensor:
    """Join nested lists of tensors as blocks of one tensor.

    The innermost are joined along the last axis, their results along the one before it, and so on.

    Parameters
    ----------
    arrays
        Lists of lists (of any depth) of tensors; dtypes promote. Tensors of fewer axes than the
        depth, or than the others, get axes of size 1 in front.

    Returns
    -------
    Tensor
        The joined tensor, with as many axes as the lists are deep, or as a tensor has, if more.

    Raises
    ------
    ValueError
        If the lists are nested to different depths, one is empty, or shapes do not match.

    Examples
    --------
    >>> a, b = gt.constant([[1, 2]]), gt.constant([[3]])
    >>> gt.block([[a, b], [b, a]]).tolist()
    [[1, 2, 3], [3, 1, 2]]
    """
    depth = _depth(arrays)
    leaves: list[Any] = []
    _leaves(arrays, leaves)
    rank = max([depth, *(known_rank(x, "block") for x in leaves)])
    return _block(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(item) for item in arrays}
    if len(depths) != 1:
        what = "is empty" if not depths else f"nests to depths {sorted(depths)}"
        raise ValueError(f"block: lists must nest evenly and hold arrays; one {what}")
    return 1 + depths.pop()


def _leaves(arrays: Any, found: list[Any]) -> None:
    if isinstance(arrays, list):
        for item in arrays:
            _leaves(item, found)
    else:
        found.append(as_tensor(arrays))


def _block(arrays: Any, depth: int, rank: int) -> Any:
    if depth:
        return concatenate([_block(item, depth - 1, rank) for item in arrays], axis=-depth)
    x = as_tensor(arrays)
    missing = rank - x.ndim
    return ops["expand_dims"](x, axis=tuple(range(missing))) if missing else x


def edge_values(value: Any, x: Any, axis: int) -> Any:
    """Return the values before or after ``x``; a number is repeated along the other axes."""
    if value is None:
        return None
    value = on_device_of(value, x)
    if value.shape != ():
        return value
    like = ops["any"](x, axis=axis, keepdims=True)  # of size 1, even where x has no elements
    return ops["broadcast_like"](value, ops["cast"](like, dtype=value.dtype.name))
