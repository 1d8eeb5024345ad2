"""Pictures of training: runs as curves, confusion matrices, distributions of weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.extend import Module, hookimpl, parameters
from ..training import EarlyStopping, History, metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BLUE", "GREY", "INK", "ORANGE", "bare", "current_axes", "pyplot"]

BLUE, ORANGE, GREY, INK = "#2a6f97", "#e07a3f", "#9aa5b1", "#333333"


def pyplot(who: str) -> Any:
    """Return Matplotlib's ``pyplot``.

    Parameters
    ----------
    who
        The name of the calling function, for messages.

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        raise ImportError(
            f'{who}: Matplotlib is not installed: pip install "gradtape[plot]"'
        ) from error
    return pyplot


def current_axes(who: str) -> Axes:
    """Return the current axes of ``pyplot``; raise the errors of :func:`pyplot`."""
    axes: Axes = pyplot(who).gca()
    return axes


def bare(axes: Any) -> None:
    """Remove the upper and right spines of a chart, and soften its ticks."""
    axes.tick_params(colors=INK, labelsize=9)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


# -- runs as curves --------------------------------------------------------------------------------


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


# -- confusion matrices ----------------------------------------------------------------------------


#: The largest number of classes for which the cells show numbers.
_MOST_NUMBERS = 20
_MOST_CLASSES = 10_000


def confusion(
    labels: Any,
    predictions: Any,
    names: Sequence[str] | None = None,
    normalize: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw a confusion matrix: a row for each true class, a column for each predicted one.

    Parameters
    ----------
    labels
        The true classes, of shape ``(n,)``: integers from 0, or words.
    predictions
        The predicted classes in the same form, or scores of shape ``(n, classes)``, whose largest
        value selects the class.
    names
        The classes' names. By default, their numbers or words.
    normalize
        Whether cells show shares of the true class instead of counts. False by default.
    ax
        The Matplotlib axes to draw in. By default, those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. ``axes.figure.savefig(path)`` writes them to a file.

    Raises
    ------
    ValueError
        If the lengths differ, if there are no examples, if there are fewer names than classes, or
        if labels or predictions are not classes but, for example, probabilities.
    ImportError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> axes = gt.plot.confusion([0, 1, 1], [0, 0, 1], ax=Figure().add_subplot())
    >>> [text.get_text() for text in axes.texts]
    ['1', '0', '1', '1']
    """
    true, found = np.asarray(labels), np.asarray(predictions)
    classes = 0
    if found.ndim == 2 and true.ndim == 1:
        classes, found = found.shape[1], _largest(found)
    if true.ndim != 1 or true.shape != found.shape or not true.size:
        raise ValueError(
            "plot.confusion: labels must have shape (n,) and predictions shape (n,) or "
            f"(n, classes), with n > 0; got {np.shape(labels)} and {np.shape(predictions)}"
        )
    true, found = _classes("labels", true), _classes("predictions", found)
    if (true.dtype.kind in "iu") != (found.dtype.kind in "iu"):
        raise ValueError(
            f"plot.confusion: labels such as {true[0]} and predictions such as {found[0]} are not "
            "the same classes; pass numbers for both, or words"
        )
    if true.dtype.kind not in "iu":
        words, codes = np.unique(np.concatenate([true, found]), return_inverse=True)
        true, found = codes[: len(true)], codes[len(true) :]
        names = [str(word) for word in words] if names is None else names
    classes = max(classes, int(max(true.max(), found.max())) + 1, len(names or ()))
    if names is not None and len(names) < classes:
        raise ValueError(
            f"plot.confusion: got {len(names)} names for {classes} classes; pass one for each class"
        )
    if classes > _MOST_CLASSES:
        raise ValueError(
            f"plot.confusion: the largest class is {classes - 1}; classes are numbered from 0, and "
            f"at most {_MOST_CLASSES} can be drawn"
        )
    counts = metrics.confusion_matrix(true, found, classes).numpy()
    if ax is None:
        ax = pyplot("plot.confusion").subplots(layout="constrained")[1]
    _draw(ax, counts, names, normalize)
    return ax


def _largest(scores: Any) -> Any:
    """Return the class with the largest score of each example."""
    if scores.shape[1] == 1:
        raise ValueError(
            f"plot.confusion: predictions of shape {scores.shape} have one score for each example "
            "and not its class; pass (scores[:, 0] > 0.5), or > 0 for logits"
        )
    if scores.dtype.kind == "f" and np.isnan(scores).any():
        raise ValueError("plot.confusion: the predictions contain nan, which is not a score")
    return scores.argmax(axis=1)


def _classes(what: str, values: Any) -> Any:
    """Return classes as integers from 0, or as words."""
    if values.dtype.kind == "b":
        return values.astype("int64")
    if values.dtype.kind == "f":
        wrong = values[~(np.abs(values) < 2**31) | (values != np.trunc(values))]
        if wrong.size:
            raise ValueError(
                f"plot.confusion: {what} must be classes, got numbers such as {wrong[0]}; of "
                "probabilities of two classes, pass (p > 0.5)"
            )
        values = values.astype("int64")
    if values.dtype.kind in "iu" and values.min() < 0:
        raise ValueError(f"plot.confusion: {what} must be classes from 0, got {values.min()}")
    if values.dtype.kind == "O" and not all(isinstance(x, str) for x in values):
        raise ValueError(f"plot.confusion: {what} must be integers or words, got {values[:3]}")
    return values


def _draw(ax: Axes, counts: Any, names: Sequence[str] | None, normalize: bool) -> None:
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(totals, 1)
    ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    classes = len(counts)
    if classes <= _MOST_NUMBERS:
        for (i, j), share in np.ndenumerate(shares):
            text = f"{share:.2f}" if normalize else f"{counts[i, j]:.0f}"
            colour = "white" if share > 0.55 else INK if counts[i, j] else "0.75"
            ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=9)
        ticks = names or range(classes)
        long = names is not None and max(map(len, names)) > 3
        turned: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if long else {}
        ax.set_xticks(range(classes), [str(x) for x in ticks][:classes], **turned)
        ax.set_yticks(range(classes), [str(x) for x in ticks][:classes])
    ax.tick_params(colors=INK, labelsize=9, length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="predicted", ylabel="true")
    right = float(np.trace(counts) / counts.sum())
    ax.set_title(f"accuracy {right:.1%}", loc="left", color=INK, fontsize=11, fontweight="bold")


# -- distributions of weights ----------------------------------------------------------------------


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


@hookimpl(trylast=True)
def gradtape_services() -> dict[str, Callable[..., Any]]:
    """Provide the curves of a run, which ``gradtape demo`` draws."""
    return {"plot.history": history}
