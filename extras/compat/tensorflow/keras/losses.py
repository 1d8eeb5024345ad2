"""``tf.keras.losses``: gradtape's losses with Keras's defaults and shapes.

Labels and predictions are broadcast to one shape, which gradtape's own losses refuse. A vector
becomes a column if the other is one. Cross-entropies take probabilities by default.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gradtape.training import losses as native

from ....training.names import did_you_mean
from ....training.shapes import InOneRank, of_one_rank, spread
from ..names import adapts, lookup
from .adapting import adapted, arguments_of, refuse

__all__ = ["Loss", "Reduction", "get"]

#: Losses of class indices: labels and predictions have different shapes.
_SPARSE = ("sparse_categorical_accuracy", "sparse_categorical_crossentropy")
#: Losses that normalise labels, or sum over several axes, before broadcasting.
_UNBROADCAST = ("cosine_similarity", "dice", "tversky")
#: Keras's order of arguments where it differs.
_ORDERS = {"Dice": "reduction name axis dtype", "Tversky": "alpha beta reduction name axis dtype"}
_PROBABILITIES = {"from_logits": False}


class Reduction:
    """The names of reductions in Keras 2."""

    AUTO = SUM_OVER_BATCH_SIZE = "sum_over_batch_size"
    NONE, SUM = "none", "sum"


def aligned(name: str, y_true: Any, y_pred: Any, settings: Any) -> tuple[Any, Any]:
    """Return labels and predictions in the shapes that a loss or metric takes.

    As in TensorFlow, labels are not broadcast to logits: a column of classes would be treated as
    distributions. Keras normalises or smooths labels before broadcasting; here such labels are not
    broadcast, and the loss refuses them.
    """
    if name in _SPARSE:
        return y_true, y_pred
    kept = settings.get("from_logits") or settings.get("label_smoothing") or name in _UNBROADCAST
    return spread(y_true, y_pred, not kept)


def _function(name: str) -> Callable[..., Any]:
    """Return a gradtape loss that takes labels and predictions in Keras's shapes."""
    function = getattr(native, name)
    known = inspect.signature(function)
    keras = known.replace(
        parameters=[
            p.replace(default=_PROBABILITIES.get(p.name, p.default))
            for p in known.parameters.values()
        ]
    )

    @functools.wraps(function)
    def loss(*args: Any, **kwargs: Any) -> Any:
        bound = keras.bind(*args, **kwargs)
        bound.apply_defaults()
        y_true, y_pred, *settings = bound.arguments.values()
        return function(*aligned(name, y_true, y_pred, bound.arguments), *settings)

    del loss.__wrapped__  # its defaults differ
    vars(loss).pop("by_example", None)  # a row of labels may be broadcast
    vars(loss)["takes_columns"] = True
    vars(loss)["__signature__"] = keras
    loss.__module__ = __name__  # where pickle finds it
    return adapts(f"training.losses.{name}")(loss)


@adapts("training.losses.Loss")
class Loss(native.Loss):
    """Base class of losses: ``call(y_true, y_pred)`` returns a value per example.

    See :class:`gradtape.training.losses.Loss`; ``dtype`` is ignored.
    """

    def __init__(
        self,
        name: str | None = None,
        reduction: str | None = "sum_over_batch_size",
        dtype: Any = None,
    ) -> None:
        super().__init__(reduction, name)

    def reduced(self, y_true: Any, y_pred: Any, *settings: Any) -> Any:
        """Reduce the loss of labels and predictions with the same rank."""
        return super().reduced(*of_one_rank(y_true, y_pred), *settings)

    def take_options(self, options: dict[str, Any]) -> None:
        """Ignore ``dtype``; refuse other options."""
        refuse(type(self).__name__, {**options, "dtype": None})


class _Aligned(Loss):
    """A loss that takes labels and predictions in Keras's shapes."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return a value per example."""
        function: Any = self.function  # type: ignore[attr-defined]
        return super().call(*aligned(function.__name__, y_true, y_pred, vars(self)["settings"]))


def _object(name: str) -> Any:
    path = f"training.losses.{name}"
    known = arguments_of(path)
    defaults = {key: x for key, x in _PROBABILITIES.items() if key in known}
    return adapted(path, _ORDERS.get(name, f"{' '.join(known)} dtype"), _Aligned, **defaults)


_NOT_KERAS = ("Loss", "get", "sparse_categorical_crossentropy_from_logits")
_KNOWN = {
    name: _object(name) if isinstance(getattr(native, name), type) else _function(name)
    for name in native.__all__
    if name not in _NOT_KERAS
}
_KNOWN |= {
    name: _KNOWN[native.SHORT_NAMES[short]]
    for short in ("mae", "mape", "mse", "msle")
    for name in (short, short.upper())
}
_KNOWN |= {"kld": _KNOWN["kl_divergence"], "logcosh": _KNOWN["log_cosh"]}
globals().update(_KNOWN)
__all__ += _KNOWN


@adapts("training.losses.get")
def get(identifier: Any) -> Any:
    """Return the loss for the name of a function or class, or the loss itself.

    Raises
    ------
    ValueError
        If no loss has that name.
    """
    if not isinstance(identifier, str):
        return identifier
    found = _KNOWN.get(native.SHORT_NAMES.get(identifier, identifier))
    if found is None and not identifier.isidentifier():  # a third party's
        return native.get(identifier)
    if found is None:
        raise ValueError(
            f"unknown loss {identifier!r}{did_you_mean(identifier, _KNOWN)}{', '.join(_KNOWN)}"
        )
    return found() if isinstance(found, type) else found


def aligning(loss: Any) -> Any:
    """Return a loss of ``compile`` that takes labels and predictions in Keras's shapes."""
    loss = get(loss)
    known = loss is None or isinstance(loss, native.Loss) or hasattr(loss, "gradtape_names")
    return loss if known else InOneRank(loss)


__getattr__ = lookup(__name__)
