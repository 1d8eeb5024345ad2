"""What a trace of a step takes from Python objects, as constants.

A graph repeats what Python did while it was traced. So a number that a loss, a metric, a schedule
or a layer reads from an object, a closure or a global variable is as it was then, although a
callback may change it. :func:`constants_of` finds such values, to compare them later.
"""

from __future__ import annotations

import dis
import functools
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ...core.extend import ConcreteFunction, Function, Module, Tensor, Variable, registry, slots_of
from ..callbacks.callback import Callback
from ..runs.session import is_plain

__all__ = ["Constant", "constants_of", "differing", "put_back"]

_ROOT = __name__.partition(".")[0]
#: So many objects are looked at.
_MOST = 5_000
_PLACES = tuple({sysconfig.get_paths()[key] for key in ("stdlib", "purelib", "platlib")})
_CLOSED = (str, bytes, int, float, complex, np.ndarray, np.generic, Tensor, Function)
_CODE = (types.FunctionType, types.MethodType, functools.partial)
#: Classes of Python's library whose objects hold what users put there.
_BAGS = frozenset({("types", "SimpleNamespace"), ("argparse", "Namespace")})


class Constant(NamedTuple):
    """A value that a trace takes as a constant."""

    #: The value in comparable form.
    known: Any
    value: Any
    #: Whether it is an attribute of a module; these also count if they are new.
    own: bool
    #: A function that sets the value; None if it is not a plain value.
    put: Callable[[Any], Any] | None = None


def differing(before: dict[str, Constant], after: dict[str, Constant]) -> str:
    """Return the first name whose values differ in two dictionaries; an empty text if none do."""
    for name in _changed(before, after):
        return name.rpartition(" (")[0]
    return ""


def put_back(before: dict[str, Constant], after: dict[str, Constant]) -> None:
    """Set plain values, except lists and dictionaries, to what they were before."""
    for name in _changed(before, after):
        old = before.get(name)
        if old is not None and old.put is not None and not isinstance(old.value, (list, dict)):
            old.put(old.value)


def _changed(before: dict[str, Constant], after: dict[str, Constant]) -> Iterator[str]:
    """Yield the names; weights that were created since are no change."""
    for name, old in before.items():
        new = after.get(name)
        if new is None or (new.known != old.known and not (old.value is None and _is_weight(new))):
            yield name
    for name, new in after.items():
        if new.own and name not in before and not _is_weight(new):
            yield name


def _is_weight(constant: Constant) -> bool:
    value = constant.value
    held = value if isinstance(value, list) and value else [value]
    return all(isinstance(x, Variable) for x in held)


def constants_of(roots: Iterable[Any]) -> dict[str, Constant]:
    """Return the values that a trace treats as constants, by a name for messages.

    Parameters
    ----------
    roots
        Modules, functions and other objects that a step calls. All that they refer to is searched,
        except what libraries define. Every attribute of a module counts; of other objects only
        those that code reads which is found here.
    """
    return _Search().of(roots)


