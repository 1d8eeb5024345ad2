"""``tf.keras.optimizers``: gradtape's optimizers with Keras' arguments."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from .... import training
from ....training.optimizers.clipping import CLIPPING
from ..names import adapts, lookup
from .adapting import adapted

__all__ = ["SGD", "Adagrad", "Adam", "Optimizer", "RMSprop", "get"]


@adapts("training.Optimizer")
class Optimizer(training.Optimizer):
    """What the optimizers share: gradients that are None are left out.

    Every optimizer takes ``clipnorm``, ``clipvalue`` or ``global_clipnorm``, as gradtape's own.
    Keras' other options are refused.
    """

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]], name: Any = None) -> None:
        """Do one step.

        Parameters
        ----------
        grads_and_vars
            Pairs of a gradient and its variable. A warning tells which have no gradient.
        name
            Ignored.

        Raises
        ------
        ValueError
            If no variable has a gradient.
        """
        pairs = list(grads_and_vars)
        kept = [(g, v) for g, v in pairs if g is not None]
        if not kept:
            raise ValueError(
                f"{type(self).__name__}: no gradients provided for any variable; "
                "tape.explain(target, variable) says why"
            )
        if len(kept) < len(pairs):
            names = [v.name for g, v in pairs if g is None]
            warnings.warn(f"no gradients for the variables {names}", stacklevel=2)
        super().apply_gradients(kept)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any]) -> None:
        """Do one step with gradients and variables in lists."""
        self.apply_gradients(zip(grads, trainable_variables, strict=True))


def _optimizer(name: str, settings: str) -> Any:
    return adapted(
        f"training.{name}",
        f"learning_rate {settings} weight_decay * name **",
        Optimizer,
        options=CLIPPING,
    )


SGD = _optimizer("SGD", "momentum nesterov")
Adam = _optimizer("Adam", "beta_1 beta_2 epsilon amsgrad")
RMSprop = _optimizer("RMSprop", "rho momentum epsilon centered")
Adagrad = _optimizer("Adagrad", "initial_accumulator_value epsilon")


@adapts("training.optimizers.get")
def get(identifier: Any) -> Any:
    """Return an optimizer for a name, or the optimizer itself.

    Raises
    ------
    ValueError
        If nothing is known by that name.
    """
    if not isinstance(identifier, str):
        return identifier
    known = {name.lower(): globals()[name] for name in __all__ if name not in ("Optimizer", "get")}
    if identifier.lower() not in known:
        raise ValueError(f"unknown optimizer {identifier!r}; known: {', '.join(known)}")
    return known[identifier.lower()]()


__getattr__ = lookup(__name__)
