"""``tf.keras.optimizers``: gradtape's optimizers with Keras's arguments."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import gradtape

from ...names import adapts, lookup, namespace, resolve
from ..adapting import adapted, arguments_of, refuse

experimental = namespace("tf.keras.optimizers.experimental")
legacy = namespace("tf.keras.optimizers.legacy")
schedules = namespace("tf.keras.optimizers.schedules")
__all__ = ["Optimizer", "experimental", "get", "legacy", "schedules"]


@adapts("training.Optimizer")
class Optimizer(gradtape.training.Optimizer):
    """Base class of optimizers, which skip gradients that are None."""

    _gradtape_any_name = True
    skips_missing = True
    same_step = ("apply_gradients",)

    @property
    def lr(self) -> Any:
        """The learning rate, under Keras 2's name."""
        return self.learning_rate

    @lr.setter
    def lr(self, value: Any) -> None:
        self.learning_rate = value

    def take_options(self, options: dict[str, Any]) -> None:
        """Refuse options that gradtape's optimizers do not take."""
        refuse(type(self).__name__, options)

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]], name: Any = None) -> None:
        """Do one step with pairs of gradients and variables; warn about missing gradients.

        Raises
        ------
        ValueError
            If no variable has a gradient.
        """
        pairs = list(grads_and_vars)
        kept = [(g, v) for g, v in pairs if g is not None]
        if not kept:
            raise ValueError(
                f"{type(self).__name__}: no gradients provided for any variable: "
                "tape.explain(target, variable) reports why"
            )
        if len(kept) < len(pairs):
            names = [v.name for g, v in pairs if g is None]
            warnings.warn(f"no gradients for the variables {names}", stacklevel=2)
        super().apply_gradients(kept)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any]) -> None:
        """Do one step with a list of gradients and a list of variables."""
        self.apply_gradients(zip(grads, trainable_variables, strict=True))


def _adapted(name: str) -> Any:
    path = f"training.{name}"
    own = inspect.signature(resolve(path).__init__).parameters
    order = [x for x in own if x in arguments_of(path) and x not in ("name", "weight_decay")]
    order.insert(1 if name == "AdamW" else len(order), "weight_decay")
    return adapted(path, f"{' '.join(order)} * name **", Optimizer)


_KNOWN = {
    kind.__name__: _adapted(kind.__name__)
    for kind in gradtape.training.optimizers.named().values()
    if kind.takes_gradients  # Keras has none that calls the loss
}
globals().update(_KNOWN)
__all__ += _KNOWN


@adapts("training.optimizers.get")
def get(identifier: Any) -> Any:
    """Return the optimizer for a name, for a ``class_name`` and its ``config``, or itself."""
    if isinstance(identifier, dict):
        return type(get(identifier["class_name"]))(**identifier.get("config", {}))
    found = gradtape.training.optimizers.get(identifier)
    kind = _KNOWN.get(type(found).__name__) if isinstance(identifier, str) else None
    return found if kind is None else kind()


__getattr__ = lookup(__name__)
