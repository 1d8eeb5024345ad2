"""Metrics: measures of predictions that are not differentiated.

Functions return one value per example. Objects keep a running mean over batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

from ...core.errors import UnknownName
from ...core.extend import RestoredFunction, registry
from ...layers import made
from .. import losses
from ..losses.loss import Kind, kind_of
from ..names import codeless, did_you_mean, name_of, stated
from ..shapes import in_columns
from . import curves, functions, objects, scores, stateful
from .curves import *
from .functions import *
from .objects import *
from .scores import *
from .stateful import *

__all__ = ["get"]
__all__ += curves.__all__
__all__ += functions.__all__
__all__ += objects.__all__
__all__ += stateful.__all__
__all__ += scores.__all__


def named() -> dict[str, Any]:
    """Return gradtape's metrics by name, as their plugin provides them.

    A class is created from its name alone, as in ``metrics=["AUC"]``.
    """
    found = {name: getattr(functions, name) for name in functions.__all__}
    for module in (curves, objects, scores, stateful):
        found |= {name: getattr(module, name) for name in module.__all__}
    for name in ("Metric", "MeanMetricWrapper", "Mean", "Sum"):  # not of labels and predictions
        del found[name]
    return found


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
    if isinstance(metric, str):
        function = _function_named(metric)
        if function is None:
            raise _unknown(metric)
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
    is_mean = type(metric).result is objects.Metric.result  # and not its root
    if not is_mean or not isinstance(metric, objects.MeanOf):
        raise TypeError(
            f"{type(metric).__name__} is not a mean over examples; update it in a callback"
        )
    return called(metric.per_example, metric.name)


def _function_named(name: str) -> Any:
    """Return the function of a metric or of a loss, or ``None``."""
    for kind in ("metric", "loss"):
        found = registry().find_named(kind, name)
        if found is not None and not isinstance(found, type):
            return found
    return None


def _unknown(metric: str) -> UnknownName:
    known = registry()
    names = known.names_of("metric")
    classes = [name for name in names if isinstance(known.find_named("metric", name), type)]
    plain = [name for name in names if name not in classes]
    return UnknownName(
        f"unknown metric {metric!r}{did_you_mean(metric, (*names, *known.names_of('loss')))}"
        f"{', '.join(plain)}, the functions in training.losses, and the classes "
        f"{', '.join(classes)}{known.lacking(metric)}"
    )


def _of_kind(function: Any, kind: Kind | None) -> Any:
    """Return a function as it measures with a loss of a kind.

    A function may say what it is then, by its attribute ``with_loss``. A cross-entropy takes logits
    if the loss does.
    """
    if kind is None:
        return function
    own_way = stated(function, "with_loss")
    if own_way is not None:
        measure = own_way(kind)
        return function if measure is function else called(measure, function.__name__)
    own = kind_of(function) if losses.is_named(function) else None
    if own is None or own.from_logits is kind.from_logits:
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
        named = registry().find_named("metric", given) if isinstance(given, str) else None
        metric = made("metric", given, named) if isinstance(named, type) else given
        if isinstance(named, objects.Metric):
            metric = named
        own = getattr(type(metric), "update_state", None)
        if own in (objects.Mean.update_state, objects.Sum.update_state):
            raise TypeError(
                f"{type(metric).__name__} is not a metric of labels and predictions; update it in "
                "a callback"
            )
        if isinstance(metric, objects.Metric):
            with objects.knowing_losses([(metric, kind)]):
                pass  # refuses an argument that the loss contradicts
            name = metric.name
        else:
            _check_stateless(metric)
            metric = per_example(metric, kind)
            name = name_of(metric)
            if not hasattr(metric, "__name__"):  # several objects of a class, or partials, are fine
                name = next(x for x in _numbered(name) if x not in found)
            if weighted:
                measure = _in_columns(metric) if _takes_columns(given) else metric
                told = name if name.isidentifier() else None
                metric = objects.MeanMetricWrapper(measure, told)
        if name in found or name == "loss":
            raise ValueError(f"two metrics are called {name!r}")
        found[name] = metric
    return found


def _check_stateless(metric: Any) -> None:
    """Refuse a module that was loaded without its class if it has no call, or one that adds up.

    The mean of its results would be one of sums of ever more batches.
    """
    why = codeless(metric, "update_state", "metric")
    call = vars(metric).get("__call__") if why else None
    traces = call.concrete_functions if isinstance(call, RestoredFunction) else ()
    if why and (not traces or any(trace.graph.updates for trace in traces)):
        raise TypeError(f"expected a metric, got {metric!r}{why}")


def _numbered(name: str) -> Iterator[str]:
    """Yield a name, and then the name with numbers."""
    yield name
    yield from (f"{name}_{i}" for i in count(1))


def _takes_columns(given: Any) -> bool:
    """Return whether each row of a column is an example of a metric: if it has a name, or says so.

    Its attribute ``takes_columns`` says so.
    """
    known = registry()
    return (
        isinstance(given, str)
        or bool(stated(given, "takes_columns"))
        or known.name_of("metric", given) is not None
        or losses.is_named(given)
    )


def _in_columns(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function so that a vector gives a value for each element, too."""
    return lambda y_true, y_pred: function(*in_columns(y_true, y_pred))
