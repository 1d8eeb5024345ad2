"""Metrics as objects, which keep a running mean over batches; names are Keras'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...core.extend import Module, Tensor, Variable, as_tensor, ops
from ...layers import mask_of
from .. import losses
from ..shapes import checked, mask_weights, of_one_rank, ratio, weights_like
from . import functions

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
]


class Metric(Module):
    """Base class: ``update_state`` takes a batch, ``result`` tells of all batches since a reset.

    Parameters
    ----------
    name
        A Python identifier, for histories.

    Attributes
    ----------
    total, count : Variable
        What was added up, and how much of it there was; ``float32``.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.total = Variable(0.0, trainable=False, name="total", dtype="float32")
        self.count = Variable(0.0, trainable=False, name="count", dtype="float32")

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Take a batch."""
        raise NotImplementedError(f"{type(self).__name__}: define update_state")

    def result(self) -> Tensor:
        """Return the value as a tensor, 0 before any batch."""
        return ratio(self.total.value, self.count.value)

    def reset_state(self) -> None:
        """Forget all batches."""
        self.total.assign(0.0)
        self.count.assign(0.0)

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Take a batch, and return the value."""
        self.update_state(*args, **kwargs)
        return self.result()

    def add(self, values: Any, sample_weight: Any = None) -> None:
        """Add values to the total, and their number (or their weights) to the count."""
        values = as_tensor(values).astype("float32")
        count = ops["ones_like"](values)
        if sample_weight is not None:
            weight = weights_like(sample_weight, values)
            values, count = values * weight, weight * count
        self.total.assign_add(ops["sum"](values))
        self.count.assign_add(ops["sum"](count))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"name": self.name}


class Mean(Metric, saved_as="training.metrics.Mean"):
    """The mean of all values.

    Parameters
    ----------
    name
        A Python identifier.

    Examples
    --------
    >>> mean = gt.training.metrics.Mean()
    >>> mean.update_state([1.0, 3.0])
    >>> mean.update_state(5.0)
    >>> mean.result().item()
    3.0
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name or "mean")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Take values, with their weights."""
        self.add(values, sample_weight)


class Sum(Metric, saved_as="training.metrics.Sum"):
    """The sum of all values.

    Parameters
    ----------
    name
        A Python identifier.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name or "sum")

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Take values, with their weights."""
        self.add(values, sample_weight)

    def result(self) -> Tensor:
        """Return the sum as a tensor."""
        return self.total.value


class MeanOf(Metric):
    """The mean of a function with a value per example, with settings."""

    function: ClassVar[Callable[..., Any]]
    #: Whether a vector and a column count the same examples: not where classes have an axis.
    _columns: ClassVar[bool] = False

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        super().__init__(name or type(self).function.__name__)
        self.settings = settings

    def per_example(self, y_true: Any, y_pred: Any) -> Any:
        """Return the value of each example."""
        if self._columns:
            y_true, y_pred = of_one_rank(y_true, y_pred)
        return type(self).function(y_true, y_pred, **self.settings)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and predictions, with weights of the examples; padding does not count."""
        values = as_tensor(self.per_example(y_true, y_pred))
        self.add(values, mask_weights(mask_of(y_pred), values, sample_weight, self.name))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**self.settings, **super().get_config()}


class MeanMetricWrapper(MeanOf):
    """The mean of any function of labels and predictions.

    Parameters
    ----------
    fn
        A function with a value per example.
    name
        A Python identifier; the function's name by default.
    settings
        Keyword arguments for the function.
    """

    def __init__(self, fn: Callable[..., Any], name: str | None = None, **settings: Any) -> None:
        super().__init__(name or fn.__name__, **settings)
        self.fn = fn

    def per_example(self, y_true: Any, y_pred: Any) -> Any:
        """Return the value of each example."""
        return self.fn(y_true, y_pred, **self.settings)


def _equal(y_true: Any, y_pred: Any) -> Tensor:
    y_true, y_pred = as_tensor(y_true), as_tensor(y_pred)
    y_true = checked("Accuracy", y_true, y_pred)
    return ops["equal"](y_true, y_pred)


class Accuracy(MeanOf, saved_as="training.metrics.Accuracy"):
    """The share of predictions that are equal to their label.

    Parameters
    ----------
    name
        A Python identifier.
    """

    function = staticmethod(_equal)
    _columns = True

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name or "accuracy")


class SparseCategoricalAccuracy(MeanOf, saved_as="training.metrics.SparseCategoricalAccuracy"):
    """The mean of :func:`sparse_categorical_accuracy`.

    Parameters
    ----------
    name
        A Python identifier.

    Examples
    --------
    >>> metric = gt.training.metrics.SparseCategoricalAccuracy()
    >>> metric([1, 1], [[0.1, 0.9], [0.8, 0.2]]).item()
    0.5
    """

    function = staticmethod(functions.sparse_categorical_accuracy)

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)


class CategoricalAccuracy(MeanOf, saved_as="training.metrics.CategoricalAccuracy"):
    """The mean of :func:`categorical_accuracy`.

    Parameters
    ----------
    name
        A Python identifier.
    """

    function = staticmethod(functions.categorical_accuracy)

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)


class BinaryAccuracy(MeanOf, saved_as="training.metrics.BinaryAccuracy"):
    """The mean of :func:`binary_accuracy`.

    Parameters
    ----------
    threshold
        What is above it counts as 1.
    name
        A Python identifier.
    """

    function = staticmethod(functions.binary_accuracy)
    _columns = True

    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__(name, threshold=threshold)


class SparseTopKCategoricalAccuracy(
    MeanOf, saved_as="training.metrics.SparseTopKCategoricalAccuracy"
):
    """The mean of :func:`sparse_top_k_categorical_accuracy`.

    Parameters
    ----------
    k
        How many predictions count.
    name
        A Python identifier.
    """

    function = staticmethod(functions.sparse_top_k_categorical_accuracy)

    def __init__(self, k: int = 5, name: str | None = None) -> None:
        super().__init__(name, k=k)


class MeanSquaredError(MeanOf, saved_as="training.metrics.MeanSquaredError"):
    """The mean squared error.

    Parameters
    ----------
    name
        A Python identifier.
    """

    function = staticmethod(losses.mean_squared_error)
    _columns = True

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)


class RootMeanSquaredError(MeanSquaredError, saved_as="training.metrics.RootMeanSquaredError"):
    """The root of the mean squared error.

    Parameters
    ----------
    name
        A Python identifier.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name or "root_mean_squared_error")

    def result(self) -> Tensor:
        """Return the root as a tensor."""
        return ops["sqrt"](super().result())


