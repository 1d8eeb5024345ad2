"""The numbers and arrays that the user's code has, and those that it passes to gradtape."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import FrameType, FunctionType
from typing import Any

import numpy as np
from xxhash import xxh3_64_intdigest

from .sites import reader
from .table import PACKAGE
from .tree import flatten
from .unknown import package_of, users_frame

__all__ = ["Known", "given_by_user", "literals"]


class Known:
    """The numbers and arrays that running code has: what it reads later is not among them."""

    __slots__ = ("arrays", "numbers")

    def __init__(self, frame: FrameType | None) -> None:
        self.numbers: set[complex] = set()
        self.arrays: dict[int, tuple[weakref.ref[Any], int | None]] = {}
        depth = 0
        while frame is not None and depth < _FRAMES:
            if package_of(frame) not in (PACKAGE, "numpy"):
                depth += 1
                for value in _visible(frame):
                    self._add(value, 2)
            frame = frame.f_back

    def has_array(self, array: Any) -> bool:
        """Return whether the code had this array, or one that it is a view of, as it is now."""
        owner = _memory_of(array)
        known = self.arrays.get(id(owner))
        return known is not None and known[0]() is owner and known[1] == _digest(owner)

    def _add(self, value: Any, depth: int) -> None:
        if isinstance(value, (float, complex, np.inexact)):
            self.numbers.add(value)
        elif isinstance(value, np.ndarray):
            owner = _memory_of(value)
            self.arrays[id(owner)] = weakref.ref(owner), _digest(owner)
        elif depth:
            for part in _parts(value):
                self._add(part, depth - 1)


#: How many of the user's frames are looked at, and how many parts of a container.
_FRAMES, _PARTS = 8, 64
#: Up to this number of bytes, an array is known by its values.
_SMALL = 1 << 16


def _visible(frame: FrameType) -> Iterator[Any]:
    code = frame.f_code
    yield from frame.f_locals.values()
    yield from (frame.f_globals[name] for name in code.co_names if name in frame.f_globals)


def _parts(value: Any) -> list[Any]:
    """Return the parts of a container, or of an object of the user's."""
    if isinstance(value, (list, tuple, set)):
        return list(value)[:_PARTS] if len(value) <= _PARTS else []
    if isinstance(value, dict):
        return list(value.values())[:_PARTS]
    if isinstance(value, FunctionType):
        return [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    kind = type(value)
    if isinstance(value, type) or kind.__module__.partition(".")[0] in (PACKAGE, "builtins"):
        return []
    return list(getattr(value, "__dict__", {}).values())[:_PARTS]


def _digest(array: Any) -> int | None:
    """Return a number for the values of an array; None for a large one, which is data."""
    small = array.nbytes <= _SMALL and array.dtype.kind in "fc"
    return xxh3_64_intdigest(array.tobytes()) if small else None


def _memory_of(array: Any) -> Any:
    """Return the array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def literals(frame: FrameType) -> set[Any]:
    """Return the numbers that are written in the code of a frame, or are global there."""
    code, scope = frame.f_code, frame.f_globals
    found = list(flatten([code.co_consts]))
    if code.co_name != "<module>":
        found += [scope[name] for name in code.co_names if name in scope]
    return {x for x in found if type(x) in (float, complex)}


def given_by_user() -> tuple[list[Any], FrameType] | None:
    """Return what the user's code passes to the function of gradtape that it runs, and its frame.

    The numbers and arrays in the arguments of this function; those that gradtape makes itself are
    not among them.
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
    code, scope = outer.f_code, outer.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
    given = [scope[name] for name in code.co_varnames[:count] if name in scope]
    kinds = (bool, int, float, complex, np.ndarray, np.generic)
    return [x for x in flatten(given) if isinstance(x, kinds)], frame
