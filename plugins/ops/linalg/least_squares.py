"""Functions of singular values: pseudo-inverses, least squares, ranks, batched."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Tensor,
    TensorSpec,
    as_tensor,
    is_open,
    kind_of,
    known_size,
    largest,
    on_device_of,
    ops,
    sizes_differ,
    smallest,
)
from ..common.axes import leading
from ..common.dynamic_shapes import known_rank
from ..common.kernels import cast_to
from ..common.op_builders import named, op
from .decompositions import svdvals, svdvals_kernel
from .matmul import matmul
from .matrices import (
    adjoint,
    as_inexact,
    hermitian_part,
    inexact,
    real_of,
    sizes_of_matrices,
    with_sizes,
)


def _each(xp: Any, bound: Any, s: Any) -> Any:
    """Return a bound for the singular values of each matrix; a number is returned unchanged."""
    if not isinstance(bound, (tuple, list)):
        return bound
    return xp.expand_dims(xp.asarray(bound, dtype=s.dtype), axis=-1)


def _pinv_kernel(xp: Any, x: Any, *, rcond: Any) -> Any:
    if 0 in x.shape[-2:]:
        return xp.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), dtype=x.dtype)
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    kept = s > _each(xp, rcond, s) * xp.max(s, axis=-1, keepdims=True)
    inverse = xp.where(kept, 1 / xp.where(kept, s, xp.ones_like(s)), xp.zeros_like(s))
    if kind_of(x.dtype) == "c":
        u, vh = xp.conj(u), xp.conj(vh)
    turn = xp.linalg.matrix_transpose if hasattr(xp.linalg, "matrix_transpose") else _turned
    return (turn(vh) * xp.expand_dims(inverse, axis=-2)) @ turn(u)


def _turned(x: Any) -> Any:
    return x.swapaxes(-1, -2)


def _pinv_rule(g: Any, x: Any, out: Any) -> Any:
    # Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    # problems whose variables separate" (1973)
    gh, outh = adjoint(g), adjoint(out)
    direct = F.matmul(F.matmul(outh, g), outh)
    rows = F.matmul(F.matmul(gh, out), outh)
    columns = F.matmul(outh, F.matmul(out, gh))
    rows = rows - F.matmul(x, F.matmul(out, rows))
    columns = columns - F.matmul(F.matmul(columns, out), x)
    return rows + columns - direct


def as_real(n: Any) -> Any:
    """Return a bound as a Python float; in a trace it may be an expression of sizes."""
    return n if n is None or is_open(n) else float(n)


def _bounds(value: Any, x: Any, name: str) -> Any:
    """Return a relative bound as a parameter: a number, or nested tuples with one per matrix."""
    if value is None or is_open(value) or not np.ndim(value):
        return as_real(value)
    given, sizes = np.shape(value), sizes_of_matrices(x, name)[0]
    if (
        sizes is None
        or len(given) > len(sizes)
        or any(n not in (1, size) for n, size in zip(given[::-1], sizes[::-1]) if known_size(size))
    ):
        raise ValueError(
            f"{name}: a bound for each matrix needs a shape that broadcasts to {sizes}, got {given}"
        )
    bounds = np.asarray(value, np.float64)
    return _nested(bounds.tolist()) if bounds.size else 0.0  # for no matrices


def _nested(values: Any) -> Any:
    return tuple(map(_nested, values)) if isinstance(values, list) else values


def _pinv_spec(x: TensorSpec, rcond: Any) -> tuple[Any, Any]:
    batch, rows, columns = sizes_of_matrices(x, "pinv")
    return with_sizes(batch, columns, rows), inexact(x.dtype)


_pinv = op(
    "pinv",
    _pinv_kernel,
    gradients={"x": _pinv_rule},
    infer=_pinv_spec,
    batch=leading,
    doc="Return pseudo-inverses; singular values up to ``rcond`` of the largest count as 0.",
)


@named
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverses of matrices.

    Parameters
    ----------
    a
        Matrices of shape ``(..., m, n)``; integers become ``float64``.
    rcond, rtol
        Two names for one bound: singular values up to this fraction of the largest count as 0.
        A number, or an array with one for each matrix; ``1e-15`` by default, as in NumPy.
    hermitian
        Whether the matrices are symmetric or Hermitian; only their lower triangle is then read.

    Returns
    -------
    Tensor
        Matrices of shape ``(..., n, m)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If there are no two axes.
    ValueError
        If both ``rcond`` and ``rtol`` are given, or an array does not fit the matrices.

    Notes
    -----
    The gradient assumes constant rank: a pseudo-inverse jumps where the rank changes. Singular
    values below ``rcond`` count as 0 in the gradient too, so it is exact only if they are 0 up to
    rounding. If a larger ``rcond`` regularises, differentiate :func:`gradtape.linalg.svd` instead.

    References
    ----------
    G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate", 1973.

    Examples
    --------
    >>> gt.linalg.pinv(gt.constant([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    if rcond is not None and rtol is not None:
        raise ValueError("pinv: rcond and rtol mean the same; pass one of them")
    share = rtol if rcond is None else rcond
    a = hermitian_part(a, "pinv") if hermitian else as_inexact(a)
    sizes_of_matrices(a, "pinv")
    return _pinv(a, rcond=1e-15 if share is None else _bounds(share, a, "pinv"))


def _rank_kernel(xp: Any, x: Any, *, tol: float | None, rtol: float | None) -> Any:
    s = svdvals_kernel(xp, x)
    if tol is None:
        share = max(x.shape[-2:]) * float(xp.finfo(s.dtype).eps) if rtol is None else rtol
        limit = xp.max(s, axis=-1, keepdims=True) * share if s.shape[-1] else s
    else:
        limit = tol
    return xp.sum(cast_to(xp, s > limit, np.int64), axis=-1)


_matrix_rank = op(
    "matrix_rank",
    _rank_kernel,
    gradients={"x": NONDIFF},
    infer=lambda x, tol, rtol: (sizes_of_matrices(x, "matrix_rank")[0], np.dtype(np.int64)),
    batch=leading,
    doc="Count the singular values above a limit.",
)


@named
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """Return the number of singular values above a limit, as integers; it has no gradient.

    Parameters
    ----------
    A
        Matrices of shape ``(..., m, n)``; a vector or a number has rank 1 unless it is 0.
    tol
        The limit: a number, or one for each matrix.
    hermitian
        Whether the matrices are symmetric or Hermitian: their lower triangle is read.
    rtol
        The limit as a fraction of the largest singular value, a number or one for each matrix; by
        default ``max(m, n)`` times the dtype's epsilon.

    Returns
    -------
    Tensor
        Ranks of dtype ``int64``, of shape ``(...)``.

    Raises
    ------
    ValueError
        If both ``tol`` and ``rtol`` are given.

    References
    ----------
    G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition, 2013.

    Examples
    --------
    >>> gt.linalg.matrix_rank(gt.constant([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: give tol or rtol, not both")
    A = as_inexact(A)
    if A.shape is not None and len(A.shape) < 2:
        return ops["cast"](ops["any"](A != 0), dtype="int64")
    if hermitian:
        A = hermitian_part(A, "matrix_rank")
    each = tol if rtol is None else rtol
    if each is not None and np.ndim(each):
        limit, s = ops["expand_dims"](on_device_of(each, A), axis=-1), svdvals(A)
        above = s > (limit if rtol is None else limit * ops["max"](s, axis=-1, keepdims=True))
        return ops["sum"](ops["cast"](above, dtype="int64"), axis=-1)
    return _matrix_rank(
        A,
        tol=as_real(tol),
        rtol=as_real(rtol),
    )


@named
def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the least-squares solution of ``a @ x = b``, the one of smallest norm if several.

    Parameters
    ----------
    a
        Matrices of shape ``(..., m, n)``, m and n known; integers become ``float64``.
    b
        A vector ``(m,)``, or matrices ``(..., m, k)``.
    rcond
        Singular values up to this fraction of the largest count as 0; by default ``max(m, n)``
        times the dtype's epsilon.

    Returns
    -------
    x : Tensor
        The solution, of shape ``(n,)`` or ``(..., n, k)``.
    residuals : Tensor
        The sum of squared residuals per column, empty if ``m <= n``. It is returned for a deficient
        rank too, where NumPy leaves it out.
    rank : Tensor
        The rank of ``a``, as ``int32``; gradients flow through all results except this one.
    singular_values : Tensor
        The singular values of ``a``, in descending order.

    Raises
    ------
    ValueError
        If sizes do not match.

    Notes
    -----
    The solution is ``pinv(a) @ b``, with the gradient of that product at constant rank.

    References
    ----------
    G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate", 1973.

    Examples
    --------
    >>> a = gt.constant([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> x, residuals, rank, s = gt.linalg.lstsq(a, gt.constant([1.0, 4.0, 3.0]))
    >>> x.tolist(), residuals.tolist()
    ([1.0, 2.0], [9.0])
    """
    a, b = as_inexact(a), as_tensor(b)
    _, rows, columns = sizes_of_matrices(a, "lstsq")
    known_rank(a, "lstsq")
    vector = b.ndim == 1
    sides = ops["expand_dims"](b, axis=-1) if vector else b
    if sides.ndim < 2 or sizes_differ(sides.shape[-2], rows):
        raise np.linalg.LinAlgError(
            f"lstsq: matrices of shape {a.shape} do not fit b of shape {b.shape}"
        )
    share = as_real(rcond)
    if share is None:
        share = largest(rows, columns) * float(np.finfo(a.dtype).eps)
    x = matmul(_pinv(a, rcond=share), sides)
    more = rows > columns
    if more is False:
        residuals = as_tensor(np.zeros(0, real_of(x.dtype)))
    else:
        off = ops["abs"](sides - matmul(a, x))
        residuals = ops["sum"](off * off, axis=-2, keepdims=False)
        if more is not True:  # a trace does not know: none of them, or all
            known = smallest(largest(0, rows - columns), 1)
            residuals = residuals[: residuals.shape[0] * known]
    rank = ops["cast"](matrix_rank(a, rtol=share), dtype="int32")  # LAPACK's integers, in NumPy
    return (ops["squeeze"](x, axis=-1) if vector else x), residuals, rank, svdvals(a)
