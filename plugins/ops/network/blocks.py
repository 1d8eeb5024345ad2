"""What layers are built from: tables of vectors, sums by segment, normalisation, dropout."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Tensor, as_tensor, ops
from ..common.axes import Axis, as_axis
from ..common.batching import leading
from ..common.kernels import kind_of
from ..common.op_builders import named, op
from ..indexing.batching import segment_sum_rule
from ..indexing.indexing import scatter_add, take

__all__ = [
    "dropout",
    "embedding_lookup",
    "group_normalization",
    "layer_normalization",
    "segment_sum",
]


@named
def embedding_lookup(params: Any, ids: Any) -> Tensor:
    """Return rows of a table by number.

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
        If a number is out of bounds.
    TypeError
        If one is no integer.

    Notes
    -----
    Gradients of rows used several times add up.

    Examples
    --------
    >>> gt.nn.embedding_lookup([[1.0, 2.0], [3.0, 4.0]], [1, 0, 1]).tolist()
    [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    """
    return take(params, ids, axis=0)


# -- sums by segment -------------------------------------------------------------------------------


def _segment_shape(x: Any, ids: Any, num: int) -> Any:
    if x is None or ids is None:
        return None
    fits = len(ids) == 1 and len(x) >= 1 and (ids[0] == x[0] or None in (ids[0], x[0]))
    if not fits:
        raise ValueError(
            "segment_sum: segment_ids have one axis, as long as the first axis of data, "
            f"got shapes {ids} and {x}"
        )
    return (num, *x[1:])


def _segment_kernel(xp: Any, x: Any, ids: Any, *, num: int) -> Any:
    shape = _segment_shape(x.shape, ids.shape, num)
    if kind_of(ids.dtype) not in "iu":
        raise TypeError(f"segment_sum: segment_ids must be integers, got dtype {ids.dtype}")
    if ids.size and (xp.min(ids) < 0 or xp.max(ids) >= num):
        raise ValueError(
            f"segment_sum: segment_ids must be from 0 to {num - 1}, "
            f"got {int(xp.min(ids))} to {int(xp.max(ids))}"
        )
    total = xp.zeros(shape, dtype=x.dtype)
    return scatter_add(xp, total, ids, x, lambda numbers: xp.take(numbers, ids, axis=0))


_segment_sum = op(
    "segment_sum",
    _segment_kernel,
    gradients={"x": lambda g, ids: F.take(g, ids, axis=0), "ids": NONDIFF},
    infer=lambda x, ids, num: (_segment_shape(x.shape, ids.shape, num), x.dtype),
    holomorphic=True,
    batch=segment_sum_rule,
    jvp="linear",
    doc="Sum the rows of ``x`` that have the same number.",
)


@named
def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None) -> Tensor:
    """Return the sums of rows that belong together.

    Parameters
    ----------
    data
        Rows, of shape ``(n, ...)``.
    segment_ids
        For each row, the number of its sum: n integers, in any order.
    num_segments
        How many sums there are; by default the largest number and 1. A trace needs it.

    Returns
    -------
    A tensor of shape ``(num_segments, ...)`` and the dtype of ``data``; a sum without rows is 0.

    Raises
    ------
    TypeError
        If ``segment_ids`` are not integers.
    ValueError
        If shapes do not fit, or a number is out of range.

    Notes
    -----
    The gradient of a row is that of its sum.

    Examples
    --------
    >>> gt.nn.segment_sum([1.0, 2.0, 3.0], [0, 2, 0]).tolist()
    [4.0, 0.0, 2.0]
    """
    ids = as_tensor(segment_ids)
    if num_segments is None:
        values = np.asarray(ids.numpy())
        num_segments = int(values.max()) + 1 if values.size else 0
    return _segment_sum(data, ids, num=operator.index(num_segments))


# -- normalisation ---------------------------------------------------------------------------------


def _normalised(x: Any, axis: Axis, epsilon: float) -> Any:
    centred = x - ops["mean"](x, axis=axis, keepdims=True)
    variance = ops["mean"](ops["square"](centred), axis=axis, keepdims=True)
    return centred / ops["sqrt"](variance + epsilon)


def _scaled(y: Any, scale: Any, offset: Any) -> Any:
    y = y if scale is None else ops["multiply"](y, scale)
    return y if offset is None else ops["add"](y, offset)


@named
def layer_normalization(
    x: Any, scale: Any = None, offset: Any = None, axis: Any = -1, epsilon: float = 1e-3
) -> Tensor:
    """Return ``x`` less its mean, divided by its standard deviation, for each example by itself.

    Parameters
    ----------
    x
        A floating tensor.
    scale, offset
        Tensors that broadcast with ``x``, to multiply by and to add; none if ``None``, the default.
    axis
        The axis or axes over which mean and variance (divided by n) are taken; the last by default.
    epsilon
        Added to the variance, inside the root; 0.001 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    AxisError
        If an axis is out of bounds.
    TypeError
        If ``axis`` is not an integer or a tuple of integers.
    ValueError
        If shapes do not broadcast, or an axis comes twice.

    References
    ----------
    Ba, Kiros and Hinton, "Layer normalization", 2016.

    Examples
    --------
    >>> gt.nn.layer_normalization([[1.0, 3.0], [10.0, 30.0]], epsilon=0.0).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    axes = as_axis(axis, "layer_normalization")
    return _scaled(_normalised(as_tensor(x), axes, epsilon), scale, offset)


def _in_groups(shape: Any, groups: int) -> Any:
    if shape is None:
        return None
    channels = shape[-1] if shape else 1
    if channels is not None and channels % groups:
        raise ValueError(
            f"group_normalization: {channels} channels of shape {shape} do not divide into "
            f"{groups} groups"
        )
    return (*shape[:-1], groups, None if channels is None else channels // groups)


op(
    "split_channels",
    lambda xp, x, *, groups: xp.reshape(x, _in_groups(x.shape, groups)),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=lambda x, groups: (_in_groups(x.shape, groups), x.dtype),
    holomorphic=True,
    batch=leading,
    jvp="linear",
    doc="Cut the last axis into groups: ``(..., groups, channels / groups)``.",
)


@named
def group_normalization(
    x: Any, groups: int, scale: Any = None, offset: Any = None, epsilon: float = 1e-3
) -> Tensor:
    """Return ``x`` normalised within each example and group of channels.

    Parameters
    ----------
    x
        A floating tensor of known rank, ``(batch, ..., channels)``.
    groups
        How many groups the channels are cut into: 1 is layer normalisation over all but the batch,
        ``channels`` is instance normalisation.
    scale, offset
        Tensors of shape ``(channels,)``, to multiply by and to add; none if ``None``, the default.
    epsilon
        Added to the variance (divided by n), inside the root; 0.001 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``groups`` is not an integer.
    ValueError
        If ``x`` has fewer than two axes, the channels do not divide into the groups, or the shapes
        of ``scale`` and ``offset`` do not fit.

    References
    ----------
    Wu and He, "Group normalization", 2018.

    Examples
    --------
    >>> gt.nn.group_normalization([[1.0, 3.0, 10.0, 30.0]], groups=2, epsilon=0.0).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    x, count = as_tensor(x), operator.index(groups)
    if count < 1 or x.ndim < 2:
        raise ValueError(
            "group_normalization: at least one group and the shape (batch, ..., channels) are "
            f"needed, got {groups} groups and shape {x.shape}"
        )
    parts = ops["split_channels"](x, groups=count)
    inner = (*range(1, x.ndim - 1), x.ndim)
    return _scaled(ops["reshape_like"](_normalised(parts, inner, epsilon), x), scale, offset)


# -- dropout ---------------------------------------------------------------------------------------


@named
def dropout(x: Any, rate: float, generator: Any = None, training: bool = True) -> Tensor:
    """Return ``x`` with a random share of elements set to 0, and the others scaled up.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    rate
        The share to drop, from 0 up to 1. The others are divided by ``1 - rate``, so that the
        expected value stays the same.
    generator
        A :class:`gradtape.random.Generator`; the shared one if not given.
    training
        Return ``x`` as it is if false; true by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is not floating.
    ValueError
        If the rate is not from 0 to 1, 1 not included.

    References
    ----------
    Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov, "Dropout: a simple way to prevent
    neural networks from overfitting", 2014.

    Examples
    --------
    >>> y = gt.nn.dropout(gt.ones(1000), 0.5, gt.random.Generator(0))
    >>> gt.unique(y).tolist()
    [0.0, 2.0]
    >>> gt.nn.dropout([1.0, 2.0], 0.5, training=False).tolist()
    [1.0, 2.0]
    """
    if not 0 <= rate < 1:
        raise ValueError(f"dropout: rate must be at least 0 and below 1, got {rate!r}")
    x = as_tensor(x)
    if not training or rate == 0:
        return x
    if generator is None:
        from ..random.random import shared

        generator = shared()
    kept = ops["greater_equal"](generator.uniform_like(x), rate)
    return ops["where"](kept, x / (1.0 - rate), 0.0)
