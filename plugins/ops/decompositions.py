"""Linear systems, determinants and the Cholesky factor; matrices are in the last two axes.

The gradient rules are those of Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008), with ``solve`` in place of inverses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.convert import among
from ...core.extend import F, TensorSpec, broadcast_shapes, ops
from .batching import leading
from .batching_products import solve_rule
from .families import kind_of, named, op
from .indexing import diagonal
from .matrices import adjoint, inexact, over_matrix, real_of, square, transposed
from .ranks import as_columns, like_columns

__all__ = ["cholesky", "det", "inv", "slogdet", "solve", "trace"]


@named
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return the sum along a diagonal of the matrices in two axes of ``x``."""
    return ops["sum"](diagonal(x, offset, axis1, axis2), axis=-1)


# -- linear systems --------------------------------------------------------------------------------


def _solve_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any) -> list[Any]:
    a, b = inputs
    gb = F.solve(adjoint(a), gs[0])
    ga = F.unbroadcast_like(-F.matmul(gb, adjoint(outputs[0])), a) if needed[0] else None
    return [ga, F.unbroadcast_like(gb, b) if needed[1] else None]


def _solve_spec(a: TensorSpec, b: TensorSpec) -> tuple[Any, Any]:
    dtype = inexact(np.result_type(a.dtype, b.dtype))
    shape = square(a, "solve")
    if shape is None or b.shape is None:
        return None, dtype
    if len(b.shape) < 2 or (shape[-1] != b.shape[-2] and None not in (shape[-1], b.shape[-2])):
        raise ValueError(f"solve: matrices of shape {shape} do not fit sides of shape {b.shape}")
    batch = broadcast_shapes(shape[:-2], b.shape[:-2], op="solve") or ()
    return (*batch, *b.shape[-2:]), dtype


_solve = op(
    "solve",
    lambda xp, a, b: xp.linalg.solve(a, b),
    vjp=_solve_vjp,
    infer=_solve_spec,
    batch=solve_rule,
    doc="Solve ``a @ x = b`` for matrices ``x``.",
)


@named
def solve(a: Any, b: Any) -> Any:
    """Return the solution ``x`` of ``a @ x = b``.

    Parameters
    ----------
    a
        Square matrices, of shape ``(..., n, n)``.
    b
        A vector of shape ``(n,)``, or matrices of shape ``(..., n, k)``; batches broadcast.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    ValueError
        If ``a`` is not square, or sizes do not fit.
    """
    a, b = among((a, b))
    return like_columns(_solve(a, as_columns(b)), b)


_inv = op(
    "inv",
    lambda xp, x: xp.linalg.inv(x),
    gradients={"x": lambda g, out: -F.matmul(F.matmul(transposed(out), g), transposed(out))},
    infer=lambda x: (square(x, "inv"), inexact(x.dtype)),
    holomorphic=True,
    batch=leading,
    doc="Return the inverses of matrices.",
)


def inv(x: Any) -> Any:
    """Return the inverses of square matrices, of shape ``(..., n, n)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    """
    return _inv(x)


# -- determinants ----------------------------------------------------------------------------------


def _cofactor_kernel(xp: Any, x: Any) -> Any:
    """Return ``det(x) * inv(x).T`` from the singular values, so for singular ``x`` too."""
    size = x.shape[-1]
    if size == 0:
        return x
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    sign = xp.linalg.det(u) * xp.linalg.det(vh)
    if kind_of(x.dtype) == "c":
        u, vh = xp.conj(u), xp.conj(vh)
    # row i: all singular values but the i-th, which is replaced by 1
    same = xp.eye(size, dtype=s.dtype) > 0
    others = xp.where(same, xp.ones_like(s[..., :1, None]), xp.expand_dims(s, axis=-2))
    products = xp.prod(others, axis=-1)
    scaled = u * xp.expand_dims(products, axis=-2)
    return sign[..., None, None] * xp.matmul(scaled, vh)


