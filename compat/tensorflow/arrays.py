"""What stands directly under ``tf`` for shapes, creation, joining, indexing and scattering."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

import gradtape

from .dtypes import as_dtype, cast, float32, int32
from .linalg import global_norm
from .names import adapts
from .values import axes, convert_to_tensor, plain, sizes

__all__ = [
    "argsort",
    "boolean_mask",
    "broadcast_to",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "concat",
    "ensure_shape",
    "fill",
    "gather",
    "gather_nd",
    "identity_n",
    "linspace",
    "meshgrid",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "range",
    "rank",
    "repeat",
    "reshape",
    "reverse",
    "roll",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "shape",
    "size",
    "slice",
    "sort",
    "split",
    "stack",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tile",
    "transpose",
    "unique",
    "unstack",
    "where",
    "zeros",
    "zeros_like",
]

_slice = slice  # TensorFlow's names below hide Python's
_range = range


# -- creation --------------------------------------------------------------------------------------


@adapts("zeros")
def zeros(shape: Any, dtype: Any = float32, name: str | None = None, layout: Any = None) -> Any:
    """Return zeros."""
    return gradtape.zeros(sizes(shape, "zeros"), as_dtype(dtype))


@adapts("ones")
def ones(shape: Any, dtype: Any = float32, name: str | None = None, layout: Any = None) -> Any:
    """Return ones."""
    return gradtape.ones(sizes(shape, "ones"), as_dtype(dtype))


@adapts("zeros_like")
def zeros_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Any:
    """Return zeros of the shape and dtype of ``input``; a constant to every tape."""
    return gradtape.zeros_like(convert_to_tensor(input), None if dtype is None else as_dtype(dtype))


@adapts("ones_like")
def ones_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Any:
    """Return ones of the shape and dtype of ``input``; a constant to every tape."""
    return gradtape.ones_like(convert_to_tensor(input), None if dtype is None else as_dtype(dtype))


@adapts("full")
def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> Any:
    """Return one value in every place; gradients reach it."""
    return gradtape.broadcast_to(convert_to_tensor(value), sizes(dims, "fill"))


@adapts("arange")
def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Any:
    """Return the numbers from ``start`` up to ``limit`` by ``delta``; from 0, if one is given."""
    given = [plain(start), plain(limit), plain(delta)]
    if limit is None:
        given[:2] = [0, given[0]]
    if dtype is None:
        known = [x.dtype for x in (start, limit, delta) if hasattr(x, "dtype")]
        floats = any(isinstance(x, float) for x in given)
        dtype = np.result_type(*known) if known else float32 if floats else int32
    return gradtape.arange(*given, dtype=as_dtype(dtype))


@adapts("linspace")
def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Any:
    """Return ``num`` evenly spaced numbers, both ends included.

    ``start`` and ``stop`` may be tensors of one shape; the numbers then run along a new ``axis``.
    """
    start, stop = convert_to_tensor(start), convert_to_tensor(stop)
    if start.dtype.kind in "iu":
        start, stop = cast(start, "float64"), cast(stop, "float64")
    if start.shape == () and stop.shape == ():
        steps = gradtape.linspace(0.0, 1.0, operator.index(num), dtype=start.dtype)
        # each end exactly, as both are weighted by 0 or 1
        return start * (1.0 - steps) + stop * steps
    rank = len(start.shape) + 1
    along = [1] * rank
    along[axis] = -1
    steps = gradtape.reshape(
        gradtape.linspace(0.0, 1.0, operator.index(num), dtype=start.dtype), along
    )
    place = axis % rank
    start, stop = gradtape.expand_dims(start, place), gradtape.expand_dims(stop, place)
    return start * (1.0 - steps) + stop * steps


@adapts("one_hot")
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Any:
    """Return ``on_value`` at each index of an axis of ``depth``, and ``off_value`` elsewhere.

    Parameters
    ----------
    indices
        Integers; one out of range gives ``off_value`` everywhere.
    depth
        The size of the new axis.
    on_value, off_value
        Numbers, 1 and 0 by default.
    axis
        Where the new axis is; the last by default.
    dtype
        By default that of the values, else float32.
    """
    if dtype is None:
        given = [convert_to_tensor(v).dtype for v in (on_value, off_value) if v is not None]
        dtype = given[0] if given else float32
    hot = gradtape.one_hot(convert_to_tensor(indices), operator.index(depth), as_dtype(dtype))
    if on_value is not None or off_value is not None:
        on, off = 1 if on_value is None else on_value, 0 if off_value is None else off_value
        hot = cast(gradtape.where(gradtape.equal(hot, 1), on, off), dtype)
    return hot if axis in (None, -1) else gradtape.moveaxis(hot, -1, axis)


@adapts("meshgrid")
def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Any]:
    """Return grids of coordinates."""
    return list(gradtape.meshgrid(*[convert_to_tensor(x) for x in args], indexing=indexing))


@adapts("less")
def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = bool, name: str | None = None
) -> Any:
    """Return for each length a row that is true up to it."""
    lengths = convert_to_tensor(lengths)
    longest = gradtape.max(lengths).item() if maxlen is None else plain(maxlen)
    return cast(gradtape.arange(int(longest)) < gradtape.expand_dims(lengths, -1), dtype)


# -- shapes ----------------------------------------------------------------------------------------


@adapts("Tensor.shape")
def shape(input: Any, out_type: Any = int32, name: str | None = None) -> Any:
    """Return the shape as a tensor of integers, of sizes unknown in a trace too.

    Such a size can be computed with, but not given to an op that takes a shape: there, let -1 stand
    for it.
    """
    x = convert_to_tensor(input)
    if x.shape is None:
        raise ValueError("shape: the rank of the input is unknown in this trace")
    if None not in x.shape:
        return gradtape.constant(np.array(x.shape, out_type))
    counts = [_count(x, axis) if n is None else n for axis, n in enumerate(x.shape)]
    return gradtape.stack([gradtape.cast(gradtape.as_tensor(n), out_type) for n in counts])


def _count(x: Any, axis: int) -> Any:
    # the other axes are cut to one element: what is left to sum are as many ones as the axis is long
    cut = tuple(_slice(None) if i == axis else _slice(0, 1) for i in _range(x.ndim))
    return gradtape.max(gradtape.sum(gradtape.ones_like(x[cut], dtype="int64"), axis=axis))


@adapts("Tensor.size")
def size(input: Any, out_type: Any = int32, name: str | None = None) -> Any:
    """Return the number of elements as a tensor."""
    x = convert_to_tensor(input)
    return cast(gradtape.sum(gradtape.ones_like(x, dtype="int64")), out_type)


@adapts("Tensor.ndim")
def rank(input: Any, name: str | None = None) -> Any:
    """Return the number of axes as a tensor."""
    return gradtape.constant(np.int32(convert_to_tensor(input).ndim))


@adapts("reshape")
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Any:
    """Return the elements in another shape, a sequence or a tensor of sizes; -1 is what is left."""
    return gradtape.reshape(convert_to_tensor(tensor), sizes(shape, "reshape"))


@adapts("broadcast_to")
def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Any:
    """Return ``input`` repeated to fill a shape."""
    return gradtape.broadcast_to(convert_to_tensor(input), sizes(shape, "broadcast_to"))


@adapts("TensorSpec.admits")
def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Any:
    """Return ``x``, if its shape is ``shape`` (None: any size); else raise ``ValueError``."""
    x = convert_to_tensor(x)
    if not gradtape.TensorSpec(shape, x.dtype).admits(x.shape):
        raise ValueError(f"ensure_shape: expected shape {tuple(shape)}, got {x.shape}")
    return gradtape.identity(x)


@adapts("transpose")
def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> Any:
    """Return the axes in another order, reversed by default."""
    turned = gradtape.transpose(convert_to_tensor(a), None if perm is None else sizes(perm, "perm"))
    return gradtape.conj(turned) if conjugate else turned


@adapts("flip")
def reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    """Return the elements in reverse along each ``axis``."""
    return gradtape.flip(convert_to_tensor(tensor), axes(axis))


@adapts("roll")
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Any:
    """Return the elements moved along ``axis``; what leaves at the end comes in at the start."""
    return gradtape.roll(convert_to_tensor(input), axes(shift), axes(axis))


@adapts("tile")
def tile(input: Any, multiples: Any, name: str | None = None) -> Any:
    """Return copies of ``input`` side by side."""
    return gradtape.tile(convert_to_tensor(input), sizes(multiples, "tile"))


@adapts("repeat")
def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Any:
    """Return each element ``repeats`` times; each its own number, if these are several."""
    return gradtape.repeat(convert_to_tensor(input), plain(repeats), plain(axis))


@adapts("pad")
def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    constant_values: Any = 0,
    name: str | None = None,
) -> Any:
    """Return ``tensor`` with a border.

    Parameters
    ----------
    tensor, paddings
        A tensor, and for each of its axes how much to add before and after.
    mode
        ``"CONSTANT"``, ``"REFLECT"`` or ``"SYMMETRIC"``, in any case.
    constant_values
        What the border holds, with the first mode.

    Raises
    ------
    ValueError
        If the mode is another.
    """
    known = ("constant", "reflect", "symmetric")
    if mode.lower() not in known:
        raise ValueError(f"pad: mode must be one of {known}, got {mode!r}")
    tensor, paddings = convert_to_tensor(tensor), [sizes(pair, "pad") for pair in plain(paddings)]
    if mode.lower() != "constant":
        return gradtape.pad(tensor, paddings, mode=mode.lower())
    return gradtape.pad(tensor, paddings, constant_values=constant_values)


# -- joining and parting ---------------------------------------------------------------------------


def _tensors(values: Any) -> Any:
    """Return a list of tensors; integers beside floating tensors become floating."""
    if isinstance(values, (list, tuple)):
        known = [v.dtype for v in values if hasattr(v, "dtype")]
        return [v if hasattr(v, "dtype") else _beside(v, known) for v in values]
    return convert_to_tensor(values)


def _beside(value: Any, known: list[Any]) -> Any:
    return convert_to_tensor(value, known[0] if known else None)


@adapts("concat")
def concat(values: Any, axis: Any, name: str = "concat") -> Any:
    """Return the tensors one after another along an axis that they have."""
    return gradtape.concatenate(_tensors(values), operator.index(plain(axis)))


@adapts("stack")
def stack(values: Any, axis: Any = 0, name: str = "stack") -> Any:
    """Return the tensors one after another along a new axis."""
    return gradtape.stack(_tensors(values), plain(axis))


@adapts("unstack")
def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Any]:
    """Return the parts of ``value`` along ``axis``, without that axis."""
    return list(gradtape.unstack(convert_to_tensor(value), axis, num))


@adapts("split")
def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Any]:
    """Return parts of ``value`` along ``axis``: a number of equal ones, or parts of given sizes.

    One of the sizes may be -1, for what the others leave.

    Raises
    ------
    ValueError
        If the parts are not the whole.
    """
    value, axis = convert_to_tensor(value), operator.index(plain(axis))
    parts = plain(num_or_size_splits)
    if not isinstance(parts, (list, tuple)):
        return list(gradtape.split(value, operator.index(parts), axis))
    parts = [operator.index(n) for n in parts]
    whole = value.shape[axis]
    if -1 in parts:
        parts[parts.index(-1)] = whole - sum(parts) - 1
    if sum(parts) != whole or min(parts, default=0) < 0:
        raise ValueError(f"split: sizes {parts} of axis {axis} of shape {value.shape}")
    return list(gradtape.split(value, list(accumulate(parts))[:-1], axis))


@adapts("Tensor.__getitem__")
def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Any:
    """Return a part that starts at ``begin`` and is of ``size``; -1 is what is left."""
    starts, lengths = sizes(begin, "slice"), sizes(size, "slice")
    ends = [None if n < 0 else b + n for b, n in zip(starts, lengths, strict=True)]
    return convert_to_tensor(input_)[tuple(map(_slice, starts, ends))]


# -- picking ---------------------------------------------------------------------------------------


@adapts("where", "argwhere")
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Return ``x`` where the condition holds, else ``y``; alone, the indices where it holds.

    Raises
    ------
    ValueError
        If only one of ``x`` and ``y`` is given.
    """
    if x is None and y is None:
        return gradtape.argwhere(convert_to_tensor(condition))
    if x is None or y is None:
        raise ValueError("where: give both of x and y, or none of them")
    return gradtape.where(condition, x, y)


