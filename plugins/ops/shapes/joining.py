"""Ops that join several tensors into one, or cut one into several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ....core.extend import F, Tensor, TensorSpec, among, as_shape, as_tensor, broadcast_shapes, ops
from ..common.axes import one_axis, reduced_axes
from ..common.batching import along, stacked
from ..common.dtypes import SCALARS
from ..common.kernels import cast_to
from ..common.op_builders import named, op

__all__ = ["concat", "concatenate", "split", "stack", "unstack"]


def common_dtype(specs: Sequence[Any]) -> Any:
    """Return the dtype that arrays of these specs promote to."""
    return np.result_type(*(x if isinstance(x, SCALARS) else x.dtype for x in specs))


def _along(shape: Any, axis: int, name: str) -> int:
    (along,) = reduced_axes(axis, len(shape), name)
    return along


_MOST_OUTPUTS = 2**16


# -- concatenate -----------------------------------------------------------------------------------


def _concatenate_spec(*arrays: TensorSpec, axis: int) -> tuple[Any, Any]:
    dtype = common_dtype(arrays)
    shapes = [x.shape for x in arrays if x.shape is not None]
    if not shapes:
        return None, dtype
    along = _along(shapes[0], axis, "concatenate")
    described = ", ".join(str(shape) for shape in shapes)
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        raise ValueError(f"concatenate: arrays must have the same number of axes, got {described}")
    sizes: list[int | None] = []
    for i, column in enumerate(zip(*shapes, strict=True)):
        if i == along:
            whole = len(shapes) == len(arrays) and None not in column
            sizes.append(sum(column) if whole else None)
            continue
        known = {n for n in column if n is not None}
        if len(known) > 1:
            raise ValueError(f"concatenate: shapes {described} differ off axis {along}")
        sizes.append(known.pop() if known else None)
    return tuple(sizes), dtype


def _split_like(xp: Any, x: Any, *likes: Any, axis: int) -> tuple[Any, ...]:
    along = _along(x.shape, axis, "split_like")
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
    doc="Join arrays along an axis that they have.",
)
op(
    "split_like",
    _split_like,
    vjp=lambda gs, inputs, outputs, needed, axis: (
        F.concatenate(*gs, axis=axis),
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
    """Join tensors along an axis that they have.

    Parameters
    ----------
    arrays
        Tensors of equal shape but for the size of ``axis``; dtypes promote.
    axis
        The axis; the first by default. ``None`` joins the flattened tensors.

    Returns
    -------
    Tensor
        A tensor whose size along ``axis`` is the sum of theirs.

    Raises
    ------
    ValueError
        If there are no arrays, or shapes differ elsewhere than along ``axis``.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

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
    items = among(arrays) if isinstance(arrays, (list, tuple)) else list(as_tensor(arrays))
    if not items:
        raise ValueError(f"{name}: at least one array is needed, got none")
    return items


# -- stack -----------------------------------------------------------------------------------------


def _stack_spec(*arrays: TensorSpec, axis: int) -> tuple[Any, Any]:
    dtype = common_dtype(arrays)
    shapes = [() if isinstance(x, SCALARS) else x.shape for x in arrays]
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None, dtype
    first = known[0]
    for shape in known[1:]:
        same = len(shape) == len(first) and all(
            n == m or n is None or m is None for n, m in zip(shape, first, strict=True)
        )
        if not same:
            raise ValueError(f"stack: arrays must have one shape, got {first} and {shape}")
    sizes = list(broadcast_shapes(*known, op="stack") or ())
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


def _unstack_kernel(xp: Any, x: Any, *, axis: int, num: int) -> tuple[Any, ...]:
    along = _along(x.shape, axis, "unstack")
    if x.shape[along] != num:
        raise ValueError(f"axis {axis} has size {x.shape[along]}, not {num}")
    before = (slice(None),) * along
    return tuple(x[(*before, i, ...)] for i in range(num))


def _checked_count(count: int, name: str) -> int:
    """Return a number of outputs, which may come from a file, if a graph may hold so many."""
    if not 0 <= count <= _MOST_OUTPUTS:
        raise ValueError(f"{name}: {count} parts are more than a graph may hold ({_MOST_OUTPUTS})")
    return count


def _unstack_spec(x: TensorSpec, *, axis: int, num: int) -> list[tuple[Any, Any]]:
    _checked_count(num, "unstack")
    if x.shape is None:
        return [(None, x.dtype)] * num
    along = _along(x.shape, axis, "unstack")
    if x.shape[along] not in (num, None):
        raise ValueError(f"unstack: axis {axis} of shape {x.shape} does not have size {num}")
    return [((*x.shape[:along], *x.shape[along + 1 :]), x.dtype)] * num


_stack = op(
    "stack",
    _stack_kernel,
    vjp=_stack_vjp,
    shapes_only=("*arrays", "out"),
    infer=_stack_spec,
    batch=stacked,
    jvp="linear",
    doc="Join arrays of one shape along a new axis.",
)
_unstack = op(
    "unstack",
    _unstack_kernel,
    vjp=lambda gs, inputs, outputs, needed, axis, num: [F.stack(*gs, axis=axis)],
    shapes_only=("x", "out"),
    infer=_unstack_spec,
    batch=along("axis"),
    jvp="linear",
    doc="Cut an array into ``num`` arrays, one per index of an axis, without that axis.",
)


