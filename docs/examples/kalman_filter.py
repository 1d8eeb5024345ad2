"""The log-likelihood of a linear Gaussian state-space model by a Kalman filter, in plain NumPy.

The state moves by ``z' = A z + N(0, Q)`` and is seen as ``y = C z + N(0, R)``; see Särkkä,
*Bayesian Filtering and Smoothing* (2013), theorems 4.2 and 12.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def program(
    transition: Any, emission: Any, process_factor: Any, log_noise: Any, observations: Any
) -> Any:
    """Return the log-likelihood of ``observations`` (times, outputs).

    ``transition`` (states, states) is A, ``emission`` (outputs, states) is C, ``process_factor``
    (states, states) a factor of Q, and ``log_noise`` (outputs,) the logarithms of R's deviations.
    """
    process = process_factor @ process_factor.T
    noise = np.exp(2.0 * log_noise) * np.eye(len(log_noise))
    mean = np.zeros(len(transition))
    covariance = np.eye(len(transition))
    total = 0.0
    for observed in observations:
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + process
        surprise = observed - emission @ mean
        spread = emission @ covariance @ emission.T + noise
        gain = np.linalg.solve(spread, emission @ covariance).T
        mean = mean + gain @ surprise
        covariance = covariance - gain @ spread @ gain.T
        _, log_determinant = np.linalg.slogdet(2.0 * np.pi * spread)
        total = total - 0.5 * (surprise @ np.linalg.solve(spread, surprise) + log_determinant)
    return total


def inputs() -> dict[str, Any]:
    """Return a slow rotation, of which one coordinate is seen eight times."""
    rng = np.random.default_rng(1)
    angle = 0.4
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return {
        "transition": 0.98 * turn,
        "emission": np.array([[1.0, 0.2]]),
        "process_factor": np.array([[0.2, 0.0], [0.05, 0.1]]),
        "log_noise": np.array([-1.2]),
        "observations": np.cos(angle * np.arange(8.0))[:, None] + 0.2 * rng.standard_normal((8, 1)),
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
