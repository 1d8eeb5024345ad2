"""A pool of threads for the parts of one computation over large arrays.

NumPy's loops, and those that LLVM compiles, run without Python's lock, so parts of an array can be
computed at once. The calling thread computes too. What no other thread has begun when it is done
with its own part, it computes itself: on a busy machine, nothing waits for a thread to wake up.

Results must not depend on the number of threads. So a caller cuts only computations whose elements
do not depend on where the cuts are.
"""

from __future__ import annotations

import ctypes
import os
import threading
from _thread import allocate_lock, get_ident
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from functools import cache
from itertools import pairwise
from queue import SimpleQueue
from typing import Any, TypeAlias

#: The first and the last position, plus one, of a part.
Part: TypeAlias = tuple[int, int]

#: The least work of a part, as the bytes that a sum of arrays in the cache reads and writes. To
#: wake a thread and to wait for it takes 25 to 50 µs, in which one core passes over 2 to 4 MB. On
#: two cores, work of less than 100 µs would take longer than on one.
GRAIN = 2**22


# -- the cores that a process may use --------------------------------------------------------------


def cores(process: int = 0) -> list[int]:
    """Return which of the machine's cores a process may use; process 0 is the current one."""
    try:
        return sorted(os.sched_getaffinity(process))
    except (AttributeError, OSError):
        return list(range(os.cpu_count() or 1))


def quota(folder: str = "/sys/fs/cgroup") -> float | None:
    """Return the container's limit of processor time in cores; None if there is no limit.

    Parameters
    ----------
    folder
        The control groups that the container sees, of version 2 or 1.
    """
    for limit in (_quota_of_version_2, _quota_of_version_1):
        try:
            return limit(folder)
        except (OSError, ValueError, ZeroDivisionError):
            continue
    return None


def _quota_of_version_2(folder: str) -> float | None:
    limit, period = _read(folder, "cpu.max").split()
    return None if limit == "max" else int(limit) / int(period)


def _quota_of_version_1(folder: str) -> float | None:
    limit = int(_read(folder, "cpu", "cpu.cfs_quota_us"))
    period = int(_read(folder, "cpu", "cpu.cfs_period_us"))
    return None if limit < 0 else limit / period


