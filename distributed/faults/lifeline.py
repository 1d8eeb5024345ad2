"""Each rank's part in handling failures: it reports where it is, and learns about the others."""

from __future__ import annotations

import os
import secrets
import sys
import sysconfig
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from json import dumps, loads
from types import FrameType
from typing import Any, NoReturn

from ...core.extend import Communicator, describe, ranks_in_words
from .hub import (
    ANSWER,
    GRACE,
    Hub,
    Message,
    Wire,
    addresses,
    connected,
    describe_end_without_report,
    describe_stuck,
    listening,
    rank_on_host,
)

#: The methods of a communicator that wait for other ranks.
COLLECTIVES = (
    "compare",
    "all_reduce",
    "reduce_in_place",
    "all_gather",
    "broadcast",
    "reduce_scatter",
    "exchange",
    "barrier",
    "run_step",  # only engines that run a step as one program have it
)
#: How a rank reports its state to its supervisor: see cli/supervisor.py.
STATE = "GRADTAPE_STATE_FD"
JOINING, JOINED, INFORMED, DONE = b"i", b"j", b"e", b"d"
#: Seconds in one collective after which a rank reports which one it is.
LONG = 1.0
#: Seconds after which a rank ends itself if nothing else ends it.
PATIENCE = 3.0
PACKAGE = __name__.partition(".")[0]
STANDARD = sysconfig.get_paths()["stdlib"]


