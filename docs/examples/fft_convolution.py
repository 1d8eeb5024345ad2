"""How far a blurred signal is from what was measured, by convolution with NumPy's FFT.

A linear convolution is a circular one of signals padded with zeros, which is a product of
transforms; see Oppenheim and Schafer, *Discrete-Time Signal Processing* (2010), section 8.7.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def convolve(signal: Any, kernel: Any) -> Any:
    """Return the full linear convolution of two vectors."""
    size = signal.shape[0] + kernel.shape[0] - 1
    return np.fft.irfft(np.fft.rfft(signal, size) * np.fft.rfft(kernel, size), size)


def program(signal: Any, kernel: Any, measured: Any) -> Any:
    """Return the squared distance of ``signal * kernel`` from ``measured``, with a penalty.

    The penalty is on the power of the signal's upper half of frequencies. ``measured`` has
    ``len(signal) + len(kernel) - 1`` elements.
    """
    spectrum = np.fft.fft(signal, norm="ortho")
    rough = np.abs(spectrum[signal.shape[0] // 4 : -(signal.shape[0] // 4)]) ** 2
    return np.sum((convolve(signal, kernel) - measured) ** 2) + 0.1 * np.sum(rough)


def inputs() -> dict[str, Any]:
    """Return a guess of a signal of ten samples, a kernel of four, and a noisy measurement."""
    rng = np.random.default_rng(4)
    kernel = np.array([0.1, 0.5, 0.3, 0.1])
    signal = rng.standard_normal(10)
    return {
        "signal": 0.5 * rng.standard_normal(10),
        "kernel": kernel,
        "measured": np.convolve(signal, kernel) + 0.05 * rng.standard_normal(13),
    }


if __name__ == "__main__":
    import gradtape as gt

    arguments = {name: gt.constant(value) for name, value in inputs().items()}
    with gt.GradientTape() as tape:
        tape.watch(arguments)
        distance = program(**arguments)
    print(f"distance {distance.item():.4f}")
    for name, gradient in tape.gradient(distance, arguments).items():
        print(f"{name}: {gradient.numpy()}")
