"""Slices sorted into parts by number, and parts put together again by place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.extend import Tensor, TensorSpec, as_size, as_tensor, ops
from ..common.op_builders import named
from ..elementwise.comparison import equal
from ..shapes.creation import zeros
from ..shapes.joining import concatenate
from ..shapes.reshaping import reshape
from .selection import compress


def _below(x: Tensor, index: Tensor, name: str) -> tuple[Any, ...]:
    """Return the shape of the slices of which ``index`` has a number for each."""
    given, own = x.shape[: index.ndim], x.shape
    if len(own) < index.ndim or not TensorSpec(index.shape).admits(given):
        raise ValueError(
            f"{name}: numbers of shape {index.shape} are for the first axes of the data, whose "
            f"shape is {own}"
        )
    return tuple(own[index.ndim :])


@named
def dynamic_partition(data: Any, partitions: Any, num_partitions: int) -> list[Tensor]:
    """Return the slices of a tensor in parts, by a number for each slice.

    Parameters
    ----------
    data
        A tensor.
    partitions
        Integers, for the first axes of ``data``: the part of each slice. Slices of other numbers
        than 0 to ``num_partitions - 1`` are in none.
    num_partitions
        How many parts there are.

    Returns
    -------
    list of Tensor
        Parts, in which slices keep their order. A trace does not know how many slices each has.

    Raises
    ------
    ValueError
        If the shape of the numbers is not that of the first axes, or there is no part.

    Examples
    --------
    >>> parts = gt.dynamic_partition(gt.constant([1.0, 2.0, 3.0]), [0, 1, 0], 2)
    >>> [part.tolist() for part in parts]
    [[1.0, 3.0], [2.0]]
    """
    x, index = as_tensor(data), as_tensor(partitions)
    if not hasattr(num_partitions, "__index__") or num_partitions < 1:
        raise ValueError(f"dynamic_partition: there are 1 or more parts, got {num_partitions!r}")
    rows = reshape(x, (-1, *_below(x, index, "dynamic_partition")))
    index = reshape(index, (-1,))
    return [compress(equal(index, i), rows, 0) for i in range(num_partitions)]


@named
def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any]) -> Tensor:
    """Return one tensor of slices that are given with their places.

    Parameters
    ----------
    indices
        Tensors of integers: the places of the slices.
    data
        As many tensors; each begins with the axes of its indices.

    Returns
    -------
    Tensor
        As many slices as the largest index and 1. Of slices with one place, the last is there;
        zeros are where no slice goes.

    Raises
    ------
    ValueError
        If there are not as many indices as data, or shapes do not fit.

    Examples
    --------
    >>> gt.dynamic_stitch([[0, 2], [1]], [[1.0, 3.0], [2.0]]).tolist()
    [1.0, 2.0, 3.0]
    """
    places, parts = [as_tensor(i) for i in indices], [as_tensor(x) for x in data]
    if len(places) != len(parts) or not parts:
        raise ValueError(f"dynamic_stitch: {len(places)} indices for {len(parts)} tensors")
    rows = [
        reshape(x, (-1, *_below(x, i, "dynamic_stitch")))
        for i, x in zip(places, parts, strict=True)
    ]
    index, values = concatenate([reshape(i, (-1,)) for i in places]), concatenate(rows)
    count = as_size(ops["max"](index, axis=None, keepdims=False) + 1, "dynamic_stitch")
    return zeros((count, *values.shape[1:]), values.dtype).at[index].set(values)
