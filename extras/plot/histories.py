"""Training runs as curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ..training import EarlyStopping, History
from .axes import BLUE, INK, ORANGE, bare, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A loss whose largest and smallest values have a larger ratio gets a logarithmic scale.
_WIDE = 20.0
#: The most charts in a row, the most epochs that get dots, and the longest title in characters.
_ACROSS, _DOTS, _TITLE = 3, 60, 38


class Charts(list["Axes"]):
    """The axes of charts in one figure."""

    @property
    def figure(self) -> Any:
        """The Matplotlib figure."""
        return self[0].figure

    def savefig(self, *args: Any, **options: Any) -> None:
        """Write the figure to a file: Matplotlib's :meth:`~matplotlib.figure.Figure.savefig`."""
        self.figure.savefig(*args, **options)


def history(
    run: Any, names: Sequence[str] | None = None, axes: Sequence[Axes] | None = None
) -> Charts:
    """Draw the values of a training run by epoch, with a chart for the loss and each metric.

    Parameters
    ----------
    run
        The result of :func:`gradtape.training.fit`, or a dictionary of lists with one number per
        epoch, such as its ``history`` or that of an estimator in :mod:`gradtape.sklearn`.
    names
        The values to draw, such as ``"loss"``. All by default. Training and validation values of
        the same name are in one chart.
    axes
        The Matplotlib axes to draw in, one for each name. By default, those of a new figure.

    Returns
    -------
    list of matplotlib.axes.Axes
        The axes; ``savefig(path)`` of the list writes their figure to a file. The best validation
        value is marked, or the best training value if there is no validation, provided that the
        name determines whether larger is better.

    Raises
    ------
    TypeError
        If ``run`` is something else, or a value in it is not a number.
    ValueError
        If the run has no values of a name or no finished epoch, or if the numbers of axes and names
        differ.
    ImportError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> losses = {"loss": [3.0, 2.0, 1.0], "val_loss": [3.0, 2.0, 2.5]}
    >>> axes = gt.plot.history(losses, axes=[Figure().add_subplot()])
    >>> [line.get_label() for line in axes[0].lines[:2]]
    ['training', 'validation']
    """
    held = getattr(run, "history", run)
    if not isinstance(held, Mapping):
        raise TypeError(
            f"plot.history: expected what fit returned, or a dictionary of lists, got {run!r:.80}"
        )
    values = {str(name): _column(name, column) for name, column in held.items()}
    if not any(map(len, values.values())):
        raise ValueError("plot.history: the run has no finished epoch; train for at least one")
    if names is None:
        names = list(dict.fromkeys(name.removeprefix("val_") for name in values))
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise ValueError(f"plot.history: names is empty; there are {', '.join(values)}")
    for name in names:
        if name not in values and f"val_{name}" not in values:
            raise ValueError(f"plot.history: there is no {name!r}; there are {', '.join(values)}")
    if axes is None:
        across = min(len(names), _ACROSS)
        down = -(-len(names) // across)
        _, made = pyplot("plot.history").subplots(
            down,
            across,
            figsize=(4.5 * across, 3.4 * down),
            layout="constrained",
            squeeze=False,
        )
        axes = list(made.flat)[: len(names)]
        for ax in made.flat[len(names) :]:
            ax.set_axis_off()
    axes = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(axes) != len(names):
        raise ValueError(
            f"plot.history: got {len(axes)} axes for {len(names)} names; pass one for each name"
        )
    for name, ax in zip(names, axes):
        _chart(ax, name, values, run.epochs_of if isinstance(run, History) else {})
    return Charts(axes)


def _column(name: str, values: Any) -> Any:
    """Return the values of one name as an array, with a number for each epoch."""
    with suppress(TypeError, ValueError):
        column = np.asarray(values, dtype="float64")
        if column.ndim == 1:
            return column
    raise TypeError(
        f"plot.history: {name!r} must be a list with a number for each epoch, got {values!r:.80}"
    )


def _chart(ax: Axes, name: str, values: Mapping[str, Any], epochs: Mapping[str, Any]) -> None:
    """Draw the training and validation values of one name."""
    from matplotlib.ticker import MaxNLocator

    last: tuple[Any, Any, str] | None = None
    for key, colour, label in (
        (name, BLUE, "training"),
        (f"val_{name}", ORANGE, "validation"),
    ):
        if key not in values:
            continue
        column = values[key]
        at = np.asarray(epochs.get(key, range(len(column))))
        dots = "o" if len(column) <= _DOTS else ""
        ax.plot(at + 1, column, color=colour, label=label, lw=2, marker=dots, ms=3)
        last = at + 1, column, colour
    if last is not None and np.isfinite(last[1]).any():
        _mark_best(ax, name, *last)
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype="float64") for line in ax.lines])
    if name.endswith("loss") and drawn.min() > 0 and drawn.max() > _WIDE * drawn.min():
        ax.set_yscale("log")
    size = 11 * min(1.0, _TITLE / max(len(name), 1))
    ax.set_title(name, loc="left", color=INK, fontsize=size, fontweight="bold")
    ax.set_xlabel("epoch", color=INK)
    if last is not None and len(last[0]) == 1:
        ax.set_xticks(last[0])
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(axis="y", color="#dddddd", lw=0.8)
    bare(ax)
    ax.legend(frameon=False, labelcolor=INK, fontsize=9)


def _mark_best(ax: Axes, name: str, epochs: Any, column: Any, colour: str) -> None:
    """Put a ring around the best value, if the name determines which one that is."""
    try:
        larger = EarlyStopping(monitor=name).larger_is_better
    except ValueError:
        return
    place = int(np.nanargmax(column) if larger else np.nanargmin(column))
    ax.plot(
        epochs[place],
        column[place],
        marker="o",
        ms=10,
        mfc="none",
        mec=colour,
        mew=1.5,
        ls="none",
        label=f"best: {column[place]:.4g}, epoch {epochs[place]}",
    )
