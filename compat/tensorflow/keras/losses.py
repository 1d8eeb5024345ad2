"""``tf.keras.losses``: functions with a value per example, and objects that reduce these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gradtape
from gradtape import training
from gradtape.core.extend import snake_case

from ..math import divide_no_nan, l2_normalize, xlogy
from ..names import adapts, lookup

__all__ = [
    "MAE",
    "MAPE",
    "MSE",
    "MSLE",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "CosineSimilarity",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "binary_crossentropy",
    "categorical_crossentropy",
    "cosine_similarity",
    "get",
    "hinge",
    "huber",
    "kl_divergence",
    "log_cosh",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "poisson",
    "sparse_categorical_crossentropy",
]

# Keras' epsilon: how far probabilities stay from 0 and 1
_EPSILON = 1e-7


def of_one_rank(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Return labels and predictions as tensors of one rank, if a last axis of size 1 makes it so.

    As in Keras, a vector beside a column becomes a column; otherwise the axis is dropped.
    """
    y_true, y_pred = gradtape.as_tensor(y_true), gradtape.as_tensor(y_pred)
    if y_true.shape is None or y_pred.shape is None:
        return y_true, y_pred
    if y_true.ndim == y_pred.ndim + 1:
        y_pred, y_true = _of_one_rank(y_pred, y_true)
    elif y_pred.ndim == y_true.ndim + 1:
        y_true, y_pred = _of_one_rank(y_true, y_pred)
    return y_true, y_pred


def _of_one_rank(low: Any, high: Any) -> tuple[Any, Any]:
    if high.shape[-1] != 1:
        return low, high
    if low.ndim == 1:
        return gradtape.expand_dims(low, -1), high
    return low, gradtape.squeeze(high, -1)