def _read(*path: str) -> str:
    # not pathlib, which takes as long to import as a dozen modules of this package
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def _asked_for() -> int | None:
    """Return the number in ``OMP_NUM_THREADS``; of a list by level, such as ``4,2``, the first."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isascii() and first.isdigit() and int(first) > 0 else None


# -- the number of threads -------------------------------------------------------------------------


class _Numbers:
    """The number of threads by default, once it is known, and the limit that is set."""

    default: int | None = None
    limit: int | None = None


def threads() -> int:
    """Return how many threads may compute at once, including the calling one.

    By default, these are the cores that the process may use, and no more than its quota of
    processor time and ``OMP_NUM_THREADS`` allow. All are read at the first call, and again in a
    forked process.
    """
    most = _Numbers.default
    if most is None:
        most = _Numbers.default = _by_default()
    limit = _Numbers.limit
    return most if limit is None or limit > most else limit


@cache
def can_start_threads() -> bool:
    """Return whether Python can start threads here: in a browser, as WebAssembly, it cannot."""
    try:
        thread = threading.Thread(target=_no_work, daemon=True)
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True


def _no_work() -> None:
    """Be what a thread that is a trial runs."""


def _by_default() -> int:
    if not can_start_threads():
        return 1
    found = [len(cores()), quota(), _asked_for()]
    return max(1, int(min(x for x in found if x is not None)))


def limit_pool(count: int | None) -> int | None:
    """Limit the number of threads of the process; return the previous limit, None for none."""
    before, _Numbers.limit = _Numbers.limit, count
    return before


# -- running parts ---------------------------------------------------------------------------------


def pays(work: int) -> bool:
    """Return whether a computation is so much work that several threads would be faster."""
    return work >= 2 * GRAIN


def parts(length: int, work: int, multiple: int = 1, most: int | None = None) -> list[Part]:
    """Cut a range of positions into parts that may run at once; one part if more do not pay.

    Parameters
    ----------
    length
        The number of positions.
    work
        The bytes that the computation reads and writes; if it takes longer than a sum of arrays
        with as many bytes, as many times more. See :data:`GRAIN`.
    multiple
        Parts begin at multiples of this number of positions, and have at least as many.
    most
        The maximum number of parts.
    """
    if not pays(work) or _here.inside:
        return [(0, length)]
    count = min(work // GRAIN, threads(), length // multiple)
    if most is not None:
        count = min(count, most)
    if count < 2:
        return [(0, length)]
    units = -(-length // multiple)  # the last may be smaller, and is not alone in its part
    ends = [units * i // count * multiple for i in range(count)]
    return list(pairwise([*ends, length]))


def in_parallel(run: Callable[[int, int], Any], pieces: Sequence[Part]) -> None:
    """Call a function for each part, the first one in this thread, and wait for all.

    Other threads run in copies of the caller's context, which holds NumPy's error state. A part
    that has parts itself runs them one after another. While threads of the pool compute for other
    callers, this one uses those that are left.

    Parameters
    ----------
    run
        A function of the first position of a part, and the last one plus one. Threads compute at
        once only while it is in code that leaves Python's lock, such as NumPy's loops.
    pieces
        The result of :func:`parts`.

    Raises
    ------
    Exception
        That of the first part that failed. Parts that have begun are completed before; others may
        not run.
    """
    if len(pieces) == 1 or _here.inside:
        for a, z in pieces:
            run(a, z)
        return
    job = _Job(run, pieces)
    try:
        _here.inside = True
        _hand_out(job, min(len(pieces), threads()) - 1)
        job.begin()
    except BaseException:  # of a signal's handler: a thread may be taken from the pool, and asleep
        _renew_pool()
        raise
    finally:
        try:
            _here.inside = False
            job.close()
        finally:  # once more if a signal's handler interrupted it
            _here.inside = False
            job.close()
    if job.errors:
        raise job.errors[min(job.errors)]


class _Here(threading.local):
    """Whether the current thread computes a part."""

    inside = False


def _over(a: int, z: int) -> None:
    """Stand for the function of a job that is done."""


class _Job:
    """The parts of one call, which threads take one after another.

    Attributes
    ----------
    errors
        The exceptions of parts, by the position of the part.
    """

    def __init__(self, run: Callable[[int, int], Any], pieces: Sequence[Part]) -> None:
        self._run = run
        self._left = deque(enumerate(pieces[1:], 1))
        self._first = 0, pieces[0]
        self.errors: dict[int, BaseException] = {}
        # no lock: a signal's handler that raises could leave it taken
        self._helpers: list[int] = []  # that may have taken a part
        self._ended: list[int] = []
        self._news: SimpleQueue[None] = SimpleQueue()

    def begin(self) -> None:
        """Run the first part, and others, in the calling thread."""
        self._run_part(*self._first)
        self.work()

    def work(self) -> None:
        """Run parts as long as there are any, and none has failed."""
        while not self.errors:
            try:
                part = self._left.popleft()
            except IndexError:
                return
            self._run_part(*part)

    def _run_part(self, place: int, part: Part) -> None:
        try:
            self._run(*part)
        except BaseException as error:
            self.errors[place] = error

    def help(self) -> None:
        """Run parts in another thread."""
        number = get_ident()
        self._helpers.append(number)  # before it takes a part
        self.work()
        self._ended.append(number)
        self._news.put(None)

    def close(self) -> None:
        """Drop the parts that have not begun, and wait for the others."""
        self._left.clear()
        interrupts = []
        while not set(self._helpers) <= set(self._ended):
            try:
                self._news.get()
            except BaseException as error:  # of a signal: arrays must not change after the call
                interrupts.append(error)
        self._run = _over  # a thread that has yet to wake up must not keep arrays alive
        if interrupts:
            raise interrupts[0]


def _find_current_core() -> Callable[[], int]:
    """Return the C library's function for the number of the core that runs the current thread."""
    try:
        found: Callable[[], int] = ctypes.PyDLL(None).sched_getcpu
        found()
        os.sched_getaffinity(0)
    except (OSError, AttributeError, TypeError):  # not on Linux
        return lambda: -1
    return found


