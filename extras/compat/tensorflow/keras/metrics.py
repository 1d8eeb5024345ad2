"""``tf.keras.metrics``: gradtape's metrics with Keras's arguments, defaults and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape
from gradtape.training import metrics as native

from ....training.shapes import InOneRank
from ..names import adapts, lookup
from ..tensors import InstanceMeta, sizes
from . import losses
from .adapting import adapted, arguments_of, by_order, refuse

__all__ = ["MeanMetricWrapper", "Metric", "binary_accuracy"]

#: Keras's order of arguments; for other metrics, the name comes first or last.
_IOU = "name dtype ignore_class sparse_y_true sparse_y_pred axis"
_ORDERS = {
    "AUC": "num_thresholds curve summation_method name dtype thresholds multi_label num_labels "
    "label_weights from_logits",
    "ConfusionMatrix": f"num_classes {_IOU}",
    "IoU": f"num_classes target_class_ids {_IOU}",
    "MeanIoU": f"num_classes {_IOU}",
    "R2Score": "class_aggregation num_regressors name dtype",
    "SparseCategoricalCrossentropy": "name dtype from_logits ignore_class axis",
    "SparseTopKCategoricalAccuracy": "k name dtype from_sorted_ids",
    "PrecisionAtRecall": "recall num_thresholds class_id name dtype",
    "RecallAtPrecision": "precision num_thresholds class_id name dtype",
    "SensitivityAtSpecificity": "specificity num_thresholds class_id name dtype",
    "SpecificityAtSensitivity": "sensitivity num_thresholds class_id name dtype",
}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "AUC": {"multi_label": False},
    "R2Score": {"num_regressors": 0},
    "SparseTopKCategoricalAccuracy": {"from_sorted_ids": False},
}


@adapts("training.metrics.binary_accuracy")
def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """Return the fraction of predictions on the label's side of ``threshold``, per example."""
    y_true, y_pred = losses.aligned("", y_true, y_pred, {})
    return native.binary_accuracy(y_true, y_pred, threshold)


def _any_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Return the accuracy that fits the shapes, as Keras does for ``"accuracy"``."""
    y_pred = gradtape.as_tensor(y_pred)
    if y_pred.ndim < 2 or y_pred.shape[-1] == 1:
        return binary_accuracy(y_true, y_pred)
    return native.sparse_categorical_accuracy(y_true, y_pred)  # of one-hot labels too


@adapts("training.metrics.Metric")
class Metric(native.Metric, metaclass=InstanceMeta):
    """Base class: ``update_state`` adds a batch, ``result`` returns the value since a reset.

    See :class:`gradtape.training.metrics.Metric`; ``dtype`` is ignored.
    """

    stands_for = native.Metric
    _gradtape_any_name = True

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name)

    def take_options(self, options: dict[str, Any]) -> None:
        """Ignore ``dtype``; refuse other options."""
        refuse(type(self).__name__, {**options, "dtype": None})

    def add_weight(self, *args: Any, **given: Any) -> Any:
        """Return a new variable, by default zeros; a name may come first, as in Keras 2."""
        given |= by_order(args, "shape initializer dtype name", "name shape aggregation")
        shape = sizes(given.get("shape") or (), "add_weight")
        start = given.get("initializer") or "zeros"
        kind = given.get("dtype") or "float32"
        return super().add_weight(shape, start, kind, given.get("name"))

    add_variable = add_weight

    def result(self) -> Any:
        """Return the value in float32, as programs combine it with tensors of that dtype."""
        found = super().result()
        return found.astype("float32") if found.dtype == "float64" else found

    def reset_states(self) -> None:
        """Reset the metric: Keras 2's name of ``reset_state``."""
        self.reset_state()


class _Aligned(Metric):
    """A metric that takes labels and predictions in Keras's shapes."""

    measures = ""  # the loss whose shapes it takes

    def meet_loss(self, kind: Any) -> None:
        """Do nothing: in Keras, only the metric's own arguments say what predictions are."""

    def per_example(self, y_true: Any, y_pred: Any) -> Any:
        """Return the value of each example."""
        of_gradtape: Any = super()
        both = losses.aligned(self.measures, y_true, y_pred, vars(self)["settings"])
        return of_gradtape.per_example(*both)


class _Cosine(_Aligned):
    measures = "cosine_similarity"


_BASES: dict[str, type[Metric]] = {"CosineSimilarity": _Cosine}
_BASES |= dict.fromkeys(
    "BinaryAccuracy BinaryCrossentropy CategoricalCrossentropy MeanAbsoluteError "
    "MeanSquaredError RootMeanSquaredError".split(),
    _Aligned,
)


def _object(name: str) -> Any:
    path = f"training.metrics.{name}"
    known = arguments_of(path)
    last = [name for name, p in known.items() if p.kind is p.KEYWORD_ONLY]  # Keras lacks these
    settings = " ".join(name for name in known if name != "name" and name not in last)
    first = issubclass(getattr(native, name), (native.Mean, native.Sum, native.objects.MeanOf))
    usual = f"name dtype {settings}" if first else f"{settings} name dtype"
    defaults = _DEFAULTS.get(name, {"from_logits": False} if "from_logits" in settings else {})
    order = " * ".join((_ORDERS.get(name, usual), *last))
    return adapted(path, order, _BASES.get(name, Metric), **defaults)


_KNOWN = {
    name: _object(name)
    for name in native.__all__
    if isinstance(getattr(native, name), type) and name not in __all__
}
globals().update(_KNOWN)
__all__ += _KNOWN


@adapts("training.metrics.MeanMetricWrapper")
class MeanMetricWrapper(Metric, native.MeanMetricWrapper):
    """The mean of any function of labels and predictions; ``settings`` go to the function."""

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **settings: Any
    ) -> None:
        native.MeanMetricWrapper.__init__(self, fn, name, **settings)


def aligning(metric: Any, others: Any = ()) -> Any:
    """Return a metric of ``compile`` that takes labels and predictions in Keras's shapes.

    Parameters
    ----------
    metric
        The metric, or its name.
    others
        Metrics without weights: a weighted one of the same name becomes ``weighted_...``.

    Raises
    ------
    ValueError
        If no metric has that name.
    """
    if isinstance(metric, str) and metric in others:
        return native.called(aligning(metric), f"weighted_{metric}")
    if not isinstance(metric, str):
        known = isinstance(metric, native.Metric) or hasattr(metric, "gradtape_names")
        return metric if known else InOneRank(metric)
    if not metric.isidentifier():  # a third party's
        return metric
    if metric in ("acc", "accuracy"):
        return native.called(_any_accuracy, metric)
    if metric == "binary_accuracy":
        return binary_accuracy
    if metric in native.functions.__all__:
        return getattr(native, metric)
    return _KNOWN[metric]() if metric in _KNOWN else native.called(losses.get(metric), metric)


__getattr__ = lookup(__name__)
