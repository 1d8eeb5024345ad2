"""The hub on rank 0, which receives all reports, decides why a job ends, and informs the ranks."""

from __future__ import annotations

import hmac
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence

from . import verdicts
from .wires import Message, Wire

#: Seconds for failures of other ranks before the job ends, so that one message covers all.
GRACE = 0.3
#: Seconds for the supervisor of a rank that ended to print how. It waits longer than this itself.
SUPERVISOR = 0.5
#: Seconds for other ranks to end their scripts after one has ended with an error code.
LEAVING = 2.0
#: Seconds for a rank's thread to report where it is.
ANSWER = 2.0
#: Seconds for other ranks to report that they wait, once two wait in different collectives.
APART = 1.0
#: Seconds for the ranks to print why the job ends.
TOLD = 1.0


class Hub(threading.Thread):
    """The thread that receives the reports of all ranks.

    Parameters
    ----------
    listener
        The socket that the ranks connect to.
    token
        The word with which a rank must introduce itself.
    hosts, pids
        The host and process id of each rank.
    abort
        Called with an exit code if some ranks do not end by themselves.
    say
        Called with a text to print, and the ranks that it comes from.
    supervised
        Whether each rank has a supervisor. The launcher then sees the rank's end later.
    """

    #: The thread reads no variables, so their arrays may be overwritten while it runs.
    harmless = True

    def __init__(
        self,
        listener: socket.socket,
        token: str,
        hosts: Sequence[str],
        pids: Sequence[int],
        abort: Callable[[int], None],
        say: Callable[[str, Sequence[int]], None],
        supervised: bool,
    ) -> None:
        super().__init__(name="gradtape-hub", daemon=True)
        self.listener, self.token = listener, token
        self.hosts, self.pids, self.size = hosts, pids, len(hosts)
        self.abort, self.say, self.supervised = abort, say, supervised
        self.wires: dict[int, Wire] = {}
        self.failures: dict[int, Message] = {}
        self.gone: list[int] = []
        self.left: dict[int, Message] = {}
        self.alone: dict[int, str] = {}
        self.states: dict[int, Message | None] | None = None
        #: The last collective in which each rank waited for long.
        self.waits: dict[int, Message] = {}
        self.late_after = 0.0
        self.told: set[int] = set()
        self.code = 0  # not 0 once the end is decided
        #: The times of what remains to do, on the monotonic clock.
        self.timers: dict[str, float] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until all ranks have left, or the job has ended."""
        open_for_work = True
        while open_for_work:
            due = min(self.timers.values(), default=None)
            wait = None if due is None else max(0.0, due - time.monotonic())
            for key, _ in self.selector.select(wait):
                if key.fileobj is self.listener:
                    self._accept()
                else:
                    self._read(key.data)
            now = time.monotonic()
            for name in [name for name, when in self.timers.items() if when <= now]:
                del self.timers[name]
                getattr(self, f"_{name}")()
            open_for_work = not self._over()
        self.close()

    def close(self) -> None:
        """Close all connections, which ends the job for the other ranks."""
        self.selector.close()
        self.listener.close()
        for rank in sorted(self.wires, reverse=True):  # this process's own last
            self.wires[rank].close()

    def _over(self) -> bool:
        if self.code:
            return "ended" not in self.timers and "decide" not in self.timers
        if len(self.left) < self.size:
            return False
        for rank in sorted(self.wires, reverse=True):
            self.wires[rank].send(over=True)
        return True

    # -- messages received -------------------------------------------------------------------------

    def _accept(self) -> None:
        sock, _ = self.listener.accept()
        self.selector.register(sock, selectors.EVENT_READ, Wire(sock))

    def _read(self, wire: Wire) -> None:
        messages = wire.receive()
        if messages is None:
            self.selector.unregister(wire.sock)
            wire.close()
            if self.wires.get(wire.rank) is wire:
                self._lost(wire.rank)
            return
        for message in messages:
            if wire.rank >= 0:
                self._heard(wire.rank, message)
            elif not self._greeted(wire, message):
                self.selector.unregister(wire.sock)
                wire.close()
                return

    def _greeted(self, wire: Wire, message: Message) -> bool:
        rank = message.get("rank")
        token = str(message.get("hello", ""))
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        if not isinstance(rank, int) or not 0 <= rank < self.size or rank in self.wires:
            return False
        wire.rank = rank
        self.wires[rank] = wire
        wire.send(welcome=True)
        if len(self.wires) == self.size:  # no other rank will connect
            self.selector.unregister(self.listener)
            self.listener.close()
        return True

    def _lost(self, rank: int) -> None:
        del self.wires[rank]
        if self.code:
            self._told_by(rank)
        elif rank not in self.failures:
            self.gone.append(rank)
            # without a supervisor the launcher saw it too, and soon ends all ranks
            self._soon("decide", SUPERVISOR if self.supervised else 0.0)

    def _heard(self, rank: int, message: Message) -> None:
        if "failed" in message:
            self.failures[rank] = message["failed"]
            everyone = len(self.failures) + len(self.gone) == self.size
            self._soon("decide", 0.0 if everyone else GRACE)
        elif "left" in message:
            self.left[rank] = message["left"]
            for other in self.wires.values():
                other.send(left=message["left"]["count"])
            if message["left"]["code"]:
                self._soon("decide", LEAVING)
        elif "alone" in message:
            self.alone[rank] = str(message["alone"])
            self._soon("decide", GRACE)
        elif "waits" in message:
            self.waits[rank] = message["waits"]
            if verdicts.apart(self.waits) is not None:
                self._soon("apart", APART if len(self.waits) < self.size else 0.0)
        elif "late" in message and self.states is None and not self.code:
            self.late_after = message["late"]
            self.states = dict.fromkeys(range(self.size))
            self._soon("asked", ANSWER)
            for other in self.wires.values():
                other.send(where=True)
        elif "here" in message and self.states is not None:
            self.states[rank] = message["here"]
            if None not in self.states.values():
                self._soon("asked", 0.0)
        elif "told" in message:
            self._told_by(rank)

    def _told_by(self, rank: int) -> None:
        self.told.add(rank)
        if self.code and self.told >= self.wires.keys():
            self._soon("ended", 0.0)

    def _soon(self, name: str, seconds: float) -> None:
        due = time.monotonic() + seconds
        self.timers[name] = min(due, self.timers.get(name, due))

    # -- decisions ---------------------------------------------------------------------------------

    def _apart(self) -> None:
        """End the job if ranks wait in different collectives."""
        found = verdicts.apart(self.waits)
        if found is not None and not self.failures and not self.code:
            self._end(found, 1)

    def _asked(self) -> None:
        """Decide from the ranks' reports whether one is stuck."""
        states, self.states = self.states or {}, None
        found = verdicts.stuck(states, self.late_after, self.hosts)
        if found is not None and not self.failures:
            self._end(found[0], 1)

    def _decide(self) -> None:
        if self.code:
            return
        if self.gone:  # the collectives of the others fail because of it, in engines that notice
            own = {r: x for r, x in self.failures.items() if not x.get("collective")}
            self._print(own)
            pids = {rank: self.pids[rank] for rank in self.gone}
            told = [verdicts.gone(pids, self.hosts), *([verdicts.failed(own)] if own else [])]
            self._end("; ".join(told), 1)
        elif self.failures:
            self._print(self.failures)
            codes = {x["code"] for x in self.failures.values()}
            self._end(verdicts.failed(self.failures), min(codes))
        elif self.left and (self.alone or any(x["code"] for x in self.left.values())):
            # the first rank that failed, or that others wait for
            rank = min(self.left, key=lambda r: (not self.left[r]["code"], self.left[r]["count"]))
            count, code = self.left[rank]["count"], self.left[rank]["code"]
            self._end(verdicts.left(rank, count, code, self.alone, self.hosts), code or 1)

    def _print(self, failures: dict[int, Message]) -> None:
        """Print tracebacks, equal ones once."""
        texts = {r: x["text"] for r, x in failures.items() if x["text"]}
        for text in dict.fromkeys(texts.values()):
            self.say(text, [rank for rank in texts if texts[rank] == text])

    def _end(self, reason: str, code: int) -> None:
        self.code = code
        self._soon("ended", TOLD)
        for wire in self.wires.values():
            wire.send(end=reason, code=code)

    def _ended(self) -> None:
        """Abort the job if a rank did not receive the message, or cannot act on it."""
        if self.wires.keys() - self.told or self.gone:
            self.abort(self.code)
