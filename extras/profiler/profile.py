"""``gt.profile()``: measures what takes time in a block, and shows it as a table."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from .recording import Event, Recorder

#: The kinds of rows, and the tables' headings for them.
HEADS = {"op": "op", "kernel": "kernel", "line": "line", "layer": "layer"}
#: What compiled functions do not have in a table, and what to run to see it.
_INSIDE = {"line": "lines of their own", "layer": "layers of their own"}
_PYTHON = "fit(compile=False), or a function without gt.function"
#: The longest name that a table does not shorten.
_WIDEST = 64


class Row(NamedTuple):
    """A line of a profile's table.

    Attributes
    ----------
    name
        An op or step, a source line, or a layer such as ``"Sequential/Dense"``. The row
        ``"step (default)"`` is what calls of the function ``step``, compiled by the executor
        ``"default"``, take besides their steps.
    phase
        ``"forward"``, ``"backward"``, ``"compiled"`` (which may be both), or ``"other"``: an
        optimizer's step, tracing and planning.
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
_Entry = tuple[str, Event, bool, float]


def _by_op(events: Iterable[Event]) -> Iterator[_Entry]:
    for event in events:
        rule = None
        for outer in (event, *event.around):
            rule = outer if outer.kind == "rule" else rule
        told = rule or event
        yield told.name, told, told is event, event.own


def _by_kernel(events: Iterable[Event]) -> Iterator[_Entry]:
    for event in events:
        name = f"{event.name}, its rule" if event.kind == "rule" else event.name
        yield name, event, True, event.own


def _by_line(events: Iterable[Event]) -> Iterator[_Entry]:
    for event in events:
        yield event.place[0] or "?", event, not _within_rule(event), event.own


def _by_layer(events: Iterable[Event]) -> Iterator[_Entry]:
    for event in events:
        layers = event.place[1]
        call = not _within_rule(event)
        if not layers:
            yield _outside_layers(event), event, call, event.own
        for depth in range(1, len(layers) + 1):
            yield "/".join(layers[:depth]), event, call, event.own


GROUPINGS: dict[str, Callable[[Iterable[Event]], Iterator[_Entry]]] = {
    "op": _by_op,
    "kernel": _by_kernel,
    "line": _by_line,
    "layer": _by_layer,
}


def _within_rule(event: Event) -> bool:
    return any(parent.kind == "rule" for parent in event.around)


def _outside_layers(event: Event) -> str:
    """Return the name of a row for what runs in no layer: a compiled function, a step, or ops."""
    here = event, *event.around
    step = next((x for x in here if x.kind == "step" and x.phase == "other"), None)
    if step is not None:
        return f"({step.name})"
    whole = next((x for x in reversed(here) if x.kind == "graph"), None)
    return "(ops in no layer)" if whole is None else f"(all of {whole.name})"


# -- as text ---------------------------------------------------------------------------------------


def cells_of(row: Row, peaks: bool) -> list[str]:
    name = row.name if len(row.name) <= _WIDEST else row.name[: _WIDEST - 1] + "…"
    cells = [name, row.phase, f"{row.calls:,}", time_text(row.seconds), time_text(row.mean)]
    cells += [f"{100 * row.share:.1f} %", size_text(row.bytes)]
    return [*cells, size_text(row.peak)] if peaks else cells


