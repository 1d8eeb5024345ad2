"""Spectral and orthogonal factors of matrices, batched.

Matrices are in the last two axes. The rules are for complex matrices in TensorFlow's convention,
and so for real ones. Where a factor is not a differentiable function of the matrix (vectors that
belong to equal eigenvalues or singular values may be any basis) the terms that would be infinite
count as 0: right for functions that do not depend on the choice of basis. The same holds for the
sign or phase of a vector, which LAPACK chooses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core.extend import F, Tensor, TensorSpec, ops
from ..common.batching import leading
from ..common.dtypes import as_like, inexact, real_of
from ..common.kernels import cast_to
from ..common.op_builders import named, op
from .matrices import (
    adjoint,
    apart,
    floating,
    over_columns,
    over_rows,
    shaped,
    sizes_of_matrices,
    smaller,
    square,
    turned,
)
from .products import matmul

__all__ = [
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "qr",
    "svd",
    "svdvals",
]


def _complex_of(dtype: Any) -> np.dtype[Any]:
    return np.result_type(inexact(dtype), np.complex64)


def _hermitian(x: Any) -> Any:
    """Return matrices with the lower triangle of ``x`` and its mirror; the diagonal is real."""
    lower = (F.tril(x, k=0) + F.tril(x, k=-1)) * 0.5
    return lower + adjoint(lower)


def _real(x: Any) -> Any:
    return F.real(x) if x.dtype.kind == "c" else x


def _diagonal(x: Any) -> Any:
    return F.diagonal(x, offset=0)


def _on_diagonal(s: Any, like: Any) -> Any:
    """Return square matrices of the shape of ``like`` with vectors ``s`` on their diagonals."""
    one = F.tril(F.triu(F.ones_like(like), k=0), k=0)
    return one * over_columns(s)


class QRResult(NamedTuple):
    """What :func:`qr` returns."""

    Q: Any
    R: Any


class EigResult(NamedTuple):
    """What :func:`eig` and :func:`eigh` return."""

    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    """What :func:`svd` returns."""

    U: Any
    S: Any
    Vh: Any


# -- QR --------------------------------------------------------------------------------------------


def _qr_spec(x: TensorSpec, mode: str) -> list[tuple[Any, Any]]:
    batch, rows, columns = sizes_of_matrices(x, "qr")
    inner = rows if mode == "complete" else smaller(rows, columns)
    dtype = inexact(x.dtype)
    return [(shaped(batch, rows, inner), dtype), (shaped(batch, inner, columns), dtype)]


def _qr_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, *, mode: str) -> list[Any]:
    # Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2010)
    (x,), (gq, gr), (q, r) = inputs, gs, outputs
    _, rows, columns = sizes_of_matrices(x, "qr")
    if mode == "complete" and rows != columns:
        raise ValueError(
            f"qr: no gradient for the complete factors of matrices of shape {x.shape}, whose last "
            "columns are any basis; use mode='reduced'"
        )
    if rows is not None and columns is not None and rows < columns:
        raise ValueError(
            f"qr: no gradient for matrices of shape {x.shape} in a trace that does not know that "
            "they are wider than high; give the function's input_signature their sizes"
        )
    both = _hermitian(F.matmul(r, adjoint(gr)) - F.matmul(adjoint(gq), q))
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
    doc="Factor matrices into orthonormal columns and a triangle.",
)


@named
def qr(a: Any, mode: str = "reduced") -> Any:
    """Return orthonormal columns ``q`` and upper triangular ``r`` with ``q @ r == a``.

    Parameters
    ----------
    a
        Matrices, of shape ``(..., m, n)``; integers become ``float64``.
    mode
        ``"reduced"`` (the default): q has ``min(m, n)`` columns. ``"complete"``: it has m.
        ``"r"``: r alone.

    Returns
    -------
    Q : Tensor
        Columns of length 1 at right angles, ``(..., m, k)``; left out with ``mode="r"``.
    R : Tensor
        Upper triangular matrices, ``(..., k, n)``.

    Raises
    ------
    ValueError
        If the mode is another; while differentiating, if a "complete" factor has more columns than
        ``a``, since these are any basis of what is left.
    numpy.linalg.LinAlgError
        If there are no two axes; while differentiating, if the first columns of ``a`` are
        dependent.

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
    a = floating(a)
    _, rows, columns = sizes_of_matrices(a, "qr")
    if mode == "r":
        return qr(a)[1]
    if None not in (rows, columns) and rows < columns:
        # the first columns give q; r is q's view of the others
        left, right = a[..., :rows], a[..., rows:]
        q, r = _qr(left, mode=mode)
        return QRResult(q, ops["concatenate"](r, matmul(turned(q), right), axis=-1))
    return QRResult(*_qr(a, mode=mode))


