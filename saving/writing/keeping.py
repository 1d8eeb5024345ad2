"""Restore what Python code changes while it is traced and compared."""

from __future__ import annotations

import random
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ...core.extend import (
    STORE,
    Function,
    Module,
    RestoredFunction,
    Tensor,
    Variable,
    keeping_added,
)

# So many objects are looked into.
_MOST = 10_000
_CODE = (types.ModuleType, types.FunctionType, type)
_CLOSED = (Variable, Tensor, Module, Function, RestoredFunction, *_CODE)


@contextmanager
def keeping_state(modules: Iterable[Module]) -> Iterator[None]:
    """Restore the Python state of modules after a block that runs them on its own inputs.

    The state is their attributes, and the contents of lists, dictionaries, sets, arrays, random
    generators and plain objects in these. It does not include variables.

    Parameters
    ----------
    modules
        The modules.

    Yields
    ------
    None
        The state is restored afterwards.
    """
    modules = list(modules)
    restores = list(_restores(modules))
    try:
        with keeping_added(modules):
            yield
    finally:
        for restore in restores:
            restore()


def _restores(modules: Iterable[Module]) -> Iterator[Callable[[], None]]:
    queue: deque[Any] = deque()
    seen: set[int] = set()
    for module in modules:
        state = vars(module)
        # the traces that its functions make cost time, and change nothing
        yield partial(_put_back, state, dict(state), STORE)
        queue += (value for name, value in state.items() if name != STORE)
    while queue and len(seen) < _MOST:
        item = queue.popleft()
        if id(item) in seen or isinstance(item, _CLOSED):
            continue
        seen.add(id(item))
        found = _restore(item)
        if found is not None:
            yield found
        queue.extend(_inside(item))  # "+=" would ask a TensorShape, which is a tuple too


def _restore(item: Any) -> Callable[[], None] | None:
    """Return a function that restores an object's content; None if it has none that may change."""
    if isinstance(item, (list, deque)):
        return partial(_refill, item, list(item), item.extend)
    if isinstance(item, set):
        return partial(_refill, item, list(item), item.update)
    if isinstance(item, dict):
        return partial(_put_back, item, dict(item))
    if type(item) is np.ndarray:
        return partial(np.copyto, item, item.copy()) if item.flags.writeable else None
    if isinstance(item, np.random.Generator):
        return partial(setattr, item.bit_generator, "state", item.bit_generator.state)
    if isinstance(item, np.random.RandomState):
        return partial(item.set_state, item.get_state())
    if isinstance(item, random.Random):
        return partial(item.setstate, item.getstate())
    state = getattr(item, "__dict__", None)
    return partial(_put_back, state, dict(state)) if type(state) is dict else None


def _inside(item: Any) -> Iterable[Any]:
    if isinstance(item, dict):
        return item.values()
    if isinstance(item, (list, tuple, set, frozenset, deque)):
        return item
    state = getattr(item, "__dict__", None)
    return state.values() if type(state) is dict else ()


def _refill(item: Any, content: list[Any], fill: Callable[[Any], Any]) -> None:
    item.clear()
    fill(content)


def _put_back(state: dict[Any, Any], content: dict[Any, Any], stays: str | None = None) -> None:
    if stays in state:
        content = {**content, stays: state[stays]}
    if list(state) != list(content) or any(state[key] is not content[key] for key in content):
        state.clear()
        state.update(content)
