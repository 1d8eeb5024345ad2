"""``tf.keras.metrics``: gradtape's metrics with Keras' arguments, defaults and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape

from ....training import metrics as native
from ..names import adapts, lookup
from . import losses
from .adapting import adapted

__all__ = [
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "CosineSimilarity",
    "Mean",
    "MeanAbsoluteError",
    "MeanMetricWrapper",
    "MeanSquaredError",
    "Metric",
    "RootMeanSquaredError",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy",
    "Sum",
    "binary_accuracy",
]


@adapts("training.metrics.binary_accuracy")
def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """Return the share over the last axis of predictions on the label's side of ``threshold``."""
    return native.binary_accuracy(*losses.aligned(y_true, y_pred), threshold)


def _any_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Return the accuracy that the shapes ask for, as Keras does for ``"accuracy"``."""
    y_pred = gradtape.as_tensor(y_pred)
    if y_pred.ndim < 2 or y_pred.shape[-1] == 1:
        return binary_accuracy(y_true, y_pred)
    return native.sparse_categorical_accuracy(y_true, y_pred)  # of one-hot labels too


@adapts("training.metrics.Metric")
class Metric(native.Metric):
    """Base class: ``update_state`` takes a batch, ``result`` tells of all batches since a reset.

    Parameters
    ----------
    name
        A name for histories.
    dtype
        Ignored: metrics are float32.
    """

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name)

    def reset_states(self) -> None:
        """Forget all batches; Keras 2's name."""
        self.reset_state()


class _Aligned(Metric):
    """A metric that is given labels and predictions in Keras' shapes."""

    def per_example(self, y_true: Any, y_pred: Any) -> Any:
        """Return the value of each example."""
        of_gradtape: Any = super()
        broadcast = losses.broadcasts(of_gradtape.get_config())
        return of_gradtape.per_example(*losses.aligned(y_true, y_pred, broadcast))


class _Unbroadcast(Metric):
    """A metric that is given labels and predictions in one rank, and refuses others."""

    def per_example(self, y_true: Any, y_pred: Any) -> Any:
        """Return the value of each example."""
        of_gradtape: Any = super()
        return of_gradtape.per_example(*losses.aligned(y_true, y_pred, broadcast=False))


def _object(name: str, settings: str = "", base: type = Metric, **defaults: Any) -> Any:
    return adapted(f"training.metrics.{name}", f"name dtype {settings}", base, **defaults)


Mean = _object("Mean")
Sum = _object("Sum")
Accuracy = _object("Accuracy")
SparseCategoricalAccuracy = _object("SparseCategoricalAccuracy")
CategoricalAccuracy = _object("CategoricalAccuracy")
BinaryAccuracy = _object("BinaryAccuracy", "threshold", _Aligned)
SparseTopKCategoricalAccuracy = adapted(
    "training.metrics.SparseTopKCategoricalAccuracy", "k name dtype", Metric
)
MeanSquaredError = _object("MeanSquaredError", base=_Aligned)
RootMeanSquaredError = _object("RootMeanSquaredError", base=_Aligned)
MeanAbsoluteError = _object("MeanAbsoluteError", base=_Aligned)
CosineSimilarity = _object("CosineSimilarity", "axis", _Unbroadcast)
BinaryCrossentropy = _object(
    "BinaryCrossentropy", "from_logits label_smoothing", _Aligned, from_logits=False
)
CategoricalCrossentropy = _object(
    "CategoricalCrossentropy", "from_logits label_smoothing axis", _Aligned, from_logits=False
)
SparseCategoricalCrossentropy = _object(
    "SparseCategoricalCrossentropy", "from_logits axis", from_logits=False
)


@adapts("training.metrics.MeanMetricWrapper")
class MeanMetricWrapper(Metric, native.MeanMetricWrapper):
    """The mean of any function of labels and predictions.

    Parameters
    ----------
    fn
        A function with a value per example.
    name
        A name for histories; the function's by default.
    dtype
        Ignored.
    settings
        Keyword arguments for the function.
    """

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **settings: Any
    ) -> None:
        native.MeanMetricWrapper.__init__(self, fn, name, **settings)


def per_example(metric: Any) -> Callable[[Any, Any], Any]:
    """Return a metric of ``compile`` as a function with a value per example, of its name.

    Raises
    ------
    ValueError
        If nothing is known by that name.
    TypeError
        If it is an object that is not the mean of such a function.
    """
    if not isinstance(metric, str):
        return native.per_example(metric)
    if metric in ("acc", "accuracy"):
        return native.called(_any_accuracy, metric)
    if metric == "binary_accuracy":
        return native.called(binary_accuracy, metric)
    if metric in native.functions.__all__:
        return native.per_example(metric)
    return native.called(losses.get(metric), metric)


__getattr__ = lookup(__name__)
