"""Draw the pictures of the guides: ``python docs/pictures/draw.py [FOLDER]``.

Needs Matplotlib. The pictures stand beside this file unless another folder is given.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import gradtape as gt

START = (1.5, 0.9)


def sigmoid_slope() -> Figure:
    """Draw a sigmoid with its first and second derivative at every point."""
    x = gt.linspace(-8.0, 8.0, 201)
    shift = gt.Variable(0.0)
    with gt.GradientTape() as outer:
        with gt.GradientTape() as inner:
            y = gt.nn.sigmoid(x + shift)
        slope = inner.jacobian(y, shift)
    bend = outer.jacobian(slope, shift)
    figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for values, label in ((y, "sigmoid"), (slope, "slope"), (bend, "second derivative")):
        ax.plot(x, values, label=label)
    ax.set_xlabel("x")
    ax.legend()
    ax.grid(alpha=0.3)
    return figure


def batch_patches() -> Figure:
    """Draw the Jacobian of a batch without batch normalisation, and with it."""
    gt.random.set_seed(0)
    x = gt.random.normal((7, 5))
    first, norm, last = (
        gt.layers.Dense(8, activation="elu"),
        gt.layers.BatchNorm(),
        gt.layers.Dense(6, activation="elu"),
    )
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    for ax, title in zip(
        axes, ("each example by itself", "batch normalisation between"), strict=True
    ):
        with gt.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            h = first(x)
            y = last(norm(h, training=True) if ax is axes[1] else h)
        gt.plot.jacobian(tape.jacobian(y, x), ax=ax)
        ax.set_title(title)
    return figure


def valley(p: gt.Tensor) -> gt.Tensor:
    """Return a convex function of a point, much steeper across its valley than along it."""
    return gt.sum(gt.cosh(p @ gt.constant([[1.0, 0.4], [-2.0, 0.6]])), axis=-1)


def descent(steps: int, rate: float) -> NDArray[np.float32]:
    """Return the points that gradient descent visits."""
    path = [gt.constant(START)]
    for _ in range(steps):
        path.append(path[-1] - rate * gt.grad(valley)(path[-1]))
    return np.array([p.numpy() for p in path])


def newton(steps: int) -> NDArray[np.float32]:
    """Return the points that Newton's method visits."""
    path = [gt.constant(START)]
    for _ in range(steps):
        p = path[-1]
        path.append(p - gt.linalg.solve(gt.hessian(valley)(p), gt.grad(valley)(p)))
    return np.array([p.numpy() for p in path])


def newton_step() -> Figure:
    """Draw the paths of both methods over the function's contours."""
    figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
    contours(ax)
    for path, label, marker in (
        (descent(30, 0.3), "gradient descent, 30 steps", "."),
        (newton(5), "Newton, 5 steps", "o"),
    ):
        ax.plot(path[:, 0], path[:, 1], marker=marker, label=label)
    ax.plot(0.0, 0.0, "k*", markersize=10, label="minimum")
    ax.legend(loc="lower right")
    ax.set(xlabel="a", ylabel="b")
    return figure


def contours(ax: Axes) -> None:
    """Draw lines of equal values."""
    a, b = np.meshgrid(np.linspace(-0.8, 1.8, 120), np.linspace(-0.6, 1.2, 100))
    values = valley(gt.constant(np.stack([a, b], axis=-1).astype("float32"))).numpy()
    ax.contour(a, b, values, levels=np.geomspace(2.02, 12.0, 12), colors="0.8", linewidths=1)


def main(folder: Path) -> None:
    """Write all pictures."""
    for make in (sigmoid_slope, batch_patches, newton_step):
        figure = make()
        figure.savefig(folder / f"{make.__name__}.png", dpi=90, metadata={"Software": None})
        plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