class Lifeline(threading.Thread):
    """A rank's connection to the hub, and its reports.

    Attributes
    ----------
    timeout
        How many seconds the rank waits in one collective before all report where they are; None
        for no limit.
    harmless
        True: the thread reads no variables, so their arrays may be overwritten while it runs.
    """

    harmless = True

    def __init__(self, found: Communicator, wire: Wire, hosts: Sequence[str], pids: list[int]):
        super().__init__(name="gradtape-lifeline", daemon=True)
        self.found, self.wire = found, wire
        self.rank, self.size = found.rank, found.size
        self.hosts, self.pids, self.process = hosts, pids, os.getpid()
        self.timeout: float | None = None
        self.step: str | None = None
        self.count = 0
        self.doing: tuple[str, Any, float] | None = None
        self.first_left: int | None = None
        #: The last error of a collective.
        self.lost: BaseException | None = None
        self.leaving = False
        # when this rank last asked for a report, and when it last sent one
        self._asked = self._answered = 0.0
        self._reported: tuple[str, Any, float] | None = None  # the last long wait
        self._ended = threading.Event()
        self._main = threading.main_thread().ident or 0
        closed_in_children(self.wire.close)

    # -- in the rank's own threads -----------------------------------------------------------------

    def watch(self) -> None:
        """Record each collective that the communicator runs."""
        found = self.found
        for name in COLLECTIVES:
            if hasattr(found, name):
                setattr(found, name, self._noting(name, getattr(found, name)))
        start = found.start_in_place

        def start_in_place(array: Any) -> Callable[[], Any]:
            return self._noting("the wait for all_reduce", start(array))

        found.start_in_place = start_in_place  # type: ignore[method-assign]

    def _noting(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **settings: Any) -> Any:
            outer = self.doing
            self.count += 1
            self.doing = (name, arguments[0] if arguments else None, time.monotonic())
            if self.first_left is not None and self.count > self.first_left:
                self.wire.send(alone=f"in {self._collective_text()}")
            try:
                return method(*arguments, **settings)
            except Exception as error:
                self.lost = error
                raise
            finally:
                self.doing = outer

        return run

    @contextmanager
    def during(self, step: str, timeout: float | None) -> Iterator[None]:
        """Run a step under its name, with its own timeout if it has one."""
        before = self.step, self.timeout
        self.step, self.timeout = step, timeout if timeout is not None else self.timeout
        try:
            yield
        finally:
            self.step, self.timeout = before

    def fail(
        self, summary: str, text: str | None, code: int, error: BaseException | None = None
    ) -> NoReturn:
        """End the job, and this process, because this rank failed.

        Parameters
        ----------
        summary
            The line that every rank prints.
        text
            A text that is printed once for all ranks that fail with the same text, or None.
        code
            The exit code.
        error
            The exception, if there is one. If a collective raised it, another rank may be the
            cause.
        """
        if not self.is_alive():
            print_for_ranks(text or summary, self.rank, self.size, self.hosts)
            leave_at_once(code)
        failed = {"summary": summary, "text": text, "code": code}
        self.wire.send(failed={**failed, "collective": self._raised(error)})
        if not self._ended.wait(PATIENCE) and text:
            print_for_ranks(text, self.rank, self.size, self.hosts)
        time.sleep(PATIENCE)  # the thread ends the process, at the latest by now
        leave_at_once(code)

    def _raised(self, error: BaseException | None) -> bool:
        """Return whether an exception is, or follows from, the last one of a collective."""
        while error is not None and error is not self.lost:
            error = error.__cause__ or error.__context__
        return error is not None

    def leave(self, code: int = 0) -> None:
        """Report that this rank's script ended, and wait until the scripts of all ranks have."""
        if os.getpid() != self.process or self.leaving:
            return
        self.leaving = True
        self.wire.send(left={"count": self.count, "code": code})
        self.join()

    # -- in its own thread -------------------------------------------------------------------------

    def run(self) -> None:
        """Handle the hub's messages until the job is over."""
        while True:
            messages = self.wire.receive(min(0.5, (self.timeout or 2.0) / 4))
            if messages is None:
                return self._orphaned()
            self._look()
            for message in messages:
                if "over" in message:
                    self.wire.close()
                    return None
                self._receive(message)

    def _receive(self, message: Message) -> None:
        if "where" in message:
            self._asked, self._answered = 0.0, time.monotonic()
            self.wire.send(here=self._state())
        elif "left" in message:
            count = message["left"]
            self.first_left = count if self.first_left is None else min(count, self.first_left)
            if self.doing is not None and self.count > self.first_left:
                self.wire.send(alone=f"in {self._collective_text()}")
        elif "end" in message:
            self._end(message["end"], message["code"])

    def _look(self) -> None:
        """Report a long wait, and ask all ranks for a report if it is too long."""
        doing, timeout, now = self.doing, self.timeout, time.monotonic()
        if doing is not None and doing is not self._reported and now - doing[2] > LONG:
            wait = {"count": self.count, "doing": self._collective_text(), "step": self.step}
            if doing is self.doing:  # still in it, so the description is of this one
                self._reported = doing
                self.wire.send(waits=wait)
        if doing is None or timeout is None:
            self._asked = 0.0
        elif self._asked and now - self._asked > 2 * ANSWER:
            states = {rank: None if rank == 0 else self._state() for rank in (0, self.rank)}
            reason, _ = describe_stuck(states, timeout, self.hosts) or ("rank 0 is stuck", [])
            self._end_without_hub(reason)
        elif not self._asked and now - max(doing[2], self._answered) > timeout:
            self._asked = now
            self.wire.send(late=timeout)

    def _state(self) -> Message:
        return {
            "count": self.count,
            "doing": self._collective_text() if self.doing else None,
            "step": self.step,
            "at": _place(sys._current_frames().get(self._main)),
            "left": self.leaving,
        }

    def _collective_text(self) -> str:
        """Return a description of the collective that this rank is in."""
        if self.doing is None:
            return "a collective"
        name, array, _ = self.doing
        if self.found.comparing is not None:
            return self.found.comparing
        shape = getattr(array, "shape", None)
        return name if shape is None else f"{name} of {describe(shape, array.dtype)}"

    def _end(self, reason: str, code: int) -> None:
        """Print why the job ends, and end this process once all ranks have printed it."""
        self._ended.set()
        report_to_supervisor(INFORMED)
        report_to_supervisor(DONE)
        print_for_ranks(f"the job ends: {reason}", self.rank, self.size, self.hosts)
        self.wire.send(told=True)
        until = time.monotonic() + PATIENCE
        while (left := until - time.monotonic()) > 0 and self.wire.receive(left) is not None:
            pass
        leave_at_once(code)

    def _orphaned(self) -> None:
        """End the process because rank 0 is gone."""
        self._end_without_hub(describe_end_without_report({0: self.pids[0]}, self.hosts))

    def _end_without_hub(self, reason: str) -> NoReturn:
        """End the process without the hub."""
        self._ended.set()
        report_to_supervisor(INFORMED)
        report_to_supervisor(DONE)
        print_for_ranks(f"the job ends: {reason}", self.rank, self.size, self.hosts)
        time.sleep(GRACE)  # so that the others can print it too
        leave_at_once(1)