class MeanAbsoluteError(MeanOf, saved_as="training.metrics.MeanAbsoluteError"):
    """The mean absolute error.

    Parameters
    ----------
    name
        A Python identifier.
    """

    function = staticmethod(losses.mean_absolute_error)
    _columns = True

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)


class CosineSimilarity(MeanOf, saved_as="training.metrics.CosineSimilarity"):
    """The mean cosine of the angle between labels and predictions, 1 for the same direction.

    Parameters
    ----------
    axis
        The axis of the vectors.
    name
        A Python identifier.
    """

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(name or "cosine_similarity", axis=axis)

    @staticmethod
    def function(y_true: Any, y_pred: Any, axis: int) -> Tensor:
        """Return the cosines: the loss has them with the opposite sign."""
        return -losses.cosine_similarity(y_true, y_pred, axis)


class BinaryCrossentropy(MeanOf, saved_as="training.metrics.BinaryCrossentropy"):
    """The mean cross-entropy of yes-or-no labels.

    Parameters
    ----------
    from_logits, label_smoothing
        As for :func:`gradtape.training.losses.binary_crossentropy`.
    name
        A Python identifier.
    """

    function = staticmethod(losses.binary_crossentropy)
    _columns = True

    def __init__(
        self, from_logits: bool = True, label_smoothing: float = 0.0, name: str | None = None
    ) -> None:
        super().__init__(name, from_logits=from_logits, label_smoothing=label_smoothing)


class CategoricalCrossentropy(MeanOf, saved_as="training.metrics.CategoricalCrossentropy"):
    """The mean cross-entropy of label distributions.

    Parameters
    ----------
    from_logits, label_smoothing, axis
        As for :func:`gradtape.training.losses.categorical_crossentropy`.
    name
        A Python identifier.
    """

    function = staticmethod(losses.categorical_crossentropy)

    def __init__(
        self,
        from_logits: bool = True,
        label_smoothing: float = 0.0,
        axis: int = -1,
        name: str | None = None,
    ) -> None:
        settings = {"label_smoothing": label_smoothing, "axis": axis}
        super().__init__(name, from_logits=from_logits, **settings)


class SparseCategoricalCrossentropy(
    MeanOf, saved_as="training.metrics.SparseCategoricalCrossentropy"
):
    """The mean cross-entropy of integer labels.

    Parameters
    ----------
    from_logits, axis
        As for :func:`gradtape.training.losses.sparse_categorical_crossentropy`.
    name
        A Python identifier.
    """

    function = staticmethod(losses.sparse_categorical_crossentropy)

    def __init__(self, from_logits: bool = True, axis: int = -1, name: str | None = None) -> None:
        super().__init__(name, from_logits=from_logits, axis=axis)
