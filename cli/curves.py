"""The picture of the training curves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw"]

TRAINING, VALIDATION, INK = "#2a6f97", "#e07a3f", "#333333"


def draw(history: Mapping[str, NDArray[Any]], test_accuracy: float, path: Path) -> None:
    """Draw loss and accuracy by epoch, of training and validation images, as a PNG file.

    Parameters
    ----------
    history
        ``loss``, ``accuracy``, ``val_loss`` and ``val_accuracy``: one value per epoch each.
    test_accuracy
        The accuracy on the test images, shown as a level.
    path
        The file to write.

    Raises
    ------
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    # optional; without pyplot there is no window system to choose, and no global state to leave
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = Figure(figsize=(9, 3.8), dpi=150, layout="constrained")
    loss_axes, accuracy_axes = figure.subplots(1, 2)
    epochs = np.arange(1, len(history["loss"]) + 1)
    for axes, name, title in (
        (loss_axes, "loss", "Loss (cross-entropy)"),
        (accuracy_axes, "accuracy", "Accuracy"),
    ):
        for key, colour, label in (
            (name, TRAINING, "training"),
            (f"val_{name}", VALIDATION, "validation"),
        ):
            axes.plot(epochs, history[key], color=colour, label=label, lw=2, marker="o", ms=3)
        axes.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold")
        axes.set_xlabel("epoch", color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.tick_params(colors=INK, labelsize=9)
        axes.grid(axis="y", color="#dddddd", lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    loss_axes.set_yscale("log")
    accuracy_axes.axhline(
        test_accuracy, color=INK, lw=1, ls="--", label=f"test images: {test_accuracy:.1%}"
    )
    accuracy_axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    loss_axes.legend(frameon=False, labelcolor=INK, fontsize=9)
    accuracy_axes.legend(frameon=False, labelcolor=INK, fontsize=9, loc="lower right")
    figure.suptitle("Training on handwritten digits", x=0.01, ha="left", color=INK, fontsize=12)
    figure.savefig(path)
