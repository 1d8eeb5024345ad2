"""``BatchStep``: a step of training or evaluation, compiled if that is worthwhile and correct.

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
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import TraceError
from ...core.extend import (
    ConcreteFunction,
    Function,
    Module,
    Tensor,
    Variable,
    flatten,
    pack_like,
    registry,
    slots_of,
    structure,
    to_numpy,
)
from ..callbacks.callback import Callback
from .callback_state import is_plain

__all__ = ["MODES", "BatchStep", "Constant", "constants_of", "differing", "restore_plain_values"]

MODES = ("auto", True, False)
#: The number of steps of one shape that are worth a trace; and, where that number is unknown, the
#: number of steps after which the step is traced.
_WORTH, _PATIENCE = 64, 32
#: The divisor of both for steps with recurrent loops, which gain most from a trace.
_QUICKER = 4


class BatchStep:
    """A function of a batch, run as Python or as a graph for each shape.

    Parameters
    ----------
    step
        A function of the parts of a batch and of ``look=``. It returns a tuple that begins with the
        loss.
    mode
        ``"auto"`` runs a graph for shapes that occur often enough, ``True`` always or raises, and
        ``False`` never.
    what
        The name of the step in messages.
    variables
        A function that returns the variables that a step may change.
    attributes
        A function that returns the values that a trace takes from Python objects, by name.
    loops
        Whether the step has recurrent loops, which gain most from a trace.
    compare_all_results
        Whether to check a trace by everything that the step returns, instead of the loss.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        mode: Any,
        what: str,
        variables: Callable[[], Iterable[Any]],
        attributes: Callable[[], dict[str, Constant]],
        loops: bool = False,
        compare_all_results: bool = False,
    ) -> None:
        self.step, self.mode, self.what = step, mode, what
        self._variables, self._attributes = variables, attributes
        self._share = _QUICKER if loops else 1
        self._compare_all_results = compare_all_results
        self._ready: dict[Any, ConcreteFunction] = {}
        self._traced_with: dict[str, Constant] = {}
        self._served = 0
        #: The number of batches of each size to expect, if known.
        self.expected: Mapping[int, int] | None = None
        #: The examples of a batch on all ranks, and how ranks share it; None for one process.
        self.size: int | None = None
        self.layout: Any = None
        #: The number of batches of each shape so far, used where ``expected`` is unknown.
        self.met: dict[Any, int] = {}
        self.refused = mode is False

    def __call__(self, batch: tuple[Any, ...], look: Any = None) -> Any:
        """Return the step's result for a batch; only a step in Python gets ``look``."""
        if self.refused:
            return self.step(*batch, look=look)
        leaves = flatten(batch)
        shapes = [(x.array.shape, x.array.dtype) for x in leaves]
        key = (structure(batch), self.layout, *shapes)
        known = self._ready.get(key)
        if known is not None and known.of_other_plugins:
            self._ready, known = {}, None
        if known is not None and look is None:
            self._served += 1
            return known.call_flat(leaves)
        if known is None and not self._is_worth(key, leaves):
            return self.step(*batch, look=look)
        return self._first(key, batch, leaves, look)

    def _is_worth(self, key: Any, leaves: list[Any]) -> bool:
        if self.mode is True:
            return True
        if self.expected is not None:
            size = len(leaves[0]) if self.size is None else self.size
            return self.expected.get(size, 0) >= _WORTH // self._share
        if self.size is not None:  # the same on all ranks: all compile, or none
            key = (key[0], self.size, *[(x.array.shape[1:], x.array.dtype) for x in leaves])
        told = repr(key)
        self.met[told] = self.met.get(told, 0) + 1
        return self.met[told] > _PATIENCE // self._share

    def _first(self, key: Any, batch: tuple[Any, ...], leaves: list[Any], look: Any) -> Any:
        """Trace the step for a shape; keep the graph if its loss is the same as in Python."""
        before = self._attributes()
        try:
            traced = Function(
                lambda *given: self.step(*pack_like(batch, list(given)), look=None),
                name=f"{self.what} step",  # in profiles and messages
            )
            concrete = traced.get_concrete_function(*leaves)
        except Exception as error:
            restore_plain_values(before, self._attributes())
            self._refuse(str(error).partition("\n")[0], error)
            return self.step(*batch, look=look)
        held = {v: v.array for v in (*concrete.graph.variables, *self._variables())}

        def back() -> None:
            for variable, array in held.items():
                variable.set_array(array)

        expected = self.step(*batch, look=look)
        back()
        after = self._attributes()
        changed = differing(before, after)
        if changed:
            restore_plain_values(before, after)  # counters that count both runs
            self._refuse(f"it changes {changed}, which a graph would not do in each step")
            return self.step(*batch)
        found = concrete.call_flat(leaves)
        told = self._differ(found, expected)
        if told:
            self._refuse(
                f"{told}: something in the step differs from run to run, such as random numbers of "
                "NumPy; draw them with gt.random"
            )
            back()
            return self.step(*batch)
        self._ready[key] = concrete
        self._traced_with = before
        return found

    def _differ(self, found: Any, expected: Any) -> str:
        """Return how a trace's result differs from Python's; an empty text if it does not."""
        if self._compare_all_results:
            pairs = zip(flatten(found), flatten(expected), strict=True)
            alike = all(_close(a, b) for a, b in pairs)
            return "" if alike else "its trace returns another result than Python"
        a, b = found[0], expected[0]
        if _close(a, b):
            return ""
        return f"the loss of its trace is {float(a):.6g}, but {float(b):.6g} in Python"

    def revise(self) -> None:
        """Drop the graphs if the values that they took from Python objects have changed."""
        if not self._ready:
            return
        changed = differing(self._traced_with, self._attributes())
        if not changed and not any(x.outdated for x in self._ready.values()):
            return
        if changed and self.mode == "auto" and self._served < _WORTH:
            self._refuse(f"{changed} changes too often in the run")
        self._ready, self._served = {}, 0

    def _refuse(self, reason: str, error: Exception | None = None) -> None:
        message = f"the {self.what} step cannot be compiled: {reason}"
        if self.mode is True:
            raise TraceError(f"{message}; compile='auto' runs it in Python") from error
        self.refused = True
        warnings.warn(
            f"{message}. It runs in Python, which is slower; set compile=False to do so silently",
            stacklevel=2,
        )


def _close(a: Any, b: Any) -> bool:
    """Return whether two tensors are equal up to rounding, relative to their largest elements."""
    x, y = (np.asarray(to_numpy(v.array)) for v in (a, b))
    if y.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    tolerance = 5e-2 if y.itemsize < 4 else 1e-3
    size = float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y)))
    return bool(np.allclose(x, y, rtol=0, atol=tolerance * size + 1e-6, equal_nan=True))


# -- what a trace takes from Python objects, as constants -----------------------------------------

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


def restore_plain_values(before: dict[str, Constant], after: dict[str, Constant]) -> None:
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
                yield name, item, functools.partial(_remove_item, held, name)


def _remove_item(held: dict[str, Any], name: str, value: Any) -> None:
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