class _Search:
    """Follows references from objects and functions to the values that they read."""

    def __init__(self) -> None:
        self.found: dict[str, Constant] = {}
        self.seen: dict[int, Any] = {}
        self.classes: set[type] = set()
        self.queue: deque[tuple[Any, str]] = deque()
        self.names: set[str] = set()  # of the attributes that the code reads
        self.waiting: dict[str, list[tuple[Any, ...]]] = {}  # attributes that no code reads so far

    def of(self, roots: Iterable[Any]) -> dict[str, Constant]:
        """Return what is found from these objects on."""
        for root in roots:
            self._follow(root, type(root).__name__)
        while self.queue and len(self.seen) < _MOST:
            with suppress(Exception):  # a proxy of nothing yet, or what another thread changes
                self._look(*self.queue.popleft())
        return self.found

    def _follow(self, value: Any, where: str) -> None:
        if value is None or isinstance(value, (*_CLOSED, ConcreteFunction, types.ModuleType)):
            return
        if id(value) not in self.seen:
            self.seen[id(value)] = value
            self.queue.append((value, where))

    def _note(
        self, name: str, owner: str, place: int, value: Any, put: Any, own: bool = False
    ) -> None:
        """Keep a value, and look into it later."""
        plain = is_plain(value)
        if own or not isinstance(value, (list, dict)):  # others may be logs of the user
            known = repr(value) if plain else id(value)
            what = f"{name} of {owner} ({place})"
            self.found[what] = Constant(known, value, own, put if plain else None)
        if not plain or not own:
            self._follow(value, owner)

    def _look(self, value: Any, where: str) -> None:
        """Note what an object holds or a function reads."""
        if isinstance(value, Module):
            self._look_at_module(value, repr(getattr(value, "name", where)))
        elif isinstance(value, dict):
            for key, item in list(value.items()):
                put = functools.partial(value.__setitem__, key)
                self._note(f"[{key!r}]", where, id(value), item, put)
        elif isinstance(value, (list, tuple)):
            for item in list(value):
                self._follow(item, where)
        elif isinstance(value, types.FunctionType):
            self._look_at_code(value)
        elif isinstance(value, types.MethodType):
            self._follow(value.__func__, where)
            self._follow(value.__self__, where)
        elif isinstance(value, functools.partial):
            for item in (value.func, value.args, value.keywords):
                self._follow(item, where)
        elif isinstance(value, type):
            self._look_at_class(value)
        else:
            self._look_at_object(value)

    def _look_at_module(self, module: Module, owner: str) -> None:
        held = vars(module)
        for name, item in list(held.items()):
            if name == "_gradtape_lambda":  # the function of a layer, with its arguments
                self._follow(item, owner)
            elif not name.startswith("_gradtape"):
                put = functools.partial(held.__setitem__, name)
                self._note(repr(name), owner, id(module), item, put, own=True)
        self._look_at_class(type(module))

    def _look_at_object(self, value: Any) -> None:
        cls = type(value)
        calls_back = isinstance(value, Callback)
        bag = (cls.__module__, cls.__qualname__) in _BAGS
        # what the code of plugins reads is not searched, so all settings of a schedule or a loss
        # count
        of_plugin = any(_is_of_plugins(base.__module__) for base in cls.__mro__)
        if _is_of_library(cls.__module__) and not of_plugin and not bag:
            return
        note = of_plugin and not calls_back
        for name, item, put in _attributes_of(value):
            if not note:
                self._read(name, repr(cls.__name__), id(value), item, put)
            elif not name.startswith("_"):
                self._note(repr(name), repr(cls.__name__), id(value), item, put)
        if not calls_back:  # its methods for events are no part of a step
            self._look_at_class(cls)

    def _look_at_class(self, cls: type) -> None:
        """Look at the code and values in a class of the user."""
        for base in cls.__mro__:
            if base in self.classes or _is_of_library(base.__module__):
                continue
            self.classes.add(base)
            for name, item in list(vars(base).items()):
                item = item.__func__ if isinstance(item, (classmethod, staticmethod)) else item
                item = item.fget if isinstance(item, property) else item
                if isinstance(item, _CODE):
                    self._follow(item, base.__name__)
                elif not name.startswith("__") and is_plain(item):
                    put = functools.partial(setattr, base, name)
                    self._read(name, repr(base.__name__), id(base), item, put)

    def _read(self, name: str, owner: str, place: int, value: Any, put: Any) -> None:
        """Note an attribute if code reads it, now or as soon as such code is found."""
        if name in self.names:
            self._note(repr(name), owner, place, value, put)
        else:
            self.waiting.setdefault(name, []).append((owner, place, value, put))

    def _look_at_code(self, function: Any) -> None:
        """Look at the variables that a function of the user reads."""
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            self._follow(wrapped, function.__name__)
        if _is_of_library(function.__globals__.get("__name__", "")):
            return
        code, where = function.__code__, repr(function.__name__)
        known, attributes = _names_in(code)
        for name in attributes - self.names:
            self.names.add(name)
            for owner, place, value, put in self.waiting.pop(name, ()):
                self._note(repr(name), owner, place, value, put)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            self._note(repr(name), where, id(cell), value, functools.partial(_fill, cell))
        scope = function.__globals__
        for name in known:
            if name in scope:
                put = functools.partial(scope.__setitem__, name)
                self._note(repr(name), where, id(scope), scope[name], put)
        for item in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._follow(item, where)


def _attributes_of(value: Any) -> Iterator[tuple[str, Any, Callable[[Any], Any]]]:
    """Yield an object's attributes, in its dictionary, in slots or its class; and what sets them.

    Slots and classes are those of the user. What sets an attribute of the class takes it from the
    object again.
    """
    held = getattr(value, "__dict__", {})
    for name, item in list(held.items()):
        yield name, item, functools.partial(held.__setitem__, name)
    met = set(held)
    for base in type(value).__mro__:
        if _is_of_library(base.__module__):
            continue
        for name, item in slots_of(value, base):
            yield name, item, functools.partial(setattr, value, name)
        for name, item in list(vars(base).items()):
            if name not in met and not name.startswith("__") and is_plain(item):
                met.add(name)
                yield name, item, functools.partial(_take_away, held, name)


def _take_away(held: dict[str, Any], name: str, value: Any) -> None:
    held.pop(name, None)


def _fill(cell: Any, value: Any) -> None:
    cell.cell_contents = value


@functools.lru_cache(maxsize=4096)
def _names_in(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of global variables and of attributes that code reads."""
    known: set[str] = set()
    attributes: set[str] = {x for x in code.co_consts if isinstance(x, str)}  # for getattr
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            known.add(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            attributes.add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            for names, more in zip((known, attributes), _names_in(inner), strict=True):
                names |= more
    return frozenset(known), frozenset(attributes)


def _is_of_plugins(module: str | None) -> bool:
    """Return whether a module's package is one whose distribution declares plugins."""
    return str(module).partition(".")[0] in registry().packages


@functools.lru_cache(maxsize=4096)
def _is_of_library(module: str | None) -> bool:
    """Return whether a module is installed, so that its code does not change in a run."""
    name = str(module)
    if name == "__main__":
        return False
    if name.partition(".")[0] == _ROOT or name in sys.builtin_module_names:
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return name.partition(".")[0] in sys.stdlib_module_names
    return str(file).startswith(_PLACES)
