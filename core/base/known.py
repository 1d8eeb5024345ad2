"""The numbers and arrays that the user's code has, and those that it passes to gradtape."""

from __future__ import annotations

import weakref
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np
from xxhash import xxh3_64_intdigest

from .sites import locals_of, reader
from .table import PACKAGE
from .tree import flatten
from .unknown import package_of, users_frame


class Known:
    """The numbers and arrays that running code has: what it computes later is not among them.

    They are known as objects. A number that is computed later is another object, even if it is
    equal to one that was computed in an earlier run.
    """

    __slots__ = ("arrays", "modules", "numbers")

    def __init__(self, frame: FrameType | None) -> None:
        self.numbers: dict[int, Any] = {}
        self.modules: set[int] = set()
        self.arrays: dict[int, tuple[weakref.ref[Any], int | None]] = {}
        depth = 0
        while frame is not None and depth < _FRAMES:
            if package_of(frame) not in (PACKAGE, "numpy"):
                depth += 1
                self._look_at(frame)
            frame = frame.f_back

    def has_number(self, number: Any, frame: FrameType) -> bool:
        """Return whether the code had this number, or names it: a literal, or ``np.pi``."""
        if type(number) is np.ndarray:  # made from a NumPy number, so its object is gone
            return any(
                isinstance(x, np.generic) and equals(x, number) for x in self.numbers.values()
            )
        if id(number) in self.numbers:
            return True
        running: FrameType | None = frame
        for _ in range(_FRAMES):
            if running is None:
                return False
            is_users = package_of(running) not in (PACKAGE, "numpy")
            if is_users and (id(number) in _written(running.f_code) or _is_named(number, running)):
                return True
            running = running.f_back
        return False

    def has_array(self, array: Any) -> bool:
        """Return whether the code had this array, or one that it is a view of, as it is now."""
        owner = _memory_of(array)
        known = self.arrays.get(id(owner))
        return known is not None and known[0]() is owner and known[1] == _digest(owner)

    def _look_at(self, frame: FrameType) -> None:
        scope = frame.f_globals
        for value in locals_of(frame).values():
            self._add(value, 2)
        for name in frame.f_code.co_names:
            self._add(scope.get(name), 2)
        if id(scope) not in self.modules:
            self.modules.add(id(scope))
            for value in list(scope.values()):
                self._add(value, 0)

    def _add(self, value: Any, depth: int) -> None:
        if isinstance(value, (float, complex, np.inexact)):
            self.numbers[id(value)] = value
        elif isinstance(value, np.ndarray):
            owner = _memory_of(value)
            self.arrays[id(owner)] = weakref.ref(owner), _digest(owner)
        elif depth:
            for part in _parts(value):
                self._add(part, depth - 1)


#: How many of the user's frames are looked at, and how many parts of a container.
_FRAMES, _PARTS = 8, 64
#: Up to this number of bytes, an array is known by all of its values; a larger one by a sample.
_SMALL, _SAMPLE = 1 << 18, 4096


@lru_cache(maxsize=1024)
def _written(code: CodeType) -> frozenset[int]:
    """Return the addresses of the numbers that are written in code; the code keeps them alive."""
    return frozenset(id(x) for x in flatten([code.co_consts]) if type(x) in (float, complex))


def _is_named(number: Any, frame: FrameType) -> bool:
    """Return whether code names this number as a global, or as a module's: ``np.pi``."""
    names = frame.f_code.co_names
    found = [frame.f_globals.get(name) for name in names]
    is_function = frame.f_locals is not frame.f_globals  # the variables of a script are globals
    if is_function and any(x is number for x in found):
        return True
    modules = [x for x in (*found, *locals_of(frame).values()) if isinstance(x, ModuleType)]
    for module in modules:  # grows by packages' modules
        parts = [vars(module).get(name) for name in names]
        if any(x is number for x in parts):
            return True
        modules += [x for x in parts if isinstance(x, ModuleType) and x not in modules]
    return False


def equals(x: Any, number: Any) -> bool:
    """Return whether a number is another one, cast to its dtype."""
    real = number.dtype.kind == "c" or not isinstance(x, complex)
    with np.errstate(all="ignore"):
        return bool(real and np.asarray(x).astype(number.dtype) == number)


def _parts(value: Any) -> list[Any]:
    """Return the parts of a container, or of an object of the user's."""
    kind = type(value)
    if kind in (list, tuple, set):
        return list(value) if len(value) <= _PARTS else []
    if kind is dict:
        return list(islice(value.values(), _PARTS))
    if kind is FunctionType:
        return [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if isinstance(value, type) or kind.__module__.partition(".")[0] in (PACKAGE, "builtins"):
        return []
    try:
        return list(islice(vars(value).values(), _PARTS))
    except Exception:  # it has none, or computes it
        return []


def _digest(array: Any) -> int | None:
    """Return a number for the values of an array, for those of a sample of a large one."""
    if array.dtype.kind not in "fc":
        return None
    if array.nbytes > _SMALL:
        array = array.ravel(order="K")[:: max(1, array.size // _SAMPLE)]
    return xxh3_64_intdigest(array.tobytes())


def _memory_of(array: Any) -> Any:
    """Return the array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def given_by_user() -> tuple[list[Any], FrameType] | None:
    """Return what the user's code passes to the function of gradtape that it runs, and its frame.

    The numbers and arrays in the arguments of this function, also those of other libraries; what
    gradtape makes itself is not among them.
    """
    frame = users_frame()
    inner: Any = reader()
    outer = None
    while inner is not None and inner is not frame:
        if package_of(inner) == PACKAGE:
            outer = inner
        inner = inner.f_back
    if outer is None or frame is None:
        return None
    code, scope = outer.f_code, locals_of(outer)
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
    given = [scope[name] for name in code.co_varnames[:count] if name in scope]
    return [x for x in flatten(given) if _is_foreign(x)], frame


def _is_foreign(x: Any) -> bool:
    if isinstance(x, (bool, int, float, complex)):
        return True
    kind = type(x)
    return kind.__module__.partition(".")[0] != PACKAGE and hasattr(kind, "__array__")
