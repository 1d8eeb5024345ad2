"""The Cholesky, QR and singular value decompositions; matrices are in the last two axes.

The rules are for complex matrices in TensorFlow's convention, which includes real ones. A factor
may not be a differentiable function of the matrix. The rules are correct for functions that do not
depend on the sign or phase of a vector, which LAPACK chooses. At equal singular values, see the
module ``matrices``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core.extend import F, Tensor, TensorSpec, as_tensor, deriving, ops, same_size, sizes_differ
from ..common.axes import leading
from ..common.op_builders import named, op
from .eigenvalues import eigh, eigvalsh
from .matmul import matmul
from .matrices import (
    adjoint,
    as_inexact,
    conjugate_transpose,
    hermitian_from_lower,
    inexact,
    of_values,
    on_diagonal,
    over_columns,
    over_rows,
    real_of,
    separated,
    sizes_of_matrices,
    smaller_size,
    square_shape,
    takes_none,
    with_sizes,
)

# -- Cholesky --------------------------------------------------------------------------------------


def _cholesky_rule(g: Any, out: Any) -> Any:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10
    product = F.matmul(adjoint(out), g)
    halved = (F.tril(product, k=0) + F.tril(product, k=-1)) * 0.5
    upper = adjoint(out)
    left = F.solve_triangular(upper, halved, lower=False, unit_diagonal=False)
    both = F.solve_triangular(upper, adjoint(left), lower=False, unit_diagonal=False)
    return (both + adjoint(both)) * 0.5


_cholesky = op(
    "cholesky",
    lambda xp, x: xp.linalg.cholesky(x),
    gradients={"x": _cholesky_rule},
    infer=lambda x: (square_shape(x, "cholesky"), inexact(x.dtype)),
    batch=leading,
    doc="Return the lower triangular factors of positive definite matrices.",
)


@named
def cholesky(x: Any, upper: bool = False) -> Tensor:
    """Return lower triangular matrices ``L`` with ``L @ L.T == x`` (conjugated if complex).

    Parameters
    ----------
    x
        Symmetric positive definite matrices, ``(..., n, n)``; only their lower triangle is read.
        Integers become ``float64``.
    upper
        Read the upper triangle, and return upper triangular ``U`` with ``U.T @ U == x``.

    Returns
    -------
    Tensor
        Triangular matrices of the shape of ``x``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite, or not square.

    Notes
    -----
    The gradient is symmetric: it is the gradient of a symmetric matrix, shared between both
    triangles.

    References
    ----------
    I. Murray, "Differentiation of the Cholesky decomposition", 2016, equation 10.

    Examples
    --------
    >>> gt.linalg.cholesky(gt.constant([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    x = as_tensor(x)
    if not upper or (x.shape is not None and len(x.shape) < 2):  # which the op refuses
        return _cholesky(x)
    return conjugate_transpose(_cholesky(conjugate_transpose(x)))


# -- QR --------------------------------------------------------------------------------------------


class QRResult(NamedTuple):
    """The result of :func:`qr`."""

    Q: Any
    R: Any


def _qr_spec(x: TensorSpec, mode: str) -> list[tuple[Any, Any]]:
    batch, rows, columns = sizes_of_matrices(x, "qr")
    inner = rows if mode == "complete" else smaller_size(rows, columns)
    dtype = inexact(x.dtype)
    return [(with_sizes(batch, rows, inner), dtype), (with_sizes(batch, inner, columns), dtype)]


def _qr_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, *, mode: str) -> list[Any]:
    # Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2010)
    (x,), (gq, gr), (q, r) = inputs, gs, outputs
    _, rows, columns = sizes_of_matrices(x, "qr")
    if mode == "complete" and sizes_differ(rows, columns):
        raise ValueError(
            f"qr: no gradient for the complete factors of matrices of shape {x.shape}, whose last "
            "columns are any basis; use mode='reduced'"
        )
    if rows is not None and columns is not None and (rows < columns) is True:
        raise ValueError(
            f"qr: no gradient for matrices of shape {x.shape} in a trace that does not know that "
            "they are wider than high; give the function's input_signature their sizes"
        )
    both = hermitian_from_lower(F.matmul(r, adjoint(gr)) - F.matmul(adjoint(gq), q))
    right = gq + F.matmul(q, both)
    try:
        return [adjoint(F.solve(r, adjoint(right)))]
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            "qr: no gradient for matrices whose columns are dependent, or more than their rows "
            f"in a trace that does not know it ({error})"
        ) from error


_qr = op(
    "qr",
    lambda xp, x, *, mode="reduced": tuple(xp.linalg.qr(x, mode=mode)),
    vjp=_qr_vjp,
    infer=_qr_spec,
    batch=leading,
    doc="Factor matrices into orthonormal columns and a triangular matrix.",
)


@named
def qr(a: Any, mode: str = "reduced") -> Any:
    """Return orthonormal columns ``q`` and upper triangular ``r`` with ``q @ r == a``.

    Parameters
    ----------
    a
        Matrices, of shape ``(..., m, n)``; integers become ``float64``.
    mode
        ``"reduced"`` (the default): q has ``min(m, n)`` columns. ``"complete"``: it has m. ``"r"``:
        only r.

    Returns
    -------
    Q : Tensor
        Orthonormal columns, ``(..., m, k)``; left out with ``mode="r"``.
    R : Tensor
        Upper triangular matrices, ``(..., k, n)``.

    Raises
    ------
    ValueError
        If the mode is another. When differentiating, if a "complete" factor has more columns than
        ``a``, because these are any basis of the rest of the space.
    numpy.linalg.LinAlgError
        If there are no two axes. When differentiating, if the first columns of ``a`` are dependent.

    Notes
    -----
    In a trace that does not know the sizes, gradients need ``m >= n``.

    References
    ----------
    S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2010.

    Examples
    --------
    >>> q, r = gt.linalg.qr(gt.ones((3, 2)) + gt.eye(3, 2))
    >>> q.shape, r.shape
    ((3, 2), (2, 2))
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete' or 'r', got {mode!r}")
    a = as_inexact(a)
    _, rows, columns = sizes_of_matrices(a, "qr")
    if mode == "r":
        return qr(a)[1]
    if rows is not None and (rows >= columns) is not True:
        # the first columns give q; r is q's view of the others, of which there may be none
        left, right = a[..., :rows], a[..., rows:]
        q, r = _qr(left, mode=mode)
        return QRResult(q, ops["concatenate"](r, matmul(conjugate_transpose(q), right), axis=-1))
    return QRResult(*_qr(a, mode=mode))


# -- singular values -------------------------------------------------------------------------------


class SVDResult(NamedTuple):
    """The result of :func:`svd`."""

    U: Any
    S: Any
    Vh: Any


def _svd_spec(x: TensorSpec, full_matrices: bool) -> list[tuple[Any, Any]]:
    batch, rows, columns = sizes_of_matrices(x, "svd")
    few, dtype = smaller_size(rows, columns), inexact(x.dtype)
    return [
        (with_sizes(batch, rows, rows if full_matrices else few), dtype),
        (with_sizes(batch, few), real_of(x.dtype)),
        (with_sizes(batch, columns if full_matrices else few, columns), dtype),
    ]


def _inverse(s: Any) -> Any:
    """Return reciprocals, and 0 for 0."""
    nothing = F.equal(s, 0)
    return F.where(nothing, 0.0, 1.0 / F.where(nothing, 1.0, s))


def _may_be_wider(u: Any, vh: Any) -> bool:
    """Return whether one of the square factors may have more vectors than singular values."""
    return u.shape is None or vh.shape is None or not same_size(u.shape[-1], vh.shape[-1])


def _is_square(x: Any) -> bool:
    """Return whether matrices are known to be square."""
    return x.shape is not None and same_size(*x.shape[-2:])


def _skew(x: Any) -> Any:
    return x - adjoint(x)


@takes_none
def _svd_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, *, full_matrices: bool) -> list[Any]:
    # Townsend, "Differentiating the singular value decomposition" (2016); with complex phases as
    # in Wan and Zhang, "Automatic differentiation for complex valued SVD" (2019)
    (u, s, vh), both = outputs, gs[1] is not None and (gs[0] is not None or gs[2] is not None)
    if gs[0] is None and gs[2] is None:
        with of_values() as is_turned:
            u, _, vh = F.svd(inputs[0], full_matrices=full_matrices) if is_turned else outputs
    gu, gs_, gvh = (F.zeros_like(y) if g is None else g for g, y in zip(gs, outputs, strict=True))
    extra = 0.0
    if full_matrices and _may_be_wider(u, vh):
        # vectors of no singular value move only against the others, to stay at right angles
        all_u, all_v = F.matmul(u, adjoint(gu)), F.matmul(adjoint(gvh), vh)
        u, gu = (F.crop_or_pad_like(x, over_columns(s), axes=(-1,)) for x in (u, gu))
        vh, gvh = (F.crop_or_pad_like(x, over_rows(s), axes=(-2,)) for x in (vh, gvh))
        null_u, null_v = all_u - F.matmul(u, adjoint(gu)), all_v - F.matmul(adjoint(gvh), vh)
        scaled = u * over_columns(_inverse(s))
        extra = F.matmul(F.matmul(null_u, scaled), vh)
        extra = extra + F.matmul(scaled, F.matmul(vh, null_v))
    uh, v, gv = adjoint(u), adjoint(vh), adjoint(gvh)
    at_u, at_v = F.matmul(uh, gu), F.matmul(vh, gv)
    turn_u, turn_v = _skew(at_u) * 0.5, _skew(at_v) * 0.5
    turned = F.over_gaps(turn_u + turn_v, s, reported=both)
    turned = turned + (turn_u - turn_v) * _inverse(over_columns(s) + over_rows(s))
    inner = turned + on_diagonal(gs_, at_u)
    inverse = _inverse(s)
    whole = F.matmul(F.matmul(u, inner), vh) - extra
    if not _is_square(u):  # which has no vectors outside
        left = gu * over_columns(inverse)
        whole = whole + F.matmul(left - F.matmul(u, F.matmul(uh, left)), vh)
    if not _is_square(vh):
        right = over_rows(inverse) * gvh
        whole = whole + F.matmul(u, right - F.matmul(F.matmul(right, v), vh))
    return [whole]


def _svdvals_rule(g: Any, x: Any) -> Any:
    with of_values():
        u, s, vh = F.svd(x, full_matrices=False)
    # a function of the values too, so that its own derivative reports equal ones
    return F.matmul(u * over_columns(g + 0.0 * s), vh)


def _svd_kernel(xp: Any, x: Any, *, full_matrices: bool = True) -> tuple[Any, Any, Any]:
    u, s, vh = xp.linalg.svd(x, full_matrices=full_matrices)
    if deriving.get() is not None:
        s, u, v = separated(s, "svd", u, xp.swapaxes(vh, -1, -2), with_zero=True)
        vh = xp.swapaxes(v, -1, -2)
    return u, s, vh


_svd = op(
    "svd",
    _svd_kernel,
    vjp=_svd_vjp,
    infer=_svd_spec,
    batch=leading,
    doc="Return left singular vectors, singular values, and right singular vectors in rows.",
)


def svdvals_kernel(xp: Any, x: Any) -> Any:
    """Return singular values, for any array library that has ``svd``."""
    if hasattr(xp.linalg, "svdvals"):
        return xp.linalg.svdvals(x)
    return xp.linalg.svd(x, compute_uv=False)


def _svdvals_spec(x: TensorSpec) -> tuple[Any, Any]:
    batch, rows, columns = sizes_of_matrices(x, "svdvals")
    return with_sizes(batch, smaller_size(rows, columns)), real_of(x.dtype)


_svdvals = op(
    "svdvals",
    lambda xp, x: separated(svdvals_kernel(xp, x), "svdvals", with_zero=True)[0],
    gradients={"x": _svdvals_rule},
    infer=_svdvals_spec,
    batch=leading,
    doc="Return singular values in descending order.",
)


@named
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Return ``(u, s, vh)`` with ``(u * s) @ vh == a``: the singular value decomposition.

    Parameters
    ----------
    a
        Matrices of shape ``(..., m, n)``; integers become ``float64``.
    full_matrices
        Whether u and vh are square, ``(..., m, m)`` and ``(..., n, n)``, or have only the first
        ``min(m, n)`` vectors. True by default.
    compute_uv
        Whether to return the vectors too, or only ``s``.
    hermitian
        Whether the matrices are symmetric or Hermitian; only one triangle is then read.

    Returns
    -------
    U : Tensor
        Left singular vectors in columns.
    S : Tensor
        Real singular values in descending order, ``(..., min(m, n))``.
    Vh : Tensor
        Right singular vectors in rows, conjugated.

    Raises
    ------
    numpy.linalg.LinAlgError
        If there are no two axes, or the iteration does not converge.

    Notes
    -----
    Gradients are correct for functions that do not depend on arbitrary choices: the common phase of
    a pair of vectors, the vectors of equal singular values, and the basis of the vectors beyond the
    first ``min(m, n)``. The projector onto the space of those vectors has a gradient. At equal
    singular values and at those that are 0, transforms of functions compute derivatives as limits;
    see :func:`eigh`.

    References
    ----------
    J. Townsend, "Differentiating the singular value decomposition", 2016; for complex phases
    Z.-Q. Wan and S.-X. Zhang, "Automatic differentiation for complex valued SVD", 2019.

    Examples
    --------
    >>> u, s, vh = gt.linalg.svd(gt.constant([[3.0, 0.0], [0.0, -4.0]]))
    >>> s.tolist()
    [4.0, 3.0]
    """
    if hermitian:
        return _hermitian_svd(a, compute_uv)
    if not compute_uv:
        return svdvals(a)
    a = as_inexact(a)
    sizes_of_matrices(a, "svd")
    return SVDResult(*_svd(a, full_matrices=bool(full_matrices)))


def _hermitian_svd(a: Any, compute_uv: bool) -> Any:
    """Return singular values, with vectors on request: those of eigenvalues, except for signs."""
    if not compute_uv:
        return ops["flip"](ops["sort"](ops["abs"](eigvalsh(a)), axis=-1), axis=-1)
    w, v = eigh(a)
    sizes = ops["abs"](w)
    order = ops["flip"](ops["argsort"](sizes, axis=-1), axis=-1)
    signs = ops["where"](w < 0, -1.0, ops["ones_like"](w))
    signs, sizes = (ops["take_along_axis"](x, order, axis=-1) for x in (signs, sizes))
    u = ops["take_along_axis"](v, ops["expand_dims"](order, axis=-2), axis=-1)
    return SVDResult(u, sizes, conjugate_transpose(u * ops["expand_dims"](signs, axis=-2)))


@named
def svdvals(x: Any) -> Tensor:
    """Return the singular values of matrices ``(..., m, n)``, in descending order.

    Parameters
    ----------
    x
        Matrices of shape ``(..., m, n)``; integers become ``float64``.

    Returns
    -------
    Tensor
        Real numbers of at least 0, of shape ``(..., min(m, n))``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If there are no two axes, or the iteration does not converge.

    Notes
    -----
    The gradient of a singular value is the outer product of its two singular vectors.

    Examples
    --------
    >>> gt.linalg.svdvals(gt.constant([[3.0, 0.0], [0.0, -4.0]])).tolist()
    [4.0, 3.0]
    """
    x = as_inexact(x)
    sizes_of_matrices(x, "svdvals")
    return _svdvals(x)
