"""The states that stateful layers carry from one batch to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...core.extend import Module, Variable, flatten

__all__ = ["Carrying", "stateful_layers", "states_continued", "states_kept"]

#: Whether blocks of :func:`states_kept` let states go on.
_CONTINUED: ContextVar[bool] = ContextVar("gradtape_states_continued", default=False)


class Carrying:
    """A mixin for models, which may have stateful layers inside."""

    def reset_states(self) -> None:
        """Set the states of the stateful layers inside to zero, where new sequences begin.

        Examples
        --------
        >>> layer = gt.layers.GRU(2, stateful=True)
        >>> model = gt.layers.Sequential([layer])
        >>> y = model(gt.ones((1, 3, 2)))
        >>> model.reset_states()
        >>> layer.states[0].tolist()
        [[0.0, 0.0]]
        """
        model: Any = self
        for layer in stateful_layers(model):
            if layer is not self and hasattr(layer, "reset_states"):
                layer.reset_states()
            else:
                _zero(_states_of(layer))


def stateful_layers(model: Module) -> list[Any]:
    """Return the layers inside that carry states: those whose attribute ``stateful`` is true.

    Layers of your own take part if they have ``states``, a variable or a container of variables,
    or a method ``reset_states``. Otherwise ``stateful`` means something else.
    """
    found = [x for x in (model, *model.submodules) if getattr(x, "stateful", False) is True]
    return [x for x in found if hasattr(x, "states") or _resets(x)]


def _resets(layer: Any) -> bool:
    """Return whether a layer, which may have no states yet, has its own way to reset them."""
    own = getattr(type(layer), "reset_states", Carrying.reset_states)
    return own is not Carrying.reset_states


@contextmanager
def states_kept(model: Module) -> Iterator[None]:
    """Run a block that leaves the states of stateful layers as they are; new states are zero."""
    if _CONTINUED.get():
        yield
        return
    before = {state: state.array for layer in stateful_layers(model) for state in _states_of(layer)}
    try:
        yield
    finally:
        for layer in stateful_layers(model):
            for state in _states_of(layer):
                if state in before:
                    state.set_array(before[state])
                else:
                    _zero([state])


@contextmanager
def states_continued() -> Iterator[None]:
    """Run a block in which predictions continue the states of stateful layers, as in Keras."""
    token = _CONTINUED.set(True)
    try:
        yield
    finally:
        _CONTINUED.reset(token)


def _states_of(layer: Any) -> list[Variable]:
    return [x for x in flatten(getattr(layer, "states", None)) if isinstance(x, Variable)]


def _zero(states: list[Variable]) -> None:
    for state in states:
        state.assign(np.zeros(state.shape, state.dtype.name))
