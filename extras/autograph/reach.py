"""The Python objects that a block of code can reach, and so can change."""

from __future__ import annotations

import dis
import gc
import inspect
import io
import operator
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache, partial
from types import CellType, CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import xxhash

from ..core.extend import Function, Module, Operators, numpy_random_state
from .calls import is_installed, is_kept, is_users
from .holders import Entries, State

RANDOM = (np.random.Generator, np.random.RandomState, random.Random)

_PRIVATE = f"_{__name__.partition('.')[0]}"
#: The largest array, in bytes, of which a copy is kept, and the largest of which the checksum
#: includes all elements.
_COPIED, _HASHED = 1 << 20, 1 << 28
#: The largest array, in bytes, whose bytes are its digest.
_SMALL = 1 << 10
_CODE = (FunctionType, property, classmethod, staticmethod, cached_property)
_STORING = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_PLAIN = frozenset({str, bytes, int, float, complex, bool, type(None)})
_ATOMS = (str, bytes, int, float, complex, type(None), range, slice, Operators, CodeType)


def reached(
    blocks: Iterable[Callable[..., Any]], own: frozenset[Any]
) -> tuple[list[State], dict[int, Any]]:
    """Return what functions can change, and all objects that they can reach, by their ids.

    Parameters
    ----------
    blocks
        The functions.
    own
        What is known to change: ids of cells, and names of globals.
    """
    walk = _Walk(own)
    for block in blocks:
        walk.function(block, block.__name__, is_block=True)
    walk.finish()
    return walk.found, walk.seen


def holders_of(roots: Iterable[Any]) -> list[State]:
    """Return what can change and can be reached from objects."""
    walk = _Walk(frozenset())
    for root in roots:
        walk.add(root, "")
    walk.finish()
    return walk.found


