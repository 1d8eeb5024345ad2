"""Rows by index: one-hot rows, rows of a table, and sums of the rows of each segment."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Tensor,
    as_batched,
    as_dtype,
    as_size,
    as_tensor,
    default_dtype,
    is_transformed,
    kind_of,
    sizes_differ,
)
from ..common.axes import leading
from ..common.kernels import at_hand, cast_to, nan_where, scatter_add
from ..common.op_builders import named, op
from ..indexing.batched_index import example_numbers
from ..indexing.take import take
from ..reductions.extrema import max


def hits(xp: Any, indices: Any, depth: int) -> Any:
    """Return whether each of ``depth`` numbers equals the index."""
    return xp.expand_dims(indices, axis=-1) == xp.arange(depth, dtype=indices.dtype)


_one_hot = op(
    "one_hot",
    lambda xp, indices, *, depth, dtype: cast_to(xp, hits(xp, indices, depth), dtype),
    gradients={"indices": NONDIFF},
    infer=lambda indices, depth, dtype: (
        None if indices.shape is None else (*indices.shape, depth),
        np.dtype(dtype),
    ),
    batch=leading,
    view=False,
    doc="Return rows with a 1 at each index and 0 elsewhere.",
)


@named
def one_hot(indices: Any, depth: int, dtype: Any = None) -> Tensor:
    """Return rows of ``depth`` numbers, 1 at each index and 0 elsewhere.

    Parameters
    ----------
    indices
        Integers of any shape; one outside ``0 .. depth - 1`` gives a row of zeros.
    depth
        The number of classes, the last axis of the result.

    Returns
    -------
    A tensor of shape ``(*indices.shape, depth)``; it has no gradient.

    Raises
    ------
    TypeError
        If the indices or ``depth`` are not integers, or ``dtype`` is not a dtype.
    ValueError
        If ``depth`` is negative.

    Examples
    --------
    >>> gt.one_hot([0, 2, -1], 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    indices = as_tensor(indices)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"one_hot: indices must be integers, got dtype {indices.dtype}")
    wanted = default_dtype() if dtype is None else as_dtype(dtype)
    count = as_size(depth, "one_hot")
    if (count < 0) is True:
        raise ValueError(f"one_hot: depth must be at least 0, got {depth}")
    return _one_hot(indices, depth=count, dtype=wanted.name)


@named
def embedding_lookup(params: Any, ids: Any) -> Tensor:
    """Return rows of a table by index.

    Parameters
    ----------
    params
        The table, of shape ``(rows, ...)``.
    ids
        Integers of any shape, from 0 to ``rows - 1``.

    Returns
    -------
    A tensor of shape ``ids.shape + params.shape[1:]`` and the dtype of the table.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    TypeError
        If an index is not an integer.

    Notes
    -----
    Gradients of rows that are used several times add up.

    Examples
    --------
    >>> gt.nn.embedding_lookup([[1.0, 2.0], [3.0, 4.0]], [1, 0, 1]).tolist()
    [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    """
    return take(params, ids, axis=0)


def _rows_kernel(xp: Any, ids: Any, *, count: int) -> Any:
    outside = (ids < 0) | (ids >= count)
    if at_hand(xp.any(outside), unknown=False):
        wrong = ids[outside]
        raise IndexError(
            f"expected integers from 0 to {count - 1}, got {int(wrong[0])}; {wrong.size} of "
            f"{ids.size} are out of bounds"
        )
    # where nothing can raise yet: a negative one would count from the end
    return xp.where(ids < 0, ids - count, ids)


op(
    "embedding_rows",
    _rows_kernel,
    gradients={"ids": NONDIFF},
    infer=lambda ids, count: (ids.shape, ids.dtype),
    batch=leading,
    doc="Return signed integers, which must all be below ``count`` and not negative.",
)


# -- sums by segment -------------------------------------------------------------------------------


