"""Metrics: how good predictions are, not differentiated.

Functions have one value per example. Objects keep a running mean over batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from .. import losses
from ..losses.kinds import Kind
from . import confusion, functions, objects, scores
from .confusion import *
from .functions import *
from .objects import *
from .scores import *

__all__ = ["get"]
__all__ += confusion.__all__
__all__ += functions.__all__
__all__ += objects.__all__
__all__ += scores.__all__

_BINARY = {
    "accuracy": functions.accuracy,
    "binary_accuracy": functions.binary_accuracy,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(functions, name) for name in functions.__all__
}


def per_example(metric: Any, kind: Kind | None = None) -> Callable[[Any, Any], Any]:
    """Return what a metric is the mean of: a function with a value per example.

    Parameters
    ----------
    metric
        The name of a metric or of a loss; a function; or a metric object.
    kind
        What the loss beside it takes predictions for: ``accuracy`` of a binary loss is
        :func:`binary_accuracy`, with the threshold of logits if it takes logits.

    Returns
    -------
    A function whose ``__name__`` a history lists.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If it is an object that is no mean over examples, such as a root of one; or no metric.
    """
    if kind is not None and kind.classes == "binary":
        for name, known in _BINARY.items():
            if metric is known or (isinstance(metric, str) and metric == name):
                threshold = 0.0 if kind.from_logits else 0.5
                return called(objects.BinaryAccuracy(threshold).per_example, name)
    if isinstance(metric, str):
        function = _FUNCTIONS.get(metric) or losses.function_named(metric)
        if function is None:
            raise ValueError(
                f"unknown metric {metric!r}; known: {', '.join(_FUNCTIONS)}, and the functions of "
                "training.losses"
            )
        return called(function, metric)
    if not isinstance(metric, objects.Metric):
        if isinstance(metric, type) or not callable(metric):
            raise TypeError(
                f"a metric is a name, a function of labels and predictions or a metric object, got "
                f"{metric!r}"
            )
        return metric
    if isinstance(metric, objects.RootMeanSquaredError) or not isinstance(metric, objects.MeanOf):
        raise TypeError(
            f"{type(metric).__name__} is no mean over examples; update it in a callback"
        )
    return called(metric.per_example, metric.name)


def called(function: Callable[..., Any], name: str) -> Callable[[Any, Any], Any]:
    """Return a function of labels and predictions under another name; it can be pickled."""
    measured = partial(function)
    vars(measured)["__name__"] = name
    return measured


def get(metrics: Iterable[Any], kind: Kind | None = None) -> dict[str, Callable[[Any, Any], Any]]:
    """Return functions by the names under which a history lists them.

    Parameters
    ----------
    metrics
        Names, functions or objects, as for :func:`per_example`; or one of them.
    kind
        What the loss beside them takes predictions for.

    Raises
    ------
    ValueError
        If a name is unknown, or two metrics have one name.
    TypeError
        If an object is no mean over examples, or something is no metric.
    """
    found: dict[str, Callable[[Any, Any], Any]] = {}
    for metric in (metrics,) if isinstance(metrics, str) or callable(metrics) else metrics:
        function = per_example(metric, kind)
        name = getattr(function, "__name__", repr(function))
        if name in found or name == "loss":
            raise ValueError(f"two metrics are called {name!r}")
        found[name] = function
    return found
