"""Reads that matter: a value left the tape, and something computed from it came back.

Nobody can see what Python or NumPy computes from a number. A recorder that has seen a read by
``float(x)``, ``math.sin(x)`` or ``np.array(x)`` therefore looks at the constants that enter later.
A constant that the code did not have at the read may have been computed from it. If a target
depends on such a constant, its gradient may lack a part. A read after which nothing new enters is a
log.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ..base.known import Known, equals, given_by_user
from ..base.sites import Site
from ..base.unknown import Place, users_frame
from .records import reachable

#: How many places are remembered where numbers entered.
_PLACES = 4096
#: How many of the values that one line has read are compared with constants.
_VALUES = 256
#: Numbers that code uses everywhere: that they equal a value that was logged means nothing.
_COMMON = frozenset({-1.0, 0.0, 1.0})

#: In this module, ``id`` is that of a tensor.
_address = builtins.id


class ReadReason(str):
    """A reason why a gradient lacks a part, and the line that is responsible.

    ``told`` says whether a warning has named it.
    """

    __slots__ = ("place", "told")
    place: Place
    told: bool

    def __new__(cls, text: str, place: Place) -> ReadReason:
        reason = super().__new__(cls, text)
        reason.place, reason.told = place, False
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
    )

    def __init__(self, site: Site, frame: FrameType) -> None:
        self.reason = ReadReason(site.reason, Place(site.file, site.line, frame.f_globals))
        self.shown = f"{site.call} at {site.file}:{site.line}"
        self.is_log, self.is_local = True, True
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

    def has_array(self, array: Any, frame: FrameType, strict: bool) -> bool:
        """Return whether an array may come from a read.

        An array that was computed from a container of a function's own comes while it runs.
        """
        new = strict or (not self.is_log and (not self.is_local or self._runs(frame)))
        if new and not self.known.has_array(array):
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

    __slots__ = ("_asked", "entries", "lines", "numbers", "strict")

    def __init__(self, strict: bool) -> None:
        self.lines: dict[tuple[str, int], Line] = {}
        #: The lines that a constant may come from, by its id.
        self.entries: dict[int, list[Line]] = {}
        #: The same by the value of a number.
        self.numbers: dict[Any, list[Line]] = {}
        self._asked: dict[Any, tuple[CodeType, list[Line]]] = {}
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
        known = self._asked.get(key)
        if known is None:
            if len(self._asked) >= _PLACES:
                self._asked.clear()
            given = given_by_user()
            lines = (
                [] if given is None else self._of_numbers(list(map(np.asarray, numbers)), *given)
            )
            known = self._asked[key] = frame.f_code, lines
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
