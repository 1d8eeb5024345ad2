"""Contenders in processes of their own that take turns: what the benchmarks of them share.

One runs for a slice of time while the others sleep, round after round; what counts is the median of
the rounds, and of the ratios within each round.
"""

from __future__ import annotations

import gc
import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np

__all__ = ["Missing", "Outcome", "Process", "Timer", "channel", "take_turns"]


class Missing(Exception):
    """A contender is not installed here, or failed."""


class Timer:
    """Calls something for slices of time, and says how long a call takes.

    Parameters
    ----------
    run
        What is called.
    clock
        ``"wall"``, or ``"cpu"`` for processor time.
    finish
        Called after each group of calls, within their time: it waits for what a device still does.
    least
        How many seconds a group takes at least.
    """

    def __init__(
        self,
        run: Callable[[], Any],
        clock: str = "wall",
        finish: Callable[[], Any] | None = None,
        least: float = 0.002,
    ) -> None:
        self.run, self.finish, self.least = run, finish, least
        self.clock = time.process_time if clock == "cpu" else time.perf_counter

    def slice(self, seconds: float) -> tuple[float, int]:
        """Return the seconds of a call, the median of groups of them, and how many there were."""
        run, clock, finish = self.run, self.clock, self.finish
        end = time.perf_counter() + seconds
        group, calls, found = 1, 0, []
        gc.collect()
        gc.disable()
        try:
            while not found or time.perf_counter() < end:
                start = clock()
                for _ in range(group):
                    run()
                if finish is not None:
                    finish()
                took = clock() - start
                calls += group
                if took < self.least and time.perf_counter() < end:
                    group *= 2
                    continue
                found.append(took / group)
        finally:
            gc.enable()
        return statistics.median(found), calls

    def settle(self, least: float, most: float = 60.0) -> dict[str, float]:
        """Call until calls have not become quicker for so long; return what that cost."""
        start = last = time.perf_counter()
        before = self.clock()
        best, calls = float("inf"), 0
        while time.perf_counter() - last < least and time.perf_counter() - start < most:
            each, count = self.slice(min(0.25, least))
            calls += count
            if each < 0.93 * best:
                last = time.perf_counter()
            best = min(best, each)
        return {"seconds": self.clock() - before, "calls": calls, "each": best}


def channel() -> IO[str]:
    """Return where a contender answers: what libraries print is not for the one who waits."""
    found = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return found


class Process:
    """A contender in a process of its own.

    Parameters
    ----------
    name
        What it is called.
    told
        The script to run, and its arguments.
    settings
        Environment variables; None for those that it must not have.
    cores
        How many cores it is kept to; None for all.
    """

    def __init__(
        self,
        name: str,
        told: Sequence[str],
        settings: Mapping[str, str | None],
        cores: int | None = None,
    ) -> None:
        self.name = name
        given = {**os.environ, **settings}
        self._process = subprocess.Popen(
            [sys.executable, *told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={key: value for key, value in given.items() if value is not None},
            preexec_fn=None if cores is None else partial(_bind, cores),
        )

    def tell(self, what: Any) -> None:
        """Send it a line of JSON."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Missing("its process ended, as told above") from None

    def answer(self, seconds: float | None = None) -> Any:
        """Wait for a line of it, and end it if none comes for so long."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not ready:
            self._process.kill()
            raise Missing(f"no answer came in {seconds:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise Missing("its process ended, as told above")
        return json.loads(line)

    def slice(self, seconds: float) -> float:
        """Let it run for a slice of time; return the seconds of a call."""
        self.tell(seconds)
        return float(self.answer())

    def end(self) -> None:
        """Let it go."""
        self._process.communicate(timeout=60)


def _bind(threads: int) -> None:
    """Keep this process to as many cores as it may have threads: pools are made for them."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])


def take_turns(running: Sequence[Process], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Let contenders run in turns; return the seconds of a call in each round, by name."""
    found: dict[str, list[float]] = {process.name: [] for process in running}
    for number in range(rounds):
        for process in running if number % 2 else running[::-1]:
            found[process.name].append(process.slice(seconds))
            time.sleep(0.02)
    return found


class Outcome(NamedTuple):
    """What a row gave: seconds of each round, and what starting cost, by contender."""

    seconds: dict[str, list[float]]
    starts: dict[str, dict[str, float]]

    def ratio(self, name: str, base: str) -> tuple[float, float] | None:
        """Return the median ratio to another contender, and half the distance of its quartiles."""
        if name not in self.seconds or base not in self.seconds:
            return None
        pairs = zip(self.seconds[name], self.seconds[base], strict=True)
        ratios = [a / b for a, b in pairs]
        low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
        return float(middle), float(high - low) / 2
