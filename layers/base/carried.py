"""The states that stateful layers carry from one batch to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...core.extend import Module, Variable

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
            if layer is not self:
                layer.reset_states()


def stateful_layers(model: Module) -> list[Any]:
    """Return the layers inside that carry states: those whose attribute ``stateful`` is true.

    Layers of your own take part if their ``states`` are a list of variables, as those of
    :class:`RNN` are.
    """
    return [x for x in (model, *model.submodules) if getattr(x, "stateful", False) is True]


@contextmanager
def states_kept(model: Module) -> Iterator[None]:
    """Run a block that leaves the states of stateful layers as they are; new states are zero."""
    if _CONTINUED.get():
        yield
        return
    before = {state: state.array for state in _states(model)}
    try:
        yield
    finally:
        for state in _states(model):
            if state in before:
                state.set_array(before[state])
            else:
                state.assign(np.zeros(state.shape, state.dtype.name))


@contextmanager
def states_continued() -> Iterator[None]:
    """Run a block in which predictions continue the states of stateful layers, as in Keras."""
    token = _CONTINUED.set(True)
    try:
        yield
    finally:
        _CONTINUED.reset(token)


def _states(model: Module) -> list[Variable]:
    found = [x for layer in stateful_layers(model) for x in getattr(layer, "states", None) or ()]
    return [x for x in found if isinstance(x, Variable)]
