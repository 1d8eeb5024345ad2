"""``tf.math``: reductions, running sums, segments, and TensorFlow's further arithmetic."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

import gradtape

from ...core.extend import as_size, is_transformed
from .dtypes import as_dtype, cast, int32
from .names import adapts, lookup
from .tensors import convert_to_tensor, with_checked_shape

__all__ = "TopK add_n bincount confusion_matrix segment_sum top_k unsorted_segment_sum".split()


# -- reductions ------------------------------------------------------------------------------------


def whole_mean(x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the mean of integers over ``axis``, an integer too, rounded toward zero."""
    wide = "int64" if x.dtype.kind == "i" else "uint64"  # int8 holds neither sum nor count
    total = gradtape.sum(cast(x, wide), axis, keepdims)
    count = gradtape.sum(gradtape.ones_like(x, dtype=wide), axis, keepdims)
    whole = gradtape.floor_divide(gradtape.abs(total), count)
    return cast(gradtape.sign(total) * whole, x.dtype)


def unwidened(found: Any, dtype: Any) -> Any:
    """Return an integer sum or product in the dtype of its elements, which NumPy widens."""
    return found if found.array.dtype is dtype or dtype.kind not in "iu" else cast(found, dtype)


def running(scan: Any, x: Any, axis: int, exclusive: bool, reverse: bool, first: int) -> Any:
    """Return running sums or products, optionally exclusive or from the end."""
    if reverse:
        x = gradtape.flip(x, axis)
    if exclusive:
        # prepend the neutral element, then drop the last one: in this order an empty axis stays so
        rank = x.ndim
        axis = operator.index(axis) % rank
        widths = [(1, 0) if i == axis else (0, 0) for i in range(rank)]
        inner = (slice(None),) * axis + (slice(None, -1),)
        x = gradtape.pad(x, widths, constant_values=first)[inner]
    x = unwidened(scan(x, axis), x.array.dtype)
    return gradtape.flip(x, axis) if reverse else x


# -- arithmetic ------------------------------------------------------------------------------------


@adapts("add")
def add_n(inputs: Any, name: str | None = None) -> Any:
    """Return the sum of a list of tensors of one shape."""
    terms = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if not terms:
        raise ValueError("add_n: got an empty list: pass at least one tensor")
    total = convert_to_tensor(terms[0])
    for term in terms[1:]:
        term = convert_to_tensor(term)
        if None not in (term.shape, total.shape):
            term = with_checked_shape(term, total.shape, "add_n")
        total = total + term
    return total


# -- order and counting ----------------------------------------------------------------------------


class TopK(NamedTuple):
    """The largest elements and their indices."""

    values: Any
    indices: Any


@adapts("argsort", "take_along_axis")
def top_k(
    input: Any, k: int = 1, sorted: bool = True, index_type: Any = int32, name: Any = None
) -> TopK:
    """Return the ``k`` largest elements along the last axis, in descending order.

    Equal elements stay in order. ``sorted`` is ignored.
    """
    x = convert_to_tensor(input)
    k = as_size(k, "top_k")
    if (k < 0) is True or (x.shape and (k > x.shape[-1]) is True):
        raise ValueError(f"top_k: k={k} of an input of shape {x.shape}")
    # a stable ascending sort of the reversed elements, read from its end, keeps ties in order
    order = gradtape.flip(gradtape.argsort(gradtape.flip(x, -1), -1), -1)[..., :k]
    if x.shape:  # a trace may not know that there are k elements
        order = with_checked_shape(order, (*x.shape[:-1], k), "top_k")
    last = gradtape.sum(gradtape.ones_like(x, dtype="int64"), axis=-1, keepdims=True) - 1
    indices = last - order
    return TopK(gradtape.take_along_axis(x, indices, -1), cast(indices, index_type))


@adapts("bincount")
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: int | None = None,
    maxlength: int | None = None,
    dtype: Any = int32,
) -> Any:
    """Return how often each number occurs in ``arr``, or the sum of its weights."""
    arr = gradtape.reshape(convert_to_tensor(arr), -1)
    if maxlength is not None:
        kept = arr < maxlength
        weights = None if weights is None else gradtape.reshape(weights, -1)[kept]
        arr = arr[kept]
    if weights is not None:
        weights = gradtape.reshape(convert_to_tensor(weights), -1)
        return cast(gradtape.bincount(arr, weights, minlength or 0), weights.dtype)
    return cast(gradtape.bincount(arr, None, minlength or 0), dtype)


@adapts("at")
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: int | None = None,
    weights: Any = None,
    dtype: Any = int32,
    name: str | None = None,
) -> Any:
    """Return a matrix whose entry (i, j) counts how often label i was predicted as j."""
    labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
    if num_classes is None:
        num_classes = int(max(np.max(labels.numpy()), np.max(predictions.numpy()))) + 1
    counts = gradtape.zeros((num_classes, num_classes), as_dtype(dtype))
    amounts = gradtape.ones_like(labels) if weights is None else convert_to_tensor(weights)
    return counts.at[labels, predictions].add(cast(amounts, dtype))


# -- segments --------------------------------------------------------------------------------------


@adapts("nn.segment_sum")
def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Any:
    """Return the sums of rows with the same id, for ids from 0 to the largest."""
    data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
    return gradtape.nn.segment_sum(data, ids, _count(ids))


def _count(ids: Any) -> Any:
    """Return the number of segments if the ids are unknown in a trace, otherwise None."""
    if not is_transformed(ids.array):
        return None
    least = gradtape.constant(np.full(1, -1, ids.dtype))  # without rows there is no largest id
    return as_size(gradtape.max(gradtape.concatenate([ids, least])) + 1, "segment_sum")


@adapts("nn.segment_sum")
def unsorted_segment_sum(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Any:
    """Return the sums of rows with the same id, for ids below ``num_segments``."""
    ids = convert_to_tensor(segment_ids)
    data = convert_to_tensor(data)
    if ids.ndim != 1:  # ids for several axes, which are joined
        data = gradtape.reshape(data, (-1, *data.shape[ids.ndim :]))
        ids = gradtape.reshape(ids, -1)
    return gradtape.nn.segment_sum(data, ids, as_size(num_segments, "unsorted_segment_sum"))


__getattr__ = lookup(__name__)
