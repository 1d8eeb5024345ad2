"""Optimizers with Keras's names, defaults and formulas."""

from __future__ import annotations

from typing import Any

from ...core.errors import UnknownName
from ...core.extend import registry
from ...layers import made
from ..names import codeless, did_you_mean
from . import adaptive, classic, lbfgs
from . import decay as decay
from . import options as options
from . import rules as rules
from .adaptive import *
from .classic import *
from .lbfgs import *
from .optimizer import Optimizer
from .rules import by_blocks as by_blocks

__all__: list[str] = ["by_blocks"]
__all__ += adaptive.__all__
__all__ += classic.__all__
__all__ += lbfgs.__all__


def named() -> dict[str, type[Optimizer]]:
    """Return gradtape's optimizers by name, as their plugin provides them."""
    found = ((name.lower(), globals()[name]) for name in __all__)
    return {name: kind for name, kind in found if isinstance(kind, type)}


def get(optimizer: Any) -> Optimizer:
    """Return an optimizer for a name, with default settings, or the optimizer itself.

    Parameters
    ----------
    optimizer
        The name of a class (``"adam"``, ``"rmsprop"``, ``"sgd"``, ...), in upper or lower case, or
        a third party's (``"acme.Lion"``); or an optimizer.

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
        # one that does its steps itself, such as around another optimizer, needs none of it
        own_steps = type(optimizer).apply_gradients is not Optimizer.apply_gradients
        if not (own_steps or hasattr(optimizer, "_gradtape_excluded")):
            raise TypeError(
                f"{type(optimizer).__name__}: let its constructor call "
                "super().__init__(learning_rate, **options)"
            )
        return optimizer
    if isinstance(optimizer, type) and issubclass(optimizer, Optimizer):
        name = optimizer.__name__
        raise TypeError(f"the optimizer is the class {name}; pass an object: {name}()")
    if not isinstance(optimizer, str):
        why = codeless(optimizer, "update", "optimizer")
        raise TypeError(f"expected an optimizer or the name of one, got {optimizer!r}{why}")
    known = registry()
    found = known.find_named("optimizer", optimizer)
    if found is None:
        found = known.find_named("optimizer", optimizer.lower())
    if found is None:
        names = known.names_of("optimizer")
        raise UnknownName(
            f"unknown optimizer {optimizer!r}{did_you_mean(optimizer, names)}"
            f"{', '.join(sorted(names))}; or pass an optimizer{known.lacking(optimizer)}"
        )
    given = made("optimizer", optimizer, found)
    if not isinstance(given, Optimizer):
        raise TypeError(
            f"a plugin provides {given!r:.80} as the optimizer {optimizer!r}; it must be a "
            "gradtape.training.Optimizer, or a class of one"
        )
    return given
