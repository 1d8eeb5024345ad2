"""``tf.keras.metrics``: objects that average over batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gradtape
from gradtape.training import accuracy as _accuracy

from ..math import divide_no_nan, in_top_k
from ..names import adapts, lookup
from . import losses

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
    "categorical_accuracy",
    "sparse_categorical_accuracy",
]


@adapts("training.accuracy")
def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Return for each example whether the largest prediction is that of the integer label."""
    return _accuracy(y_true, y_pred).astype("float32")


@adapts("training.accuracy")
def categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Return for each example whether the largest prediction is that of the one-hot label."""
    y_true, y_pred = gradtape.as_tensor(y_true), gradtape.as_tensor(y_pred)
    hit = gradtape.equal(gradtape.argmax(y_true, -1), gradtape.argmax(y_pred, -1))
    return hit.astype("float32")


@adapts("equal")
def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """Return the share over the last axis of predictions on the label's side of ``threshold``."""
    y_true, y_pred = losses.aligned(y_true, y_pred)
    hit = gradtape.equal((y_pred > threshold).astype(y_true.dtype), y_true).astype("float32")
    return gradtape.mean(hit, -1) if hit.ndim else hit


def _any_accuracy(y_true: Any, y_pred: Any) -> Any:
    """Return the accuracy that the shapes ask for, as Keras does for ``"accuracy"``."""
    y_pred = gradtape.as_tensor(y_pred)
    if y_pred.ndim < 2 or y_pred.shape[-1] == 1:
        return binary_accuracy(y_true, y_pred)
    return sparse_categorical_accuracy(y_true, y_pred)  # of one-hot labels too


@adapts()
class Metric(gradtape.Module):
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
        self.total = gradtape.Variable(0.0, trainable=False, name="total")
        self.count = gradtape.Variable(0.0, trainable=False, name="count")

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Take a batch."""
        raise NotImplementedError

    def result(self) -> Any:
        """Return the value as a tensor."""
        return divide_no_nan(self.total.value, self.count.value)

    def reset_state(self) -> None:
        """Forget all batches."""
        self.total.assign(0.0)
        self.count.assign(0.0)

    reset_states = reset_state

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Take a batch, and return the value."""
        self.update_state(*args, **kwargs)
        return self.result()

    def _add(self, values: Any, sample_weight: Any) -> None:
        values = gradtape.as_tensor(values).astype("float32")
        if sample_weight is None:
            count = gradtape.sum(gradtape.ones_like(values))
        else:
            weight = losses.fitting(sample_weight, values)
            values = values * weight
            count = gradtape.sum(weight * gradtape.ones_like(values))
        self.total.assign_add(gradtape.sum(values))
        self.count.assign_add(count)


@adapts()
class Mean(Metric):
    """The mean of all values."""

    def __init__(self, name: str = "mean", dtype: Any = None) -> None:
        super().__init__(name)

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Take values, with their weights."""
        self._add(values, sample_weight)


@adapts()
class Sum(Metric):
    """The sum of all values."""

    def __init__(self, name: str = "sum", dtype: Any = None) -> None:
        super().__init__(name)

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Take values, with their weights."""
        self._add(values, sample_weight)

    def result(self) -> Any:
        """Return the sum as a tensor."""
        return self.total.value


class _MeanOf(Metric):
    """The mean of a function with a value per example."""

    function: ClassVar[Callable[..., Any]]
    named: ClassVar[str]

    def __init__(self, name: str | None = None, dtype: Any = None, **settings: Any) -> None:
        super().__init__(name or self.named)
        self.settings = settings

    def per_example(self, y_true: Any, y_pred: Any) -> Any:
        """Return the value of each example."""
        return type(self).function(y_true, y_pred, **self.settings)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and predictions."""
        self._add(self.per_example(y_true, y_pred), sample_weight)


@adapts()
class MeanMetricWrapper(_MeanOf):
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
        super().__init__(name or fn.__name__, **settings)
        self.fn = fn

    def per_example(self, y_true: Any, y_pred: Any) -> Any:
        """Return the value of each example."""
        return self.fn(y_true, y_pred, **self.settings)


def _equal(y_true: Any, y_pred: Any) -> Any:
    return gradtape.equal(gradtape.as_tensor(y_true), gradtape.as_tensor(y_pred))


@adapts("equal")
class Accuracy(_MeanOf):
    """The share of predictions that are equal to their label."""

    function = staticmethod(_equal)
    named = "accuracy"


@adapts("training.accuracy")
class SparseCategoricalAccuracy(_MeanOf):
    """The share of examples whose largest prediction is that of the integer label."""

    function = staticmethod(sparse_categorical_accuracy)
    named = "sparse_categorical_accuracy"


@adapts("training.accuracy")
class CategoricalAccuracy(_MeanOf):
    """The share of examples whose largest prediction is that of the one-hot label."""

    function = staticmethod(categorical_accuracy)
    named = "categorical_accuracy"


@adapts("equal")
class BinaryAccuracy(_MeanOf):
    """The share of predictions on the label's side of ``threshold``."""

    function = staticmethod(binary_accuracy)
    named = "binary_accuracy"

    def __init__(self, name: str | None = None, dtype: Any = None, threshold: float = 0.5) -> None:
        super().__init__(name, threshold=threshold)