class _Walk:
    """Goes from object to object, breadth first, and notes what each of them holds."""

    def __init__(self, own: frozenset[Any]) -> None:
        self.own = own
        self.seen: dict[int, Any] = {}
        self.found: list[State] = [
            State("the state of Python's 'random'", None, random.getstate),
            State("the state of 'numpy.random'", None, numpy_random_state),
        ]
        self._next: deque[tuple[Any, str]] = deque()
        self._visits: dict[type, Any] = {}
        self._names: dict[int, set[str]] = {}  # of each namespace, those noted already

    def add(self, x: Any, name: str) -> None:
        if type(x) not in _PLAIN and not isinstance(x, _ATOMS) and id(x) not in self.seen:
            self.seen[id(x)] = x
            self._next.append((x, name))

    def finish(self) -> None:
        visits = self._visits
        while self._next:
            x, name = self._next.popleft()
            visit = visits.get(type(x))
            if visit is None:
                visit = visits[type(x)] = _visit_of(x)
            visit(self, x, name)

    # -- code --------------------------------------------------------------------------------------

    def function(self, f: Any, name: str, is_block: bool = False) -> None:
        if not is_users(f):
            return
        self.namespace(f.__globals__, _names(f.__code__), "{}", _stored(f.__code__))
        self.attributes(f, f.__name__)
        for value in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self.add(value, f"a default argument of {f.__name__}")
        for variable, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            # a block's own variables are those of its statement, or it is done with them
            if not is_block:
                self.cell(cell, variable)
            for value in _content(cell, variable).values():
                self.named(value, variable, _names(f.__code__))

    def namespace(
        self, scope: dict[str, Any], names: frozenset[str], spelled: str, stored: frozenset[str]
    ) -> None:
        known = self._names.setdefault(id(scope), set())
        new = [x for x in names if x in scope or x in stored]
        new = [x for x in new if x not in known and x not in self.own]
        if not new:
            return
        known.update(new)
        self.found.append(
            Entries(
                spelled,
                scope,
                lambda: {x: scope[x] for x in new if x in scope},
                scope.__setitem__,
                scope.__delitem__,
            )
        )
        for key in new:
            if key in scope:
                self.named(scope[key], spelled.format(key), names)

    def named(self, value: Any, name: str, names: frozenset[str]) -> None:
        """Visit an object that code refers to, later; of a module, what the code mentions."""
        if not isinstance(value, ModuleType):
            self.add(value, name)
        elif not is_installed(value.__name__, getattr(value, "__file__", None) or "<frozen"):
            self.namespace(vars(value), names, name + ".{}", names)

    def cell(self, cell: CellType, name: str) -> None:
        if id(cell) not in self.seen and id(cell) not in self.own:
            self.seen[id(cell)] = cell
            read = partial(_content, cell, name)
            self.found.append(Entries("{}", cell, read, partial(_put, cell), partial(_drop, cell)))

    def method(self, x: MethodType, name: str) -> None:
        self.add(x.__self__, name.rpartition(".")[0] or name)
        self.add(x.__func__, name)

    def bound(self, x: Any, name: str) -> None:
        if not isinstance(x.__self__, ModuleType):
            self.add(x.__self__, name)

    def partial(self, x: partial[Any], name: str) -> None:
        for value in (x.func, *x.args, *x.keywords.values()):
            self.add(value, name)

    def wrapped(self, x: Any, name: str) -> None:
        for part in ("python_function", "__wrapped__", "__func__", "fget", "fset", "fdel", "func"):
            self.add(getattr(x, part, None), name)

    # -- containers --------------------------------------------------------------------------------

    def mapping(self, x: dict[Any, Any], name: str) -> None:
        self.found.append(
            Entries(name + "[{!r}]", x, lambda: dict(x), x.__setitem__, x.__delitem__)
        )
        for key, value in list(x.items()):
            if type(key) not in _PLAIN:
                self.add(key, name)
            if type(value) not in _PLAIN:
                self.add(value, f"{name}[{key!r}]" if isinstance(key, (str, int)) else name)
        self.attributes(x, name)

    def sequence(self, x: Any, name: str) -> None:
        if isinstance(x, list):
            self.found.append(Entries(name + "[{}]", x, lambda: dict(enumerate(x)), x.__setitem__))
        elif isinstance(x, (set, deque, bytearray)):
            kept = set if isinstance(x, set) else list
            self.found.append(State(name, x, lambda: kept(x), partial(_refill, x)))
        self.sequence_of(x, "" if isinstance(x, (set, frozenset)) else name, name)
        self.attributes(x, name)

    def array(self, x: np.ndarray[Any, Any], name: str) -> None:
        undo = None
        if 0 < x.nbytes <= _COPIED and x.flags.writeable and not x.dtype.hasobject:
            undo = partial(_rewrite, x, _copy_of(x) if x.nbytes > _SMALL else None)
        self.found.append(State(name, x, partial(_digest, x), undo))
        if x.dtype.hasobject:
            self.sequence_of(x.ravel().tolist(), name)

    def sequence_of(self, values: Iterable[Any], indexed: str, name: str = "") -> None:
        for i, value in enumerate(values):
            if type(value) not in _PLAIN:
                self.add(value, f"{indexed}[{i}]" if indexed else name)

    # -- objects -----------------------------------------------------------------------------------

    def instance(self, x: Any, name: str) -> None:
        kind = type(x)
        if is_kept(str(kind.__module__)):
            if isinstance(x, Module):  # modules of the user's may be inside
                for value in _modules_in(list(vars(x).values())):
                    self.add(value, name)
            return
        self.attributes(x, name)
        self.add(kind, kind.__name__)

    def attributes(self, x: Any, name: str) -> None:
        slots = [s for c in type(x).__mro__ for s in _slots(c)]
        held = getattr(x, "__dict__", None)
        if held is None and not slots:
            return
        foreign = not isinstance(x, FunctionType) and is_installed(*_place(type(x)))

        # the private state of a library's objects is its own business, such as a logger's cache
        private = "_" if foreign else _PRIVATE

        def read() -> dict[str, Any]:
            found = {s: getattr(x, s) for s in slots if hasattr(x, s)}
            found.update({k: v for k, v in (held or {}).items() if not k.startswith(private)})
            return found

        now, shown = read(), _inherited(type(x))
        self.found.append(
            Entries(name + ".{}", x, read, partial(setattr, x), partial(delattr, x), shown)
        )
        for key, value in now.items():
            # of a library's objects, only their own containers: they may lead anywhere
            if not foreign or isinstance(value, (list, dict, set, deque, np.ndarray)):
                self.add(value, f"{name}.{key}")

    def type(self, x: type, name: str) -> None:
        if is_installed(*_place(x)):
            return

        def read() -> dict[str, Any]:
            return {k: v for k, v in vars(x).items() if not k.startswith(("__", _PRIVATE, "_abc"))}

        self.found.append(Entries(name + ".{}", x, read, partial(setattr, x), partial(delattr, x)))
        for key, value in vars(x).items():
            if isinstance(value, _CODE) or not key.startswith("__"):
                self.add(value, f"{name}.{key}")
        for base in x.__bases__:
            self.add(base, base.__name__)

    # -- what moves on -----------------------------------------------------------------------------

    def generator(self, x: GeneratorType[Any, Any, Any], name: str) -> None:
        self.found.append(State(name, x, lambda: x.gi_frame and x.gi_frame.f_lasti))
        if x.gi_frame is not None:
            self.namespace(x.gi_frame.f_globals, _names(x.gi_code), "{}", _stored(x.gi_code))
            for key, value in x.gi_frame.f_locals.items():
                self.add(value, key)

    def iterator(self, x: Any, name: str) -> None:
        self.found.append(State(name, x, lambda: _position(x)))
        for value in gc.get_referents(x):
            if not isinstance(value, type):
                self.add(value, name)
        if type(x).__module__ != "builtins":
            self.attributes(x, name)
            self.add(type(x), type(x).__name__)

    def randomness(self, x: Any, name: str) -> None:
        self.found.append(State(name, x, lambda: _random_state(x)))

    def file(self, x: io.IOBase, name: str) -> None:
        self.found.append(State(name, x, lambda: _position_in_file(x)))


