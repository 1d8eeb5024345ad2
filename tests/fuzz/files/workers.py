"""Forked processes that read files: those that crash, hang or use too much are replaced."""

from __future__ import annotations

import contextlib
import gc
import json
import mmap
import os
import resource
import select
import signal
import struct
import time
from collections.abc import Callable, Iterator

from fuzz.commands import Clock
from fuzz.files.judging import Limits

__all__ = ["Pool"]

# The address space in addition to that of the process: larger allocations are refused.
_ADDRESSES = 2 * 2**30
# A process that only waits uses no CPU time.
_WAITING = 60.0
_NUMBER = struct.Struct("<q")

Result = tuple[int, str, str | None]


class Pool:
    """Processes that call ``read`` with one number after another.

    Parameters
    ----------
    read
        Returns the label to count the file under, and a description of what is wrong, or None.
    first
        The first number.
    workers
        The number of processes; with n of them, each reads every n-th file.
    clock
        The limit of the run.
    hang
        The maximum CPU time for one number, in seconds.
    """

    def __init__(
        self,
        read: Callable[[int], tuple[str, str | None]],
        first: int,
        workers: int,
        clock: Clock,
        hang: float = Limits.hang,
    ) -> None:
        last = None if clock.count is None else first + clock.count
        self._workers = [
            _Worker(read, first + i, workers, last, clock, hang) for i in range(workers)
        ]

    def results(self) -> Iterator[Result]:
        """Yield the number of each file, its label, and a description of what is wrong."""
        gc.freeze()
        for worker in self._workers:
            worker.start()
        while any(worker.pipe is not None for worker in self._workers):
            pipes = {w.pipe: w for w in self._workers if w.pipe is not None}
            ready, _, _ = select.select([*pipes], [], [], 1.0)
            for pipe in ready:
                yield from pipes[pipe].received()
            for worker in pipes.values():
                yield from worker.waited_for()

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.stop()


class _Worker:
    def __init__(
        self,
        read: Callable[[int], tuple[str, str | None]],
        first: int,
        step: int,
        last: int | None,
        clock: Clock,
        hang: float,
    ) -> None:
        self._read, self._next, self._step, self._last = read, first, step, last
        self._clock, self._hang = clock, hang
        self._at = mmap.mmap(-1, _NUMBER.size)
        self._seen = (-1, 0.0)
        self._rest = b""
        self._process = 0
        self.pipe: int | None = None

    def start(self) -> None:
        """Fork a process that continues with the next number."""
        self.pipe, write = os.pipe()
        self._set(-1)
        self._rest = b""
        self._seen = (-1, time.monotonic())
        self._process = os.fork()
        if not self._process:
            os.close(self.pipe)
            code = 1
            try:
                self._work(write)
                code = 0
            finally:
                os._exit(code)
        os.close(write)

    def _set(self, number: int) -> None:
        self._at[:] = _NUMBER.pack(number)

    def _work(self, write: int) -> None:
        """Read files until the time is up, or one has used too much memory."""
        _limit()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        number = self._next
        while (self._last is None or number < self._last) and self._clock.runs(0):
            self._set(number)
            before = _peak_from_here()
            signal.setitimer(signal.ITIMER_PROF, self._hang)
            label, wrong = self._read(number)
            signal.setitimer(signal.ITIMER_PROF, 0)
            taken = _peak() - before
            # the first file imports everything that is needed
            if number != self._next and taken > Limits.memory:
                wrong = wrong or f"it took {taken / 2**20:,.0f} MB"
            os.write(write, json.dumps([number, label, wrong]).encode() + b"\n")
            number += self._step

    def received(self) -> Iterator[Result]:
        """Yield the results of the process; replace it if it has ended."""
        if self.pipe is None:
            return
        data = os.read(self.pipe, 2**16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            number, label, wrong = json.loads(line)
            self._next = number + self._step
            yield number, label, wrong
        if not data:
            yield from self._gone()

    def _gone(self) -> Iterator[Result]:
        code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        self._process = 0
        os.close(self.pipe or 0)
        self.pipe = None
        number: int = _NUMBER.unpack(self._at)[0]
        if code and number >= 0:
            self._next = number + self._step
            said = "hang" if -code == signal.SIGPROF else f"crash ({_name(code)})"
            yield number, said, said
        elif code:
            yield self._next, "crash", f"the process ended with {_name(code)} before it could read"
            return
        over = self._last is not None and self._next >= self._last
        if not over and self._clock.runs(0):
            self.start()

    def waited_for(self) -> Iterator[Result]:
        """End a process that waits forever."""
        number = _NUMBER.unpack(self._at)[0]
        if number != self._seen[0]:
            self._seen = (number, time.monotonic())
        elif self._process and time.monotonic() - self._seen[1] > _WAITING:
            os.kill(self._process, signal.SIGPROF)
        yield from ()

    def stop(self) -> None:
        """End the process."""
        if self._process:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
            self._process = 0
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None


def _limit() -> None:
    with open("/proc/self/statm") as stream:
        pages = int(stream.read().split()[0])
    most = pages * resource.getpagesize() + _ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _peak_from_here() -> int:
    # Without this, memory would go unnoticed that the process had used and freed before.
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as stream:
        stream.write("5")
    return _peak()


def _peak() -> int:
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return 1024 * max(own, children)


def _name(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
