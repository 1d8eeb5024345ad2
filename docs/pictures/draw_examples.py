"""Draw the pictures of the examples in plain NumPy: ``python docs/pictures/draw_examples.py``.

Each shows what the program was given and the gradient of its result. Needs Matplotlib.
"""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("svg")
import matplotlib.pyplot as plt

import gradtape as gt

PICTURES = Path(__file__).resolve().parent
WIDTH, HEIGHT = 4.8, 2.4


def gradients(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an example's inputs, and the gradient of its result with respect to each."""
    example = run_path(str(PICTURES.parent / "examples" / f"{name}.py"))
    given = example["inputs"]()
    tensors = {name: gt.constant(value) for name, value in given.items()}
    with gt.GradientTape() as tape:
        tape.watch(tensors)
        result = example["program"](**tensors)
    return given, {name: g.numpy() for name, g in tape.gradient(result, tensors).items()}


def wave(axes: Any) -> None:
    """Draw how the speed of the medium changes what the corner hears."""
    given, found = gradients("wave_equation")
    axes[0].imshow(given["start"], cmap="viridis")
    axes[0].set_title("the wave at rest")
    most = np.abs(found["speed"]).max()
    axes[1].imshow(found["speed"], cmap="RdBu", vmin=-most, vmax=most)
    axes[1].set_title("gradient: the speed")


def mixture(axes: Any) -> None:
    """Draw where each point would go to make the likelihood larger."""
    given, found = gradients("gaussian_mixture")
    axes[0].scatter(*given["points"].T, s=14)
    axes[0].scatter(*given["means"].T, marker="x", color="C3")
    axes[0].set_title("points, first means (x)")
    axes[1].quiver(*given["points"].T, *found["points"].T, color="C0", angles="xy")
    axes[1].set_title("gradient: the points")


def process(axes: Any) -> None:
    """Draw the observations, and how each changes the marginal likelihood."""
    given, found = gradients("gaussian_process")
    axes[0].plot(given["x"], given["y"], "o", markersize=4)
    axes[0].set_title("observations")
    axes[1].bar(given["x"], found["y"], width=0.3)
    axes[1].set_title("gradient: the observations")


def kalman(axes: Any) -> None:
    """Draw the observations, and how each changes the likelihood."""
    given, found = gradients("kalman_filter")
    times = np.arange(len(given["observations"]))
    axes[0].plot(times, given["observations"][:, 0], "o-", markersize=4)
    axes[0].set_title("observations in time")
    axes[1].bar(times, found["observations"][:, 0])
    axes[1].set_title("gradient: the observations")


def fft(axes: Any) -> None:
    """Draw a signal, and the gradient with respect to it."""
    given, found = gradients("fft_convolution")
    axes[0].plot(given["signal"], drawstyle="steps-mid")
    axes[0].set_title("the signal")
    axes[1].plot(found["signal"], drawstyle="steps-mid", color="C3")
    axes[1].set_title("gradient: the signal")


DRAWN = {
    "wave_equation": wave,
    "gaussian_mixture": mixture,
    "gaussian_process": process,
    "kalman_filter": kalman,
    "fft_convolution": fft,
}


def main() -> None:
    """Draw them all."""
    with mpl.rc_context({"font.size": 8, "svg.hashsalt": "gradtape", "svg.fonttype": "none"}):
        for name, draw in DRAWN.items():
            figure, axes = plt.subplots(1, 2, figsize=(WIDTH, HEIGHT), layout="constrained")
            draw(axes)
            figure.savefig(PICTURES / f"{name}.png", dpi=110, metadata={"Software": None})
            plt.close(figure)


if __name__ == "__main__":
    main()
