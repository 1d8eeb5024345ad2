"""``gt.profile()``: what runs in a block, and how long it takes."""

from __future__ import annotations

import json
import os
import sys
from types import TracebackType
from typing import Any, Self

from .notes import Notes
from .report import HEADS, NOTES, Row, aligned, cells_of, time_told, written

__all__ = ["Profile", "profile"]


class Profile:
    """A block that is profiled, and afterwards what took time in it; see :func:`gradtape.profile`.

    Printed it is a table.

    Parameters
    ----------
    memory, limit
        As for :func:`gradtape.profile`.
    """

    def __init__(self, memory: bool = False, limit: int = 1_000_000) -> None:
        self._notes = Notes(bool(memory), limit)

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
        """How long the block took, by the host's clock."""
        return self._notes.seconds

    @property
    def clocks(self) -> set[str]:
        """What measured: ``"host"``, or a device's clock, as ``"GPU"``."""
        return set(self._notes.clocks)

    @property
    def dropped(self) -> int:
        """How many events there were beyond the limit; no row has them."""
        return self._notes.dropped

    @property
    def measured(self) -> float:
        """The seconds of all that was measured, each counted once."""
        return sum(event.own for event in self._notes.events)

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
        if by not in HEADS:
            raise ValueError(f"profile: by is {', '.join(map(repr, HEADS))}, got {by!r}")
        sums: dict[tuple[str, str], list[Any]] = {}
        for name, event, call, seconds in NOTES[by](self._notes.events):
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
        return "\n".join([*aligned(cells), "", self._foot()])

    def _foot(self) -> str:
        measured, whole = self.measured, self.seconds
        clocks = ", ".join(sorted(self.clocks)) or "-"
        told = f"{time_told(measured)} measured by the clock of: {clocks}"
        told += f"; the block took {time_told(whole)}"
        if self.clocks <= {"host"} and whole >= measured:
            told += f", {time_told(whole - measured)} of it Python, dispatch, the profile itself"
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
            "rows": {by: [row._asdict() for row in self.rows(by)] for by in HEADS},
        }
        return written(json.dumps(told, indent=1), path)

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
            for event in self._notes.events
        ]
        return written(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), path)


def profile(*, memory: bool = False, limit: int = 1_000_000) -> Profile:
    """Tell what takes time in a block: by op, by kernel, by source line and by layer.

    What is measured: each kernel that runs eagerly, each gradient rule, and each step of a function
    that is compiled: a kernel or a group of the plan, as the executor divides it. On a GPU the time
    is the device's, between two of its events, and nothing waits for it before the block ends;
    each step is an NVTX range as well, for NVIDIA's tools.

    Parameters
    ----------
    memory
        Whether the peak of host memory beyond what was there before is measured for each step, with
        ``tracemalloc``. The block takes several times as long then.
    limit
        How many events are kept; the table says how many were not.

    Returns
    -------
    Profile
        A context manager for one block. Printed, or by ``table``, it is a table; ``rows`` are its
        lines, ``to_json`` and ``to_trace`` write files.

    Raises
    ------
    RuntimeError
        If a profile is active in this thread already, or this one has run.

    Notes
    -----
    Outside the block nothing is measured and nothing costs more: ops look for their kernels anew
    when it begins and ends. What other threads run is not measured, unless they run in a copy of
    the block's context.

    Examples
    --------
    >>> x = gt.ones((64, 64))
    >>> with gt.profile() as p:
    ...     y = gt.sin(x @ x)
    >>> [(row.name, row.phase, row.calls) for row in sorted(p.rows(), key=lambda row: row.name)]
    [('matmul', 'forward', 1), ('sin', 'forward', 1)]
    """
    return Profile(memory=memory, limit=limit)