def aligned(cells: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        left = [cell.ljust(width) for cell, width in zip(row[:2], widths)]
        right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("  ".join([*left, *right]))
    return lines


def time_text(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


def size_text(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B" if count else "-"


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


# -- the profile -----------------------------------------------------------------------------------


class Profile:
    """Profiles a ``with`` block and then holds the results; see :func:`gradtape.profile`.

    ``print(profile)`` prints a table.

    Parameters
    ----------
    memory, limit
        As for :func:`gradtape.profile`.
    """

    def __init__(self, memory: bool = False, limit: int = 1_000_000) -> None:
        self._notes = Recorder(bool(memory), limit)

    def __enter__(self) -> Self:
        self._notes.open(sys._getframe(1))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._notes.close()

    @property
    def seconds(self) -> float:
        """The duration of the block in seconds, by the host's clock."""
        return self._notes.seconds

    @property
    def clocks(self) -> set[str]:
        """The clocks that measured: ``"host"``, or a device's clock such as ``"GPU"``."""
        return set(self._notes.clocks)

    @property
    def dropped(self) -> int:
        """The number of events beyond the limit, which are not in any row."""
        return self._notes.dropped

    @property
    def measured(self) -> float:
        """The total time of all events in seconds, with no time counted twice."""
        return sum(event.own for event in self._notes.events)

    def rows(self, by: str = "op") -> list[Row]:
        """Return the rows of a table, the slowest first.

        Parameters
        ----------
        by
            ``"op"`` (the default): each op's kernels, and its gradient rule with everything that
            runs in it. ``"kernel"``: the same, but kernels that rules run have separate rows.
            ``"line"``: the user's source lines. A backward pass counts for the lines that called
            the ops. ``"layer"``: modules, by their paths. A module's time includes that of the
            modules inside it. What runs in no module has a row in parentheses, with the name of the
            compiled function, of the optimizer, or of what else it belongs to.

        Returns
        -------
        list of Row
            The rows.

        Raises
        ------
        ValueError
            If ``by`` has another value.
        """
        if by not in HEADS:
            raise ValueError(
                f"profile: by must be one of {', '.join(map(repr, HEADS))}, got {by!r}"
            )
        sums: dict[tuple[str, str], list[Any]] = {}
        for name, event, call, seconds in GROUPINGS[by](self._notes.events):
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
            The maximum number of rows, 20 by default; None for all. The other rows are summed.

        Returns
        -------
        str
            The table.
        """
        rows = self.rows(by)
        shown = rows if top is None else rows[:top]
        peaks = any(row.peak for row in rows)
        head = [HEADS[by], "", "calls", "total", "mean", "share", "bytes", *["peak"] * peaks]
        cells = [head, *(cells_of(row, peaks) for row in shown)]
        if len(shown) < len(rows) and by != "layer":
            rest = rows[len(shown) :]
            seconds = sum(row.seconds for row in rest)
            calls = sum(row.calls for row in rest)
            share = sum(row.share for row in rest)
            size = sum(row.bytes for row in rest)
            row = Row(f"({len(rest)} others)", "", calls, seconds, seconds / calls, share, size, 0)
            cells.append(cells_of(row, peaks))
        told = [self._footer()]
        if by in _INSIDE and any(row.phase == "compiled" for row in rows):
            told.append(f"compiled functions have no {_INSIDE[by]}; as Python they have: {_PYTHON}")
        return "\n".join([*aligned(cells), "", *told])

    def _footer(self) -> str:
        measured, whole = self.measured, self.seconds
        if not self.clocks:
            return f"no ops of gradtape ran in the block, which took {time_text(whole)}"
        clocks = ", ".join(sorted(self.clocks))
        told = f"{time_text(measured)} measured by the clock of: {clocks}"
        told += f"; the block took {time_text(whole)}"
        if self.clocks <= {"host"} and whole >= measured:
            told += f", of which {time_text(whole - measured)} are in no row: Python, imports,"
            told += " starting ops, and the profile itself"
        if self.dropped:
            told += f". {self.dropped:,} events beyond the limit are not in the table"
        return told

    def __repr__(self) -> str:
        return self.table()

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return all four tables as JSON, and write them to a file if ``path`` is given.

        Parameters
        ----------
        path
            The file to write. By default, none is written.

        Returns
        -------
        str
            JSON with ``seconds``, ``measured``, ``clocks``, ``dropped``, and ``rows``, which maps
            ``"op"``, ``"kernel"``, ``"line"`` and ``"layer"`` to lists of rows.
        """
        told = {
            "seconds": self.seconds,
            "measured": self.measured,
            "clocks": sorted(self.clocks),
            "dropped": self.dropped,
            "rows": {by: [row._asdict() for row in self.rows(by)] for by in HEADS},
        }
        return written(json.dumps(told, indent=1), path)

    def to_trace(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return all events as a timeline, and write it to a file if ``path`` is given.

        Perfetto (https://ui.perfetto.dev) and ``chrome://tracing`` show the timeline. An event that
        a device's clock measured begins when Python started it and is as long as the device took.

        Parameters
        ----------
        path
            The file to write. By default, none is written.

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
            for event in self._notes.events
        ]
        return written(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), path)


def profile(*, memory: bool = False, limit: int = 1_000_000) -> Profile:
    """Measure what takes time in a ``with`` block, by op, kernel, source line and layer.

    The profile measures each kernel that runs eagerly, each gradient rule, and each step of a
    compiled function: a kernel, or a group of kernels that the executor runs as one. On a GPU, the
    device's own events measure the time, and the host does not wait for the device before the block
    ends. Each step is also an NVTX range for NVIDIA's tools.

    Parameters
    ----------
    memory
        Whether to measure the peak of host memory during each step, above the level at its start,
        with ``tracemalloc``. The block then takes several times as long. False by default.
    limit
        The maximum number of events to keep, 1,000,000 by default. The table says how many were
        dropped.

    Returns
    -------
    Profile
        A context manager for one block. ``print`` and ``table`` show its table, ``rows`` returns
        the rows, and ``to_json`` and ``to_trace`` write files.

    Raises
    ------
    RuntimeError
        If a profile is already active in this thread, or this one has already been used.

    Notes
    -----
    Outside the block, nothing is measured and nothing costs more: ops look up their kernels again
    when the block begins and ends. Work in other threads is not measured unless they run in a copy
    of the block's context.

    Examples
    --------
    >>> x = gt.ones((64, 64))
    >>> with gt.profile() as p:
    ...     y = gt.sin(x @ x)
    >>> [(row.name, row.phase, row.calls) for row in sorted(p.rows(), key=lambda row: row.name)]
    [('matmul', 'forward', 1), ('sin', 'forward', 1)]
    """
    return Profile(memory=memory, limit=limit)
