"""What a profile tells: rows, tables, and files for other programs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .events import Event

__all__ = ["Report", "Row"]

#: What rows may be of, and how tables call it.
_HEADS = {"op": "op", "kernel": "kernel", "line": "line", "layer": "layer"}
#: The longest name that a table shows whole.
_WIDEST = 64


class Row(NamedTuple):
    """A line of a profile's table.

    Attributes
    ----------
    name
        An op or a step, a source line, or a layer: ``"Sequential/Dense"``.
    phase
        ``"forward"``, ``"backward"``, ``"compiled"`` (which may be both), or ``"other"``: an
        optimizer's step.
    calls
        How many there were.
    seconds
        All of them together, without what ran inside and has a row of its own.
    mean
        One of them.
    share
        Of all that was measured, from 0 to 1.
    bytes
        Of all results together.
    peak
        The most host memory that one of them took beyond what there was; 0 if it was not measured.
    """

    name: str
    phase: str
    calls: int
    seconds: float
    mean: float
    share: float
    bytes: int
    peak: int


class Report:
    """The results of a profile.

    Attributes
    ----------
    seconds
        How long the block took, by the host's clock.
    clocks
        What measured: ``"host"``, or a device's clock.
    dropped
        How many events there were beyond the limit.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.seconds = 0.0
        self.clocks: set[str] = set()
        self.dropped = 0

    @property
    def measured(self) -> float:
        """The seconds of all that was measured, each counted once."""
        return sum(event.own for event in self.events)

    def rows(self, by: str = "op") -> list[Row]:
        """Return the rows of a table, those that took longest first.

        Parameters
        ----------
        by
            ``"op"``: each op's kernels, and its gradient rule with all that runs in it.
            ``"kernel"``: the same, with the kernels that rules run apart from the rules.
            ``"line"``: the user's source lines; of a backward pass, where the op was called.
            ``"layer"``: modules, by the way to them. A module's time contains that of those in it.

        Returns
        -------
        list of Row
            The rows.

        Raises
        ------
        ValueError
            If ``by`` is none of these.
        """
        if by not in _HEADS:
            raise ValueError(f"profile: by is {', '.join(map(repr, _HEADS))}, got {by!r}")
        sums: dict[tuple[str, str], list[Any]] = {}
        for name, event, call, seconds in _NOTES[by](self.events):
            held = sums.setdefault((name, event.phase), [0, 0.0, 0, 0])
            held[1] += seconds
            if call:
                held[0] += 1
                held[2] += event.bytes
                held[3] = max(held[3], event.peak)
        whole = self.measured or 1.0
        found = [
            Row(name, phase, calls, seconds, seconds / max(calls, 1), seconds / whole, size, peak)
            for (name, phase), (calls, seconds, size, peak) in sums.items()
        ]
        return sorted(found, key=lambda row: -row.seconds)

    def table(self, by: str = "op", top: int | None = 20) -> str:
        """Return the rows as text.

        Parameters
        ----------
        by
            As for :meth:`rows`.
        top
            How many rows to show, None for all; what is left is summed.

        Returns
        -------
        str
            Lines to print.
        """
        rows = self.rows(by)
        shown = rows if top is None else rows[:top]
        peaks = any(row.peak for row in rows)
        head = [_HEADS[by], "", "calls", "total", "mean", "share", "bytes", *["peak"] * peaks]
        cells = [head, *(_cells(row, peaks) for row in shown)]
        if len(shown) < len(rows) and by != "layer":
            rest = rows[len(shown) :]
            seconds = sum(row.seconds for row in rest)
            calls = sum(row.calls for row in rest)
            share = sum(row.share for row in rest)
            size = sum(row.bytes for row in rest)
            row = Row(f"({len(rest)} others)", "", calls, seconds, seconds / calls, share, size, 0)
            cells.append(_cells(row, peaks))
        return "\n".join([*_aligned(cells), "", self._foot()])

    def _foot(self) -> str:
        measured, whole = self.measured, self.seconds
        told = (
            f"{_time(measured)} measured by the clock of: {', '.join(sorted(self.clocks)) or '-'}"
        )
        told += f"; the block took {_time(whole)}"
        if self.clocks <= {"host"} and whole >= measured:
            told += f", {_time(whole - measured)} of it Python, dispatch, the profile itself"
            told += " and what is not measured"
        if self.dropped:
            told += f". {self.dropped:,} events beyond the limit are not in the table"
        return told

    def __str__(self) -> str:
        return self.table()

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the rows of every kind as JSON, and write them to a file if one is named.

        Parameters
        ----------
        path
            Where to write.

        Returns
        -------
        str
            JSON: ``seconds``, ``measured``, ``clocks``, ``dropped``, and ``rows`` by kind.
        """
        told = {
            "seconds": self.seconds,
            "measured": self.measured,
            "clocks": sorted(self.clocks),
            "dropped": self.dropped,
            "rows": {by: [row._asdict() for row in self.rows(by)] for by in _HEADS},
        }
        return _written(json.dumps(told, indent=1), path)

    def to_trace(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return all events for a timeline, and write them to a file if one is named.

        Perfetto (https://ui.perfetto.dev) and ``chrome://tracing`` show it. Where a device's clock
        measured, an event begins where Python asked for it, and is as long as the device took.

        Parameters
        ----------
        path
            Where to write.

        Returns
        -------
        str
            JSON, in the Trace Event Format.
        """
        events = [
            {
                "name": event.name,
                "cat": f"{event.phase},{event.kind}",
                "ph": "X",
                "ts": event.began / 1e3,
                "dur": event.seconds * 1e6,
                "pid": os.getpid(),
                "tid": event.thread,
                "args": {
                    "line": event.place[0],
                    "layer": "/".join(event.place[1]),
                    "bytes": event.bytes,
                },
            }
            for event in self.events
        ]
        return _written(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), path)