def join(found: Communicator) -> Lifeline | None:
    """Connect the ranks by TCP, in addition to the engine, and start to watch them.

    Parameters
    ----------
    found
        A communicator whose ranks are processes.

    Returns
    -------
    Lifeline or None
        None, with a warning on rank 0, if a rank cannot reach rank 0.
    """
    name = hostname()
    everyone = [loads(x) for x in found.exchange(dumps([name, os.getpid()]).encode())]
    hosts, pids = [x[0] for x in everyone], [x[1] for x in everyone]
    everywhere = len(set(hosts)) > 1
    offer: Message = {}
    if found.rank == 0:
        listener, token = listening(everywhere), secrets.token_hex(16)
        offer = {"port": listener.getsockname()[1], "token": token, "at": addresses(everywhere)}

        def printed(text: str, ranks: Sequence[int]) -> None:
            print_for_ranks(text, ranks, found.size, hosts)

        supervised = STATE in os.environ
        hub = Hub(listener, token, hosts, pids, lambda x: found.abort("", x), printed, supervised)
        closed_in_children(hub.close)
        hub.start()
    offer = loads(found.exchange(dumps(offer).encode())[0])
    wire = connected(offer["at"], offer["port"])
    welcome = None
    if wire is not None:
        wire.send(hello=offer["token"], rank=found.rank)
        welcome = wire.receive()
    reached = found.exchange(b"1" if welcome else b"0")
    if wire is None or b"0" in reached:
        if wire is not None:
            wire.close()
        if found.rank == 0:
            there = [rank for rank, x in enumerate(reached) if x == b"0"]
            who = ", ".join(rank_on_host(rank, hosts) for rank in there)
            warnings.warn(
                f"distributed.init: {who} cannot reach rank 0 on {hosts[0]} by TCP, port "
                f"{offer['port']}: only the launcher handles ranks that die, and nothing finds "
                "ranks that are stuck. Allow the connection in the firewall",
                RuntimeWarning,
                stacklevel=4,
            )
        return None
    line = Lifeline(found, wire, hosts, pids)
    line.watch()
    line.start()
    return line


def print_for_ranks(
    text: str, ranks: int | Sequence[int], size: int, hosts: Sequence[str] | dict[int, str]
) -> None:
    """Print lines on standard error, each with a prefix of its ranks and their hosts."""
    ranks = [ranks] if isinstance(ranks, int) else ranks
    # in one call, so that ranks do not mix
    sys.stderr.write(prefixed(text, ranks, size, [hosts[r] for r in ranks]))
    sys.stderr.flush()


def prefixed(text: str, ranks: Sequence[int], size: int, hosts: Sequence[str]) -> str:
    """Return lines with the prefix ``[rank 1 of 4 on host]``."""
    where = ", ".join(dict.fromkeys(hosts))
    head = f"[{ranks_in_words(ranks)} of {size} on {where}]"
    return "".join(f"{head} {line}\n" for line in text.rstrip().splitlines())


def closed_in_children(close: Callable[[], None]) -> None:
    """Close a connection in forked children, which would keep it open after this process."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=close)


def leave_at_once(code: int) -> NoReturn:
    """End the process once its output is flushed, without waiting for other ranks."""
    report_to_supervisor(DONE)

    def flush() -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()

    flushing = threading.Thread(target=flush, daemon=True)  # another thread may hold a lock
    flushing.start()
    flushing.join(1.0)
    os._exit(code)


def report_to_supervisor(state: bytes) -> None:
    """Report this rank's state to its supervisor, if there is one; ``DONE`` is the last state."""
    number = os.environ.get(STATE, "")
    if number.isdecimal():
        with suppress(OSError):
            os.write(int(number), state)
        if state == DONE:
            del os.environ[STATE]


def hostname() -> str:
    """Return the name of this host."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "host")


def _place(frame: FrameType | None) -> str:
    """Return the line of the user's code: that of the innermost frame outside packages."""
    innermost = frame
    while frame is not None:
        name, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
        elsewhere = name.startswith((STANDARD, "<")) or "site-packages" in name
        if not elsewhere and module.partition(".")[0] != PACKAGE:
            return f"{name}, line {frame.f_lineno}, in {frame.f_code.co_name}"
        frame = frame.f_back
    if innermost is None:
        return "an unknown place"
    return f"{innermost.f_code.co_filename}, line {innermost.f_lineno}"
