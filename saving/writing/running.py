"""Restore what Python code changes while it is traced and compared."""

from __future__ import annotations

import copy
import functools
import inspect
import random
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import RLock
from typing import Any

import numpy as np

from ...core.errors import TraceError
from ...core.extend import (
    STORE,
    ConcreteFunction,
    Function,
    Module,
    RestoredFunction,
    Tensor,
    Variable,
    added_losses,
    as_tensor,
    flatten,
    forward_pass,
    inlining,
    keeping_added,
    mask_of,
    ops,
    ruled_weights,
)
from ..errors import SaveError
from ..proofs.golden import why

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


# Those who listen, in any thread.
_listening: list[set[tuple[int, str]]] = []
_LOCK = RLock()


@contextmanager
def reads_of(listens: bool) -> Iterator[set[tuple[int, str]]]:
    """Note which attributes of modules are read in this block, by any code and in any thread.

    Parameters
    ----------
    listens
        Whether to; a class that changes too often is looked up slowly from then on.

    Yields
    ------
    set
        Pairs of a module's ``id`` and the name of an attribute of the instance.
    """
    found: set[tuple[int, str]] = set()
    if not listens:
        yield found
        return
    with _LOCK:
        _listening.append(found)
        Module.__getattribute__ = _noting  # type: ignore[method-assign, assignment]
    try:
        yield found
    finally:
        with _LOCK:
            _listening[:] = [x for x in _listening if x is not found]
            if not _listening:
                del Module.__getattribute__


def _noting(self: Module, name: str) -> Any:
    value = object.__getattribute__(self, name)
    if name in object.__getattribute__(self, "__dict__"):
        for found in _listening:
            found.add((id(self), name))
    return value


def with_added(call: Callable[..., Any], root: Module, lost: list[str]) -> Callable[..., Any]:
    """Return a function that returns the results of a call, the losses it adds, and the masks.

    Parameters
    ----------
    call
        A module's ``__call__``.
    root
        The module.
    lost
        Receives the losses that no trace can compute.
    """

    @functools.wraps(call)
    def traced(*args: Any, **kwargs: Any) -> Any:
        losses: list[Any] = []
        with forward_pass(root), inlining():
            results = call(*args, **kwargs)
            try:
                losses = added_losses(root)
            except TraceError as error:  # it was added in a loop's body, say
                lost.append(f"what layers of {root.name!r} add to the loss ({error})")
        masks = [_as_mask(mask_of(leaf)) for leaf in flatten(results)]
        return results, losses, [] if masks.count(None) == len(masks) else masks

    vars(traced)["__signature__"] = inspect.signature(call)  # without self
    return traced


def _as_mask(mask: Any) -> Any:
    """Return a mask as files keep it: in booleans."""
    if mask is None or as_tensor(mask).dtype == "bool":
        return mask
    return ops["not_equal"](mask, 0)


def split_added(concrete: ConcreteFunction) -> ConcreteFunction:
    """Return a trace of what ``with_added`` returned, with the results of the call alone."""
    results, losses, masks = concrete.results
    apart = copy.copy(concrete)
    apart.results, apart.added = results, tuple(x.index for x in losses)
    apart.masks = tuple(None if x is None else x.index for x in masks)
    return apart


def retraced(adding: Callable[..., Any], concrete: ConcreteFunction) -> ConcreteFunction:
    """Return a trace of a decorated ``__call__`` with its losses and masks, if there are any.

    ``adding`` is what ``with_added`` returned for it.
    """
    args, kwargs = concrete.arguments
    traced = Function(adding, name=concrete.name).get_concrete_function(*args, **kwargs)
    found = split_added(traced)
    return found if found.added or found.masks else concrete


def rules_given(module: Module) -> set[int]:
    """Return the regularizers and constraints of a module that a file keeps, by identity."""
    rules = [rule for _, *pair in ruled_weights(module) for rule in pair]
    return set(map(id, [*rules, getattr(module, "activity_regularizer", None)])) - {id(None)}


def ruled_records(
    module: Module,
    weights: Iterator[tuple[Variable, Any, Any]],
    number_of: Callable[[Variable], int],
    save: Callable[[Any, Variable, bool, str], int],
    lost: list[str],
) -> dict[str, list[list[int]]]:
    """Return the regularizers and constraints of a module's weights: numbers of both.

    Parameters
    ----------
    module
        The module.
    weights
        Its weights, each with a regularizer and a constraint.
    number_of
        Returns the number of a variable.
    save
        Traces a function of a variable, given whether it is a regularizer; returns its number.
    lost
        Receives which of them cannot be traced.
    """
    found: dict[str, list[list[int]]] = {}
    for variable, *rules in weights:
        for kind, rule in zip(("regularizer", "constraint"), rules, strict=True):
            where = f"{module.name}: the {kind} of {variable.name!r}"
            try:
                if rule is not None:
                    number = number_of(variable)
                    pair = [number, save(rule, variable, kind == "regularizer", where)]
                    found.setdefault(f"{kind}s", []).append(pair)
            except SaveError as error:
                lost.append(f"{where} ({why(error)})")
    return found