@adapts()
class SparseTopKCategoricalAccuracy(_MeanOf):
    """The share of examples whose integer label is among the ``k`` largest predictions."""

    function = staticmethod(in_top_k)
    named = "sparse_top_k_categorical_accuracy"

    def __init__(self, k: int = 5, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name, k=k)


@adapts("training.mean_squared_error")
class MeanSquaredError(_MeanOf):
    """The mean squared error."""

    function = staticmethod(losses.mean_squared_error)
    named = "mean_squared_error"


@adapts("training.mean_squared_error")
class RootMeanSquaredError(MeanSquaredError):
    """The root of the mean squared error."""

    named = "root_mean_squared_error"

    def result(self) -> Any:
        """Return the root as a tensor."""
        return gradtape.sqrt(super().result())


@adapts("abs")
class MeanAbsoluteError(_MeanOf):
    """The mean absolute error."""

    function = staticmethod(losses.mean_absolute_error)
    named = "mean_absolute_error"


@adapts("nn.cosine_similarity")
class CosineSimilarity(_MeanOf):
    """The mean cosine of the angle between labels and predictions."""

    named = "cosine_similarity"

    def __init__(self, name: str | None = None, dtype: Any = None, axis: int = -1) -> None:
        super().__init__(name, axis=axis)

    @staticmethod
    def function(y_true: Any, y_pred: Any, axis: int) -> Any:
        """Return the cosines."""
        return -losses.cosine_similarity(y_true, y_pred, axis)


@adapts("nn.binary_cross_entropy")
class BinaryCrossentropy(_MeanOf):
    """The mean cross-entropy of binary labels."""

    function = staticmethod(losses.binary_crossentropy)
    named = "binary_crossentropy"

    def __init__(
        self,
        name: str | None = None,
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(name, from_logits=from_logits, label_smoothing=label_smoothing)


@adapts("nn.categorical_cross_entropy")
class CategoricalCrossentropy(_MeanOf):
    """The mean cross-entropy of label distributions."""

    function = staticmethod(losses.categorical_crossentropy)
    named = "categorical_crossentropy"

    def __init__(
        self,
        name: str | None = None,
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
    ) -> None:
        settings = {"label_smoothing": label_smoothing, "axis": axis}
        super().__init__(name, from_logits=from_logits, **settings)


@adapts("training.sparse_categorical_crossentropy")
class SparseCategoricalCrossentropy(_MeanOf):
    """The mean cross-entropy of integer labels."""

    function = staticmethod(losses.sparse_categorical_crossentropy)
    named = "sparse_categorical_crossentropy"

    def __init__(
        self,
        name: str | None = None,
        dtype: Any = None,
        from_logits: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(name, from_logits=from_logits, axis=axis)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "acc": _any_accuracy,
    "accuracy": _any_accuracy,
    "binary_accuracy": binary_accuracy,
    "categorical_accuracy": categorical_accuracy,
    "sparse_categorical_accuracy": sparse_categorical_accuracy,
}


def per_example(metric: Any) -> Callable[[Any, Any], Any]:
    """Return a metric of ``compile`` as a function with a value per example, of its name.

    Raises
    ------
    ValueError
        If nothing is known by that name.
    TypeError
        If it is an object that is not the mean of such a function.
    """
    if isinstance(metric, str):
        function = _FUNCTIONS.get(metric) or losses.get(metric)
        return _named(function, metric)
    if isinstance(metric, RootMeanSquaredError) or (
        isinstance(metric, Metric) and not isinstance(metric, _MeanOf)
    ):
        raise TypeError(
            f"compile: {type(metric).__name__} is no mean over examples; update it in a callback"
        )
    if isinstance(metric, _MeanOf):
        return _named(metric.per_example, metric.name)
    return _named(metric, getattr(metric, "__name__", type(metric).__name__))


def _named(function: Callable[..., Any], name: str) -> Callable[[Any, Any], Any]:
    def measured(y_true: Any, y_pred: Any) -> Any:
        return function(y_true, y_pred)

    measured.__name__ = name
    return measured


__getattr__ = lookup(__name__)
