"""The distribution of a model's weights, variable by variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.extend import Module, parameters
from .axes import BLUE, INK, ORANGE, bare, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def weights(model: Module, ax: Axes | None = None) -> Axes:
    """Draw the distribution of values in each variable of a model, with a row for each.

    Parameters
    ----------
    model
        A model, or another module whose variables exist already.
    ax
        The Matplotlib axes to draw in. By default, those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. A thin line reaches from the smallest to the largest value, a thick line covers
        the middle half, and a point marks the median. If a variable contains nan or infinity, its
        label says so and only its finite values are drawn. Variables that are not trainable are
        orange. ``axes.figure.savefig(path)`` writes them to a file.

    Raises
    ------
    TypeError
        If ``model`` is not a module.
    ValueError
        If it has no variables yet.
    ImportError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> layer = gt.layers.Dense(3)
    >>> _ = layer(gt.ones((1, 2)))
    >>> axes = gt.plot.weights(layer, Figure().add_subplot())
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['kernel (2, 3)', 'bias (3,)']
    """
    if not isinstance(model, Module):
        raise TypeError(f"plot.weights: expected a model or another module, got {model!r}")
    held = set(map(id, parameters(model)))
    rows = [(path, v) for path, v in model.named_variables.items() if id(v) in held and v.size]
    if not rows:
        raise ValueError(
            f"plot.weights: {model.name!r} has no variables to draw; if it is not built yet, call "
            "it first"
        )
    if ax is None:
        size = (7.0, 0.9 + 0.32 * len(rows))
        ax = pyplot("plot.weights").subplots(figsize=size, layout="constrained")[1]
    training = set(map(id, model.trainable_variables))
    labels = []
    for place, (path, variable) in enumerate(rows):
        values = np.asarray(variable.numpy()).ravel()
        values = np.abs(values) if values.dtype.kind == "c" else values.astype("float64")
        finite = values[np.isfinite(values)]
        lost = "" if len(finite) == len(values) else f", {len(values) - len(finite)} not finite"
        labels.append(f"{path} {tuple(variable.shape)}{lost}")
        colour = BLUE if id(variable) in training else ORANGE
        if len(finite):
            low, first, middle, third, high = np.quantile(finite, [0, 0.25, 0.5, 0.75, 1])
            ax.hlines(place, low, high, color=colour, lw=1.5)
            ax.hlines(place, first, third, color=colour, lw=7, alpha=0.6)
            ax.plot(middle, place, "o", color=INK, ms=3.5)
    ax.set_yticks(range(len(rows)), labels)
    ax.set_ylim(len(rows) - 0.5, -0.5)  # the first row at the top
    ax.axvline(0.0, color="#dddddd", lw=1, zorder=0)
    _frame(ax)
    return ax


def _frame(ax: Any) -> None:
    bare(ax)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("value", color=INK)
