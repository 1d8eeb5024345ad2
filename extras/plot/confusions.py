"""Confusion matrices of classifiers as images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..training import metrics
from .axes import INK, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
