"""Rows of a profile: what they are made of, and how they look in text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .events import Event

__all__ = ["HEADS", "NOTES", "Row", "aligned", "cells_of", "time_told", "written"]

#: What rows may be of, and how tables call it.
HEADS = {"op": "op", "kernel": "kernel", "line": "line", "layer": "layer"}
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


# -- in words --------------------------------------------------------------------------------------


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
