"""The rows of a profile: how they are computed from events and shown as text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .events import Event

#: The kinds of rows, and the tables' headings for them.
HEADS = {"op": "op", "kernel": "kernel", "line": "line", "layer": "layer"}
#: The longest name that a table does not shorten.
_WIDEST = 64


class Row(NamedTuple):
    """A line of a profile's table.

    Attributes
    ----------
    name
        An op or step, a source line, or a layer such as ``"Sequential/Dense"``.
    phase
        ``"forward"``, ``"backward"``, ``"compiled"`` (which may be both), or ``"other"``, such as
        an optimizer's step.
    calls
        The number of calls.
    seconds
        The total time of all calls, without calls inside them that have their own rows.
    mean
        The mean time of a call.
    share
        The share of the total measured time, from 0 to 1.
    bytes
        The total size of all results.
    peak
        The largest peak of host memory in a call, above the level at its start; 0 if not measured.
    """

    name: str
    phase: str
    calls: int
    seconds: float
    mean: float
    share: float
    bytes: int
    peak: int


# -- from events to rows ---------------------------------------------------------------------------

#: A row's name, one of its events, whether that counts as a call, and the seconds that it adds.
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


NOTES: dict[str, Callable[[Iterable[Event]], Iterator[_Note]]] = {
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


# -- as text ---------------------------------------------------------------------------------------


def cells_of(row: Row, peaks: bool) -> list[str]:
    name = row.name if len(row.name) <= _WIDEST else row.name[: _WIDEST - 1] + "…"
    cells = [name, row.phase, f"{row.calls:,}", time_told(row.seconds), time_told(row.mean)]
    cells += [f"{100 * row.share:.1f} %", size_told(row.bytes)]
    return [*cells, size_told(row.peak)] if peaks else cells


def aligned(cells: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        left = [cell.ljust(width) for cell, width in zip(row[:2], widths)]
        right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("  ".join([*left, *right]))
    return lines


def time_told(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


def size_told(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B" if count else "-"


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