def _over_batch(fn: Any, batch_dims: int) -> Any:
    for _ in _range(batch_dims):
        fn = gradtape.vmap(fn)
    return fn


@adapts("take")
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Any:
    """Return the slices of ``params`` along ``axis`` at ``indices``.

    Parameters
    ----------
    params, indices
        A tensor, and integers of any shape.
    validate_indices
        Ignored: an index out of bounds is an error.
    axis
        The axis; ``batch_dims`` by default.
    batch_dims
        How many axes, the first ones of both, count examples: each has indices of its own.

    Returns
    -------
    A tensor of shape ``params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]``.
    """
    params, indices = convert_to_tensor(params), convert_to_tensor(indices)
    batch_dims = batch_dims % max(indices.ndim, 1) if batch_dims < 0 else batch_dims
    axis = batch_dims if axis is None else operator.index(plain(axis)) % params.ndim
    if axis < batch_dims:
        raise ValueError(f"gather: axis {axis} is one of the first {batch_dims}, of the examples")
    inner = axis - batch_dims
    return _over_batch(lambda p, i: gradtape.take(p, i, inner), batch_dims)(params, indices)


@adapts("Tensor.__getitem__")
def gather_nd(params: Any, indices: Any, batch_dims: int = 0, name: str | None = None) -> Any:
    """Return the slices of ``params`` at indices ``(..., k)`` of its first ``k`` axes."""
    fn = _over_batch(lambda p, i: p[_index(i)], batch_dims)
    return fn(convert_to_tensor(params), convert_to_tensor(indices))


