"""``Stopwatch``: how long steps take on a backend."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

__all__ = ["Stopwatch"]


class Stopwatch:
    """Measures steps by the host's clock, which is right where a call returns what is computed.

    A backend whose device works on while Python goes on has one of its own:
    ``Backend.stopwatch``. Steps may be inside one another.

    Attributes
    ----------
    clock
        What is measured, for tables.
    """

    clock = "host"

    def start(self, name: str) -> Any:
        """Return the moment at which a step called ``name`` begins."""
        return perf_counter_ns()

    def stop(self, result: Any) -> Any:
        """Return the moment at which the step that began last ended, with what it computed."""
        return perf_counter_ns()

    def settle(self) -> None:
        """Wait until all steps have ended: once, before the first :meth:`seconds`."""

    def seconds(self, start: Any, stop: Any) -> float:
        """Return the seconds between two moments."""
        return float(stop - start) / 1e9
