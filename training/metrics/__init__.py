"""Metrics: how good predictions are, not differentiated.

Functions have one value per example. Objects keep a running mean over batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import losses
from . import functions, objects
from .functions import *
from .objects import *

__all__ = ["get"]
__all__ += functions.__all__
__all__ += objects.__all__

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(functions, name) for name in functions.__all__
}


def per_example(metric: Any) -> Callable[[Any, Any], Any]:
    """Return what a metric is the mean of: a function with a value per example.

    Parameters
    ----------
    metric
        The name of a metric or of a loss; a function; or a metric object.

    Returns
    -------
    A function whose ``__name__`` a history lists.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If it is an object that is no mean over examples, such as a root of one.
    """
    if isinstance(metric, str):
        function = _FUNCTIONS.get(metric) or losses.function_named(metric)
        if function is None:
            raise ValueError(
                f"unknown metric {metric!r}; known: {', '.join(_FUNCTIONS)}, and the functions of "
                "training.losses"
            )
        return called(function, metric)
    if not isinstance(metric, objects.Metric):
        return metric
    if isinstance(metric, objects.RootMeanSquaredError) or not isinstance(metric, objects.MeanOf):
        raise TypeError(
            f"{type(metric).__name__} is no mean over examples; update it in a callback"
        )
    return called(metric.per_example, metric.name)


def called(function: Callable[..., Any], name: str) -> Callable[[Any, Any], Any]:
    """Return a function of labels and predictions under another name."""

    def measured(y_true: Any, y_pred: Any) -> Any:
        return function(y_true, y_pred)

    measured.__name__ = name
    return measured


def get(metrics: Iterable[Any]) -> dict[str, Callable[[Any, Any], Any]]:
    """Return functions by the names under which a history lists them.

    Parameters
    ----------
    metrics
        Names, functions or objects, as for :func:`per_example`; or one name.

    Raises
    ------
    ValueError
        If a name is unknown, or two metrics have one name.
    TypeError
        If an object is no mean over examples.
    """
    found: dict[str, Callable[[Any, Any], Any]] = {}
    for metric in (metrics,) if isinstance(metrics, str) else metrics:
        function = per_example(metric)
        name = getattr(function, "__name__", repr(function))
        if name in found or name == "loss":
            raise ValueError(f"two metrics are called {name!r}")
        found[name] = function
    return found