def _cofactor_rule(g: Any, x: Any, out: Any) -> Any:
    along = F.sum(g * out, axis=(-2, -1), keepdims=True) * out
    across = F.matmul(F.matmul(out, transposed(g)), out)
    return (along - across) / over_matrix(F.det(x))


def _number_per_matrix(x: TensorSpec, name: str) -> tuple[Any, Any]:
    shape = square(x, name)
    return (None if shape is None else shape[:-2]), inexact(x.dtype)


_det = op(
    "det",
    lambda xp, x: xp.linalg.det(x),
    gradients={"x": lambda g, x: over_matrix(g) * F.cofactor(x)},
    infer=lambda x: _number_per_matrix(x, "det"),
    holomorphic=True,
    batch=leading,
    doc="Return the determinants of matrices.",
)
op(
    "cofactor",
    _cofactor_kernel,
    gradients={"x": _cofactor_rule},
    infer=lambda x: (square(x, "cofactor"), x.dtype),
    holomorphic=True,
    batch=leading,
    doc="Return the matrices of cofactors: the derivative of the determinant.",
)


def det(x: Any) -> Any:
    """Return the determinants of square matrices, of shape ``(..., n, n)``.

    Notes
    -----
    The gradient, the matrix of cofactors, is right for singular matrices too. The second
    derivative divides by the determinant, and is nan or infinite there.
    """
    return _det(x)


def _slogdet_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any) -> list[Any]:
    (x,), (sign, _), (to_sign, to_logarithm) = inputs, outputs, gs
    if x.dtype.kind != "c":
        return [over_matrix(to_logarithm) * transposed(F.inv(x))]  # the sign is constant
    # with t = trace(inv(x) @ dx): the logarithm changes by Re(t), the sign by 1j * Im(t) * sign
    turn = F.imag(to_sign * F.conj(sign))
    return [over_matrix(to_logarithm + turn * 1j) * adjoint(F.inv(x))]


_slogdet = op(
    "slogdet",
    lambda xp, x: tuple(xp.linalg.slogdet(x)),
    vjp=_slogdet_vjp,
    infer=lambda x: [
        _number_per_matrix(x, "slogdet"),
        (_number_per_matrix(x, "slogdet")[0], real_of(x.dtype)),
    ],
    batch=leading,
    doc="Return the sign and the logarithm of the absolute value of determinants.",
)


class SlogdetResult(NamedTuple):
    """What :func:`slogdet` returns."""

    sign: Any
    logabsdet: Any


def slogdet(x: Any) -> SlogdetResult:
    """Return the ``sign`` of determinants, and the logarithm ``logabsdet`` of their absolute value.

    Parameters
    ----------
    x
        Square matrices, of shape ``(..., n, n)``.

    Notes
    -----
    For real matrices the sign is constant, and has the gradient 0. For complex ones it is a number
    of absolute value 1, through which gradients pass as well.
    """
    return SlogdetResult(*_slogdet(x))


# -- Cholesky --------------------------------------------------------------------------------------


def _cholesky_rule(g: Any, out: Any) -> Any:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10
    product = F.matmul(adjoint(out), g)
    halved = (F.tril(product, k=0) + F.tril(product, k=-1)) * 0.5
    left = F.solve(adjoint(out), halved)
    both = adjoint(F.solve(adjoint(out), adjoint(left)))
    return (both + adjoint(both)) * 0.5


_cholesky = op(
    "cholesky",
    lambda xp, x: xp.linalg.cholesky(x),
    gradients={"x": _cholesky_rule},
    infer=lambda x: (square(x, "cholesky"), inexact(x.dtype)),
    batch=leading,
    doc="Return the lower triangular factors of positive definite matrices.",
)


def cholesky(x: Any) -> Any:
    """Return lower triangular matrices ``L`` with ``L @ L.T == x`` (conjugated if complex).

    Parameters
    ----------
    x
        Symmetric positive definite matrices, ``(..., n, n)``; only their lower triangle is read.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite.

    Notes
    -----
    The gradient is symmetric: it is that of the symmetric matrix, shared between both triangles.
    """
    return _cholesky(x)
