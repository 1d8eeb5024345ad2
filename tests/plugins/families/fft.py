"""Fourier transforms."""

from __future__ import annotations

import numpy as np

import gradtape as gt

from .family import Family, each

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 5))
Y = RNG.standard_normal((2, 4, 3))
Z = RNG.standard_normal((3, 5)) + 1j * RNG.standard_normal((3, 5))
W = RNG.standard_normal((2, 4, 3)) + 1j * RNG.standard_normal((2, 4, 3))

# name, input, arguments
CALLS = [
    *((name, x, {"norm": norm}) for name in ("fft", "ifft") for x in (X, Z)
      for norm in (None, "ortho", "forward")),
    *((name, x, {"n": n, "axis": 0}) for name in ("fft", "ifft") for x in (X, Z) for n in (2, 4)),
    *(("rfft", X, {"n": n, "norm": norm}) for n in (None, 4, 7) for norm in ("backward", "ortho")),
    ("rfft", Y, {"axis": 1, "norm": "forward"}),
    *(("irfft", Z, {"n": n, "norm": norm}) for n in (None, 5, 6, 9, 12)
      for norm in ("backward", "ortho", "forward")),
    ("irfft", X, {"axis": 0}),
    ("hfft", Z, {}),
    ("hfft", Z, {"n": 7, "norm": "ortho"}),
    ("ihfft", X, {}),
    ("ihfft", X, {"n": 4, "axis": 0, "norm": "forward"}),
    *((name, W, {}) for name in ("fftn", "ifftn", "fft2", "ifft2", "irfftn", "irfft2")),
    *((name, Y, {}) for name in ("fftn", "ifftn", "fft2", "ifft2", "rfftn", "rfft2")),
    ("fftn", W, {"s": (3, 5), "axes": (0, 2), "norm": "ortho"}),
    ("fftn", W, {"axes": (1,)}),
    ("fft2", Y, {"s": (-1, 2)}),
    ("rfftn", Y, {"s": (3, 3), "axes": (2, 0), "norm": "forward"}),
    ("rfft2", Y, {"s": (5, 4)}),
    ("irfftn", W, {"s": (3, 3), "axes": (0, 1)}),
    ("irfft2", W, {"s": (4, 5), "norm": "ortho"}),
    *((name, x, {}) for name in ("fftshift", "ifftshift") for x in (X, W)),
    *((name, X, {"axes": axes}) for name in ("fftshift", "ifftshift") for axes in (1, (0, -1))),
]  # fmt: skip


SAMPLES = {
    f"{name} {x.dtype} {x.shape} {arguments}": (*each(f"fft.{name}", **arguments), [x])
    for name, x, arguments in CALLS
}
KERNELS = [
    ("fftn", (W,), {"axes": (0, 2), "norm": "ortho"}),
    ("ifftn", (Y,), {"axes": (-1,), "norm": "forward"}),
    ("rfft", (Y,), {"axis": 1, "norm": "backward"}),
    ("rfft_adjoint", (W[..., :2], Y), {"axis": -1, "norm": "ortho"}),
    ("irfft", (W,), {"n": None, "axis": 1, "norm": "backward"}),
    ("irfft_adjoint", (Y,), {"n": 3, "axis": -1, "norm": "backward"}),
    ("crop_or_pad", (Y,), {"sizes": (1, 5), "axes": (0, -1)}),
    ("crop_or_pad_like", (Y, X), {"axes": (-1,)}),
    ("fftshift", (Y,), {"axes": None, "inverse": True}),
]

ERRORS = [
    (lambda x: gt.fft.fft(x, axis=2), ValueError, "fft.*axis 2"),
    (lambda x: gt.fft.fft(x, n=0), ValueError, "fft.*at least 1, got 0"),
    (lambda x: gt.fft.fft(x, norm="up"), ValueError, "fft.*norm.*'up'"),
    (lambda x: gt.fft.fft(x[:, :0]), ValueError, r"fft.*\(3, 0\).*no points"),
    (lambda x: gt.fft.fft(x, axis=(0, 1)), TypeError, "fft.*integer"),
    (lambda x: gt.fft.rfft(gt.fft.fft(x)), TypeError, "rfft.*complex128.*use fft"),
    (lambda x: gt.fft.fftn(x, s=(3,), axes=(0, 1)), ValueError, "fftn.*sizes"),
    (lambda x: gt.fft.rfftn(x, axes=()), ValueError, "rfftn.*at least one axis"),
    (lambda x: gt.fft.fftshift(x, 3), ValueError, "fftshift.*axis 3"),
]

FAMILY = Family(
    samples=SAMPLES,
    errors=ERRORS,
    given=[X],
    values={"rtol": 1e-12, "atol": 1e-13},
    runs={"rtol": 1e-12, "atol": 1e-13},
    precisions=("float32", "float64"),
    kernels=KERNELS,
)
