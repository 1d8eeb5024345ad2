"""Traces and determinants. Except for ``trace``, matrices are in the last two axes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core.extend import F, Tensor, TensorSpec, kind_of, numpy_dtype
from ..common.axes import leading
from ..common.kernels import as_like, cast_to
from ..common.op_builders import named, op
from ..reductions.sums import sum as total
from ..shapes.diagonals import diagonal
from .matrices import adjoint, inexact, over_matrix, real_of, square_shape, transposed


@named
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """Return the sum along a diagonal of the matrices in two axes of ``x``, in ``dtype`` if given.

    :func:`gradtape.linalg.trace` takes the last two axes.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least two axes.
    offset
        How far above the main diagonal, if positive; below it if negative. 0 by default.
    axis1, axis2
        The axes of the rows and of the columns; the first two by default.
    dtype
        The dtype to sum in; by default that of ``x``, and NumPy's for sums of small integers.

    Returns
    -------
    Tensor
        A tensor of the shape of ``x`` without the two axes.

    Raises
    ------
    ValueError
        If the two axes are the same.

    Notes
    -----
    The gradient is the upstream gradient on the diagonal, and 0 elsewhere.

    Examples
    --------
    >>> gt.trace(gt.constant([[1, 2], [3, 4]])).item()
    5
    """
    return total(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


# -- determinants ----------------------------------------------------------------------------------


def _factors(xp: Any, x: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return ``sign, u, s, v, others`` of square matrices ``u @ diag(s) @ adjoint(v)``.

    ``sign`` is the determinant of ``u`` times that of ``adjoint(v)``, over matrices; ``others``
    are the products of all singular values but one. ``u`` and ``v`` are conjugated.
    """
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    sign = xp.linalg.det(u) * xp.linalg.det(vh)
    if kind_of(x.dtype) == "c":
        u, vh = xp.conj(u), xp.conj(vh)
    # row i: all singular values but the i-th, which is replaced by 1
    same = xp.eye(x.shape[-1], dtype=s.dtype) > 0
    rows = xp.where(same, xp.ones_like(s[..., :1, None]), xp.expand_dims(s, axis=-2))
    others = xp.prod(rows, axis=-1)
    return sign[..., None, None], u, s, xp.matrix_transpose(vh), others


def cofactor_kernel(xp: Any, x: Any) -> Any:
    """Return ``det(x) * inv(x).T`` from the singular values, which works for singular ``x`` too."""
    if x.shape[-1] == 0:
        return x
    sign, u, _, v, others = _factors(xp, x)
    return sign * xp.matmul(u * xp.expand_dims(others, axis=-2), xp.matrix_transpose(v))


def _but_two(xp: Any, s: Any, others: Any) -> Any:
    """Return, for each pair, the product of all but these two of descending ``s``; 0 for no pair.

    The products of all but one are divided by the larger of the two. If it is 0, so is the product,
    except perhaps for the last two.
    """
    size = s.shape[-1]
    places = xp.arange(size)
    above = places[:, None] < places
    nothing = s == 0
    inverse = xp.where(nothing, s, 1 / xp.where(nothing, xp.ones_like(s), s))
    pairs = xp.expand_dims(inverse, axis=-1) * xp.expand_dims(others, axis=-2)
    last = above & (places[:, None] == size - 2)
    pairs = xp.where(last, xp.prod(s[..., : max(size - 2, 0)], axis=-1)[..., None, None], pairs)
    pairs = xp.where(above, pairs, xp.zeros_like(pairs))
    return pairs + xp.matrix_transpose(pairs)


def _cofactor_adjoint_kernel(xp: Any, g: Any, x: Any) -> Any:
    """Send ``g`` through the derivative of the cofactors, for singular matrices too.

    Cofactors of a product are products of cofactors, so the derivative at a diagonal matrix
    suffices. That of element ``i, i`` is the sum over ``j`` of the products of all but two times
    element ``j, j``. That of ``i, j`` is minus such a product times element ``j, i``.
    """
    dtype = np.result_type(numpy_dtype(g.dtype), numpy_dtype(x.dtype))
    if x.shape[-1] == 0:
        return cast_to(xp, x, dtype)
    sign, u, s, v, others = _factors(xp, cast_to(xp, x, dtype))
    pairs = _but_two(xp, s, others)
    if dtype.kind == "c":
        pairs = cast_to(xp, pairs, dtype)
    inner = xp.matmul(xp.matrix_transpose(u), xp.matmul(g, v))
    same, nothing = xp.eye(x.shape[-1], dtype=s.dtype) > 0, xp.zeros_like(inner)
    diagonal = xp.sum(xp.where(same, inner, nothing), axis=-1, keepdims=True)
    on = xp.where(same, xp.matmul(pairs, diagonal), nothing)
    inner = on - pairs * xp.matrix_transpose(inner)
    return sign * xp.matmul(xp.matmul(u, inner), xp.matrix_transpose(v))