# -- eigenvalues -----------------------------------------------------------------------------------


def _eigh_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any) -> list[Any]:
    (gw, gv), (w, v) = gs, outputs
    inner = apart(w) * F.matmul(adjoint(v), gv) + _on_diagonal(gw, gv)
    whole = F.matmul(F.matmul(v, inner), adjoint(v))
    return [(whole + adjoint(whole)) * 0.5]


def _eigvalsh_rule(g: Any, x: Any) -> Any:
    _, v = F.eigh(x)
    return F.matmul(v * over_columns(g), adjoint(v))


_eigh = op(
    "eigh",
    lambda xp, x: tuple(xp.linalg.eigh(x)),
    vjp=_eigh_vjp,
    infer=lambda x: [
        (_eigenvalues(square(x, "eigh")), real_of(x.dtype)),
        (x.shape, inexact(x.dtype)),
    ],
    batch=leading,
    doc="Return eigenvalues in ascending order, and eigenvectors, of Hermitian matrices.",
)
_eigvalsh = op(
    "eigvalsh",
    lambda xp, x: xp.linalg.eigvalsh(x),
    gradients={"x": _eigvalsh_rule},
    infer=lambda x: (_eigenvalues(square(x, "eigvalsh")), real_of(x.dtype)),
    batch=leading,
    doc="Return eigenvalues of Hermitian matrices in ascending order.",
)


def _eigenvalues(shape: Any) -> Any:
    return None if shape is None else shape[:-1]


def _triangle(a: Any, uplo: str, name: str) -> Any:
    """Return matrices whose lower triangle is the one to read."""
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise ValueError(f"{name}: UPLO must be 'L' or 'U', got {uplo!r}")
    a = floating(a)
    square(a, name)
    return turned(a) if uplo.upper() == "U" else a


@named
def eigh(a: Any, UPLO: str = "L") -> EigResult:
    """Return the eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    a
        Square matrices, of shape ``(..., n, n)``; one triangle of them is read. Integers become
        ``float64``.
    UPLO
        Which one: ``"L"`` (the default) or ``"U"``.

    Returns
    -------
    eigenvalues : Tensor
        Real numbers in ascending order, ``(..., n)``.
    eigenvectors : Tensor
        Vectors of length 1 in columns, ``(..., n, n)``.

    Raises
    ------
    ValueError
        If the matrices are not square, or ``UPLO`` is another letter.
    numpy.linalg.LinAlgError
        If the iteration does not converge.

    Notes
    -----
    The gradient is Hermitian, shared between both triangles. That of vectors of equal eigenvalues
    is right only for functions that do not depend on the choice of these vectors.

    References
    ----------
    M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> w, v = gt.linalg.eigh(gt.constant([[2.0, 0.0], [0.0, 1.0]]))
    >>> w.tolist()
    [1.0, 2.0]
    """
    return EigResult(*_eigh(_triangle(a, UPLO, "eigh")))


