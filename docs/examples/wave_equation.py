"""Waves on a periodic plane, in plain NumPy.

``u_tt = c² (u_xx + u_yy)`` with second-order differences in space and time (the leapfrog scheme);
see LeVeque, *Finite Difference Methods for Ordinary and Partial Differential Equations* (2007).
The gradient says how the speed of the medium changes what a sensor hears.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def laplacian(u: Any) -> Any:
    """Return the five-point Laplacian of ``u`` on a grid of unit spacing."""
    around = sum(np.roll(u, shift, axis) for axis in (0, 1) for shift in (-1, 1))
    return around - 4.0 * u


def program(start: Any, speed: Any, steps: int = 12, time_step: float = 0.5) -> Any:
    """Return the energy heard in one corner of the plane.

    ``start`` (n, m) is the shape of the wave at rest, ``speed`` (n, m) the medium's.
    """
    before = now = start
    push = (time_step * speed) ** 2
    heard = 0.0
    for _ in range(steps):
        before, now = now, 2.0 * now - before + push * laplacian(now)
        heard = heard + np.mean(now[:2, :2] ** 2)
    return heard


def inputs() -> dict[str, Any]:
    """Return a bump in the middle of a plane in which waves run unevenly."""
    rng = np.random.default_rng(3)
    row, column = np.meshgrid(np.arange(7.0), np.arange(6.0), indexing="ij")
    return {
        "start": np.exp(-0.5 * ((row - 3.0) ** 2 + (column - 3.0) ** 2)),
        "speed": 1.0 + 0.1 * rng.standard_normal((7, 6)),
    }


if __name__ == "__main__":
    import gradtape as gt

    arguments = {name: gt.constant(value) for name, value in inputs().items()}
    with gt.GradientTape() as tape:
        tape.watch(arguments)
        heard = program(**arguments)
    print(f"heard {heard.item():.4f}")
    for name, gradient in tape.gradient(heard, arguments).items():
        print(f"{name}:\n{gradient.numpy()}")
