"""Draw the pictures of docs/derivatives.md: ``python docs/pictures/draw_derivatives.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

import gradtape as gt

matplotlib.use("Agg")
from matplotlib import pyplot as plt

FOLDER = Path(__file__).parent


def hessian() -> None:
    """Draw the Hessian of a loss by the kernel of the first of two layers, 40 weights."""
    gt.random.set_seed(0)
    x = gt.random.normal((7, 5))
    first = gt.layers.Dense(8, activation="relu")
    second = gt.layers.Dense(10, activation="relu")
    second(first(x))  # makes the weights
    with gt.GradientTape() as outer:
        with gt.GradientTape() as inner:
            loss = gt.mean(second(first(x)) ** 2)
        slope = inner.gradient(loss, first.kernel)
    h = outer.jacobian(slope, first.kernel)
    axes = gt.plot.jacobian(h.reshape((40, 40)))
    axes.set(title="Hessian by the 5 by 8 kernel of a layer", xlabel="weight", ylabel="weight")
    save("hessian")


def patches() -> None:
    """Draw all pairs of examples, of a layer and of the same after batch normalization."""
    gt.random.set_seed(1)
    x = gt.random.normal((7, 5))
    dense, norm = gt.layers.Dense(6, activation="elu"), gt.layers.BatchNorm()
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = dense(x)
        z = norm(y, training=True)
    gt.plot.jacobian(tape.jacobian(y, x), left).set_title("Dense: examples are independent")
    gt.plot.jacobian(tape.jacobian(z, x), right).set_title("BatchNorm in training: they are not")
    save("patches")


def band() -> None:
    """Draw the Jacobian of a step of diffusion, and what compressed seeds find of it."""
    x = gt.constant(np.linspace(0.0, 3.0, 12))

    def step(u: gt.Tensor) -> gt.Tensor:
        inside = u[1:-1] + 0.3 * (u[2:] ** 2 - 2.0 * u[1:-1] ** 2 + u[:-2] ** 2)
        return gt.concatenate([u[:1], inside, u[-1:]])

    _, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    gt.plot.jacobian(gt.jacrev(step)(x), left).set_title("12 rows went back")
    compressed = gt.jacobian(step, structure="banded(1)")(x)
    gt.plot.jacobian(compressed, right).set_title('"banded(1)": 3 rows went back')
    save("band")


def save(name: str) -> None:
    """Write the current figure, and close it."""
    plt.savefig(FOLDER / f"{name}.png", dpi=80, bbox_inches="tight", metadata={"Software": None})
    plt.close()


if __name__ == "__main__":
    hessian()
    patches()
    band()
