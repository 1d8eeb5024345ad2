"""Names directly under ``tf`` that make, shape, join, split, index and order tensors."""

from __future__ import annotations

import operator
from itertools import accumulate, zip_longest
from typing import Any

import numpy as np

import gradtape

from ...core.extend import Size, Tensor, as_size, is_transformed, known_size, largest, sizes_differ
from ...core.extend import Variable as NativeVariable
from ...plugins.ops.common.axes import axis_of
from .dtypes import as_dtype, cast, float32, int32, int64
from .names import adapts
from .tensors import (
    alike,
    broadcast_size,
    convert_to_tensor,
    plain,
    refuse_loss,
    sizes,
    with_checked_shape,
)

__all__ = (
    "IndexedSlices argsort broadcast_dynamic_shape one_hot pad range shape size slice sort unique"
).split()

_slice = slice  # TensorFlow's names below hide Python's
_range = range


# -- creation --------------------------------------------------------------------------------------


@adapts("arange")
def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Any:
    """Return ``start, start + delta, ...`` below ``limit``; one argument is the limit."""
    if limit is None:
        start, limit = 0, start
    if dtype is None and type(start) is type(limit) is type(delta) is int:
        largest_one = max(start, limit, delta, -start, -limit, -delta)
        return gradtape.arange(start, limit, delta, int32 if largest_one < 2**31 else int64)
    if dtype is None:
        # of int32, int64, float32 and float64 the last one: int64 and float32 give float32
        kinds = [_dtype_of(x) for x in (start, limit, delta)]
        dtype = max(kinds, key=lambda kind: (kind.kind == "f", kind.itemsize))
    dtype = as_dtype(dtype)
    for x in (start, limit, delta):
        if not hasattr(x, "dtype"):
            refuse_loss(x, dtype)
    if dtype.kind == "f" and any(
        is_transformed(getattr(x, "array", x)) for x in (start, limit, delta)
    ):
        return _float_range(start, limit, delta, dtype)
    return gradtape.arange(plain(start), plain(limit), plain(delta), dtype)


def _dtype_of(number: Any) -> Any:
    """Return the dtype that a number has in TensorFlow."""
    if hasattr(number, "dtype"):
        return number.dtype
    if type(number) is int:
        return int32 if abs(number) < 2**31 else int64
    return float32 if type(number) is float else convert_to_tensor(number).dtype


def _float_range(start: Any, limit: Any, delta: Any, dtype: Any) -> Any:
    """Return a range whose limits, and so its size, are unknown in the trace."""
    first, last, step = (cast(convert_to_tensor(x), "float64") for x in (start, limit, delta))
    whole = cast(gradtape.ceil((last - first) / step), "int64")
    steps = cast(gradtape.arange(as_size(gradtape.maximum(whole, 0), "range")), dtype)
    first = cast(first, dtype)
    return first + steps * (cast(first + step, dtype) - first)  # as NumPy rounds


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
    """Return ``on_value`` at each index of an axis of ``depth``, and ``off_value`` elsewhere."""
    indices = indices if type(indices) is Tensor else convert_to_tensor(indices)
    depth = depth if type(depth) is int else as_size(depth, "one_hot")
    if on_value is off_value is None:
        hot = gradtape.one_hot(indices, depth, float32 if dtype is None else as_dtype(dtype))
    else:
        on, off = 1 if on_value is None else on_value, 0 if off_value is None else off_value
        if dtype is None:
            dtype = convert_to_tensor(off if on_value is None else on).dtype
        on, off = (convert_to_tensor(value, dtype) for value in (on, off))
        hot = gradtape.where(gradtape.one_hot(indices, depth, "bool"), on, off)
    return hot if axis is None or axis == -1 else gradtape.moveaxis(hot, -1, axis)


# -- shapes ----------------------------------------------------------------------------------------


@adapts("Tensor.shape")
def shape(input: Any, out_type: Any = int32, name: str | None = None) -> Any:
    """Return the shape as a tensor of integers, with sizes that are unknown in a trace too.

    Unknown sizes and results computed from them make shapes: ``tf.zeros([tf.shape(x)[0], 3])``.
    """
    x = convert_to_tensor(input)
    if x.shape is None:
        raise ValueError("shape: the rank of the input is unknown in this trace")
    if all(map(known_size, x.shape)):
        return gradtape.constant(np.array(x.shape, out_type))
    return gradtape.stack([gradtape.as_tensor(n, out_type) for n in x.shape])


@adapts("Tensor.size")
def size(input: Any, out_type: Any = int32, name: str | None = None) -> Any:
    """Return the number of elements as a tensor."""
    x = convert_to_tensor(input)
    if x.shape is None:
        return cast(gradtape.sum(gradtape.ones_like(x, dtype="int64")), out_type)
    return gradtape.as_tensor(x.size, out_type)


