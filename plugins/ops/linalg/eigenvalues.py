"""Eigenvalues and eigenvectors; matrices are in the last two axes.

The rules are for complex matrices in TensorFlow's convention, which includes real ones. They are
correct for functions that do not depend on the sign or phase of a vector, which LAPACK chooses. At
equal eigenvalues, see the module ``matrices``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core.extend import F, Tensor, numpy_dtype
from ..common.axes import leading
from ..common.kernels import as_like, cast_to
from ..common.op_builders import named, op
from .matrices import (
    adjoint,
    as_inexact,
    conjugate_transpose,
    diagonals,
    inexact,
    of_values,
    on_diagonal,
    over_columns,
    over_rows,
    real_of,
    separated,
    square_shape,
    takes_none,
)


class EigResult(NamedTuple):
    """The result of :func:`eig` and :func:`eigh`."""

    eigenvalues: Any
    eigenvectors: Any


def _eigenvalues(shape: Any) -> Any:
    return None if shape is None else shape[:-1]


# -- Hermitian matrices ----------------------------------------------------------------------------


@takes_none
def _eigh_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any) -> list[Any]:
    (gw, gv), (w, v) = gs, outputs
    if gv is None:
        with of_values() as turned:
            v = F.eigh(inputs[0])[1] if turned else v
        return [F.matmul(v * over_columns(gw), adjoint(v))]
    inner = F.over_gaps(F.matmul(adjoint(v), gv), w, reported=gw is not None)
    if gw is not None:
        inner = inner + on_diagonal(gw, gv)
    whole = F.matmul(F.matmul(v, inner), adjoint(v))
    return [(whole + adjoint(whole)) * 0.5]


def _eigvalsh_rule(g: Any, x: Any) -> Any:
    with of_values():
        w, v = F.eigh(x)
    # a function of the values too, so that its own derivative reports equal ones
    return F.matmul(v * over_columns(g + 0.0 * w), adjoint(v))


def _eigh_kernel(xp: Any, x: Any) -> tuple[Any, ...]:
    w, v = xp.linalg.eigh(x)
    return separated(w, "eigh", v)


_eigh = op(
    "eigh",
    _eigh_kernel,
    vjp=_eigh_vjp,
    infer=lambda x: [
        (_eigenvalues(square_shape(x, "eigh")), real_of(x.dtype)),
        (x.shape, inexact(x.dtype)),
    ],
    batch=leading,
    doc="Return eigenvalues in ascending order, and eigenvectors, of Hermitian matrices.",
)
_eigvalsh = op(
    "eigvalsh",
    lambda xp, x: separated(xp.linalg.eigvalsh(x), "eigvalsh")[0],
    gradients={"x": _eigvalsh_rule},
    infer=lambda x: (_eigenvalues(square_shape(x, "eigvalsh")), real_of(x.dtype)),
    batch=leading,
    doc="Return eigenvalues of Hermitian matrices in ascending order.",
)


def _triangle(a: Any, uplo: str, name: str) -> Any:
    """Return matrices whose lower triangle holds the one to read."""
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise ValueError(f"{name}: UPLO must be 'L' or 'U', got {uplo!r}")
    a = as_inexact(a)
    square_shape(a, name)
    return conjugate_transpose(a) if uplo.upper() == "U" else a


@named
def eigh(a: Any, UPLO: str = "L") -> EigResult:
    """Return the eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    a
        Square matrices, of shape ``(..., n, n)``; only one triangle is read. Integers become
        ``float64``.
    UPLO
        Which triangle: ``"L"`` (the default) or ``"U"``.

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
    The gradient is Hermitian, shared between both triangles.

    The vectors of equal eigenvalues may be any basis of their space. A function that does not
    depend on this choice has derivatives of every order. :func:`gradtape.grad` and the other
    transforms of functions compute them as limits: they call the function eleven more times or
    more often.
    A tape and a traced gradient cannot, if the function depends on values and vectors; they warn.
    A function that depends on the choice has no derivative there, and causes a warning too. With
    ``strict=True``, these warnings are errors.

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
    The gradient of an eigenvalue is the outer product of its eigenvector with itself. For second
    derivatives at equal eigenvalues, see :func:`eigh`.

    Examples
    --------
    >>> gt.linalg.eigvalsh(gt.constant([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return _eigvalsh(_triangle(a, UPLO, "eigvalsh"))


# -- any square matrices ---------------------------------------------------------------------------


def _complex_of(dtype: Any) -> np.dtype[Any]:
    return np.result_type(inexact(dtype), np.complex64)


def _real(x: Any) -> Any:
    return F.real(x) if x.dtype.kind == "c" else x


def _eig_kernel(xp: Any, x: Any) -> tuple[Any, ...]:
    w, v = xp.linalg.eig(x)
    wide = np.result_type(numpy_dtype(x.dtype), np.complex64)
    # NumPy gives real factors if no value is complex; a dtype must not depend on values
    return separated(cast_to(xp, w, wide), "eig", cast_to(xp, v, wide))


@takes_none
def _eig_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any) -> list[Any]:
    # Boeddeker, Hanebrink, Drude, Heymann and Haeb-Umbach, "On the computation of complex-valued
    # gradients with application to statistically optimum beamforming" (2017), equation 4.77
    (gw, gv), (w, v) = gs, outputs
    if gv is None:
        with of_values() as turned:
            vh = adjoint(F.eig(inputs[0])[1] if turned else v)
        return [as_like(F.solve(vh, vh * over_rows(gw)), inputs[0])]
    vh = adjoint(v)
    turned = F.matmul(vh, gv)
    # vectors keep the length 1
    turned = turned - F.matmul(vh, v * over_columns(_real(diagonals(turned))))
    inner = F.over_gaps(turned, F.conj(w), reported=gw is not None)
    if gw is not None:
        inner = inner + on_diagonal(gw, gv)
    return [as_like(F.solve(vh, F.matmul(inner, vh)), inputs[0])]


def _eigvals_rule(g: Any, x: Any) -> Any:
    with of_values():
        w, v = F.eig(x)
    vh = adjoint(v)
    return as_like(F.solve(vh, vh * over_rows(g + 0.0 * w)), x)


_eig = op(
    "eig",
    _eig_kernel,
    vjp=_eig_vjp,
    infer=lambda x: [
        (_eigenvalues(square_shape(x, "eig")), _complex_of(x.dtype)),
        (x.shape, _complex_of(x.dtype)),
    ],
    batch=leading,
    doc="Return complex eigenvalues and eigenvectors of matrices.",
)
_eigvals = op(
    "eigvals",
    lambda xp, x: _eig_kernel(xp, x)[0],
    gradients={"x": _eigvals_rule},
    infer=lambda x: (_eigenvalues(square_shape(x, "eigvals")), _complex_of(x.dtype)),
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
        Complex vectors of length 1 in columns, ``(..., n, n)``. Both are complex, even where NumPy
        would give real ones because all values happen to be real.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square, or the iteration does not converge.

    Notes
    -----
    Gradients need a full set of eigenvectors. The gradient of the vectors is correct only for
    functions that do not depend on their phase. At equal eigenvalues, see :func:`eigh`.

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
    return EigResult(*_eig(as_inexact(a)))


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
    return _eigvals(as_inexact(a))