def _index(indices: Any) -> tuple[Any, ...]:
    return tuple(gradtape.unstack(convert_to_tensor(indices), -1))


@adapts("compress", "Tensor.__getitem__")
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> Any:
    """Return the elements (or slices) where the mask holds, whose first axis is ``axis``."""
    before = (_slice(None),) * (0 if axis is None else operator.index(plain(axis)))
    return convert_to_tensor(tensor)[(*before, gradtape.as_tensor(mask))]


@adapts("at")
def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Any:
    """Return zeros of ``shape`` to which updates are added at indices ``(..., k)``."""
    updates = convert_to_tensor(updates)
    empty = gradtape.zeros(sizes(shape, "scatter_nd"), updates.dtype)
    return empty.at[_index(indices)].add(updates)


@adapts("at")
def tensor_scatter_nd_update(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Any:
    """Return ``tensor`` with updates in place of what is at indices ``(..., k)``."""
    return convert_to_tensor(tensor).at[_index(indices)].set(updates)


@adapts("at")
def tensor_scatter_nd_add(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Any:
    """Return ``tensor`` with updates added at indices ``(..., k)``."""
    return convert_to_tensor(tensor).at[_index(indices)].add(updates)


@adapts("at")
def tensor_scatter_nd_sub(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Any:
    """Return ``tensor`` with updates subtracted at indices ``(..., k)``."""
    return convert_to_tensor(tensor).at[_index(indices)].subtract(updates)


@adapts("at")
def tensor_scatter_nd_max(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Any:
    """Return the maxima of ``tensor`` and updates at indices ``(..., k)``."""
    return convert_to_tensor(tensor).at[_index(indices)].max(updates)


@adapts("at")
def tensor_scatter_nd_min(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Any:
    """Return the minima of ``tensor`` and updates at indices ``(..., k)``."""
    return convert_to_tensor(tensor).at[_index(indices)].min(updates)


@adapts("unique")
def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> tuple[Any, Any]:
    """Return the distinct elements in the order of their first occurrence, and each one's place."""
    values, first, inverse = gradtape.unique(
        convert_to_tensor(x), return_index=True, return_inverse=True
    )
    order = gradtape.argsort(first)
    return gradtape.take(values, order), cast(
        gradtape.take(gradtape.argsort(order), inverse), out_idx
    )


# -- order -----------------------------------------------------------------------------------------


def _descending(direction: str, op: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"{op}: direction is 'ASCENDING' or 'DESCENDING', got {direction!r}")
    return direction == "DESCENDING"


@adapts("sort")
def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Any:
    """Return the elements in order along ``axis``."""
    down = _descending(direction, "sort")
    ordered = gradtape.sort(convert_to_tensor(values), axis)
    return gradtape.flip(ordered, axis) if down else ordered


@adapts("argsort")
def argsort(
    values: Any,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Any:
    """Return the indices that put the elements in order along ``axis``; equal ones stay in order."""
    values = convert_to_tensor(values)
    if not _descending(direction, "argsort"):
        return cast(gradtape.argsort(values, axis), int32)
    # of the reversed elements, read from the end, so that equal ones stay in order
    order = gradtape.flip(gradtape.argsort(gradtape.flip(values, axis), axis), axis)
    return cast(values.shape[axis] - 1 - order, int32)


@adapts("searchsorted")
def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = int32,
    name: str | None = None,
) -> Any:
    """Return where values belong in sorted sequences, row by row."""
    rows, values = convert_to_tensor(sorted_sequence), convert_to_tensor(values)
    found = _over_batch(lambda r, v: gradtape.searchsorted(r, v, side), rows.ndim - 1)(rows, values)
    return cast(found, out_type)


# -- clipping --------------------------------------------------------------------------------------


@adapts("clip")
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Return ``t`` kept between two bounds; the gradient on a bound is 1."""
    return gradtape.clip(convert_to_tensor(t), clip_value_min, clip_value_max)


@adapts("clip_by_norm")
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Return ``t`` scaled down, where needed, to a Euclidean norm of at most ``clip_norm``."""
    return gradtape.clip_by_norm(convert_to_tensor(t), clip_norm, plain(axes))


@adapts("clip_by_norm", "linalg.vector_norm")
def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Any]:
    """Return tensors scaled down together to a norm of at most ``clip_norm``, and their norm.

    Entries that are None stay None.
    """
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    scale = clip_norm / gradtape.maximum(norm, clip_norm)
    return [None if t is None else t * cast(scale, t.dtype) for t in t_list], norm


@adapts("identity")
def identity_n(input: Sequence[Any], name: str | None = None) -> list[Any]:
    """Return new tensors with the values of these."""
    return [gradtape.identity(x) for x in input]
