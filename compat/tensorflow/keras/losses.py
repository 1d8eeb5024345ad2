"""``tf.keras.losses``: gradtape's losses with Keras' defaults and shapes.

Labels and predictions are broadcast to one shape here, where gradtape's own losses refuse to; a
vector beside a column becomes a column; cross-entropies take probabilities unless told otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gradtape

from ....core.extend import same_size
from ....training import losses as native
from ....training.shapes import of_one_rank
from ..names import adapts, lookup
from ..tensors import broadcast_size
from .adapting import adapted

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

# -- shapes ----------------------------------------------------------------------------------------


def aligned(y_true: Any, y_pred: Any, broadcast: bool = True) -> tuple[Any, Any]:
    """Return labels and predictions as floating tensors of one dtype and shape.

    As in TensorFlow, labels are not broadcast to logits: classes in a column would pass for
    distributions. Where labels are first normalised, or smoothed by the number of their classes,
    Keras does so before it broadcasts; here they are not broadcast then, and the loss says so.
    """
    y_true, y_pred = gradtape.as_tensor(y_true), gradtape.as_tensor(y_pred)
    if y_pred.dtype.kind in "biu":
        y_pred = y_pred.astype("float32")
    if y_true.dtype != y_pred.dtype:
        y_true = y_true.astype(y_pred.dtype)
    y_true, y_pred = of_one_rank(y_true, y_pred)
    if not broadcast or None in (y_true.shape, y_pred.shape):
        return y_true, y_pred
    shape = [broadcast_size(n, m) for n, m in zip(y_true.shape, y_pred.shape)]
    if len(y_true.shape) != len(y_pred.shape) or any(n is None for n in shape):
        zeros = gradtape.zeros_like(y_true), gradtape.zeros_like(y_pred)
        return y_true + zeros[1], y_pred + zeros[0]
    return _in_shape(y_true, shape), _in_shape(y_pred, shape)


def _in_shape(x: Any, shape: list[Any]) -> Any:
    alike = all(map(same_size, x.shape, shape))
    return x if alike else gradtape.broadcast_to(x, shape)


def broadcasts(settings: dict[str, Any]) -> bool:
    """Return whether labels may be broadcast by a loss or metric with these settings."""
    return not (settings.get("from_logits") or settings.get("label_smoothing"))


# -- functions -------------------------------------------------------------------------------------


def _function(name: str, broadcast: bool = True) -> Callable[..., Any]:
    """Return one of gradtape's losses, which is given labels and predictions in Keras' shapes."""
    function = getattr(native, name)

    @functools.wraps(function)
    def loss(y_true: Any, y_pred: Any, *settings: Any, **named: Any) -> Any:
        return function(*aligned(y_true, y_pred, broadcast), *settings, **named)

    loss.__module__ = __name__  # where pickle finds it
    return adapts(f"training.losses.{name}")(loss)


MSE = mean_squared_error = _function("mean_squared_error")
MAE = mean_absolute_error = _function("mean_absolute_error")
MAPE = mean_absolute_percentage_error = _function("mean_absolute_percentage_error")
MSLE = mean_squared_logarithmic_error = _function("mean_squared_logarithmic_error")
cosine_similarity = _function("cosine_similarity", broadcast=False)
hinge = _function("hinge")
huber = _function("huber")
kl_divergence = _function("kl_divergence")
log_cosh = _function("log_cosh")
poisson = _function("poisson")


@adapts("training.losses.binary_crossentropy")
def binary_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """Return the mean over ``axis`` of the cross-entropies of labels and probabilities."""
    y_true, y_pred = aligned(y_true, y_pred, not (from_logits or label_smoothing))
    return native.binary_crossentropy(y_true, y_pred, from_logits, label_smoothing, axis)


@adapts("training.losses.categorical_crossentropy")
def categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """Return the cross-entropies of label distributions and probabilities, or logits."""
    y_true, y_pred = aligned(y_true, y_pred, not (from_logits or label_smoothing))
    return native.categorical_crossentropy(y_true, y_pred, from_logits, label_smoothing, axis)


@adapts("training.losses.sparse_categorical_crossentropy")
def sparse_categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    ignore_class: int | None = None,
    axis: int = -1,
) -> Any:
    """Return the cross-entropies of integer labels and probabilities, or logits."""
    return native.sparse_categorical_crossentropy(y_true, y_pred, from_logits, ignore_class, axis)


# -- objects ---------------------------------------------------------------------------------------


@adapts("training.losses.Loss")
class Loss(native.Loss):
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
        super().__init__(reduction, name)


class _Aligned(Loss):
    """A loss that is given labels and predictions in Keras' shapes."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return a value per example."""
        return super().call(*aligned(y_true, y_pred, broadcasts(vars(self).get("settings", {}))))


class _Unbroadcast(Loss):
    """A loss that is given labels and predictions in one rank, and refuses others."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return a value per example."""
        return super().call(*aligned(y_true, y_pred, broadcast=False))


def _object(name: str, settings: str = "", base: type = _Aligned, **defaults: Any) -> Any:
    return adapted(f"training.losses.{name}", f"{settings} reduction name dtype", base, **defaults)


MeanSquaredError = _object("MeanSquaredError")
MeanAbsoluteError = _object("MeanAbsoluteError")
MeanAbsolutePercentageError = _object("MeanAbsolutePercentageError")
MeanSquaredLogarithmicError = _object("MeanSquaredLogarithmicError")
Hinge = _object("Hinge")
KLDivergence = _object("KLDivergence")
LogCosh = _object("LogCosh")
Poisson = _object("Poisson")
Huber = _object("Huber", "delta")
CosineSimilarity = _object("CosineSimilarity", "axis", _Unbroadcast)
BinaryCrossentropy = _object(
    "BinaryCrossentropy", "from_logits label_smoothing axis", from_logits=False
)
CategoricalCrossentropy = _object(
    "CategoricalCrossentropy", "from_logits label_smoothing axis", from_logits=False
)
SparseCategoricalCrossentropy = adapted(
    "training.losses.SparseCategoricalCrossentropy",
    "from_logits ignore_class reduction axis name dtype",
    Loss,
    from_logits=False,
)


@adapts("training.losses.get")
def get(identifier: Any) -> Any:
    """Return a loss for a name (that of a function or a class), or the loss itself.

    Raises
    ------
    ValueError
        If nothing is known by that name.
    """
    if not isinstance(identifier, str):
        return identifier
    name = native.SHORT_NAMES.get(identifier, identifier)
    if name not in __all__ or name in ("Loss", "get"):
        raise ValueError(f"unknown loss {identifier!r}; known: {', '.join(__all__)}")
    found = globals()[name]
    return found() if isinstance(found, type) else found


__getattr__ = lookup(__name__)
