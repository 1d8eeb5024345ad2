"""Draw the pictures of docs/derivatives.md: ``python docs/pictures/draw_derivatives.py [FOLDER]``.

Needs Matplotlib. The pictures stand beside this file unless another folder is given.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import gradtape as gt


def hessian() -> Figure:
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
    figure, ax = plt.subplots(figsize=(5.3, 4.4), layout="constrained")
    gt.plot.jacobian(h.reshape((40, 40)), ax)
    ax.set(title="Hessian by the 5 by 8 kernel of a layer", xlabel="weight", ylabel="weight")
    return figure


def patches() -> Figure:
    """Draw all pairs of examples, of a layer and of the same after batch normalization."""
    gt.random.set_seed(1)
    x = gt.random.normal((7, 5))
    dense, norm = gt.layers.Dense(6, activation="elu"), gt.layers.BatchNorm()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = dense(x)
        z = norm(y, training=True)
    gt.plot.jacobian(tape.jacobian(y, x), left).set_title("Dense: examples are independent")
    gt.plot.jacobian(tape.jacobian(z, x), right).set_title("BatchNorm in training: they are not")
    return figure


def band() -> Figure:
    """Draw the Jacobian of a step of diffusion, and what compressed seeds find of it."""
    x = gt.constant(np.linspace(0.0, 3.0, 12))

    def step(u: gt.Tensor) -> gt.Tensor:
        inside = u[1:-1] + 0.3 * (u[2:] ** 2 - 2.0 * u[1:-1] ** 2 + u[:-2] ** 2)
        return gt.concatenate([u[:1], inside, u[-1:]])

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    gt.plot.jacobian(gt.jacrev(step)(x), left).set_title("12 rows went back")
    compressed = gt.jacobian(step, structure="banded(1)")(x)
    gt.plot.jacobian(compressed, right).set_title('"banded(1)": 3 rows went back')
    return figure


def main(folder: Path) -> None:
    """Write all pictures."""
    for make in (hessian, patches, band):
        figure = make()
        figure.savefig(folder / f"{make.__name__}.png", dpi=80, metadata={"Software": None})
        plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
