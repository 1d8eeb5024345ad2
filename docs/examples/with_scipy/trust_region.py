"""Train a model by SciPy's Newton method in a trust region, which wants products with the Hessian.

``scipy.optimize`` sees one vector of weights; ``gt.flatten`` makes it of a model's variables, and
returns the inverse function. Nothing as large as the Hessian is ever made.

Needs SciPy: ``pip install "gradtape[scipy]"``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize

import gradtape as gt


def data() -> tuple[gt.Tensor, gt.Tensor]:
    """Return 60 noisy observations of a function of two variables.

    They are in double precision, for which SciPy's tolerances are made.
    """
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (60, 2))
    y = np.sin(3.0 * x[:, :1]) * x[:, 1:] + 0.01 * rng.standard_normal((60, 1))
    return gt.constant(x), gt.constant(y)


def network() -> gt.Module:
    """Return a small network, whose weights will have the dtype of its first input."""
    return gt.layers.Sequential([gt.layers.Dense(8, activation="tanh"), gt.layers.Dense(1)])


def train(model: gt.Module, x: gt.Tensor, y: gt.Tensor, decay: float = 1e-4) -> OptimizeResult:
    """Minimize a model's squared error, plus ``decay`` times its squared weights.

    Parameters
    ----------
    model
        A model that has been called once, so that it has weights.
    x, y
        Inputs and targets of the model.
    decay
        How much weights cost. It keeps them from running off where the error no longer falls.

    Returns
    -------
    What ``scipy.optimize.minimize`` found. The model has the weights that it found.
    """
    weights = model.trainable_variables
    start, unflatten = gt.flatten(weights)

    def put(vector: Any) -> None:
        for weight, value in zip(weights, unflatten(vector), strict=True):
            weight.assign(value)

    @gt.function
    def loss_and_gradient() -> tuple[gt.Tensor, gt.Tensor]:
        with gt.GradientTape() as tape:
            loss = gt.mean((model(x) - y) ** 2) + decay * sum(gt.sum(w * w) for w in weights)
        return loss, gt.flatten(tape.gradient(loss, weights))[0]

    @gt.function
    def push(direction: gt.Tensor) -> gt.Tensor:
        # the tangent of the gradient: forward over reverse mode
        with gt.ForwardAccumulator(weights, unflatten(direction)) as accumulator:
            _, gradient = loss_and_gradient()
        return accumulator.jvp(gradient)

    def value(vector: Any) -> tuple[gt.Tensor, gt.Tensor]:
        put(vector)
        return loss_and_gradient()

    def product(vector: Any, direction: Any) -> gt.Tensor:
        put(vector)
        return push(direction)

    found = minimize(value, start, method="trust-ncg", jac=True, hessp=product)
    put(found.x)
    return found


def main() -> None:
    """Train a small network, and say how far it came."""
    gt.random.set_seed(0)
    x, y = data()
    model = network()
    before = gt.mean((model(x) - y) ** 2).item()
    found = train(model, x, y)
    after = gt.mean((model(x) - y) ** 2).item()
    print(f"weights: {found.x.size}")
    print(f"mean squared error: {before:.4f} -> {after:.4f}")
    print(f"steps: {found.nit}, products with the Hessian: {found.nhev}")
    print(f"largest element of the gradient: {np.abs(found.jac).max():.1e}")


if __name__ == "__main__":
    main()