def _segment_shape(x: Any, ids: Any, num: int) -> Any:
    if x is None or ids is None:
        return None
    if len(ids) != 1 or not x or sizes_differ(ids[0], x[0]):
        raise ValueError(
            "segment_sum: segment_ids must have one axis, as long as the first axis of data, "
            f"got shapes {ids} and {x}"
        )
    return (num, *x[1:])


def _segment_kernel(xp: Any, x: Any, ids: Any, *, num: int) -> Any:
    shape = _segment_shape(x.shape, ids.shape, num)
    if kind_of(ids.dtype) not in "iu":
        raise TypeError(f"segment_sum: segment_ids must be integers, got dtype {ids.dtype}")
    wrong = 0 not in ids.shape and at_hand((xp.min(ids) < 0) | (xp.max(ids) >= num), unknown=None)
    if wrong:
        raise ValueError(
            f"segment_sum: segment_ids must be from 0 to {num - 1}, "
            f"got {int(xp.min(ids))} to {int(xp.max(ids))}"
        )
    total = xp.zeros(shape, dtype=x.dtype)
    sums = scatter_add(xp, total, ids, x, lambda numbers: xp.take(numbers, ids, axis=0))
    return nan_where(xp, lambda: xp.any((ids < 0) | (ids >= num)), sums, wrong)


def _segment_sum_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``segment_sum``."""
    (x, ids), (bx, bi) = xs, batched
    if not bi:
        rows = F.swapaxes(x, axis1=0, axis2=1)
        return F.swapaxes(op.raw(rows, ids, **params), axis1=0, axis2=1)
    x = x if bx else as_batched(x, ids)
    size, num = ids.shape[0], params["num"]
    first = F.expand_dims(F.multiply(example_numbers(ids), num), axis=1)
    apart = F.reshape(F.add(ids, first), shape=(size * x.shape[1],))
    rows = F.reshape(x, shape=(size * x.shape[1], *x.shape[2:]))
    sums = op.raw(rows, apart, num=size * num)
    return F.reshape(sums, shape=(size, num, *x.shape[2:]))


_segment_sum = op(
    "segment_sum",
    _segment_kernel,
    gradients={"x": lambda g, ids: F.take(g, ids, axis=0), "ids": NONDIFF},
    infer=lambda x, ids, num: (_segment_shape(x.shape, ids.shape, num), x.dtype),
    holomorphic=True,
    batch=_segment_sum_rule,
    jvp="linear",
    doc="Sum the rows of ``x`` that have the same segment id.",
)


@named
def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None) -> Tensor:
    """Return the sums of the rows of each segment.

    Parameters
    ----------
    data
        Rows, of shape ``(n, ...)``.
    segment_ids
        The segment of each row: n integers, in any order.
    num_segments
        The number of segments; by default the largest id plus 1.

    Returns
    -------
    A tensor of shape ``(num_segments, ...)`` and the dtype of sums of ``data``; an empty segment
    sums to 0.

    Raises
    ------
    TypeError
        If ``segment_ids`` are not integers.
    ValueError
        If shapes do not fit, or an id is out of range.

    Notes
    -----
    The gradient of a row is that of its segment's sum.

    Examples
    --------
    >>> gt.nn.segment_sum([1.0, 2.0, 3.0], [0, 2, 0]).tolist()
    [4.0, 0.0, 2.0]
    """
    ids = as_tensor(segment_ids)
    count: Any = num_segments
    if count is None and is_transformed(ids.array):
        count = max(ids.astype("int64"), initial=-1) + 1
    elif count is None:
        values = np.asarray(ids.numpy())
        count = int(values.max()) + 1 if values.size else 0
    data = as_tensor(data)
    if data.dtype.kind in "biu":  # as wide as NumPy's sums of integers
        data = data.astype(np.sum(np.empty(0, data.dtype)).dtype)
    return _segment_sum(data, ids, num=as_size(count, "segment_sum"))
