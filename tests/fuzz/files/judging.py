"""Requirements on reading a file: the right values or a proper error, with limited resources."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.files.subjects import behaviour
from gradtape.saving.container import child

__all__ = ["Forked", "Limits", "judged", "without_a_new_interpreter"]

READERS: dict[str, Callable[[str], Any]] = {
    "load": gt.load,
    "lazy load": lambda path: gt.load(path, lazy=True),
    "inspect": gt.saving.inspect_text,
    # in this process, which has its own limits
    "verify": partial(gt.saving.verify, max_memory=math.inf, max_seconds=math.inf),
}


class Limits:
    """The maximum resources for reading one file."""

    seconds = 1.0
    hang = 5.0
    memory = 200 * 2**20


def judged(path: str, expected: list[Any] | None, verify: bool) -> tuple[str, str | None]:
    """Read a file with every reader.

    Parameters
    ----------
    path
        The file.
    expected
        The values that it must give if it is accepted; ``None`` if it may give any.
    verify
        Whether to run the file's functions on its samples, too.

    Returns
    -------
    tuple
        ``"refused"`` or ``"accepted"``, and a description of what is wrong, or None.
    """
    outcome = "refused"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, read in READERS.items():
            if name == "verify" and (not verify or outcome == "refused"):
                continue
            start = _seconds()
            try:
                read(path)
            except gt.saving.LoadError as error:
                if not str(error).startswith(path):
                    return outcome, f"{name}: an error that does not name the file: {error}"
                if not str(error).isprintable():
                    return outcome, f"{name}: an error that cannot be printed: {error!r}"
            except Exception as error:
                return outcome, f"{name}: {type(error).__name__}: {error}"
            else:
                outcome = "accepted" if name == "load" else outcome
            took = _seconds() - start
            if took > Limits.seconds and name != "verify":
                took = min(took, _took(read, path))  # the machine may have been busy
                if took > Limits.seconds:
                    return outcome, f"{name}: slow, {took:.1f} s"
        if outcome == "accepted" and expected is not None and behaviour(path) != expected:
            return outcome, "accepted with other values"
    return outcome, None


def _took(read: Callable[[str], Any], path: str) -> float:
    start = _seconds()
    with suppress(gt.saving.LoadError):
        read(path)
    return _seconds() - start


def _seconds() -> float:
    """Return the CPU time of this process and of those that it started."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


@contextmanager
def without_a_new_interpreter() -> Iterator[None]:
    """Read files of Keras, and verify, in forks: starting Python takes 90% of the time."""
    child.subprocess = Forked  # type: ignore[assignment, attr-defined]
    try:
        yield
    finally:
        child.subprocess = subprocess  # type: ignore[attr-defined]


class Forked:
    """The parts of :mod:`subprocess` that :mod:`..saving.container.child` needs."""

    DEVNULL = subprocess.DEVNULL
    TimeoutExpired = subprocess.TimeoutExpired

    @staticmethod
    def run(command: list[str], **options: Any) -> Any:
        """Run the code of a command in a fork."""
        place = command.index("-c")
        read, write = os.pipe()
        forked = os.fork()
        if not forked:
            code = 1
            try:
                os.dup2(write, 1)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the output of a crash
                said = sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
                sys.argv = ["-c", *command[place + 2 :]]
                exec(command[place + 1], {"__name__": "__main__"})
                code = 0
            except SystemExit as error:
                code = int(error.code or 0)
            finally:
                said.flush()
                os._exit(code)
        os.close(write)
        output = b""
        while piece := os.read(read, 65536):
            output += piece
        os.close(read)
        status = os.waitpid(forked, 0)[1]
        return subprocess.CompletedProcess(command, os.waitstatus_to_exitcode(status), output, b"")
