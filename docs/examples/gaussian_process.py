"""The marginal likelihood of a Gaussian process, in plain NumPy.

``y ~ N(0, K + s² I)`` with the squared exponential kernel ``K``; see Rasmussen and Williams,
*Gaussian Processes for Machine Learning* (2006), equation 5.8.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def program(log_length: Any, log_amplitude: Any, log_noise: Any, x: Any, y: Any) -> Any:
    """Return minus the log marginal likelihood of ``y``, observed at ``x`` (both of shape (n,))."""
    squared = (x[:, None] - x[None, :]) ** 2
    kernel = np.exp(2.0 * log_amplitude - 0.5 * squared * np.exp(-2.0 * log_length))
    covariance = kernel + np.exp(2.0 * log_noise) * np.eye(len(x))
    _, log_determinant = np.linalg.slogdet(covariance)
    fit = np.dot(y, np.linalg.solve(covariance, y))
    return 0.5 * (fit + log_determinant + len(x) * np.log(2.0 * np.pi))


def inputs() -> dict[str, Any]:
    """Return noisy values of a sine at twelve points, and a first guess of the parameters."""
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 5.0, 12)
    return {
        "log_length": np.array(0.1),
        "log_amplitude": np.array(-0.2),
        "log_noise": np.array(-1.0),
        "x": x,
        "y": np.sin(x) + 0.1 * rng.standard_normal(12),
    }


if __name__ == "__main__":
    import gradtape as gt

    arguments = {name: gt.constant(value) for name, value in inputs().items()}
    with gt.GradientTape() as tape:
        tape.watch(arguments)
        loss = program(**arguments)
    print(f"loss {loss.item():.4f}")
    for name, gradient in tape.gradient(loss, arguments).items():
        print(f"{name}: {gradient.numpy()}")