# -- what rows are made of -------------------------------------------------------------------------

#: A row's name, an event of it, whether that counts as a call, and the seconds that it adds.
_Note = tuple[str, Event, bool, float]


def _by_op(events: Iterable[Event]) -> Iterator[_Note]:
    for event in events:
        if not _within_rule(event):
            yield event.name, event, True, event.seconds if event.kind == "rule" else event.own


def _by_kernel(events: Iterable[Event]) -> Iterator[_Note]:
    for event in events:
        name = f"{event.name}, its rule" if event.kind == "rule" else event.name
        yield name, event, True, event.own


def _by_line(events: Iterable[Event]) -> Iterator[_Note]:
    for event in events:
        yield event.place[0] or "?", event, not _within_rule(event), event.own


def _by_layer(events: Iterable[Event]) -> Iterator[_Note]:
    for event in events:
        layers = event.place[1]
        call = not _within_rule(event)
        if not layers:
            yield "(none)", event, call, event.own
        for depth in range(1, len(layers) + 1):
            yield "/".join(layers[:depth]), event, call, event.own


_NOTES: dict[str, Callable[[Iterable[Event]], Iterator[_Note]]] = {
    "op": _by_op,
    "kernel": _by_kernel,
    "line": _by_line,
    "layer": _by_layer,
}


def _within_rule(event: Event) -> bool:
    parent = event.parent
    while parent is not None and parent.kind != "rule":
        parent = parent.parent
    return parent is not None


# -- in words --------------------------------------------------------------------------------------


def _cells(row: Row, peaks: bool) -> list[str]:
    name = row.name if len(row.name) <= _WIDEST else row.name[: _WIDEST - 1] + "…"
    cells = [name, row.phase, f"{row.calls:,}", _time(row.seconds), _time(row.mean)]
    cells += [f"{100 * row.share:.1f} %", _size(row.bytes)]
    return [*cells, _size(row.peak)] if peaks else cells


def _aligned(cells: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        left = [cell.ljust(width) for cell, width in zip(row[:2], widths)]
        right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("  ".join([*left, *right]))
    return lines


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


def _size(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B" if count else "-"


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
