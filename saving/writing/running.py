"""Run Python code for a save: keep its state, note what it reads, and what it gives aside."""

from __future__ import annotations

import copy
import functools
import inspect
import random
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Lock
from typing import Any
from weakref import WeakSet

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
)
from ..records.loaded import LoadedModule

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


# -- what is read: its values go into the graphs ---------------------------------------------------

# What the code that runs for a save has read; in other threads there is none.
_READS: ContextVar[set[tuple[int, str]] | None] = ContextVar("_READS", default=None)
# How many saves listen to a class or a module, and what to restore when the last one leaves.
_LISTENING: dict[Any, tuple[int, Callable[[], None]]] = {}
_LOCK = Lock()
# The classes that single modules have while they note what is read.
_APART: WeakSet[type] = WeakSet()
_set_class = vars(object)["__class__"].__set__


@contextmanager
def reads_of(modules: Sequence[Module]) -> Iterator[set[tuple[int, str]]]:
    """Note which attributes of modules are read in this block, by any code that it runs.

    The classes of these modules note it, and only for this block: other threads, which may use the
    same modules, are not heard. Classes that every program shares stay as they are, and their
    instances get a class of their own until the block ends.

    Parameters
    ----------
    modules
        Modules of classes that files do not hold.

    Yields
    ------
    set
        Pairs of a module's ``id`` and the name of an attribute of the instance.
    """
    shared = [x for x in modules if type(x) in (Module, LoadedModule) or type(x) in _APART]
    alone = set(map(id, shared))
    listened = [*dict.fromkeys(type(x) for x in modules if id(x) not in alone), *shared]
    found: set[tuple[int, str]] = set()
    token = _READS.set(found)
    with ExitStack() as stack:
        stack.callback(_READS.reset, token)
        for item in listened:
            _listen(item)
            stack.callback(_leave, item)
        yield found


def _listen(item: Any) -> None:
    with _LOCK:
        key = item if isinstance(item, type) else id(item)
        count, restore = _LISTENING.get(key, (0, None))
        if restore is None:
            restore = _note_in_class(item) if isinstance(item, type) else _note_in_module(item)
        _LISTENING[key] = count + 1, restore


def _leave(item: Any) -> None:
    with _LOCK:
        key = item if isinstance(item, type) else id(item)
        count, restore = _LISTENING.pop(key)
        if count > 1:
            _LISTENING[key] = count - 1, restore
        else:
            restore()


def _note_in_class(cls: Any) -> Callable[[], None]:
    """Let a class note what is read of its instances; return what ends that."""
    own = vars(cls).get("__getattribute__")
    cls.__getattribute__ = _noting(cls.__getattribute__)
    if own is None:
        return partial(delattr, cls, "__getattribute__")
    return partial(setattr, cls, "__getattribute__", own)


def _note_in_module(module: Module) -> Callable[[], None]:
    """Let one module note what is read of it; return what ends that."""
    cls: Any = type(module)

    def reduced(self: Any, protocol: Any) -> Any:
        """Return how to make a copy, or to unpickle one, of the module's own class."""
        made = list(super(apart, self).__reduce_ex__(protocol))
        made[1] = tuple(cls if x is apart else x for x in made[1])
        return tuple(made)

    apart: Any = type(
        cls.__name__,
        (cls,),
        {
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__class__": property(lambda self: cls),
            "__getattribute__": _noting(cls.__getattribute__),
            "__reduce_ex__": reduced,
        },
    )
    _APART.add(apart)
    _set_class(module, apart)
    return partial(_set_class, module, cls)


def _noting(read: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Return a ``__getattribute__`` that reads as another one, and notes attributes."""

    def __getattribute__(self: Any, name: str) -> Any:
        value = read(self, name)
        found = _READS.get()
        if found is not None and name in object.__getattribute__(self, "__dict__"):
            found.add((id(self), name))
        return value

    return __getattribute__


# -- what calls give besides results ---------------------------------------------------------------


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
