"""Samples of decompositions and functions of matrices, Fourier transforms, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt

from ..samples import Sample
from .drawing import complexes, near_identity, positive, real

S, B = near_identity(3, 3), near_identity(2, 2, 2)
ZS = np.asarray(0.3 * complexes(3, 3) + 2.0 * np.eye(3))
TALL, WIDE, ZTALL = (
    near_identity(3, 2),
    near_identity(2, 3),
    (near_identity(3, 2) + 0.4j * real(3, 2)) * np.array([1.0, 2.0]),  # distinct singular values
)
SYMMETRIC = np.diag([1.0, 4.0, 9.0]) + 0.2 * (S + S.T)
HERMITIAN = np.diag([1.0, 4.0, 9.0]) + 0.2 * (ZS + ZS.conj().T)
SPREAD = np.diag([1.0, 4.0, 9.0]) + 0.3 * real(3, 3)  # with distinct, real eigenvalues

RANK_2 = np.asarray(TALL @ WIDE)  # of size 3
ZRANK_2 = np.asarray(ZTALL @ WIDE)
THIRD = "the third derivative of a determinant divides by it"


def hermitian(x: Any) -> Any:
    """Return a Hermitian matrix: an op that reads one triangle has the gradient of both."""
    return (x + gt.conj(gt.matrix_transpose(x))) * 0.5


def modulus(z: Any) -> Any:
    """Return squared absolute values, which do not depend on phases."""
    return gt.real(z * gt.conj(z))


def pairs(w: Any, v: Any) -> tuple[Any, Any]:
    """Return eigenvectors without their phase."""
    return w, modulus(v)


def triples(u: Any, s: Any, vh: Any) -> tuple[Any, Any, Any]:
    """Return singular vectors without their phase."""
    return modulus(u), s, modulus(vh)


def spaces(u: Any, s: Any, vh: Any) -> tuple[Any, Any, Any]:
    """Return the space of left singular vectors without singular values, not its basis."""
    null = u[..., 2:]
    return null @ gt.matrix_transpose(null), s, modulus(vh)


X, Z, ODD = real(2, 4), complexes(2, 4), complexes(2, 3)
KEY = np.array([7, 3])
NORMS = ("backward", "ortho", "forward")
PRECISION = "single precision draws other numbers"


def drawn(**params: object) -> list[Sample]:
    """Return samples of an op that draws numbers of a given shape."""
    return [Sample(KEY, shape=(2, 3), dtype=dtype, **params) for dtype in ("float32", "float64")]


def drawn_like() -> list[Sample]:
    """Return samples of an op that draws numbers with the shape of another array."""
    return [Sample(KEY, X).without("float32", reason=PRECISION)]


SAMPLES = {
    "inv": [Sample(S), Sample(B), Sample(ZS)],
    "det": [Sample(S), Sample(B), Sample(ZS), Sample(RANK_2), Sample(ZRANK_2)],
    "cofactor": [
        *(Sample(x) for x in (S, B, ZS)),
        *(Sample(x).without("second order", reason=THIRD) for x in (RANK_2, ZRANK_2)),
    ],
    "cofactor_adjoint": [Sample(B, B[::-1]), Sample(ZS, ZS.T @ ZS), Sample(S, S @ S)],
    "slogdet": [Sample(S), Sample(-B), Sample(ZS)],
    "solve": [Sample(S, TALL), Sample(B, WIDE), Sample(ZS, ZTALL)],
    "solve_triangular": [
        Sample(S, TALL, lower=True),
        Sample(B, real(2, 2, 1), unit_diagonal=True),
        Sample(ZS, ZTALL, lower=False),
    ],
    "cholesky": [
        Sample(S @ S.T).fed_through(hermitian),
        Sample(ZS @ ZS.conj().T).fed_through(hermitian),
    ],
    "qr": [
        Sample(S),
        Sample(TALL),
        Sample(ZTALL),
        Sample(B),
    ],
    "eigh": [Sample(x).fed_through(hermitian).seen_through(pairs) for x in (SYMMETRIC, HERMITIAN)],
    "eigvalsh": [Sample(x).fed_through(hermitian) for x in (SYMMETRIC, HERMITIAN)],
    "over_gaps": [
        Sample(S, np.array([1.0, 4.0, 9.0])),
        Sample(B, np.array([[1.0, 2.0], [3.0, -1.0]])),
        Sample(ZS, np.array([1.0, 4.0, 9.0])),
        Sample(ZS, np.array([1.0, 4.0j, 9.0 - 1.0j])),
    ],
    "eig": [
        Sample(SPREAD).seen_through(pairs),
        Sample(SPREAD + 0.3j * real(3, 3)).seen_through(pairs),
    ],
    "eigvals": [Sample(SPREAD), Sample(SPREAD + 0.3j * real(3, 3))],
    "svd": [
        Sample(SPREAD).seen_through(triples),
        Sample(TALL, full_matrices=False).seen_through(triples),
        Sample(ZTALL, full_matrices=False).seen_through(triples),
        *(Sample(x).seen_through(triples) for x in (TALL, WIDE, ZTALL)),
        Sample(near_identity(4, 2)).seen_through(spaces),
    ],
    "svdvals": [Sample(TALL), Sample(SPREAD), Sample(ZTALL)],
    "pinv": [Sample(TALL, rcond=1e-15), Sample(WIDE, rcond=1e-15), Sample(ZTALL, rcond=1e-15)],
    "matrix_rank": [Sample(TALL, tol=None, rtol=None), Sample(S, tol=0.5, rtol=None)],
    "expm": [Sample(S), Sample(B), Sample(5.0 * S - 10.0 * np.eye(3)), Sample(ZS)],
    **{
        name: [
            *(Sample(x, axes=(1,), norm=norm) for x in (X, Z) for norm in NORMS),
            Sample(Z, axes=(0, 1), norm="ortho"),
        ]
        for name in ("fftn", "ifftn")
    },
    "rfft": [
        *(Sample(X, axis=-1, norm=norm) for norm in NORMS),
        Sample(real(3, 2), axis=0, norm="ortho"),
    ],
    "rfft_adjoint": [
        *(Sample(ODD, X, axis=-1, norm=norm) for norm in NORMS),
        Sample(ODD, real(2, 5), axis=1, norm="ortho"),
    ],
    "irfft": [
        *(Sample(ODD, n=n, axis=-1, norm=norm) for n in (4, 5) for norm in NORMS),
        Sample(real(2, 3), n=4, axis=1, norm="ortho"),
    ],
    "irfft_adjoint": [
        *(Sample(X, n=4, axis=-1, norm=norm) for norm in NORMS),
        Sample(real(2, 5), n=5, axis=1, norm="ortho"),
    ],
    "fftshift": [
        Sample(X, axes=(0, 1), inverse=False),
        Sample(ODD, axes=(1,), inverse=True),
    ],
    **{
        f"random_{name}": drawn()
        for name in ("exponential", "gumbel", "normal", "truncated_normal", "uniform")
    },
    **{
        f"random_{name}_like": drawn_like()
        for name in ("exponential", "gumbel", "normal", "truncated_normal", "uniform")
    },
    "random_integers": [Sample(KEY, shape=(2, 3), low=-2, high=9)],
    "random_permutation": [Sample(KEY, n=5)],
    "random_split": [Sample(KEY, X), Sample(KEY, X[0])],
    "random_gamma": [
        Sample(KEY, positive(3))
        .without(
            "gradients",
            "second order",
            reason="implicit: a draw jumps, its distribution does not",
        )
        .without("float32", reason=PRECISION),
    ],
    "random_gamma_slope": [
        Sample(positive(3), positive(3))
        .fed_through(lambda a, z: (gt.stop_gradient(a), gt.stop_gradient(z)))
        .without(
            "gradients", "second order", reason="its derivative is unknown; the error says so"
        ),
    ],
}
