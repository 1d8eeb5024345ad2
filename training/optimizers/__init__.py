"""Optimizers with Keras's names, defaults and formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..nearest import meant
from .adaptive import Adadelta, Adamax, Lion, Nadam
from .classic import SGD, Adagrad, Adam, AdamW, RMSprop
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .rules import by_blocks as by_blocks

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Nadam",
    "RMSprop",
]

_BY_NAME: dict[str, Callable[[], Optimizer]] = {name.lower(): globals()[name] for name in __all__}


def get(optimizer: Any) -> Optimizer:
    """Return an optimizer for a name, with default settings, or the optimizer itself.

    Parameters
    ----------
    optimizer
        The name of a class (``"adam"``, ``"rmsprop"``, ``"sgd"``, ...), in upper or lower case; or
        an optimizer.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If ``optimizer`` is neither.

    Examples
    --------
    >>> gt.training.optimizers.get("sgd").learning_rate.item()
    0.01
    """
    if isinstance(optimizer, Optimizer):
        return optimizer
    if isinstance(optimizer, type) and issubclass(optimizer, Optimizer):
        name = optimizer.__name__
        raise TypeError(f"the optimizer is the class {name}; pass an object: {name}()")
    if not isinstance(optimizer, str):
        raise TypeError(f"expected an optimizer or the name of one, got {optimizer!r}")
    if optimizer.lower() not in _BY_NAME:
        raise ValueError(
            f"unknown optimizer {optimizer!r}{meant(optimizer, _BY_NAME)}"
            f"{', '.join(sorted(_BY_NAME))}; or pass an optimizer"
        )
    return _BY_NAME[optimizer.lower()]()