def aligned(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Return labels and predictions as floating tensors :func:`of_one_rank`."""
    y_true, y_pred = gradtape.as_tensor(y_true), gradtape.as_tensor(y_pred)
    if y_pred.dtype.kind in "biu":
        y_pred = y_pred.astype("float32")
    if y_true.dtype != y_pred.dtype:
        y_true = y_true.astype(y_pred.dtype)
    return of_one_rank(y_true, y_pred)


def fitting(weight: Any, values: Any) -> Any:
    """Return the weights of examples in a shape and dtype that broadcast with their values."""
    weight = gradtape.as_tensor(weight).astype(values.dtype)
    if weight.ndim == values.ndim + 1:
        weight = gradtape.squeeze(weight, -1)
    while 0 < weight.ndim < values.ndim:
        weight = gradtape.expand_dims(weight, -1)
    return weight


def _mean(values: Any) -> Any:
    return gradtape.mean(values, -1) if values.ndim else values


@adapts("training.mean_squared_error")
def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """Return the mean over the last axis of ``(y_true - y_pred)**2``."""
    y_true, y_pred = aligned(y_true, y_pred)
    return _mean(gradtape.square(y_pred - y_true))


@adapts("abs")
def mean_absolute_error(y_true: Any, y_pred: Any) -> Any:
    """Return the mean over the last axis of ``|y_true - y_pred|``."""
    y_true, y_pred = aligned(y_true, y_pred)
    return _mean(gradtape.abs(y_true - y_pred))


@adapts("abs")
def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Any:
    """Return the mean over the last axis of ``100 * |y_true - y_pred| / |y_true|``."""
    y_true, y_pred = aligned(y_true, y_pred)
    whole = gradtape.maximum(gradtape.abs(y_true), _EPSILON)
    return 100.0 * _mean(gradtape.abs((y_true - y_pred) / whole))


@adapts("log1p")
def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Any:
    """Return the mean over the last axis of ``(log(1 + y_true) - log(1 + y_pred))**2``."""
    y_true, y_pred = aligned(y_true, y_pred)
    y_true, y_pred = gradtape.maximum(y_true, _EPSILON), gradtape.maximum(y_pred, _EPSILON)
    return _mean(gradtape.square(gradtape.log1p(y_true) - gradtape.log1p(y_pred)))


@adapts("nn.huber")
def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """Return the mean over the last axis of Huber's loss, a line from ``delta`` on."""
    y_true, y_pred = aligned(y_true, y_pred)
    error = gradtape.abs(y_pred - y_true)
    inside = 0.5 * gradtape.square(error)
    return _mean(gradtape.where(error <= delta, inside, delta * error - 0.5 * delta * delta))


@adapts("nn.hinge")
def hinge(y_true: Any, y_pred: Any) -> Any:
    """Return the mean over the last axis of ``max(1 - y_true * y_pred, 0)``.

    Labels are -1 and 1; labels that are 0 and 1 are taken for these.
    """
    y_true, y_pred = aligned(y_true, y_pred)
    binary = gradtape.all(gradtape.logical_or(gradtape.equal(y_true, 0), gradtape.equal(y_true, 1)))
    y_true = gradtape.where(binary, 2.0 * y_true - 1.0, y_true)
    return _mean(gradtape.maximum(1.0 - y_true * y_pred, 0.0))


@adapts("nn.kl_divergence")
def kl_divergence(y_true: Any, y_pred: Any) -> Any:
    """Return the sum over the last axis of ``y_true * log(y_true / y_pred)``."""
    y_true, y_pred = aligned(y_true, y_pred)
    y_true = gradtape.clip(y_true, _EPSILON, 1.0)
    y_pred = gradtape.clip(y_pred, _EPSILON, 1.0)
    return gradtape.sum(y_true * gradtape.log(y_true / y_pred), -1)


@adapts("nn.softplus")
def log_cosh(y_true: Any, y_pred: Any) -> Any:
    """Return the mean over the last axis of ``log(cosh(y_pred - y_true))``."""
    y_true, y_pred = aligned(y_true, y_pred)
    error = y_pred - y_true
    return _mean(error + gradtape.nn.softplus(-2.0 * error) - 0.6931471805599453)


@adapts("log")
def poisson(y_true: Any, y_pred: Any) -> Any:
    """Return the mean over the last axis of ``y_pred - y_true * log(y_pred)``."""
    y_true, y_pred = aligned(y_true, y_pred)
    return _mean(y_pred - y_true * gradtape.log(y_pred + _EPSILON))


@adapts("nn.cosine_similarity")
def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """Return the negative of the cosine of the angle between labels and predictions."""
    y_true, y_pred = aligned(y_true, y_pred)
    return -gradtape.sum(l2_normalize(y_true, axis) * l2_normalize(y_pred, axis), axis)


@adapts("nn.binary_cross_entropy", "nn.sigmoid_cross_entropy_with_logits")
def binary_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """Return the mean over ``axis`` of the cross-entropies of labels and probabilities."""
    y_true, y_pred = aligned(y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if from_logits:
        values = gradtape.nn.sigmoid_cross_entropy_with_logits(labels=y_true, logits=y_pred)
    else:
        p = gradtape.clip(y_pred, _EPSILON, 1.0 - _EPSILON)
        values = -(xlogy(y_true, p) + xlogy(1.0 - y_true, 1.0 - p))
    return gradtape.mean(values, axis) if values.ndim else values


@adapts("nn.categorical_cross_entropy", "nn.softmax_cross_entropy_with_logits")
def categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """Return the cross-entropies of label distributions and probabilities, or logits."""
    y_true, y_pred = aligned(y_true, y_pred)
    if label_smoothing:
        classes = gradtape.sum(gradtape.ones_like(y_true), axis, keepdims=True)
        y_true = y_true * (1.0 - label_smoothing) + label_smoothing / classes
    if from_logits:
        return gradtape.nn.softmax_cross_entropy_with_logits(
            labels=y_true, logits=y_pred, axis=axis
        )
    p = y_pred / gradtape.sum(y_pred, axis, keepdims=True)
    p = gradtape.clip(p, _EPSILON, 1.0 - _EPSILON)
    return -gradtape.sum(y_true * gradtape.log(p), axis)


@adapts("training.sparse_categorical_crossentropy")
def sparse_categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    ignore_class: int | None = None,
    axis: int = -1,
) -> Any:
    """Return the cross-entropies of integer labels and probabilities, or logits.

    Parameters
    ----------
    y_true, y_pred
        Labels, and probabilities of each class.
    from_logits
        Whether ``y_pred`` are logits.
    ignore_class
        A label that costs nothing.
    axis
        The axis of the classes.
    """
    y_pred = gradtape.as_tensor(y_pred)
    if axis != -1:
        y_pred = gradtape.moveaxis(y_pred, axis, -1)
    if ignore_class is None:
        return training.sparse_categorical_crossentropy(y_true, y_pred, from_logits)
    y_true = gradtape.as_tensor(y_true)
    kept = gradtape.not_equal(y_true, ignore_class)
    labels = gradtape.where(kept, y_true, 0)
    values = training.sparse_categorical_crossentropy(labels, y_pred, from_logits)
    return gradtape.where(kept, values, 0.0)


MAE = mean_absolute_error
MAPE = mean_absolute_percentage_error
MSE = mean_squared_error
MSLE = mean_squared_logarithmic_error

# -- objects ---------------------------------------------------------------------------------------

_REDUCTIONS = ("sum_over_batch_size", "mean", "sum", "none", None)


@adapts()
class Loss:
    """Base class of losses: ``call(y_true, y_pred)`` gives a value per example.

    Parameters
    ----------
    name
        A name for histories.
    reduction
        ``"sum_over_batch_size"`` (or ``"mean"``), ``"sum"``, or ``"none"``.
    dtype
        Ignored.

    Raises
    ------
    ValueError
        If the reduction is another.
    """

    def __init__(
        self,
        name: str | None = None,
        reduction: str | None = "sum_over_batch_size",
        dtype: Any = None,
    ) -> None:
        if reduction not in _REDUCTIONS:
            raise ValueError(f"{type(self).__name__}: reduction {reduction!r} is none of Keras'")
        self.name = name or snake_case(type(self).__name__)
        self.__name__ = self.name
        self.reduction = reduction

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return a value per example."""
        raise NotImplementedError

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Return the reduced loss, values multiplied by ``sample_weight`` before."""
        values = gradtape.as_tensor(self.call(y_true, y_pred))
        if sample_weight is not None:
            values = values * fitting(sample_weight, values)
        if self.reduction in ("none", None):
            return values
        return gradtape.sum(values) if self.reduction == "sum" else gradtape.mean(values)


class _Of(Loss):
    """A loss that is one of the functions above, with settings."""

    function: ClassVar[Callable[..., Any]]
    named: ClassVar[str]

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
        **settings: Any,
    ) -> None:
        super().__init__(name or self.named, reduction, dtype)
        self.settings = settings

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return a value per example."""
        return type(self).function(y_true, y_pred, **self.settings)


def _object(class_name: str, function: Callable[..., Any]) -> type[_Of]:
    """Return a class for a function without settings."""
    contents = {
        "function": staticmethod(function),
        "named": function.__name__,
        "__doc__": f"{function.__doc__}\n\n    Reduced over the batch; see :class:`Loss`.\n    ",
        "__module__": __name__,
    }
    return adapts(*function.gradtape_names)(  # type: ignore[attr-defined]
        type(class_name, (_Of,), contents)
    )


MeanSquaredError = _object("MeanSquaredError", mean_squared_error)
MeanAbsoluteError = _object("MeanAbsoluteError", mean_absolute_error)
MeanAbsolutePercentageError = _object("MeanAbsolutePercentageError", mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _object("MeanSquaredLogarithmicError", mean_squared_logarithmic_error)
Hinge = _object("Hinge", hinge)
KLDivergence = _object("KLDivergence", kl_divergence)
LogCosh = _object("LogCosh", log_cosh)
Poisson = _object("Poisson", poisson)


@adapts("nn.huber")
class Huber(_Of):
    """:func:`huber` with ``delta``, reduced over the batch."""

    function = staticmethod(huber)
    named = "huber_loss"

    def __init__(
        self,
        delta: float = 1.0,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(reduction, name, dtype, delta=delta)


@adapts("nn.cosine_similarity")
class CosineSimilarity(_Of):
    """:func:`cosine_similarity` along ``axis``, reduced over the batch."""

    function = staticmethod(cosine_similarity)
    named = "cosine_similarity"

    def __init__(
        self,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(reduction, name, dtype, axis=axis)


@adapts("nn.binary_cross_entropy", "nn.sigmoid_cross_entropy_with_logits")
class BinaryCrossentropy(_Of):
    """:func:`binary_crossentropy`, reduced over the batch."""

    function = staticmethod(binary_crossentropy)
    named = "binary_crossentropy"

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        settings = {"label_smoothing": label_smoothing, "axis": axis}
        super().__init__(reduction, name, dtype, from_logits=from_logits, **settings)


@adapts("nn.categorical_cross_entropy", "nn.softmax_cross_entropy_with_logits")
class CategoricalCrossentropy(_Of):
    """:func:`categorical_crossentropy`, reduced over the batch."""

    function = staticmethod(categorical_crossentropy)
    named = "categorical_crossentropy"

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        settings = {"label_smoothing": label_smoothing, "axis": axis}
        super().__init__(reduction, name, dtype, from_logits=from_logits, **settings)


@adapts("training.sparse_categorical_crossentropy")
class SparseCategoricalCrossentropy(_Of):
    """:func:`sparse_categorical_crossentropy`, reduced over the batch."""

    function = staticmethod(sparse_categorical_crossentropy)
    named = "sparse_categorical_crossentropy"

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: str | None = "sum_over_batch_size",
        axis: int = -1,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        settings = {"ignore_class": ignore_class, "axis": axis}
        super().__init__(reduction, name, dtype, from_logits=from_logits, **settings)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Return the reduced loss; the mean is over the labels that are not ignored."""
        ignored = self.settings["ignore_class"]
        if ignored is None or self.reduction not in ("sum_over_batch_size", "mean"):
            return super().__call__(y_true, y_pred, sample_weight)
        kept = gradtape.not_equal(gradtape.as_tensor(y_true), ignored).astype("float32")
        weight = kept if sample_weight is None else kept * gradtape.as_tensor(sample_weight)
        values = self.call(y_true, y_pred) * weight.astype(gradtape.as_tensor(y_pred).dtype)
        return divide_no_nan(gradtape.sum(values), gradtape.sum(kept).astype(values.dtype))


_SHORT = {"bce": binary_crossentropy, "mae": mean_absolute_error, "mse": mean_squared_error}
_SHORT |= {
    "mape": mean_absolute_percentage_error,
    "msle": mean_squared_logarithmic_error,
    "kld": kl_divergence,
    "logcosh": log_cosh,
}


@adapts()
def get(identifier: Any) -> Any:
    """Return a loss for a name (that of a function or a class), or the loss itself.

    Raises
    ------
    ValueError
        If nothing is known by that name.
    """
    if not isinstance(identifier, str):
        return identifier
    if identifier in _SHORT:
        return _SHORT[identifier]
    if identifier not in __all__ or identifier in ("Loss", "get"):
        raise ValueError(f"unknown loss {identifier!r}; known: {', '.join(__all__)}")
    found = globals()[identifier]
    return found() if isinstance(found, type) else found


__getattr__ = lookup(__name__)
