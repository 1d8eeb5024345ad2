"""Diagonals and triangles of matrices, and matrices made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Shared,
    Tensor,
    TensorSpec,
    as_size,
    as_tensor,
    check_fits_dtype,
    largest,
    on_device_of,
    ops,
    rank_of,
    row_of,
    same_size,
    sizes_differ,
    smallest,
)
from ..common.axes import leading, together
from ..common.dynamic_shapes import any_unknown, known_rank, table
from ..common.op_builders import named, op
from .creation import matrix_of, number_dtype
from .ranges import arange


def _on_diagonal(xp: Any, g: Any, rows: int, columns: int, offset: int) -> Any:
    """Return matrices of zeros with ``g`` on a diagonal."""
    before = max(0, -offset)
    batch, count = g.shape[:-1], g.shape[-1]
    gap = xp.zeros((*batch, before), dtype=g.dtype)
    rest = xp.zeros((*batch, rows - before - count), dtype=g.dtype)
    column = xp.expand_dims(xp.concat((gap, g, rest), axis=-1), axis=-1)
    return xp.where(xp.eye(rows, columns, k=offset) > 0, column, xp.zeros_like(column))


def _diagonal_kernel(xp: Any, x: Any, *, offset: int = 0) -> Any:
    if x.ndim < 2:
        raise ValueError("an array of at least two axes is needed")
    return xp.linalg.diagonal(x, offset=offset)


def _diagonal_spec(x: TensorSpec, *, offset: int) -> tuple[Any, Any]:
    if x.shape is None:
        return None, x.dtype
    if len(x.shape) < 2:
        raise ValueError(f"diagonal: at least two axes are needed, got shape {x.shape}")
    rows, columns = x.shape[-2:]
    if rows is None or columns is None:
        return (*x.shape[:-2], None), x.dtype
    count = smallest(rows + smallest(offset, 0), columns - largest(offset, 0))
    return (*x.shape[:-2], largest(count, 0)), x.dtype


def _diagonal_adjoint(xp: Any, g: Any, like: Any, *, offset: int = 0) -> Any:
    if not g.shape[-1]:
        return xp.zeros(like.shape, dtype=g.dtype)
    rows, columns = like.shape[-2:]
    return _on_diagonal(xp, g, rows, columns, offset)


def diag_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``diagonal_adjoint``: matrices are in the last two axes."""
    if not batched[0]:
        return Shared(op.raw(xs[0], row_of(xs[1]), **params))
    return op.raw(*together(xs, batched), **params)


_diagonal = op(
    "diagonal",
    _diagonal_kernel,
    gradients={"x": lambda g, x_like, offset: F.diagonal_adjoint(g, x_like, offset=offset)},
    infer=_diagonal_spec,
    holomorphic=True,
    batch=leading,
    jvp="linear",
    doc="Return a diagonal of the last two axes.",
)
op(
    "diagonal_adjoint",
    _diagonal_adjoint,
    gradients={"g": lambda g, offset: F.diagonal(g, offset=offset), "like": NONDIFF},
    infer=lambda g, like, offset: (like.shape, g.dtype),
    holomorphic=True,
    batch=diag_rule,
    jvp="linear",
    doc="Put ``g`` on a diagonal of zeros of the shape of ``like``.",
)
_diag = op(
    "diag",
    lambda xp, x, *, k=0: _diag_kernel(xp, x, k),
    gradients={"x": lambda g, k: F.diagonal(g, offset=k)},
    infer=lambda x, k: (
        None if x.shape is None else (*x.shape[:-1], *[_grown(x.shape[-1], k)] * 2),
        x.dtype,
    ),
    holomorphic=True,
    batch=leading,
    jvp="linear",
    doc="Return matrices with ``x`` on a diagonal.",
)


def _grown(size: int | None, k: int) -> int | None:
    return None if size is None else size + abs(k)


