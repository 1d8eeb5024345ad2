"""What the benchmarks share: programs take turns with NumPy's, in processes of their own."""

from __future__ import annotations

import inspect
import json
import os
import statistics
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import training_step
from timing import measure

BY_HAND = "NumPy by hand"
#: Steps for programs that have no counterpart in NumPy: of small arrays, and of larger products.
SMALL, LARGE = "NumPy, step of 64-128-10", "NumPy, step of 784-256-256-10"
SIZES: dict[str, dict[str, Any]] = {
    SMALL: {"inputs": 64, "hidden": (128,), "batch": 32},
    LARGE: {"inputs": 784, "hidden": (256, 256), "batch": 128},
}
#: How many processes measure the same; their median counts.
PROCESSES = 3
#: Freed memory stays in the process. Otherwise NumPy's arrays cost more or less with each commit,
#: because what gradtape frees decides which memory glibc gives back to the system.
ALLOCATOR = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "33554432"}


class Comparison(ABC):
    """Programs of gradtape, and programs of NumPy to compare them with.

    asv calls `setup_cache` once for each commit, and then a `track` method for each row.
    """

    #: The title of each row, its program, and the one that it is compared with.
    rows: ClassVar[tuple[tuple[str, str, str], ...]]
    #: Names that a commit must have, and arguments: ``training.fit(compile)``.
    needs: ClassVar[tuple[str, ...]] = ()
    rounds: ClassVar[int] = 9
    #: Raise it when the programs change, so that old results no longer count.
    version = "1"
    timeout = 1800
    param_names = ("program",)

    def __init_subclass__(cls) -> None:
        cls.params = [[title for title, _, _ in cls.rows]]

    @abstractmethod
    def programs(self) -> dict[str, Callable[[], Any]]:
        """Return all programs by name."""

    @abstractmethod
    def setup_cache(self) -> dict[str, tuple[float, float]]:
        """Return `measured`: asv tells one from another by the line of this method."""

    def times(self) -> dict[str, float]:
        """Return the best time of each program in microseconds."""
        return measure(self.programs(), self.rounds, clock=processor_time)

    def measured(self) -> dict[str, tuple[float, float]]:
        """Return the seconds of each row, and their ratio to NumPy's: medians of processes."""
        if not all(map(_exists, self.needs)):
            return {}
        runs = [_in_a_process(type(self)) for _ in range(PROCESSES)]
        return {
            title: (
                statistics.median(run[name] * 1e-6 for run in runs),
                statistics.median(run[name] / run[base] for run in runs),
            )
            for title, name, base in self.rows
        }

    def setup(self, found: dict[str, tuple[float, float]], title: str) -> None:
        """Leave out what a commit does not have."""
        if title not in found:
            raise NotImplementedError(f"this commit lacks one of {', '.join(self.needs)}")

    def track_time(self, found: dict[str, tuple[float, float]], title: str) -> float:
        """Return the seconds of a program."""
        return found[title][0]

    def track_ratio(self, found: dict[str, tuple[float, float]], title: str) -> float:
        """Return its time as a multiple of NumPy's."""
        return found[title][1]

    track_time.unit = "seconds"  # type: ignore[attr-defined]
    track_ratio.unit = "times NumPy's"  # type: ignore[attr-defined]


def processor_time() -> float:
    """Return the seconds of a core that this process used, and those that it waited for."""
    known = os.times()
    return time.process_time() + known.children_user + known.children_system


def every() -> list[type[Comparison]]:
    """Return the comparisons of all modules of this folder."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        import_module(f"{__package__}.{path.stem}")
    return Comparison.__subclasses__()


def steps(*names: str) -> dict[str, Callable[[], Any]]:
    """Return the training steps in NumPy of these names."""
    return {name: training_step.by_hand(training_step.Task(**SIZES[name])).step for name in names}


def _in_a_process(comparison: type[Comparison]) -> dict[str, float]:
    """Return the times of a comparison's programs, measured in a new process."""
    code = (
        f"import json, sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); "
        f"from {comparison.__module__} import {comparison.__name__} as found; "
        "print(json.dumps(found().times()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, **ALLOCATOR},
    )
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def _exists(name: str) -> bool:
    """Return whether gradtape has a name, or a module of that name, with an argument."""
    path, _, argument = name.rstrip(")").partition("(")
    found: Any = import_module("gradtape")
    here = found.__name__
    for part in path.split("."):
        here += f".{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = import_module(here)
            except ModuleNotFoundError as error:
                if error.name != here:
                    raise
                return False
    return not argument or argument in inspect.signature(found).parameters
