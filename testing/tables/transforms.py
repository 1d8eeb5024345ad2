"""Samples of Fourier transforms and of random numbers."""

from __future__ import annotations

import numpy as np

import gradtape as gt

from ..samples import Sample
from .drawing import complexes, positive, real

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