@adapts("broadcast_shapes")
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    """Return the shape to which two shapes broadcast, as a tensor of integers."""
    shapes = sizes(shape_x, "broadcast_dynamic_shape"), sizes(shape_y, "broadcast_dynamic_shape")
    joined = [broadcast_size(a, b) for a, b in zip_longest(*map(reversed, shapes), fillvalue=1)]
    if None in [n for n in joined if not isinstance(n, Size)]:
        raise ValueError(f"broadcast_dynamic_shape: {shapes[0]} and {shapes[1]} do not broadcast")
    return convert_to_tensor(joined[::-1] or np.zeros(0, int32))


@adapts("pad")
def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    constant_values: Any = 0,
    name: str | None = None,
) -> Any:
    """Return ``tensor`` with a border."""
    known = ("constant", "reflect", "symmetric")
    if mode.lower() not in known:
        raise ValueError(f"pad: mode must be one of {known}, got {mode!r}")
    tensor, paddings = convert_to_tensor(tensor), [sizes(pair, "pad") for pair in plain(paddings)]
    if mode.lower() != "constant":
        return gradtape.pad(tensor, paddings, mode=mode.lower())
    refuse_loss(constant_values, tensor.dtype)
    return gradtape.pad(tensor, paddings, constant_values=constant_values)


# -- joining and splitting -------------------------------------------------------------------------


def tensors_of(values: Any) -> Any:
    """Return a list of tensors; numbers take the dtype of the first tensor."""
    if isinstance(values, (list, tuple)):
        known = [v.dtype for v in values if hasattr(v, "dtype")]
        if not known:
            return alike(values)
        return [v if hasattr(v, "dtype") else convert_to_tensor(v, known[0]) for v in values]
    return convert_to_tensor(values)


def concatenated(values: Any, axis: Any) -> Any:
    """Return tensors joined along an axis; ragged ones along the first, or row by row."""
    values = values if isinstance(values, (list, tuple)) else [values]
    if any(isinstance(value, gradtape.data.RaggedTensor) for value in values):
        return gradtape.data.RaggedTensor.joined(values, axis)
    return gradtape.concatenate(tensors_of(values), axis)


def split_by(value: Any, sizes: Any, axis: int, num: int | None) -> list[Any]:
    """Split ``value`` along ``axis`` into a number of equal parts, or parts of given sizes.

    One of the sizes may be -1: the rest.
    """
    parts = plain(sizes)
    if not isinstance(parts, list):
        split: list[Any] = gradtape.split(value, operator.index(parts), axis)
        return split
    if num is not None and num != len(parts):
        raise ValueError(f"split: num={num}, but num_or_size_splits has {len(parts)} sizes")
    parts = [as_size(n, "split") for n in parts]
    whole = value.shape[axis]
    free = [i for i, n in enumerate(parts) if known_size(n) and n == -1]
    for i in free[:1]:
        parts[i] = whole - sum(parts) - 1
    if sizes_differ(sum(parts), whole) or any((n < 0) is True for n in parts):
        raise ValueError(
            f"split: sizes {parts} do not add up to axis {axis} of shape {value.shape}"
        )
    along = axis % len(value.shape)
    shape = [sum(parts) if i == along else None for i in _range(len(value.shape))]
    return list(
        gradtape.split(
            with_checked_shape(value, shape, "split"), list(accumulate(parts))[:-1], axis
        )
    )


@adapts("Tensor.__getitem__")
def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Any:
    """Return the part of ``size`` that starts at ``begin``; a size of -1 extends to the end."""
    x = convert_to_tensor(input_)
    parts = zip(sizes(begin, "slice"), sizes(size, "slice"), strict=True)
    return x[tuple(_slice(b, _end(b, n, x, axis)) for axis, (b, n) in enumerate(parts))]


def _end(start: Any, length: Any, x: Any, axis: int) -> Any:
    """Return where a slice ends; None for the end of the axis."""
    everything = length < 0
    if isinstance(everything, bool):
        return None if everything else start + length
    # the sign is unknown in the trace: for a length of -1, the end becomes the whole size
    return start + length + largest(-length, 0) * (x.shape[axis] - start + 1)


# -- indexing --------------------------------------------------------------------------------------


def tf_condition(condition: Any, x: Any, y: Any) -> Any:
    """Return the condition of a ``tf.where`` without ``x`` and ``y`` as a tensor."""
    if x is not None or y is not None:
        raise ValueError("where: pass both x and y, or neither")
    return convert_to_tensor(condition)


def over_batch(fn: Any, batch_dims: int) -> Any:
    for _ in _range(batch_dims):
        fn = gradtape.vmap(fn)
    return fn


def gathered(params: Any, indices: Any, axis: Any, batch_dims: int) -> Any:
    """Return the slices of ``params`` along ``axis`` at ``indices``, example by example."""
    batch_dims = batch_dims % max(indices.ndim, 1) if batch_dims < 0 else batch_dims
    axis = batch_dims if axis is None else axis_of(params, axis, "gather") % params.ndim
    if axis < batch_dims:
        raise ValueError(f"gather: axis {axis} is a batch axis: pass {batch_dims} or more")
    inner = axis - batch_dims
    return over_batch(lambda p, i: gradtape.take(p, i, inner), batch_dims)(params, indices)


