"""The hub on rank 0: it hears all ranks, decides why a job ends, and tells them."""

from __future__ import annotations

import hmac
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence

from . import verdicts
from .wires import Message, Wire

__all__ = ["Hub"]

#: Seconds in which other ranks may fail as well before the job ends: one message then tells all.
GRACE = 0.3
#: Seconds in which the supervisor of a rank that ended says how; it waits longer than this itself.
SUPERVISOR = 0.5
#: Seconds in which other ranks may end their scripts as well, if one has with an error's code.
LEAVING = 2.0
#: Seconds in which a rank's thread answers where it is.
ANSWER = 2.0
#: Seconds in which the ranks print why the job ends.
TOLD = 1.0


class Hub(threading.Thread):
    """The thread that hears all ranks.

    Parameters
    ----------
    listener
        Where the ranks connect.
    token
        What they say to be let in.
    hosts, pids
        Of each rank.
    abort
        Called with an exit code if ranks are left that do not end by themselves.
    say
        Called with what is to be printed, and the ranks that say it.
    supervised
        Whether a supervisor waits for each rank's end, which the launcher then sees later.
    """

    #: It reads no variables: their arrays may be written while it runs.
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
        self.late_after = 0.0
        self.told: set[int] = set()
        self.code = 0  # not 0 once it is decided
        #: What is to be done when, by the monotonic clock.
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
        """Close all connections: for the other ends this is the end of the job."""
        self.selector.close()
        self.listener.close()
        for rank in sorted(self.wires, reverse=True):  # this process's own the last
            self.wires[rank].close()

    def _over(self) -> bool:
        if self.code:
            return "ended" not in self.timers and "decide" not in self.timers
        if len(self.left) < self.size:
            return False
        for rank in sorted(self.wires, reverse=True):
            self.wires[rank].send(over=True)
        return True

    # -- what comes in -----------------------------------------------------------------------------

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
        if len(self.wires) == self.size:  # nobody else is to come
            self.selector.unregister(self.listener)
            self.listener.close()
        return True

    def _lost(self, rank: int) -> None:
        del self.wires[rank]
        if self.code:
            self._told_by(rank)
        elif rank not in self.failures:
            self.gone.append(rank)
            # without a supervisor the launcher has seen it too, and is quick to end us all
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

    # -- what is decided ---------------------------------------------------------------------------

    def _asked(self) -> None:
        """Judge by what the ranks answered whether one is stuck."""
        states, self.states = self.states or {}, None
        found = verdicts.stuck(states, self.late_after, self.hosts)
        if found is not None and not self.failures:
            self._end(found[0], 1)

    def _decide(self) -> None:
        if self.code:
            return
        codes = {x["code"] for x in self.failures.values()}
        if self.failures:
            texts = {r: x["text"] for r, x in self.failures.items() if x["text"]}
            for text in dict.fromkeys(texts.values()):
                self.say(text, [rank for rank in texts if texts[rank] == text])
            self._end(verdicts.failed(self.failures), min(codes))
        elif self.gone:
            self._end(verdicts.gone({r: self.pids[r] for r in self.gone}, self.hosts), 1)
        elif self.left and (self.alone or any(x["code"] for x in self.left.values())):
            # the first of those that others wait for, or that failed
            rank = min(self.left, key=lambda r: (not self.left[r]["code"], self.left[r]["count"]))
            count, code = self.left[rank]["count"], self.left[rank]["code"]
            self._end(verdicts.left(rank, count, code, self.alone, self.hosts), code or 1)

    def _end(self, reason: str, code: int) -> None:
        self.code = code
        self._soon("ended", TOLD)
        for wire in self.wires.values():
            wire.send(end=reason, code=code)

    def _ended(self) -> None:
        """Leave no rank behind that has not heard, or cannot act."""
        if self.wires.keys() - self.told or self.gone:
            self.abort(self.code)