def _diag_kernel(xp: Any, x: Any, k: int) -> Any:
    size = x.shape[-1] + abs(k)
    return _on_diagonal(xp, x, size, size, k)


@named
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return the diagonal of the matrices in two axes of ``x``, as its last axis.

    Parameters
    ----------
    x
        A tensor of at least two axes, of any dtype.
    offset
        Which diagonal: above the main one if positive, below it if negative; 0 by default.
    axis1, axis2
        The axes of rows and columns; the first two by default.

    Returns
    -------
    A tensor of the dtype of ``x``, with the two axes replaced by a last one. It has size 0 for a
    diagonal beyond the corner.

    Raises
    ------
    ValueError
        If both axes are the same.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gt.diagonal(x).tolist()
    [1.0, 4.0]
    >>> gt.diagonal(x, offset=1).tolist()
    [2.0]
    """
    if (axis1, axis2) != (-2, -1):
        x = ops["moveaxis"](x, source=(axis1, axis2), destination=(-2, -1))
    return _diagonal(x, offset=as_size(offset, "diagonal"))


@named
def diag(v: Any, k: int = 0) -> Tensor:
    """Return a matrix with a vector ``v`` on diagonal ``k``, or that diagonal of a matrix ``v``.

    Parameters
    ----------
    v
        A vector of ``n`` elements, or a matrix; of any dtype.
    k
        Which diagonal: above the main one if positive, below it if negative; 0 by default.

    Returns
    -------
    A matrix of shape ``(n + abs(k), n + abs(k))``, or a vector; of the dtype of ``v``.

    Raises
    ------
    ValueError
        If ``v`` is neither a vector nor a matrix.

    Examples
    --------
    >>> gt.diag(gt.constant([1.0, 2.0])).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    >>> gt.diag(gt.constant([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [1.0, 4.0]
    """
    v = as_tensor(v)
    if known_rank(v, "diag") == 1:
        return _diag(v, k=as_size(k, "diag"))
    if v.ndim == 2:
        return _diagonal(v, offset=as_size(k, "diag"))
    raise ValueError(f"diag: a vector or matrix is needed, got shape {v.shape}")


@named
def diagflat(v: Any, k: int = 0) -> Tensor:
    """Return a matrix with the elements of the flattened ``v`` on diagonal ``k``, 0 elsewhere.

    Parameters
    ----------
    v
        A tensor of any shape and dtype, of n elements.

    Returns
    -------
    Tensor
        A matrix of shape ``(n + abs(k), n + abs(k))`` and the dtype of ``v``.

    Examples
    --------
    >>> gt.diagflat(gt.constant([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(ops["reshape"](as_tensor(v), shape=(-1,)), k)


@named
def fill_diagonal(x: Any, val: Any, wrap: bool = False) -> Tensor:
    """Return ``x`` with its main diagonal replaced; NumPy's function changes its argument.

    Parameters
    ----------
    x
        A tensor of at least two axes; if there are more, all of the same size.
    val
        A number or a tensor, whose elements fill the diagonal and are repeated if there are too
        few. It is cast to the dtype of ``x``.
    wrap
        Whether the diagonal of a tall matrix continues below, after an unchanged row.

    Returns
    -------
    A tensor of the shape and dtype of ``x``. Gradients reach ``x`` off the diagonal, and ``val`` on
    it.

    Raises
    ------
    ValueError
        If ``x`` has fewer than two axes, or more than two of different sizes, or ``val`` is empty.

    Examples
    --------
    >>> gt.fill_diagonal(gt.ones((2, 3)), 5.0).tolist()
    [[5.0, 1.0, 1.0], [1.0, 5.0, 1.0]]
    """
    x = as_tensor(x)
    rank = known_rank(x, "fill_diagonal")
    if rank < 2 or (rank > 2 and any(sizes_differ(n, x.shape[0]) for n in x.shape)):
        raise ValueError(
            "fill_diagonal: a matrix is needed, or more than two axes of one size, got shape "
            f"{x.shape}"
        )
    check_fits_dtype(val, x.dtype, "fill_diagonal")
    value = ops["reshape"](ops["cast_like"](on_device_of(val, x), x), shape=(-1,))
    (size,) = value.shape
    if same_size(size, 0):
        raise ValueError("fill_diagonal: val has no elements")
    places = table("diagonal", tuple(x.shape), bool(wrap), like=x)
    if not same_size(size, 1):
        (count,) = places.shape
        numbers = arange(count) if any_unknown(size, count) else np.arange(count)
        value = ops["take"](value, on_device_of(numbers % size, x), axis=0)
    flat = ops["reshape"](x, shape=(-1,)).at[places].set(value)
    return ops["reshape"](flat, shape=x.shape)


@named
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Return a matrix with ones on a diagonal and below, zeros above it.

    Parameters
    ----------
    N
        The number of rows.
    M
        The number of columns; ``N`` if not given.
    k
        The last diagonal with ones: above the main one if positive, below it if negative; 0 by
        default.

    Returns
    -------
    A tensor of shape ``(N, M)``.

    Examples
    --------
    >>> gt.tri(3, dtype="int64").tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    if any_unknown(N, M, k):
        return matrix_of("tri", N, M, k, dtype)
    return as_tensor(np.tri(N, M, k, dtype=number_dtype(dtype)))


def _triangle_shape(shape: Any, name: str) -> Any:
    if shape == ():
        raise TypeError(f"{name}: expected matrices or a vector, got shape ()")
    return shape * 2 if shape is not None and len(shape) == 1 else shape


def _triangle_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    (x,) = xs
    if len(_triangle_shape(x.shape and x.shape[1:], op.name) or ()) > rank_of(x, op) - 1:
        x = F.broadcast_like(F.expand_dims(x, axis=1), F.diag(x, k=0))
    return op.raw(x, **params)


def _triangle(name: str) -> Callable[..., Any]:
    """Make an op, and return its kernel; a vector is a square matrix of equal rows, as in NumPy."""

    def kernel(xp: Any, x: Any, *, k: int = 0) -> Any:
        shape = _triangle_shape(x.shape, name)
        return getattr(xp, name)(x if x.ndim > 1 else xp.broadcast_to(x, shape), k=k)

    op(
        name,
        kernel,
        gradients={"x": lambda g, k: F[name](g, k=k)},  # what the op clears, the gradient clears
        broadcasts=True,
        batch=_triangle_rule,
        jvp="linear",
        infer=lambda x, k: (_triangle_shape(x.shape, name), x.dtype),
        holomorphic=True,
        doc="Clear one triangle of matrices in the last two axes.",
    )
    return kernel


tril_kernel = _triangle("tril")
triu_kernel = _triangle("triu")


@named
def tril(x: Any, k: int = 0) -> Tensor:
    """Return matrices (the last two axes) with zeros above diagonal ``k``.

    Parameters
    ----------
    x
        Matrices of any dtype, of shape ``(..., m, n)``; a vector stands for a square matrix of
        equal rows.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of these matrices, with 0 above the diagonal.

    Raises
    ------
    TypeError
        If ``k`` is not an integer, or ``x`` has no axes.

    Examples
    --------
    >>> gt.tril(gt.ones((3, 3))).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    return ops["tril"](x, k=as_size(k, "tril"))


@named
def triu(x: Any, k: int = 0) -> Tensor:
    """Return matrices (the last two axes) with zeros below diagonal ``k``.

    Parameters
    ----------
    x
        Matrices of any dtype, of shape ``(..., m, n)``; a vector stands for a square matrix, each
        row of which it is.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of these matrices, with 0 below the diagonal.

    Raises
    ------
    TypeError
        If ``k`` is not an integer, or ``x`` has no axes.

    Examples
    --------
    >>> gt.triu(gt.ones((2, 3)), k=1).tolist()
    [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    """
    return ops["triu"](x, k=as_size(k, "triu"))
