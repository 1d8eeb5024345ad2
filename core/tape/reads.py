"""Reads that matter: a value left the tape, and something computed from it came back.

Nobody can see what Python or NumPy computes from a number. A recorder that has seen a read by
``float(x)``, ``math.sin(x)`` or ``np.array(x)`` therefore looks at the constants that enter later.
A constant that the code did not have at the read may have been computed from it. If a target
depends on such a constant, its gradient may lack a part. A read after which nothing new enters is a
log.

``Known`` holds the numbers and arrays that the code has; ``given_by_user`` finds those that it
passes to gradtape.
"""

from __future__ import annotations

import builtins
import inspect
import weakref
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np
from xxhash import xxh3_64_intdigest

from ..base.context import recording_to
from ..base.table import PACKAGE
from ..base.tree import flatten
from ..base.user_code import (
    Place,
    Site,
    locals_of,
    memory_of,
    package_of,
    reader,
    target_of,
    users_frame,
)
from ..tensors import data_frames
from .records import reachable


class Known:
    """The numbers and arrays that running code has: what it computes later is not among them.

    They are known as objects. A number that is computed later is another object, even if it is
    equal to one that was computed in an earlier run.
    """

    __slots__ = ("arrays", "columns", "modules", "numbers")

    def __init__(self, frame: FrameType | None) -> None:
        self.numbers: dict[int, Any] = {}
        self.modules: set[int] = set()
        self.arrays: dict[int, tuple[weakref.ref[Any], int | None]] = {}
        #: The digests of columns of data frames, which are new arrays whenever they are read.
        self.columns: set[int | None] = set()
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
            if is_users and (
                id(number) in _written(running.f_code) or self._names(number, running)
            ):
                return True
            running = running.f_back
        return False

    def has_array(self, array: Any) -> bool:
        """Return whether the code had this array, or one that it is a view of, as it is now."""
        owner = memory_of(array)
        known = self.arrays.get(id(owner))
        return known is not None and known[0]() is owner and known[1] == _digest(owner)

    def has_column(self, column: Any) -> bool:
        """Return whether the code had this column of a data frame, or one that it is a view of."""
        return self.has_array(column) or _digest(column) in self.columns

    def _names(self, number: Any, frame: FrameType) -> bool:
        """Return whether code names this number as a global, or as a module's: ``np.pi``.

        The globals that a module had at the read are known.
        """
        names = frame.f_code.co_names
        found = [frame.f_globals.get(name) for name in names]
        # the variables of a script are globals
        is_function = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)
        is_new = id(frame.f_globals) not in self.modules
        if is_function and is_new and any(x is number for x in found):
            return True
        modules = [x for x in (*found, *locals_of(frame).values()) if isinstance(x, ModuleType)]
        for module in modules:  # grows by packages' modules
            parts = [vars(module).get(name) for name in names]
            if any(x is number for x in parts):
                return True
            modules += [x for x in parts if isinstance(x, ModuleType) and x not in modules]
        return False

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
            owner = memory_of(value)
            self.arrays[id(owner)] = weakref.ref(owner), _digest(owner)
        elif columns := _columns_of(value):
            for column in columns:
                self._add(column, 0)
                self.columns.add(_digest(column))
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


def _columns_of(value: Any) -> list[Any]:
    with recording_to(()):  # a data frame may hold tensors
        return data_frames.float_columns(value)


