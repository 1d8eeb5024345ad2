"""Linear systems and inverses, of matrices in the last two axes and of tensors.

The gradient rules are those of Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008), with ``solve`` instead of inverses.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ....core.extend import (
    F,
    Op,
    Tensor,
    TensorSpec,
    as_operands,
    as_tensor,
    broadcast_shapes,
    on_device_of,
    ops,
    rank_of,
    sizes_differ,
)
from ..common.axes import aligned, leading, together
from ..common.dynamic_shapes import as_columns, known_rank, like_columns
from ..common.op_builders import named, op
from .matrices import adjoint, inexact, sizes_of_matrices, square_shape, transposed


def _solve_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any) -> list[Any]:
    a, b = inputs
    gb = F.solve(adjoint(a), gs[0])
    ga = F.unbroadcast_like(-F.matmul(gb, adjoint(outputs[0])), a) if needed[0] else None
    return [ga, F.unbroadcast_like(gb, b) if needed[1] else None]


def _solve_spec(a: TensorSpec, b: TensorSpec) -> tuple[Any, Any]:
    dtype = inexact(np.result_type(a.dtype, b.dtype))
    shape = square_shape(a, "solve")
    if shape is None or b.shape is None:
        return None, dtype
    if len(b.shape) < 2 or sizes_differ(shape[-1], b.shape[-2]):
        raise ValueError(f"solve: matrices of shape {shape} do not fit sides of shape {b.shape}")
    batch = broadcast_shapes(shape[:-2], b.shape[:-2], op="solve") or ()
    return (*batch, *b.shape[-2:]), dtype


def _solve_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``solve`` and ``solve_triangular``."""
    (a, b), (ba, bb) = xs, batched
    if not ba and rank_of(a, op) == 2 == rank_of(b, op) - bb:
        # the examples' columns next to each other: one factorisation, and one gradient of a
        rows, (size, count) = b.shape[1], b.shape[::2]
        columns = F.reshape(F.swapaxes(b, axis1=0, axis2=1), shape=(rows, size * count))
        result = F.reshape(op.raw(a, columns, **params), shape=(rows, size, count))
        return F.swapaxes(result, axis1=0, axis2=1)
    if rank_of(b, op) - bb > 1:
        most = max(rank_of(a, op) - ba, rank_of(b, op) - bb)
        a, b = (aligned(x, most, op) if flag else x for x, flag in ((a, ba), (b, bb)))
        return op.raw(a, b, **params)
    if not ba and rank_of(a, op) == 2:  # one factorisation for all right-hand sides
        columns = op.raw(a, F.swapaxes(b, axis1=0, axis2=1), **params)
        return F.swapaxes(columns, axis1=0, axis2=1)
    a, b = together([a, b], [ba, bb])
    b = aligned(F.expand_dims(b, axis=-1), rank_of(a, op) - 1, op)
    return F.squeeze(op.raw(a, b, **params), axis=-1)


_solve = op(
    "solve",
    lambda xp, a, b: xp.linalg.solve(a, b),
    vjp=_solve_vjp,
    infer=_solve_spec,
    batch=_solve_rule,
    doc="Solve ``a @ x = b`` for matrices ``x``.",
)


@named
def solve(a: Any, b: Any) -> Tensor:
    """Return the solution ``x`` of ``a @ x = b``.

    Parameters
    ----------
    a
        Square matrices, of shape ``(..., n, n)``; integers become ``float64``.
    b
        A vector of shape ``(n,)``, or matrices of shape ``(..., n, k)``; batches broadcast.

    Returns
    -------
    Tensor
        The solution: vectors ``(n,)``, one per matrix, if ``b`` is a vector, otherwise matrices
        ``(..., n, k)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    ValueError
        If ``a`` is not square, or sizes do not match.

    Notes
    -----
    With the upstream gradient ``g``, that of ``b`` is ``gb = solve(a.mT, g)``, that of ``a`` is
    ``-gb @ x.mT`` (conjugated if complex).

    References
    ----------
    M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> gt.linalg.solve(gt.constant([[2.0, 0.0], [0.0, 4.0]]), gt.constant([2.0, 8.0])).tolist()
    [1.0, 2.0]
    """
    a, b = as_operands((a, b))
    return like_columns(_solve(a, as_columns(b)), b)


