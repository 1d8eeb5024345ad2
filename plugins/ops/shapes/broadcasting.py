"""Broadcasting, and minimum numbers of axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import (
    F,
    Op,
    Tensor,
    among,
    as_batched,
    as_shape,
    as_tensor,
    broadcast_shapes,
    ops,
    same_shape,
    sizes_differ,
    with_each_other,
)
from ..common.batching import aligned
from ..common.op_builders import named, op
from ..common.ranks import with_axes


def _broadcast_spec(x: Any, *, shape: tuple[int, ...]) -> tuple[Any, Any]:
    if x.shape is not None:
        missing = len(shape) - len(x.shape)
        if missing < 0 or any(
            sizes_differ(n, m) and sizes_differ(n, 1)
            for n, m in zip(x.shape, shape[missing:], strict=True)
        ):
            raise ValueError(f"broadcast_to: shape {x.shape} does not broadcast to {shape}")
    return shape, x.dtype


def broadcast(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``broadcast_to``."""
    (x,), shape = xs, params["shape"]
    batch = x.shape[0] if x.shape else None
    x = aligned(x, len(shape), op)
    if batch is not None:
        return op.raw(x, shape=(batch, *shape))
    return F.broadcast_like(x, as_batched(np.broadcast_to(np.zeros((), x.dtype), shape), x))


_broadcast_to = op(
    "broadcast_to",
    lambda xp, x, *, shape: xp.broadcast_to(x, shape),
    gradients={"x": lambda g, x_like: F.unbroadcast_like(g, x_like)},
    infer=_broadcast_spec,
    holomorphic=True,
    batch=broadcast,
    jvp="linear",
    view=True,
    integers="moves",
    doc="Repeat ``x`` along new axes and axes of size 1, so that it has a given shape.",
)


def broadcast_to(x: Any, shape: int | Sequence[int]) -> Tensor:
    """Return ``x`` repeated along new axes and axes of size 1, so that it has ``shape``.

    Parameters
    ----------
    x
        A tensor of any dtype whose shape broadcasts to ``shape``.
    shape
        The shape of the result: a size or a sequence of them.

    Returns
    -------
    Tensor
        A tensor of shape ``shape`` and the dtype of ``x``.

    Raises
    ------
    ValueError
        If the shape of ``x`` does not broadcast to ``shape``.
    TypeError
        If a size is not an integer.

    Notes
    -----
    The gradient is summed over the copies of each element.

    Examples
    --------
    >>> gt.broadcast_to(gt.constant([1, 2]), (3, 2)).tolist()
    [[1, 2], [1, 2], [1, 2]]
    """
    if shape is None:
        raise TraceError(
            "broadcast_to: the rank is unknown in this trace; broadcast to the shape of a tensor y "
            "by broadcast_arrays(x, y)[0]"
        )
    return _broadcast_to(x, shape=as_shape(shape, "broadcast_to"))


@named
def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Return tensors broadcast to their common shape.

    Parameters
    ----------
    arrays
        Tensors of any dtype, whose shapes broadcast.

    Returns
    -------
    tuple of Tensor
        The tensors, each with its own dtype, in the common shape.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> a, b = gt.broadcast_arrays(gt.constant([1, 2]), gt.constant([[3], [4]]))
    >>> b.tolist()
    [[3, 3], [4, 4]]
    """
    items = among(arrays if isinstance(arrays, (list, tuple)) else list(as_tensor(arrays)))
    shape = broadcast_shapes(*(x.shape for x in items), op="broadcast_arrays")
    if shape is not None and all(n is not None for n in shape):
        return tuple(
            x if same_shape(x.shape, shape) else ops["broadcast_to"](x, shape=shape) for x in items
        )
    # a trace knows no shape to name: take that of a sum, in which each array has its own dtype
    empty = [ops["equal"](x, x) for x in items]
    whole = reduce(ops["logical_and"], empty)
    return tuple(ops["broadcast_like"](x, ops["cast"](whole, dtype=x.dtype.name)) for x in items)


def _at_least(places: tuple[tuple[int, ...], ...], arrays: tuple[Any, ...]) -> Any:
    """Insert the axes that each rank in ``places`` lacks."""
    results = [with_axes(x, places) for x in with_each_other(arrays)]
    return results[0] if len(results) == 1 else tuple(results)


@named
def atleast_1d(*arrays: Any) -> Any:
    """Return tensors with at least one axis: a tuple of them, or a single one.

    Parameters
    ----------
    arrays
        Tensors of any shape and dtype.

    Returns
    -------
    Tensor or tuple of Tensor
        Numbers become vectors of size 1; tensors with axes are unchanged.

    Raises
    ------
    TypeError
        If an argument does not convert to a tensor.

    Examples
    --------
    >>> gt.atleast_1d(gt.constant(3)).tolist()
    [3]
    """
    return _at_least(((0,),), arrays)


@named
def atleast_2d(*arrays: Any) -> Any:
    """Return tensors with at least two axes, adding axes in front; a vector becomes a row.

    Parameters
    ----------
    arrays
        Tensors of any shape and dtype.

    Returns
    -------
    Tensor or tuple of Tensor
        A tuple, or a single tensor for a single argument. A vector of size n has shape ``(1, n)``.

    Raises
    ------
    TypeError
        If an argument does not convert to a tensor.

    Examples
    --------
    >>> gt.atleast_2d(gt.constant([1, 2])).tolist()
    [[1, 2]]
    """
    return _at_least(((0, 1), (0,)), arrays)


@named
def atleast_3d(*arrays: Any) -> Any:
    """Return tensors with at least three axes; a matrix gets one at the end, a vector two.

    Parameters
    ----------
    arrays
        Tensors of any shape and dtype.

    Returns
    -------
    Tensor or tuple of Tensor
        A tuple, or a single tensor for a single argument. A vector of size n has shape
        ``(1, n, 1)``, a matrix ``(m, n, 1)``.

    Raises
    ------
    TypeError
        If an argument does not convert to a tensor.

    Examples
    --------
    >>> gt.atleast_3d(gt.ones((2, 3))).shape
    (2, 3, 1)
    """
    return _at_least(((0, 1, 2), (0, 2), (2,)), arrays)