def zeros_of(shape: Any, like: Any) -> Any:
    """Return zeros of a shape, in the dtype of updates."""
    return gradtape.zeros(sizes(shape, "scatter_nd"), convert_to_tensor(like).dtype)


def index_of(indices: Any) -> tuple[Any, ...]:
    return tuple(gradtape.unstack(convert_to_tensor(indices), -1))


def fitting(updates: Any, indices: Any, shape: Any, op: str) -> Any:
    """Return updates of one slice per index, or one number, as far as the trace knows the sizes."""
    given = (updates if hasattr(updates, "shape") else convert_to_tensor(updates)).shape
    places = convert_to_tensor(indices).shape
    if not given or shape is None or places is None:
        return updates
    wanted = (*places[:-1], *shape[places[-1] :]) if known_size(places[-1]) else given
    if len(given) != len(wanted) or any(map(sizes_differ, given, wanted)):
        raise ValueError(f"{op}: updates must have shape {wanted} or (), got {tuple(given)}")
    return updates


#: Methods of ``x.at[index]`` by the last word of TensorFlow's names.
_HOW = {"update": "set", "sub": "subtract", "mul": "multiply", "div": "divide"}


def scattered(x: Any, op: str, indices: Any, updates: Any) -> Any:
    """Return ``x`` with updates at indices along the last axis, as the end of the name says."""
    how = op.rpartition("_")[2]
    at = x.at[index_of(indices)]
    return getattr(at, _HOW.get(how, how))(fitting(updates, indices, x.array.shape, op))


@adapts("Tensor")
class IndexedSlices:
    """Slices along the first axis, and their indices, for ``Variable.scatter_add`` and others."""

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values, self.indices, self.dense_shape = values, indices, dense_shape

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("use tf.scatter_nd(indices[:, None], values, dense_shape)")


def scatter(variable: Any, op: str, indices: Any, updates: Any) -> Any:
    """Update a variable, which is returned: at single elements, slices, or slices of a batch."""
    if op == "batch_scatter_update":
        indices = convert_to_tensor(indices)
        rows = np.ogrid[tuple(_slice(n) for n in indices.shape)][:-1]
        at = variable.read_value().at[(*rows, indices)]
        return variable.assign(at.set(updates))
    places = indices if "_nd_" in op else gradtape.expand_dims(convert_to_tensor(indices), -1)
    return variable.assign(scattered(gradtape.as_tensor(variable), op, places, updates))


def _methods() -> dict[str, Any]:
    """Give variables TensorFlow's methods that update parts; return the functions of version 1."""

    def methods(op: str) -> tuple[Any, Any]:
        def at_places(self: Any, indices: Any, updates: Any, name: Any = None) -> Any:
            return scatter(self, op, indices, updates)

        def of_slices(self: Any, sparse_delta: Any, use_locking: Any = 0, name: Any = None) -> Any:
            if not isinstance(sparse_delta, IndexedSlices):
                raise TypeError(f"{op}: pass a tf.IndexedSlices(values, indices)")
            return scatter(self, op, sparse_delta.indices, sparse_delta.values)

        def function(
            ref: Any, indices: Any, updates: Any, use_locking: Any = True, name: Any = None
        ) -> Any:
            """Update a variable, and return it."""
            return scatter(ref, op, indices, updates)

        return (at_places if "_nd_" in op else of_slices), function

    ends = "add sub update max min".split()
    ops = [f"scatter_nd_{end}" for end in ends] + [
        f"scatter_{end}" for end in (*ends, "mul", "div")
    ]
    made = {op: methods(op) for op in (*ops, "batch_scatter_update")}
    for op, (method, function) in made.items():
        setattr(NativeVariable, op, method)
        function.__name__ = function.__qualname__ = op
    return {op: adapts("Variable", "at")(function) for op, (_, function) in made.items()}


#: ``tf.compat.v1.scatter_add`` and others.
OF_VERSION_1 = _methods()


def shifts(shift: Any, axis: Any) -> Any:
    """Return the shifts of a roll, which must be as many as the axes."""
    counts = [len(x) if isinstance(x, tuple) else 1 for x in (shift, axis)]
    if counts[0] != counts[1]:
        raise ValueError(f"roll: got {counts[0]} shifts for {counts[1]} axes")
    return shift


@adapts("unique")
def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> tuple[Any, Any]:
    """Return the distinct elements in order of first occurrence, and each element's index there."""
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
    """Return the indices that sort the elements along ``axis``; equal ones stay in order."""
    values = convert_to_tensor(values)
    if not _descending(direction, "argsort"):
        return cast(gradtape.argsort(values, axis), int32)
    # sort the reversed elements and read from the end, so that equal ones stay in order
    order = gradtape.flip(gradtape.argsort(gradtape.flip(values, axis), axis), axis)
    return cast(values.shape[axis] - 1 - order, int32)