def _digest(array: Any) -> int | None:
    """Return a number for the values of an array, for those of a sample of a large one."""
    if array.dtype.kind not in "fc":
        return None
    if array.nbytes > _SMALL:
        array = array.ravel(order="K")[:: max(1, array.size // _SAMPLE)]
    return xxh3_64_intdigest(array.tobytes())


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


# -- reads -----------------------------------------------------------------------------------------


#: How many places are remembered where numbers entered.
_PLACES = 4096
#: How many lines an error names.
_TOLD = 3
#: How many of the values that one line has read are compared with constants.
_VALUES = 256
#: Numbers that code uses everywhere: that they equal a value that was logged means nothing.
_COMMON = frozenset({-1.0, 0.0, 1.0})

#: In this module, ``id`` is that of a tensor.
_address = builtins.id


class ReadReason(str):
    """A reason why a gradient lacks a part, and the line that is responsible.

    ``reported`` says whether a warning has named it, and ``certain`` whether the value came back
    for certain: in the array into which the line wrote it.
    """

    __slots__ = ("certain", "place", "reported")
    certain: bool
    place: Place
    reported: bool

    def __new__(cls, text: str, place: Place) -> ReadReason:
        reason = super().__new__(cls, text)
        reason.place, reason.reported, reason.certain = place, False, False
        return reason


class Line:
    """The reads at one line."""

    __slots__ = (
        "cast",
        "first",
        "frames",
        "is_local",
        "is_log",
        "known",
        "reason",
        "shown",
        "values",
        "written",
    )

    def __init__(self, site: Site, frame: FrameType) -> None:
        self.reason = ReadReason(site.reason, Place(site.file, site.line, frame.f_globals))
        self.shown = f"{site.call} at {site.file}:{site.line}"
        self.is_log, self.is_local = True, True
        #: The arrays to whose elements the line assigned, by their addresses.
        self.written: dict[int, weakref.ref[Any]] = {}
        #: Where the functions run that read, by their addresses and codes.
        self.frames: set[tuple[int, CodeType]] = set()
        self.known = Known(frame)
        self.values: dict[Any, None] = {}
        #: The same in the dtypes of constants that they were compared with.
        self.cast: dict[Any, Any] = {}
        #: The time of the first read of each tensor, by its id.
        self.first: dict[int, int] = {}

    def note(self, site: Site, frame: FrameType, value: Any) -> None:
        """Remember the last values that were read, and by which function."""
        self.is_log = self.is_log and site.use == "kept"
        self.is_local = self.is_local and site.use != ""
        target = target_of(frame)
        if target is not None:
            owner = memory_of(target.array)
            self.written[_address(owner)] = weakref.ref(owner)
        self.frames.add((_address(frame), frame.f_code))
        values = self.values
        values.update(dict.fromkeys(np.ravel(value)[-_VALUES:].tolist()))
        for old in list(values)[:-_VALUES] if len(values) > _VALUES else ():
            del values[old]
        self.cast.clear()

    def has_number(self, number: Any, frame: FrameType, strict: bool) -> bool:
        """Return whether a number may come from a read."""
        value = _value_of(number)
        is_integer = type(value) in (bool, int)  # integers count things
        if not (self.is_log and value in _COMMON) and self._has_value(value, number):
            return is_integer or not self.known.has_number(number, frame)
        if is_integer or (self.is_log and not strict):
            return False
        return not self.known.has_number(number, frame)

    def has_array(self, array: Any, frame: FrameType, strict: bool, column: bool = False) -> bool:
        """Return whether an array, perhaps a column of a data frame, may come from a read.

        An array that was computed from a container of a function's own comes while it runs.
        """
        new = strict or (not self.is_log and (not self.is_local or self._runs(frame)))
        owner = memory_of(array)
        written = self.written.get(_address(owner))
        if written is not None and written() is owner:
            self.reason.certain = True
            return True
        known = self.known.has_column if column else self.known.has_array
        if new and not known(array):
            return True
        return bool(np.isin(array, self._values(array.dtype)).any())

    def _runs(self, frame: FrameType | None) -> bool:
        while frame is not None:
            if (_address(frame), frame.f_code) in self.frames:
                return True
            frame = frame.f_back
        return False

    def _has_value(self, value: Any, number: Any) -> bool:
        dtype = getattr(number, "dtype", None)
        return value in self.values or (
            dtype is not None and dtype.kind in "fc" and value in self._values(dtype)
        )

    def _values(self, dtype: Any) -> Any:
        """Return the values that were read, in a dtype."""
        found = self.cast.get(dtype)
        if found is None:
            kept = [
                x
                for x in self.values
                if not (self.is_log and x in _COMMON)
                and (dtype.kind == "c" or not isinstance(x, complex))
            ]
            with np.errstate(all="ignore"):
                found = self.cast[dtype] = np.asarray(kept).astype(dtype)
        return found


def numbers_of(inputs: Iterable[Any]) -> list[Any]:
    """Return the numbers among the inputs of an op."""
    numbers = (int, float, complex, np.inexact, np.ndarray)
    return [
        x
        for x in inputs
        if isinstance(x, numbers) and type(x) is not bool and getattr(x, "ndim", 0) == 0
    ]


def _value_of(number: Any) -> Any:
    return number.item() if isinstance(number, (np.generic, np.ndarray)) else number


class Reads:
    """What a recorder knows of the reads of values that it follows."""

    __slots__ = ("_line_cache", "entries", "lines", "numbers", "strict")

    def __init__(self, strict: bool) -> None:
        self.lines: dict[tuple[str, int], Line] = {}
        #: The lines that a constant may come from, by its id.
        self.entries: dict[int, list[Line]] = {}
        #: The same by the value of a number.
        self.numbers: dict[Any, list[Line]] = {}
        self._line_cache: dict[Any, tuple[CodeType, list[Line]]] = {}
        self.strict = strict

    def note(self, id: int, site: Site, frame: FrameType, value: Any, time: int) -> ReadReason:
        """Note the read of a tensor at a place, and return the reason for messages."""
        line = self.lines.get((site.file, site.line))
        if line is None:
            line = self.lines[site.file, site.line] = Line(site, frame)
        line.first.setdefault(id, time)
        line.note(site, frame, value)
        return line.reason

    def numbers_enter(self, id: int, numbers: Sequence[Any]) -> list[Line]:
        """Return the lines that one of an op's numbers may come from; ``id`` is its result."""
        frame = users_frame()
        if frame is None:
            return []
        # an op at the same place has the same numbers again and again
        key = (_address(frame.f_code), frame.f_lasti, len(self.lines), *map(_value_of, numbers))
        known = self._line_cache.get(key)
        if known is None:
            if len(self._line_cache) >= _PLACES:
                self._line_cache.clear()
            given = given_by_user()
            lines = (
                [] if given is None else self._of_numbers(list(map(np.asarray, numbers)), *given)
            )
            known = self._line_cache[key] = frame.f_code, lines
        return self._entered(id, known[1])

    def array_enters(self, id: int, value: Any, array: Any) -> list[Line]:
        """Return the lines that a value may come from, which becomes a tensor with this id."""
        given = given_by_user()
        if given is None or array.dtype.kind not in "fc":
            return []
        passed, frame = given
        if isinstance(value, np.ndarray) and value.ndim:
            arrays = [x for x in passed if np.ndim(x)]
            if any(type(x) is not np.ndarray or np.may_share_memory(x, value) for x in arrays):
                lines = [x for x in self.lines.values() if x.has_array(value, frame, self.strict)]
            else:  # an array of gradtape's own
                lines = self._of_numbers(list(value.ravel()[:1]), passed, frame)
            return self._entered(id, lines)
        if columns := _columns_of(value):
            lines = [
                x
                for x in self.lines.values()
                if any(x.has_array(one, frame, self.strict, column=True) for one in columns)
            ]
            return self._entered(id, lines)
        used = list(map(np.asarray, np.ravel(array)[:_VALUES]))
        return self._entered(id, self._of_numbers(used, passed, frame))

    def _of_numbers(
        self, used: Sequence[Any], passed: Iterable[Any], frame: FrameType
    ) -> list[Line]:
        """Return the lines that the numbers of an op may come from.

        The function that the user's code calls may have computed them from those that it passed.
        """
        found: dict[Line, None] = {}
        given = [x for x in passed if np.ndim(x) == 0] if used else []
        for number in given:
            lines = [x for x in self.lines.values() if x.has_number(number, frame, self.strict)]
            found.update(dict.fromkeys(lines))
            if lines:
                self.numbers.update({x.item(): lines for x in used if equals(number, x)})
        if not given:  # a rule may use a number that an op has used
            for x in used:
                found.update(dict.fromkeys(self.numbers.get(x.item(), ())))
        return list(found)

    def _entered(self, id: int, lines: list[Line]) -> list[Line]:
        if lines:
            self.entries[id] = lines
        return lines

    def told(self) -> str:
        """Return, for an error about a number, why it has no gradient: the last lines that read."""
        lines = list(self.lines.values())
        computing = [line for line in lines if not line.is_log] or lines
        return "; ".join(dict.fromkeys(line.reason for line in computing[-_TOLD:]))

    def places(self, reached: Collection[int], before: int) -> list[str]:
        """Return the calls and lines that read one of some tensors before a time."""
        return [
            line.shown
            for line in self.lines.values()
            if any(id in reached and time < before for id, time in line.first.items())
        ]

    def lacking(
        self, records: dict[int, Any], starts: set[int], ends: Collection[int]
    ) -> list[Line]:
        """Return the lines through which starts influence ends, which no gradient shows."""
        if not self.entries or reachable(records, set(self.entries)).isdisjoint(ends):
            return []
        reached = reachable(records, starts)
        found: list[Line] = []
        for line in self.lines.values():
            times = [time for id, time in line.first.items() if id in reached]
            if not times:
                continue
            first = min(times)
            later = {id for id, lines in self.entries.items() if id > first and line in lines}
            if later and not reachable(records, later).isdisjoint(ends):
                found.append(line)
        return found
