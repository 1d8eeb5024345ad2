"""New tensors of a given shape, or of the shape of another tensor, on the current backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    Operators,
    Shared,
    Size,
    Tensor,
    UnaryOp,
    as_dtype,
    as_shape,
    as_size,
    as_tensor,
    current_backend,
    default_dtype,
    ops,
    placeable,
    registry,
    row_of,
)
from ..common.dynamic_shapes import any_unknown, makes_tables, table
from ..common.op_builders import named, op, same_spec


def number_dtype(dtype: Any) -> np.dtype[Any]:
    return default_dtype() if dtype is None else as_dtype(dtype)


def matrix_of(maker: str, n: Any, m: Any, k: Any, dtype: Any) -> Tensor:
    """Return a matrix of unknown sizes, made in the same way as NumPy's."""
    sizes = (as_size(x, maker) for x in (n, n if m is None else m, k))
    made: Tensor = table(maker, *sizes, dtype=number_dtype(dtype))
    return made


def _filled(shape: Any, make: Any, dtype: Any) -> Tensor:
    """Return zeros or ones; for an unknown shape in a trace, a single one broadcast to it."""
    if Size in map(type, shape):
        return ops["broadcast_to"](as_tensor(make((), number_dtype(dtype))), shape=shape)
    if current_backend() is registry().host_backend or min(shape, default=0) < 0:
        return as_tensor(make(shape, number_dtype(dtype)))
    # one number that a backend can spread on its device, instead of as many to copy
    return as_tensor(np.broadcast_to(make((), number_dtype(dtype)), shape))