@named
def stack(arrays: Sequence[Any], axis: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis.

    Parameters
    ----------
    arrays
        Tensors of one shape; dtypes promote.
    axis
        Where the new axis goes in the result; first by default.

    Returns
    -------
    Tensor
        A tensor with one axis more, of size ``len(arrays)``.

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
def unstack(x: Any, axis: int = 0, num: int | None = None) -> list[Tensor]:
    """Return a list of tensors, one per index of ``axis``, without that axis.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least one axis.
    axis
        The axis to take apart; the first by default.
    num
        The size of the axis; it is needed only where a trace does not know it.

    Returns
    -------
    list of Tensor
        Tensors of the dtype of ``x``, one axis less each.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    ValueError
        If ``num`` is not the size of the axis, or is missing where the size is unknown.

    Examples
    --------
    >>> a, b = gt.unstack(gt.constant([[1, 2], [3, 4]]))
    >>> b.tolist()
    [3, 4]
    """
    x = as_tensor(x)
    axis = one_axis(axis, "unstack")
    if num is None:
        num = None if x.shape is None else x.shape[_along(x.shape, axis, "unstack")]
        if num is None:
            raise ValueError(f"unstack: the size of axis {axis} is unknown here; pass num")
    return list(_unstack(x, axis=axis, num=num)) if num else []


# -- split -----------------------------------------------------------------------------------------


def _split_kernel(xp: Any, x: Any, *, sections: Any, axis: int = 0) -> tuple[Any, ...]:
    along = _along(x.shape, axis, "split")
    before = (slice(None),) * along
    cuts = _cuts(x.shape[along], sections)
    return tuple(x[(*before, slice(a, b), ...)] for a, b in pairwise(cuts))


def _cuts(size: int, sections: int | tuple[int, ...]) -> list[int]:
    """Return where the parts begin and end; indices past the end leave empty parts."""
    if isinstance(sections, tuple):
        return [0, *(min(n, size) for n in sections), size]
    if size % sections:
        raise ValueError(f"split: size {size} does not divide into {sections} equal parts")
    return list(range(0, size + 1, size // sections)) if size else [0] * (sections + 1)


def _split_spec(x: TensorSpec, *, sections: Any, axis: int) -> list[tuple[Any, Any]]:
    count = len(sections) + 1 if isinstance(sections, tuple) else sections
    _checked_count(count, "split")
    if x.shape is None:
        return [(None, x.dtype)] * count
    along = _along(x.shape, axis, "split")
    size = x.shape[along]
    if size is None:
        parts: list[int | None] = [None] * count
    else:
        cuts = _cuts(size, sections)
        parts = [b - a for a, b in pairwise(cuts)]
    return [((*x.shape[:along], n, *x.shape[along + 1 :]), x.dtype) for n in parts]


_split = op(
    "split",
    _split_kernel,
    vjp=lambda gs, inputs, outputs, needed, sections, axis: [F.concatenate(*gs, axis=axis)],
    shapes_only=("x", "out"),
    infer=_split_spec,
    batch=along("axis"),
    jvp="linear",
    doc="Cut an array along an axis into equal parts, or at given indices.",
)


@named
def split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cut a tensor along an axis.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least one axis.
    indices_or_sections
        The number of equal parts, or where to cut: ``[2, 5]`` gives ``x[:2], x[2:5], x[5:]``.
        Negative places count from the end.
    axis
        The axis to cut; the first by default.

    Returns
    -------
    list of Tensor
        The parts in order, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If the parts would not be equal, or the indices are not in ascending order.
    TypeError
        If an index is not an integer.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> [part.tolist() for part in gt.split(gt.arange(6), 3)]
    [[0, 1], [2, 3], [4, 5]]
    >>> [part.tolist() for part in gt.split(gt.arange(6), [1, 4])]
    [[0], [1, 2, 3], [4, 5]]
    """
    sections: Any = as_shape(indices_or_sections, "split")
    if np.ndim(indices_or_sections) == 0:
        (sections,) = sections
        if sections < 1:
            raise ValueError(f"split: the number of parts must be at least 1, got {sections}")
    axis = one_axis(axis, "split")
    if isinstance(sections, tuple):
        x = as_tensor(x)
        sections = _from_start(sections, x, axis)
        if list(sections) != sorted(sections):
            raise ValueError(f"split: indices must ascend, got {indices_or_sections}")
    return list(_split(x, sections=sections, axis=axis))


def _from_start(cuts: tuple[int, ...], x: Any, axis: int) -> tuple[int, ...]:
    """Return where to cut, counted from the start of an axis."""
    if all(n >= 0 for n in cuts):
        return cuts
    size = None if x.shape is None else x.shape[_along(x.shape, axis, "split")]
    if size is None:
        raise ValueError(
            f"split: indices {cuts} count from the end, and the size of axis {axis} is unknown in "
            "this trace; give the function's input_signature that size"
        )
    return tuple(n if n >= 0 else max(n + size, 0) for n in cuts)