def _content(cell: CellType, name: str) -> dict[str, Any]:
    try:
        return {name: cell.cell_contents}
    except ValueError:  # no value yet
        return {}


def _put(cell: CellType, _: Any, value: Any) -> None:
    cell.cell_contents = value


def _drop(cell: CellType, _: Any) -> None:
    del cell.cell_contents


@lru_cache(maxsize=4096)
def _names(code: CodeType) -> frozenset[str]:
    """Return the names of globals and attributes that code mentions."""
    inside = [_names(x) for x in code.co_consts if isinstance(x, CodeType)]
    return frozenset(code.co_names).union(*inside)


@lru_cache(maxsize=4096)
def _stored(code: CodeType) -> frozenset[str]:
    """Return the names of globals that code assigns or deletes."""
    stored = {x.argval for x in dis.get_instructions(code) if x.opname in _STORING}
    inside = [_stored(x) for x in code.co_consts if isinstance(x, CodeType)]
    return frozenset(stored).union(*inside)


def _place(kind: type) -> tuple[str, str]:
    return kind.__module__, str(_file_of(kind.__module__))


@lru_cache(maxsize=4096)
def _file_of(module: str) -> str:
    return str(getattr(sys.modules.get(module), "__file__", None) or "")


def _inherited(kind: type) -> dict[str, Any]:
    """Return the values of a class that its instances show until they have their own."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        found.update({k: v for k, v in vars(base).items() if not hasattr(type(v), "__get__")})
    return found


def _slots(kind: type) -> Iterator[str]:
    names = vars(kind).get("__slots__", ())
    for name in (names,) if isinstance(names, str) else names:
        if inspect.ismemberdescriptor(vars(kind).get(name)):
            yield name


def _modules_in(values: Iterable[Any]) -> Iterator[Module]:
    for value in values:
        if isinstance(value, Module):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _modules_in(value)
        elif isinstance(value, dict):
            yield from _modules_in(list(value.values()))


def _digest(x: np.ndarray[Any, Any]) -> Any:
    if x.dtype.hasobject:
        return [id(value) for value in x.ravel().tolist()]
    size = x.nbytes
    if not x.flags.writeable or not size:
        return x.shape, x.dtype
    if size <= _SMALL:
        return x.shape, x.dtype, x.tobytes()
    some = x.ravel()[:: max(1, size // _HASHED)] if size > _HASHED else x
    held = np.ascontiguousarray(some).view(np.uint8)
    return x.shape, x.dtype, xxhash.xxh3_128_digest(held.data)


#: Copies of arrays by their digests, as long as a statement that is traced holds them.
_COPIES: WeakValueDictionary[Any, np.ndarray[Any, Any]] = WeakValueDictionary()


def _copy_of(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    digest = _digest(x)
    found = _COPIES.get(digest)
    if found is None:
        found = _COPIES[digest] = x.copy()
    return found


def _rewrite(x: np.ndarray[Any, Any], copy: np.ndarray[Any, Any] | None, state: Any) -> None:
    if state[:2] == (x.shape, x.dtype):
        x[...] = np.frombuffer(state[2], x.dtype).reshape(x.shape) if copy is None else copy


def _refill(x: Any, held: Any) -> None:
    x.clear()
    (x.update if isinstance(x, set) else x.extend)(held)


def _random_state(x: Any) -> Any:
    if isinstance(x, random.Random):
        return x.getstate()
    generator = x.bit_generator if isinstance(x, np.random.Generator) else x._bit_generator
    return repr(generator.state)


def _position(x: Any) -> Any:
    kind = type(x)
    if kind.__module__ == "itertools" and kind.__name__ == "count":
        return repr(x)
    try:
        return operator.length_hint(x, -1)
    except Exception:  # an iterator of the user's with a hint that fails
        return None


def _position_in_file(x: Any) -> Any:
    try:
        return x.tell()
    except (OSError, ValueError):  # closed, or a terminal
        return None


_LruCache = type(lru_cache(_digest))
_VISITS: tuple[tuple[Any, Any], ...] = (
    (FunctionType, _Walk.function),
    (MethodType, _Walk.method),
    ((type(len), type([].__str__)), _Walk.bound),
    (partial, _Walk.partial),
    ((Function, property, classmethod, staticmethod, cached_property, _LruCache), _Walk.wrapped),
    (type, _Walk.type),
    (ModuleType, lambda *_: None),
    (CellType, lambda *_: None),
    (dict, _Walk.mapping),
    ((list, tuple, set, frozenset, deque, bytearray), _Walk.sequence),
    (np.ndarray, _Walk.array),
    (RANDOM, _Walk.randomness),
    (np.generic, lambda *_: None),
    (GeneratorType, _Walk.generator),
    (io.IOBase, _Walk.file),
)


def _visit_of(x: Any) -> Any:
    """Return the function that visits objects of the type of ``x``."""
    for kinds, visit in _VISITS:
        if isinstance(x, kinds):
            return visit
    return _Walk.iterator if hasattr(x, "__next__") else _Walk.instance