def _cofactor_slope_rule(d: Any, g: Any, x: Any) -> Any:
    # of d * (along - across) / det, with along = sum(g * c) * c and across = c @ g.T @ c
    c, both = F.cofactor(x), (-2, -1)
    to_g = F.sum(g * c, axis=both, keepdims=True)
    to_d = F.sum(d * c, axis=both, keepdims=True)
    turn = transposed(c)
    through = F.matmul(F.matmul(d, turn), g) + F.matmul(F.matmul(g, turn), d)
    value = F.sum(d * F.cofactor_adjoint(g, x), axis=both, keepdims=True)
    inner = F.cofactor_adjoint(to_g * d + to_d * g - through, x)
    return as_like((inner - value * c) / over_matrix(F.det(x)), x)


def _number_per_matrix(x: TensorSpec, name: str) -> tuple[Any, Any]:
    shape = square_shape(x, name)
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
    cofactor_kernel,
    gradients={"x": lambda g, x: as_like(F.cofactor_adjoint(g, x), x)},
    infer=lambda x: (square_shape(x, "cofactor"), x.dtype),
    holomorphic=True,
    batch=leading,
    doc="Return the matrices of cofactors: the derivative of the determinant.",
)
op(
    "cofactor_adjoint",
    _cofactor_adjoint_kernel,
    gradients={
        "g": lambda d, g_like, x: as_like(F.cofactor_adjoint(d, x), g_like),
        "x": _cofactor_slope_rule,
    },
    infer=lambda g, x: (square_shape(x, "cofactor_adjoint"), np.result_type(g.dtype, x.dtype)),
    holomorphic=True,
    batch=leading,
    doc="Send a gradient of ``cofactor`` back to its matrices; for each ``x`` it is self-adjoint.",
)


def det(x: Any) -> Tensor:
    """Return the determinants of square matrices, of shape ``(..., n, n)``.

    Parameters
    ----------
    x
        Square matrices, of shape ``(..., n, n)``; integers become ``float64``.

    Returns
    -------
    Tensor
        The determinants, of shape ``(...)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square.

    Notes
    -----
    The gradient, the matrix of cofactors, is correct for singular matrices too, and so is the
    second derivative. The third divides by the determinant, and is nan or infinite there.

    References
    ----------
    M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> gt.linalg.det(gt.constant([[2.0, 0.0], [0.0, 4.0]])).item()
    8.0
    """
    return _det(x)


def _slogdet_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any) -> list[Any]:
    (x,), (sign, _), (to_sign, to_logarithm) = inputs, outputs, gs
    try:
        inverse = adjoint(F.inv(x))
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            "slogdet: no gradient at a singular matrix, where the logarithm is -inf; "
            "differentiate det, or add a small multiple of the identity"
        ) from error
    if x.dtype.kind != "c":
        return [over_matrix(to_logarithm) * inverse]  # the sign is constant
    # with t = trace(inv(x) @ dx): the logarithm changes by Re(t), the sign by 1j * Im(t) * sign
    turn = F.imag(to_sign * F.conj(sign))
    return [over_matrix(to_logarithm + turn * 1j) * inverse]


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
    """The result of :func:`slogdet`."""

    sign: Any
    logabsdet: Any


def slogdet(x: Any) -> SlogdetResult:
    """Return the ``sign`` of determinants, and the logarithm ``logabsdet`` of their absolute value.

    Parameters
    ----------
    x
        Square matrices, of shape ``(..., n, n)``; integers become ``float64``.

    Returns
    -------
    sign : Tensor
        1, -1, or 0 for singular matrices; of absolute value 1 if complex. Of shape ``(...)``.
    logabsdet : Tensor
        The natural logarithm, real, of shape ``(...)``; ``-inf`` for singular matrices.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square. When differentiating, if one is singular.

    Notes
    -----
    For real matrices the sign is constant and has the gradient 0. For complex ones it is a number
    of absolute value 1, and gradients flow through it. Singular matrices have no gradient.

    References
    ----------
    M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> sign, logarithm = gt.linalg.slogdet(gt.constant([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign.item(), logarithm.item()
    (-1.0, 0.0)
    """
    return SlogdetResult(*_slogdet(x))