_inv = op(
    "inv",
    lambda xp, x: xp.linalg.inv(x),
    gradients={"x": lambda g, out: -F.matmul(F.matmul(transposed(out), g), transposed(out))},
    infer=lambda x: (square_shape(x, "inv"), inexact(x.dtype)),
    holomorphic=True,
    batch=leading,
    doc="Return the inverses of matrices.",
)


def inv(x: Any) -> Tensor:
    """Return the inverses of square matrices, of shape ``(..., n, n)``.

    Parameters
    ----------
    x
        Square matrices, of shape ``(..., n, n)``; integers become ``float64``.

    Returns
    -------
    Tensor
        The inverses, of the shape of ``x``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular, or not square.

    Notes
    -----
    With the inverse ``y`` and the upstream gradient ``g``, the gradient is ``-y.mT @ g @ y.mT``.

    References
    ----------
    M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> gt.linalg.inv(gt.constant([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return _inv(x)


# -- triangular systems ----------------------------------------------------------------------------


def _triangle_of(xp: Any, a: Any, lower: bool, unit_diagonal: bool) -> Any:
    strict = xp.tril(a, k=-1) if lower else xp.triu(a, k=1)
    if unit_diagonal:
        return strict + xp.eye(a.shape[-1], dtype=a.dtype)
    return xp.tril(a) if lower else xp.triu(a)


def _solve_triangular_vjp(
    gs: Any, inputs: Any, outputs: Any, needed: Any, *, lower: bool, unit_diagonal: bool
) -> list[Any]:
    a, b = inputs
    gb = F.solve_triangular(adjoint(a), gs[0], lower=not lower, unit_diagonal=unit_diagonal)
    ga = None
    if needed[0]:
        whole = F.unbroadcast_like(-F.matmul(gb, adjoint(outputs[0])), a)
        ga = F.tril(whole, k=-unit_diagonal) if lower else F.triu(whole, k=int(unit_diagonal))
    return [ga, F.unbroadcast_like(gb, b) if needed[1] else None]


def _solve_triangular_spec(
    a: TensorSpec, b: TensorSpec, lower: bool, unit_diagonal: bool
) -> tuple[Any, Any]:
    dtype = inexact(np.result_type(a.dtype, b.dtype))
    shape = square_shape(a, "solve_triangular")
    batch, rows, columns = sizes_of_matrices(b, "solve_triangular")
    if shape is None or batch is None:
        return None, dtype
    if sizes_differ(shape[-1], rows):
        raise ValueError(
            f"solve_triangular: matrices of shape {shape} do not fit sides of shape {b.shape}"
        )
    joined = broadcast_shapes(shape[:-2], batch, op="solve_triangular") or ()
    return (*joined, rows, columns), dtype


def solve_triangular_kernel(
    xp: Any, a: Any, b: Any, *, lower: bool = False, unit_diagonal: bool = False
) -> Any:
    return xp.linalg.solve(_triangle_of(xp, a, lower, unit_diagonal), b)


_solve_triangular = op(
    "solve_triangular",
    solve_triangular_kernel,
    vjp=_solve_triangular_vjp,
    infer=_solve_triangular_spec,
    batch=_solve_rule,
    doc="Solve ``a @ x = b``, reading only one triangle of ``a``.",
)


@named
def solve_triangular(a: Any, b: Any, lower: bool = False, unit_diagonal: bool = False) -> Tensor:
    """Return the solution ``x`` of ``a @ x = b`` for triangular ``a``.

    Parameters
    ----------
    a
        Square matrices ``(..., n, n)``, of which only one triangle is read; integers become
        ``float64``.
    b
        A vector ``(n,)``, or matrices ``(..., n, k)``; batches broadcast.
    lower
        Which triangle: the lower or the upper one (the default).
    unit_diagonal
        Treat the diagonal as ones, without reading it.

    Returns
    -------
    Tensor
        The solution: a vector ``(n,)`` per matrix for a vector, otherwise matrices ``(..., n, k)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If there is a 0 on the diagonal.
    ValueError
        If ``a`` is not square, or sizes do not fit.

    Notes
    -----
    The gradient of ``a`` is that of :func:`solve`, and 0 outside the triangle that is read.

    References
    ----------
    M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> a, b = gt.constant([[2.0, 1.0], [0.0, 4.0]]), gt.constant([4.0, 8.0])
    >>> gt.linalg.solve_triangular(a, b).tolist()
    [1.0, 2.0]
    """
    b, settings = as_tensor(b), {"lower": bool(lower), "unit_diagonal": bool(unit_diagonal)}
    return like_columns(_solve_triangular(a, as_columns(b), **settings), b)


# -- equations between tensors ---------------------------------------------------------------------


def _shape_of(x: Any, name: str) -> tuple[Any, ...]:
    known_rank(x, name)
    return tuple(x.shape)


@named
def tensorinv(x: Any, ind: int = 2) -> Tensor:
    """Return the inverse of a tensor as a linear map between tensors.

    Parameters
    ----------
    x
        A tensor whose first ``ind`` axes have as many elements as the others.
    ind
        How many axes the map's results have; 2 by default.

    Returns
    -------
    Tensor
        A tensor of shape ``x.shape[ind:] + x.shape[:ind]``:
        ``tensordot(tensorinv(x, ind), x, ind)`` is the identity map.

    Raises
    ------
    ValueError
        If ``ind`` is below 1.
    numpy.linalg.LinAlgError
        If the tensor is not a square map, or singular.

    Examples
    --------
    >>> gt.linalg.tensorinv(gt.reshape(gt.eye(6), (2, 3, 6))).shape
    (6, 2, 3)
    """
    count = operator.index(ind)
    if count < 1:
        raise ValueError(f"tensorinv: ind must be at least 1, got {ind}")
    x = as_tensor(x)
    shape = _shape_of(x, "tensorinv")
    rows, columns = shape[:count], shape[count:]
    if sizes_differ(prod(rows), prod(columns)):
        raise np.linalg.LinAlgError(
            f"tensorinv: the first {count} axes of shape {shape} must have as many elements as the "
            "others"
        )
    square = ops["reshape"](x, shape=(prod(rows), prod(columns)))
    return ops["reshape"](inv(square), shape=(*columns, *rows))


@named
def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Tensor:
    """Return ``x`` of ``tensordot(a, x, x.ndim) == b``.

    Parameters
    ----------
    a
        The coefficients, a tensor of shape ``b.shape + x.shape``.
    b
        The right-hand side.
    axes
        Axes of ``a`` to move to its end first.

    Returns
    -------
    Tensor
        A tensor of the shape of the last axes of ``a``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If there are not as many equations as unknowns, or they are singular.

    Examples
    --------
    >>> gt.linalg.tensorsolve(gt.reshape(2.0 * gt.eye(6), (2, 3, 6)), gt.ones((2, 3))).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    """
    a = as_tensor(a)
    b = on_device_of(b, a)
    if axes is not None:
        last = tuple(operator.index(n) for n in axes)
        a = ops["transpose"](a, axes=(*(n for n in range(a.ndim) if n not in last), *last))
    shape, size = _shape_of(a, "tensorsolve"), prod(_shape_of(b, "tensorsolve"))
    unknowns = shape[b.ndim :]
    if sizes_differ(prod(unknowns), size) or sizes_differ(prod(shape), size * size):
        raise np.linalg.LinAlgError(
            f"tensorsolve: coefficients of shape {shape} need as many unknowns as equations, "
            f"got b of shape {b.shape}"
        )
    square = ops["reshape"](a, shape=(size, size))
    x = solve(square, ops["reshape"](b, shape=(size,)))
    return ops["reshape"](x, shape=unknowns)