class _Pool:
    """The threads, all of them asleep unless they run parts."""

    def __init__(self) -> None:
        self._idle: deque[_Worker] = deque()
        self._all: list[_Worker] = []
        self.is_open = True

    def take(self, most: int) -> _Worker | None:
        """Return a thread that does nothing, a new one if there are fewer than ``most``."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        if len(self._all) >= most:  # callers at once may make a thread too many, which sleeps
            return None
        try:
            worker = _Worker(self)
        except RuntimeError:  # Python is ending, or the system has no more threads
            return None
        self._all.append(worker)
        return worker

    def give(self, worker: _Worker) -> None:
        """Take back a thread."""
        self._idle.append(worker)

    def close(self) -> None:
        """Let the threads end when they have nothing to do."""
        self.is_open = False
        with suppress(IndexError):  # none is left: another thread may have taken the last one
            while True:
                self._idle.pop().end()


class _Worker:
    """A thread that sleeps until it has a job."""

    def __init__(self, pool: _Pool) -> None:
        self._pool = pool
        self._job: _Job | None = None
        self._context: Context | None = None
        self._wake = allocate_lock()
        self._wake.acquire()
        self._core = -1  # on which it has run
        self._all = self._allowed = set(cores())
        self._thread = threading.Thread(target=self._loop, name="gradtape-parts", daemon=True)
        self._thread.start()

    def start(self, job: _Job, core: int, busy: set[int]) -> None:
        """Help with a job, in a copy of the current context.

        Parameters
        ----------
        job
            The job.
        core
            The core of the calling thread.
        busy
            Cores of other threads, to which that of this one is added.
        """
        self._job, self._context = job, copy_context()
        if core in self._allowed or self._core in busy:
            self._avoid({core, *busy})
        busy.add(self._core)
        self._wake.release()

    def end(self) -> None:
        """Let the thread end."""
        self._wake.release()

    def _avoid(self, busy: set[int]) -> None:
        """Wake up on another core.

        Systems often wake a thread on the core of the one that calls it. There it would wait until
        the caller is preempted, some milliseconds later, whatever core has nothing to do.
        """
        allowed = self._all - busy
        number = self._thread.native_id
        if allowed and allowed != self._allowed and number is not None:
            with suppress(OSError):
                os.sched_setaffinity(number, allowed)
                self._allowed = allowed

    def _loop(self) -> None:
        _here.inside = True
        while self._pool.is_open:
            self._wake.acquire()
            job, context = self._job, self._context
            if job is None or context is None:
                return
            context.run(job.help)
            # a sleeping thread must not keep arrays alive
            self._job = self._context = job = context = None
            self._core = current_core()
            self._pool.give(self)


def _hand_out(job: _Job, helpers: int) -> None:
    """Let other threads help with a job, as many as are free."""
    most = threads() - 1
    core, busy = current_core(), set[int]()
    for _ in range(helpers):
        worker = _now.pool.take(most)
        if worker is None:
            return
        worker.start(job, core, busy)


class _Now:
    """The pool of this process."""

    pool = _Pool()


current_core = _find_current_core()
_here = _Here()
_now = _Now()


def _renew_pool() -> None:
    _now.pool.close()
    _now.pool = _Pool()


def _after_fork() -> None:
    """Forget the threads, which a forked process does not have, and count its cores anew."""
    _now.pool = _Pool()
    _Numbers.default = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
