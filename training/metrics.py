"""Metrics: functions of labels and predictions with one value per example, not differentiated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core.extend import Tensor, as_tensor, ops

__all__ = ["accuracy", "get"]

Metric = Callable[[Any, Any], Any]


def accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Return for each example whether the class with the largest prediction is the label.

    Parameters
    ----------
    y_true
        Integer labels, shape ``(...)``, or one-hot ones, shape ``(..., classes)``.
    y_pred
        Logits or probabilities, shape ``(..., classes)``.

    Returns
    -------
    A boolean tensor of shape ``(...)``; its mean is the accuracy.
    """
    y_true, y_pred = as_tensor(y_true), as_tensor(y_pred)
    if y_true.ndim == y_pred.ndim:
        one_hot = y_true.shape[-1] == y_pred.shape[-1]
        y_true = ops["argmax"](y_true, axis=-1) if one_hot else ops["squeeze"](y_true, axis=-1)
    return ops["equal"](ops["argmax"](y_pred, axis=-1), y_true)


_NAMES: dict[str, Metric] = {
    "accuracy": accuracy,
    "sparse_categorical_accuracy": accuracy,
}


def get(metrics: Iterable[Any]) -> dict[str, Metric]:
    """Return functions by the names under which a history lists them.

    Raises
    ------
    ValueError
        If a name is unknown, or two metrics have one name.
    """
    if isinstance(metrics, str):
        metrics = (metrics,)
    found: dict[str, Metric] = {}
    for metric in metrics:
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric))
        if isinstance(metric, str) and metric not in _NAMES:
            raise ValueError(f"unknown metric {metric!r}; known: {', '.join(_NAMES)}")
        if name in found or name == "loss":
            raise ValueError(f"two metrics are called {name!r}")
        found[name] = _NAMES[metric] if isinstance(metric, str) else metric
    return found
