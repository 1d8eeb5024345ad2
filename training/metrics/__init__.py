"""Metrics: measures of predictions that are not differentiated.

Functions return one value per example. Objects keep a running mean over batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

from .. import losses
from ..losses.kinds import Kind, kind_of
from ..names import name_of
from ..nearest import meant
from ..shapes import in_columns
from . import confusion, curves, functions, objects, regression, scores
from .confusion import *
from .curves import *
from .functions import *
from .objects import *
from .regression import *
from .scores import *

__all__ = ["get"]
__all__ += confusion.__all__
__all__ += curves.__all__
__all__ += functions.__all__
__all__ += objects.__all__
__all__ += regression.__all__
__all__ += scores.__all__

_BINARY = {
    "accuracy": functions.accuracy,
    "binary_accuracy": functions.binary_accuracy,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(functions, name) for name in functions.__all__
}
#: The classes that a name alone creates, as in ``metrics=["AUC"]``: they need no arguments.
_CLASSES: dict[str, type[objects.Metric]] = {
    name: getattr(module, name)
    for module in (confusion, curves, objects, regression, scores)
    for name in module.__all__
    if name not in ("Metric", "MeanMetricWrapper", "Mean", "Sum")
}
_PACKAGE = __name__.partition(".")[0] + "."


def per_example(metric: Any, kind: Kind | None = None) -> Callable[[Any, Any], Any]:
    """Return a function with a value per example, whose mean is the metric.

    Parameters
    ----------
    metric
        The name of a metric or of a loss; a function; or a metric object.
    kind
        The kind of the loss. With a binary loss, ``accuracy`` is :func:`binary_accuracy`, with a
        threshold of 0 if the loss takes logits.

    Returns
    -------
    A function; a history uses its ``__name__``.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If ``metric`` is not a metric, or not a mean over examples, such as the root of a mean.
    """
    if kind is not None and kind.classes == "binary":
        for name, known in _BINARY.items():
            if metric is known or (isinstance(metric, str) and metric == name):
                threshold = 0.0 if kind.from_logits else 0.5
                return called(objects.BinaryAccuracy(threshold).per_example, name)
    if isinstance(metric, str):
        function = _FUNCTIONS.get(metric) or losses.function_named(metric)
        if function is None:
            names = (*_FUNCTIONS, *_CLASSES, *losses.FUNCTION_NAMES)
            raise ValueError(
                f"unknown metric {metric!r}{meant(metric, names)}"
                f"{', '.join(_FUNCTIONS)}, the functions in "
                f"training.losses, and the classes {', '.join(_CLASSES)}"
            )
        return called(_of_kind(function, kind), metric)
    if isinstance(metric, type):
        name = metric.__name__
        raise TypeError(f"the metric is the class {name}; pass an object: {name}()")
    if not isinstance(metric, objects.Metric):
        if not callable(metric):
            raise TypeError(
                f"a metric is a name, a function of labels and predictions, or an object, got "
                f"{metric!r}"
            )
        return _of_kind(metric, kind)
    if isinstance(metric, objects.RootMeanSquaredError) or not isinstance(metric, objects.MeanOf):
        raise TypeError(
            f"{type(metric).__name__} is not a mean over examples; update it in a callback"
        )
    return called(metric.per_example, metric.name)


def _of_kind(function: Any, kind: Kind | None) -> Any:
    """Return one of gradtape's cross-entropies as a metric, of logits if the loss takes these."""
    known = any(function is losses.function_named(name) for name in losses.FUNCTION_NAMES)
    own = kind_of(function) if known and kind is not None else None
    if own is None or kind is None or own.from_logits is kind.from_logits:
        return function
    return called(partial(function, from_logits=kind.from_logits), function.__name__)


def called(function: Callable[..., Any], name: str) -> Callable[[Any, Any], Any]:
    """Return a function under another name, in a form that can be pickled."""
    measured = partial(function)
    vars(measured)["__name__"] = name
    return measured


def get(metrics: Any, kind: Kind | None = None, weighted: bool = False) -> dict[str, Any]:
    """Return functions, and objects with state, by their names in a history.

    Parameters
    ----------
    metrics
        Names, functions or objects, as for :func:`gradtape.training.fit`; or one of them.
    kind
        The kind of the loss.
    weighted
        Whether they take the weights of examples: then all become objects.

    Raises
    ------
    ValueError
        If a name is unknown, or two metrics have the same name.
    TypeError
        If an entry is not a metric.
    """
    found: dict[str, Any] = {}
    for given in (metrics,) if isinstance(metrics, str) or callable(metrics) else metrics:
        metric = _CLASSES[given]() if isinstance(given, str) and given in _CLASSES else given
        if isinstance(metric, (objects.Mean, objects.Sum)):
            raise TypeError(
                f"{type(metric).__name__} is not a metric of labels and predictions; update it in "
                "a callback"
            )
        if isinstance(metric, objects.Metric):
            with objects.meeting([(metric, kind)]):
                pass  # refuses an argument that the loss contradicts
            name = metric.name
        else:
            metric = per_example(metric, kind)
            name = name_of(metric)
            if not hasattr(metric, "__name__"):  # several objects of a class, or partials, are fine
                name = next(x for x in _numbered(name) if x not in found)
            if weighted:
                own = isinstance(given, str) or str(given.__module__).startswith(_PACKAGE)
                measure = _in_columns(metric) if own else metric
                told = name if name.isidentifier() else None
                metric = objects.MeanMetricWrapper(measure, told)
        if name in found or name == "loss":
            raise ValueError(f"two metrics are called {name!r}")
        found[name] = metric
    return found


def _numbered(name: str) -> Iterator[str]:
    """Yield a name, and then the name with numbers."""
    yield name
    yield from (f"{name}_{i}" for i in count(1))


def _in_columns(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return one of gradtape's functions, so that a vector gives a value for each element, too."""
    return lambda y_true, y_pred: function(*in_columns(y_true, y_pred))