@named
@placeable
def zeros(shape: int | Sequence[int], dtype: Any = None, *, device: str | None = None) -> Tensor:
    """Return a tensor of zeros.

    Returns
    -------
    A tensor of that shape, on the current backend.

    Examples
    --------
    >>> gt.zeros((2, 3)).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    return _filled(as_shape(shape, "zeros"), np.zeros, dtype)


@named
@placeable
def ones(shape: int | Sequence[int], dtype: Any = None, *, device: str | None = None) -> Tensor:
    """Return a tensor of ones.

    Returns
    -------
    A tensor of that shape, on the current backend.

    Examples
    --------
    >>> gt.ones(3, dtype="int32").tolist()
    [1, 1, 1]
    """
    return _filled(as_shape(shape, "ones"), np.ones, dtype)


@named
@placeable
def full(
    shape: int | Sequence[int], fill_value: Any, dtype: Any = None, *, device: str | None = None
) -> Tensor:
    """Return a tensor filled with one value.

    Parameters
    ----------
    fill_value
        A number, or a tensor that broadcasts to ``shape`` (gradients reach it).
    dtype
        The value's own dtype if not given.

    Returns
    -------
    A tensor of that shape.

    Raises
    ------
    ValueError
        If a size is negative, or ``fill_value`` does not broadcast to ``shape``.

    Examples
    --------
    >>> gt.full((2, 2), 7.0).tolist()
    [[7.0, 7.0], [7.0, 7.0]]
    """
    value = as_tensor(fill_value, dtype)
    return ops["broadcast_to"](value, shape=as_shape(shape, "full"))


@named
@placeable
def eye(
    n: int, m: int | None = None, k: int = 0, dtype: Any = None, *, device: str | None = None
) -> Tensor:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n
        The number of rows.
    m
        The number of columns; ``n`` if not given.
    k
        Which diagonal: above the main one if positive, below it if negative; 0 by default.

    Returns
    -------
    A tensor of shape ``(n, m)``, on the current backend.

    Raises
    ------
    ValueError
        If a size is negative.

    Examples
    --------
    >>> gt.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> gt.eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if any_unknown(n, m, k) or makes_tables():
        return matrix_of("eye", n, m, k, dtype)
    return as_tensor(np.eye(n, m, k, dtype=number_dtype(dtype)))


@named
def identity(n: int, dtype: Any = None) -> Tensor:
    """Return the identity matrix: ones on the main diagonal, zeros elsewhere.

    Parameters
    ----------
    n
        The number of rows and columns.

    Returns
    -------
    A tensor of shape ``(n, n)``, on the current backend.

    Raises
    ------
    TypeError
        If ``n`` is not an integer, or ``dtype`` is not a dtype. For a copy of a tensor, as
        TensorFlow's ``tf.identity`` makes, use :func:`gradtape.copy`.
    ValueError
        If ``n`` is negative.

    Examples
    --------
    >>> gt.identity(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if isinstance(n, Operators) or np.ndim(n):
        raise TypeError(
            "identity: for the matrix write gradtape.identity(n) with an integer n, as in NumPy; "
            "to pass a tensor on as one of its own, as tf.identity does, write gradtape.copy(x)"
        )
    return eye(n, dtype=dtype)


_zeros = op(
    "zeros_like",
    lambda xp, x: xp.zeros_like(x),
    UnaryOp,
    gradients={"x": NONDIFF},
    infer=same_spec,
    batch="elementwise",
    reads="shapes",
    integers=lambda x: np.zeros(x.shape, int),
    doc="Return zeros of the shape and dtype of ``x``.",
)
_ones = op(
    "ones_like",
    lambda xp, x: xp.ones_like(x),
    UnaryOp,
    gradients={"x": NONDIFF},
    infer=same_spec,
    batch="elementwise",
    reads="shapes",
    integers=lambda x: np.ones(x.shape, int),
    doc="Return ones of the shape and dtype of ``x``.",
)


op(
    "size_value",
    lambda xp, like, *, value, dtype: xp.asarray(value, dtype=getattr(xp, dtype)),
    gradients={"like": NONDIFF},
    infer=lambda like, value, dtype: ((), np.dtype(dtype)),
    batch=lambda op, xs, batched, params: Shared(op.raw(row_of(xs[0]), **params)),
    doc="Return a number on the backend of ``like``; in a trace it may be an expression of sizes.",
)


def _made_like(like: Any, dtype: Any) -> Any:
    return like if dtype is None else ops["cast"](like, dtype=as_dtype(dtype).name)


@named
@placeable
def zeros_like(x: Any, dtype: Any = None, *, device: str | None = None) -> Tensor:
    """Return zeros of the shape of ``x``.

    Parameters
    ----------
    x
        A tensor, variable or array of any shape and dtype.
    dtype
        The result's dtype; that of ``x`` if not given.
    device
        The device, as ``tensor.device`` names it; that of ``x`` by default.

    Returns
    -------
    A tensor, not connected to ``x``: its gradient is ``None``.

    Examples
    --------
    >>> gt.zeros_like(gt.constant([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    return _made_like(_zeros(x), dtype)


@named
@placeable
def ones_like(x: Any, dtype: Any = None, *, device: str | None = None) -> Tensor:
    """Return ones of the shape of ``x``.

    Parameters
    ----------
    x
        A tensor, variable or array of any shape and dtype.
    dtype
        The result's dtype; that of ``x`` if not given.
    device
        The device, as ``tensor.device`` names it; that of ``x`` by default.

    Returns
    -------
    A tensor, not connected to ``x``: its gradient is ``None``.

    Examples
    --------
    >>> gt.ones_like(gt.constant([2.0, 3.0]), dtype="int32").tolist()
    [1, 1]
    """
    return _made_like(_ones(x), dtype)


@named
@placeable
def full_like(x: Any, fill_value: Any, dtype: Any = None, *, device: str | None = None) -> Tensor:
    """Return a tensor of the shape of ``x`` filled with one value.

    Parameters
    ----------
    x
        A tensor, variable or array of any shape and dtype.
    fill_value
        A number, or a tensor that broadcasts to the shape of ``x``; gradients reach it. It is cast
        to the result's dtype.
    dtype
        The result's dtype; that of ``x`` if not given.
    device
        The device, as ``tensor.device`` names it; that of ``x`` by default.

    Returns
    -------
    A tensor of the shape of ``x``, not connected to it.

    Raises
    ------
    ValueError
        If ``fill_value`` does not broadcast to the shape of ``x``.

    Examples
    --------
    >>> gt.full_like(gt.constant([1.0, 2.0]), 7.5).tolist()
    [7.5, 7.5]
    """
    return ops["broadcast_like"](fill_value, _made_like(_zeros(x), dtype))
