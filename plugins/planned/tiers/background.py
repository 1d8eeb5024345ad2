"""One thread for work that nobody waits for, such as compiling loops while a program runs.

The thread exists only while there are jobs. It is a daemon, so it does not keep a process alive.
But machine code must not be generated while the process ends, or while ``os.fork`` copies it: the
copy would have the compiler's locks, and no thread that releases them. So both wait until a job
reaches its next :meth:`Background.checkpoint`, where it is dropped; it runs again later.
"""

from __future__ import annotations

import atexit
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread, current_thread

from ....core.extend import can_start_threads


class Interrupted(Exception):
    """A job was dropped at a checkpoint; it is still the first in the queue."""


class Background:
    """Runs jobs in a daemon thread, one after another, in the order in which they came."""

    #: The time in seconds that the end of a process waits for a job's next checkpoint.
    LONGEST = 10.0

    def __init__(self) -> None:
        self._jobs: deque[Callable[[], None]] = deque()
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._pause, after_in_parent=self._resume, after_in_child=self._reset
            )
        atexit.register(self._end)

    def _reset(self) -> None:
        """Have no thread, as in a process that was just forked."""
        self._changed = Condition()
        self._thread: Thread | None = None
        self._pauses = 0  # threads may fork at the same time

    def add(self, job: Callable[[], None]) -> None:
        """Run a job after those added before; at once where no thread can be started.

        Parameters
        ----------
        job
            A function without arguments, which handles its own errors. It may be interrupted at a
            checkpoint, and then runs again from its start.
        """
        if not can_start_threads():
            job()
            return
        self._jobs.append(job)
        self.wake()

    def wake(self) -> None:
        """Start the thread if there are jobs and no thread, as after a fork."""
        if self._thread is not None or not self._jobs:
            return
        with self._changed:
            if self._thread is not None or self._pauses:
                return
            self._thread = Thread(target=self._work, name="gradtape-background", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the system has no more threads, or the interpreter ends
                self._thread = None

    def checkpoint(self) -> None:
        """Interrupt the current job if the process is about to fork or to end."""
        if self._pauses and current_thread() is self._thread:
            raise Interrupted

    def wait(self, seconds: float) -> bool:
        """Wait until all jobs are done; return whether they are.

        Parameters
        ----------
        seconds
            The longest time to wait.
        """
        self.wake()
        with self._changed:
            return self._changed.wait_for(lambda: not self._jobs, seconds)

    def _work(self) -> None:
        while True:
            with self._changed:
                if self._pauses or not self._jobs:
                    self._thread = None
                    self._changed.notify_all()
                    return
            with suppress(Interrupted):
                self._jobs[0]()
                with self._changed:
                    self._jobs.popleft()

    def _pause(self) -> None:
        with self._changed:
            self._pauses += 1
            thread = self._thread
        if thread is not None and thread is not current_thread():
            thread.join(self.LONGEST)

    def _resume(self) -> None:
        # without a thread: Python warns of a fork if it sees one; the next call wakes it
        with self._changed:
            self._pauses -= 1

    def _end(self) -> None:
        with suppress(KeyboardInterrupt):
            self._pause()


#: The thread that compiles plans.
BACKGROUND = Background()
