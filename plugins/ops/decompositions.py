"""Norms, linear systems, determinants and the Cholesky factor; matrices are in the last two axes.

The gradient rules are those of Giles, "An extended collection of matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008), with ``solve`` in place of inverses.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ...core.convert import as_tensor
from ...core.extend import F, TensorSpec, broadcast_shapes, ops
from .families import as_axis, kind_of, op, reduced_shape
from .indexing import diagonal

__all__ = ["cholesky", "det", "inv", "norm", "slogdet", "solve", "trace"]


def _t(x: Any) -> Any:
    """Return the transpose of matrices."""
    return F.swapaxes(x, axis1=-1, axis2=-2)


def _h(x: Any) -> Any:
    """Return the conjugate transpose of matrices."""
    return F.conj(_t(x)) if x.dtype.kind == "c" else _t(x)


def _over_matrix(g: Any) -> Any:
    """Return numbers, one per matrix, so that they broadcast with the matrices."""
    return F.expand_dims(g, axis=(-2, -1))


def _inexact(dtype: Any) -> Any:
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def _square(x: TensorSpec, name: str) -> Any:
    """Return the shape of square matrices; raise if they are not."""
    shape = x.shape
    if shape is not None:
        square = len(shape) > 1 and (shape[-1] == shape[-2] or None in shape[-2:])
        if not square:
            raise ValueError(f"{name}: square matrices are needed, got shape {shape}")
    return shape


# -- norms -----------------------------------------------------------------------------------------


def _norm_kernel(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    squares = xp.real(x * xp.conj(x)) if kind_of(x.dtype) == "c" else x * x
    return xp.sqrt(xp.sum(squares, axis=axis, keepdims=keepdims, dtype=squares.dtype))


def _norm_rule(g: Any, x: Any, out: Any, axis: Any, keepdims: bool) -> Any:
    if axis is not None and not keepdims:
        g, out = F.expand_dims(g, axis=axis), F.expand_dims(out, axis=axis)
    # where the norm is 0, so is x: dividing by 1 gives the subgradient 0 instead of nan
    return x * (g / F.where(F.equal(out, 0), 1.0, out))


_norm = op(
    "norm",
    _norm_kernel,
    gradients={"x": _norm_rule},
    infer=lambda x, axis, keepdims: (
        reduced_shape(x.shape, axis, keepdims, "norm"),
        np.empty(0, _inexact(x.dtype)).real.dtype,
    ),
    doc="Return the Euclidean norm over axes.",
)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return a norm.

    Parameters
    ----------
    x
        A tensor of any shape.
    ord
        ``None``, ``"euclidean"`` or ``"fro"``: the root of the sum of squares. A number p, or
        ``inf`` or ``-inf``: the vector norm ``sum(abs(x)**p) ** (1/p)`` or its limit. For matrices
        (two axes, or a matrix without ``axis``) 1 and ``inf`` are the largest column and row sums.
    axis
        An axis, or a pair of axes for matrices; all by default.
    keepdims
        Keep the axes with size 1.

    Raises
    ------
    ValueError
        If there is no such norm of the axes given, or it is one that gradtape does not have.

    Notes
    -----
    The gradient of the Euclidean norm at 0 is 0, a subgradient.
    """
    x = as_tensor(x)
    axis = as_axis(axis, "norm")
    if ord is None or ord in ("euclidean", "fro"):
        return _norm(x, axis=axis, keepdims=bool(keepdims))
    axes = axis if isinstance(axis, tuple) else (axis,)
    if axis is None:
        axes = tuple(range(x.ndim))
    if isinstance(ord, str) or len(axes) not in (1, 2):
        raise ValueError(f"norm: ord={ord!r} over axes {axis} of shape {x.shape} is no norm")
    sizes = ops["abs"](x)
    if len(axes) == 2:
        if ord not in (1, inf):
            raise ValueError(f"norm: of matrices, ord must be 'fro', 1 or inf, got {ord!r}")
        inner, outer_ = axes if ord == 1 else axes[::-1]
        totals = ops["sum"](sizes, axis=inner, keepdims=True)
        largest = ops["max"](totals, axis=outer_, keepdims=True)
        return largest if keepdims else ops["squeeze"](largest, axis=axes)
    (along,) = axes
    if ord in (inf, -inf):
        return ops["max" if ord > 0 else "min"](sizes, axis=along, keepdims=bool(keepdims))
    if ord == 2:
        return _norm(x, axis=along, keepdims=bool(keepdims))
    if ord == 1:
        return ops["sum"](sizes, axis=along, keepdims=bool(keepdims))
    if ord == 0:
        raise ValueError("norm: ord=0 counts elements and has no gradient; use count_nonzero")
    powers = ops["sum"](ops["power"](sizes, ord), axis=along, keepdims=bool(keepdims))
    return ops["power"](powers, 1.0 / ord)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return the sum along a diagonal of the matrices in two axes of ``x``."""
    return ops["sum"](diagonal(x, offset, axis1, axis2), axis=-1)


# -- linear systems --------------------------------------------------------------------------------


def _solve_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any) -> list[Any]:
    a, b = inputs
    gb = F.solve(_h(a), gs[0])
    ga = F.unbroadcast_like(-F.matmul(gb, _h(outputs[0])), a) if needed[0] else None
    return [ga, F.unbroadcast_like(gb, b) if needed[1] else None]


def _solve_spec(a: TensorSpec, b: TensorSpec) -> tuple[Any, Any]:
    dtype = _inexact(np.result_type(a.dtype, b.dtype))
    shape = _square(a, "solve")
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
    doc="Solve ``a @ x = b`` for matrices ``x``.",
)


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
    b = as_tensor(b)
    if b.shape is not None and len(b.shape) == 1:
        column = _solve(a, ops["expand_dims"](b, axis=-1))
        return ops["squeeze"](column, axis=-1)
    return _solve(a, b)


_inv = op(
    "inv",
    lambda xp, x: xp.linalg.inv(x),
    gradients={"x": lambda g, out: -F.matmul(F.matmul(_t(out), g), _t(out))},
    infer=lambda x: (_square(x, "inv"), _inexact(x.dtype)),
    holomorphic=True,
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
    across = F.matmul(F.matmul(out, _t(g)), out)
    return (along - across) / _over_matrix(F.det(x))


def _number_per_matrix(x: TensorSpec, name: str) -> tuple[Any, Any]:
    shape = _square(x, name)
    return (None if shape is None else shape[:-2]), _inexact(x.dtype)


_det = op(
    "det",
    lambda xp, x: xp.linalg.det(x),
    gradients={"x": lambda g, x: _over_matrix(g) * F.cofactor(x)},
    infer=lambda x: _number_per_matrix(x, "det"),
    holomorphic=True,
    doc="Return the determinants of matrices.",
)
op(
    "cofactor",
    _cofactor_kernel,
    gradients={"x": _cofactor_rule},
    infer=lambda x: (_square(x, "cofactor"), x.dtype),
    holomorphic=True,
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
    (x,) = inputs
    if x.dtype.kind == "c":
        raise TypeError(
            f"slogdet: no gradient for complex matrices (dtype {x.dtype}); use det, or split them"
        )
    return [_over_matrix(gs[1]) * _t(F.inv(x))]  # the sign is constant


_slogdet = op(
    "slogdet",
    lambda xp, x: tuple(xp.linalg.slogdet(x)),
    vjp=_slogdet_vjp,
    shapes_only=("out",),
    infer=lambda x: [
        _number_per_matrix(x, "slogdet"),
        (_number_per_matrix(x, "slogdet")[0], np.empty(0, _inexact(x.dtype)).real.dtype),
    ],
    doc="Return the sign and the logarithm of the absolute value of determinants.",
)


def slogdet(x: Any) -> tuple[Any, Any]:
    """Return the sign of the determinants, and the logarithm of their absolute value.

    Parameters
    ----------
    x
        Square matrices, of shape ``(..., n, n)``. Complex ones have no gradient.
    """
    sign, logarithm = _slogdet(x)
    return sign, logarithm


# -- Cholesky --------------------------------------------------------------------------------------


def _cholesky_rule(g: Any, out: Any) -> Any:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10
    product = F.matmul(_h(out), g)
    halved = (F.tril(product, k=0) + F.tril(product, k=-1)) * 0.5
    left = F.solve(_h(out), halved)
    both = _h(F.solve(_h(out), _h(left)))
    return (both + _h(both)) * 0.5


_cholesky = op(
    "cholesky",
    lambda xp, x: xp.linalg.cholesky(x),
    gradients={"x": _cholesky_rule},
    infer=lambda x: (_square(x, "cholesky"), _inexact(x.dtype)),
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