@named
def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of symmetric or Hermitian matrices; see :func:`eigh`.

    Parameters
    ----------
    a
        Square matrices, of shape ``(..., n, n)``; one triangle of them is read. Integers become
        ``float64``.
    UPLO
        Which one: ``"L"`` (the default) or ``"U"``.

    Returns
    -------
    Tensor
        Real numbers in ascending order, ``(..., n)``.

    Raises
    ------
    ValueError
        If the matrices are not square, or ``UPLO`` is another letter.
    numpy.linalg.LinAlgError
        If the iteration does not converge.

    Notes
    -----
    The gradient of an eigenvalue is the outer product of its eigenvector with itself.

    Examples
    --------
    >>> gt.linalg.eigvalsh(gt.constant([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return _eigvalsh(_triangle(a, UPLO, "eigvalsh"))


def _eig_kernel(xp: Any, x: Any) -> tuple[Any, Any]:
    w, v = xp.linalg.eig(x)
    wide = np.result_type(np.dtype(str(x.dtype).rpartition(".")[2]), np.complex64)
    # NumPy gives real factors if no value is complex; a dtype must not depend on values
    return cast_to(xp, w, wide), cast_to(xp, v, wide)


def _eig_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any) -> list[Any]:
    # Boeddeker, Hanebrink, Drude, Heymann and Haeb-Umbach, "On the computation of complex-valued
    # gradients with application to statistically optimum beamforming" (2017), equation 4.77
    (gw, gv), (w, v) = gs, outputs
    vh = adjoint(v)
    turned = F.matmul(vh, gv)
    # vectors keep the length 1
    turned = turned - F.matmul(vh, v * over_columns(_real(_diagonal(turned))))
    inner = F.conj(apart(w)) * turned + _on_diagonal(gw, gv)
    return [as_like(F.solve(vh, F.matmul(inner, vh)), inputs[0])]


def _eigvals_rule(g: Any, x: Any) -> Any:
    _, v = F.eig(x)
    vh = adjoint(v)
    return as_like(F.solve(vh, vh * over_rows(g)), x)


_eig = op(
    "eig",
    _eig_kernel,
    vjp=_eig_vjp,
    infer=lambda x: [
        (_eigenvalues(square(x, "eig")), _complex_of(x.dtype)),
        (x.shape, _complex_of(x.dtype)),
    ],
    batch=leading,
    doc="Return complex eigenvalues and eigenvectors of matrices.",
)
_eigvals = op(
    "eigvals",
    lambda xp, x: _eig_kernel(xp, x)[0],
    gradients={"x": _eigvals_rule},
    infer=lambda x: (_eigenvalues(square(x, "eigvals")), _complex_of(x.dtype)),
    batch=leading,
    doc="Return complex eigenvalues of matrices.",
)


@named
def eig(a: Any) -> EigResult:
    """Return the eigenvalues and eigenvectors of square matrices.

    Parameters
    ----------
    a
        Matrices of shape ``(..., n, n)``; integers become ``float64``.

    Returns
    -------
    eigenvalues : Tensor
        Complex numbers in no particular order, ``(..., n)``.
    eigenvectors : Tensor
        Complex vectors of length 1 in columns, ``(..., n, n)``. Both are complex, also where NumPy
        would give real ones because no value happens to be complex.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square, or the iteration does not converge.

    Notes
    -----
    Gradients need a full set of eigenvectors. That of the vectors is right only for functions that
    do not depend on their phase.

    References
    ----------
    C. Boeddeker, P. Hanebrink, L. Drude, J. Heymann and R. Haeb-Umbach, "On the computation of
    complex-valued gradients with application to statistically optimum beamforming", 2017,
    equation 4.77.

    Examples
    --------
    >>> w, v = gt.linalg.eig(gt.constant([[0.0, 1.0], [-1.0, 0.0]]))
    >>> sorted(round(value, 4) for value in w.imag.tolist())
    [-1.0, 1.0]
    """
    return EigResult(*_eig(floating(a)))


@named
def eigvals(a: Any) -> Tensor:
    """Return the complex eigenvalues of square matrices; see :func:`eig`.

    Parameters
    ----------
    a
        Matrices of shape ``(..., n, n)``; integers become ``float64``.

    Returns
    -------
    Tensor
        Complex numbers in no particular order, ``(..., n)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square, or the iteration does not converge.

    Notes
    -----
    The gradient needs a full set of eigenvectors.

    Examples
    --------
    >>> gt.sort(gt.linalg.eigvals(gt.constant([[1.0, 5.0], [0.0, 2.0]])).real).tolist()
    [1.0, 2.0]
    """
    return _eigvals(floating(a))


# -- singular values -------------------------------------------------------------------------------


def _svd_spec(x: TensorSpec, full_matrices: bool) -> list[tuple[Any, Any]]:
    batch, rows, columns = sizes_of_matrices(x, "svd")
    few, dtype = smaller(rows, columns), inexact(x.dtype)
    return [
        (shaped(batch, rows, rows if full_matrices else few), dtype),
        (shaped(batch, few), real_of(x.dtype)),
        (shaped(batch, columns if full_matrices else few, columns), dtype),
    ]


def _inverse(s: Any) -> Any:
    """Return reciprocals, and 0 for 0."""
    nothing = F.equal(s, 0)
    return F.where(nothing, 0.0, 1.0 / F.where(nothing, 1.0, s))


def _may_be_wider(u: Any, vh: Any) -> bool:
    """Return whether one of the square factors may have more vectors than singular values."""
    sizes = {None if x.shape is None else x.shape[-1] for x in (u, vh)}
    return len(sizes) > 1 or None in sizes


def _skew(x: Any) -> Any:
    return x - adjoint(x)


def _svd_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, *, full_matrices: bool) -> list[Any]:
    # Townsend, "Differentiating the singular value decomposition" (2016); with complex phases as
    # in Wan and Zhang, "Automatic differentiation for complex valued SVD" (2019)
    (gu, gs_, gvh), (u, s, vh) = gs, outputs
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
    columns, rows, gaps = over_columns(s), over_rows(s), apart(s * s)
    inner = (_skew(at_u) * columns + _skew(at_v) * rows) * gaps + _on_diagonal(gs_, at_u)
    inverse = _inverse(s)
    if u.dtype.kind == "c":
        phases = _diagonal(_skew(at_u)) * inverse * 0.5
        inner = inner + _on_diagonal(phases, at_u)
    left = gu * over_columns(inverse)
    right = over_rows(inverse) * gvh
    outside = F.matmul(left - F.matmul(u, F.matmul(uh, left)), vh)
    beside = F.matmul(u, right - F.matmul(F.matmul(right, v), vh))
    return [F.matmul(F.matmul(u, inner), vh) + outside + beside - extra]


def _svdvals_rule(g: Any, x: Any) -> Any:
    u, _, vh = F.svd(x, full_matrices=False)
    return F.matmul(u * over_columns(g), vh)


_svd = op(
    "svd",
    lambda xp, x, *, full_matrices=True: tuple(xp.linalg.svd(x, full_matrices=full_matrices)),
    vjp=_svd_vjp,
    infer=_svd_spec,
    batch=leading,
    doc="Return left singular vectors, singular values, and right singular vectors in rows.",
)


def svdvals_kernel(xp: Any, x: Any) -> Any:
    if hasattr(xp.linalg, "svdvals"):
        return xp.linalg.svdvals(x)
    return xp.linalg.svd(x, compute_uv=False)


def _svdvals_spec(x: TensorSpec) -> tuple[Any, Any]:
    batch, rows, columns = sizes_of_matrices(x, "svdvals")
    return shaped(batch, smaller(rows, columns)), real_of(x.dtype)


_svdvals = op(
    "svdvals",
    svdvals_kernel,
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
        Whether u and vh are square, ``(..., m, m)`` and ``(..., n, n)``, or have the first
        ``min(m, n)`` vectors only. True by default.
    compute_uv
        Whether to return the vectors too, or ``s`` alone.
    hermitian
        Whether the matrices are symmetric or Hermitian: one triangle of them is read.

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
    Gradients are right for functions that do not depend on what is arbitrary: the common phase of
    a pair of vectors, the choice of vectors for equal singular values, and the basis that vectors
    beyond the first ``min(m, n)`` are of their space: its projector has a gradient.

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
    a = floating(a)
    sizes_of_matrices(a, "svd")
    return SVDResult(*_svd(a, full_matrices=bool(full_matrices)))


def _hermitian_svd(a: Any, compute_uv: bool) -> Any:
    """Return singular values, with vectors if wanted: those of eigenvalues, but for signs."""
    if not compute_uv:
        return ops["flip"](ops["sort"](ops["abs"](eigvalsh(a)), axis=-1), axis=-1)
    w, v = eigh(a)
    sizes = ops["abs"](w)
    order = ops["flip"](ops["argsort"](sizes, axis=-1), axis=-1)
    signs = ops["where"](w < 0, -1.0, ops["ones_like"](w))
    signs, sizes = (ops["take_along_axis"](x, order, axis=-1) for x in (signs, sizes))
    u = ops["take_along_axis"](v, ops["expand_dims"](order, axis=-2), axis=-1)
    return SVDResult(u, sizes, turned(u * ops["expand_dims"](signs, axis=-2)))


def hermitian_part(a: Any, name: str) -> Any:
    """Return the Hermitian matrices of which ``a`` has the lower triangle."""
    a = floating(a)
    square(a, name)
    lower = ops["tril"](a, k=-1)
    middle = ops["real"](a - lower) if a.dtype.kind == "c" else a - lower
    return lower + turned(lower) + ops["tril"](middle, k=0)


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
    x = floating(x)
    sizes_of_matrices(x, "svdvals")
    return _svdvals(x)
