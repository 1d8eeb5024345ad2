"""The log-likelihood of a mixture of Gaussians after steps of EM, in plain NumPy.

The components have diagonal covariances; see Bishop, *Pattern Recognition and Machine Learning*
(2006), section 9.2. The gradient goes through the EM steps to where they started.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def logsumexp(x: Any, axis: int) -> Any:
    """Return ``log(sum(exp(x)))`` along an axis, without overflow."""
    largest = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(largest, axis) + np.log(np.sum(np.exp(x - largest), axis=axis))


def log_joint(points: Any, means: Any, deviations: Any, log_weights: Any) -> Any:
    """Return ``log p(point, component)``, of shape (points, components)."""
    scaled = (points[:, None, :] - means) / deviations
    density = -0.5 * np.sum(scaled**2 + np.log(2.0 * np.pi), axis=-1)
    return log_weights + density - np.sum(np.log(deviations), axis=-1)


def program(points: Any, means: Any, log_deviations: Any, logits: Any, steps: int = 2) -> Any:
    """Return the log-likelihood of ``points`` (n, d) after ``steps`` of EM.

    ``means`` and ``log_deviations`` are of shape (k, d); ``logits`` (k,) give the weights.
    """
    deviations = np.exp(log_deviations)
    log_weights = logits - logsumexp(logits, axis=0)
    for _ in range(steps):
        joint = log_joint(points, means, deviations, log_weights)
        shares = np.exp(joint - logsumexp(joint, axis=1)[:, None])
        counts = shares.sum(axis=0)
        means = np.einsum("nk,nd->kd", shares, points) / counts[:, None]
        squares = (points[:, None, :] - means) ** 2
        variances = np.einsum("nk,nkd->kd", shares, squares) / counts[:, None]
        deviations = np.sqrt(variances + 1e-3)
        log_weights = np.log(counts / len(points))
    return np.sum(logsumexp(log_joint(points, means, deviations, log_weights), axis=1))


def inputs() -> dict[str, Any]:
    """Return two clouds of six points in the plane, and three components."""
    rng = np.random.default_rng(2)
    clouds = [rng.standard_normal((6, 2)) - 1.0, 0.5 * rng.standard_normal((6, 2)) + 1.0]
    return {
        "points": np.concatenate(clouds),
        "means": np.array([[-1.0, -0.5], [0.3, 0.2], [1.0, 1.5]]),
        "log_deviations": np.array([[0.0, 0.1], [0.2, -0.1], [-0.3, 0.0]]),
        "logits": np.array([0.1, -0.2, 0.3]),
    }


if __name__ == "__main__":
    import gradtape as gt

    arguments = {name: gt.constant(value) for name, value in inputs().items()}
    with gt.GradientTape() as tape:
        tape.watch(arguments)
        likelihood = program(**arguments)
    print(f"log-likelihood {likelihood.item():.4f}")
    for name, gradient in tape.gradient(likelihood, arguments).items():
        print(f"{name}:\n{gradient.numpy()}")
