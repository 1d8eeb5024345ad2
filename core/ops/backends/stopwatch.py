"""``Stopwatch``: measures the steps of a backend."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any


class Stopwatch:
    """Measures steps with the host's clock, which is right if calls return after the computation.

    A backend whose device computes while Python continues has its own: ``Backend.stopwatch``.
    Steps may be nested.

    Attributes
    ----------
    clock
        The name of the clock, for tables.

    Examples
    --------
    >>> from gradtape.plugin import Stopwatch
    >>> watch = Stopwatch()
    >>> start = watch.start("acme step")
    >>> watch.seconds(start, watch.stop(None)) >= 0
    True
    """

    clock = "host"

    def start(self, name: str) -> Any:
        """Return the start time of a step called ``name``."""
        return perf_counter_ns()

    def stop(self, result: Any) -> Any:
        """Return the end time of the step that began last, which computed ``result``."""
        return perf_counter_ns()

    def settle(self) -> None:
        """Wait until all steps have ended; called once, before the first :meth:`seconds`."""

    def seconds(self, start: Any, stop: Any) -> float:
        """Return the seconds between two times."""
        return float(stop - start) / 1e9
