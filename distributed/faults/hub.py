"""The hub on rank 0, which receives all reports, decides why a job ends, and informs the ranks."""

from __future__ import annotations

import hmac
import json
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...core.extend import ranks_in_words

# -- messages over TCP, outside the engine: one JSON object per line ------------------------------

Message = dict[str, Any]
#: The longest line, so that an untrusted client of the port cannot fill the memory.
LONGEST = 1 << 20
#: Seconds to try each address of the hub.
PATIENCE = 5.0


class Wire:
    """One end of a connection.

    Parameters
    ----------
    sock
        A connected socket.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.rank = -1
        self._buffer = b""
        self._sending = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ)
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def send(self, **message: Any) -> None:
        """Send a message. A closed connection is ignored here; :meth:`receive` reports it."""
        with suppress(OSError), self._sending:
            self.sock.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float | None = None) -> list[Message] | None:
        """Wait for messages and return them; ``None`` if the connection is closed.

        Parameters
        ----------
        seconds
            The longest wait, after which the list is empty. None waits without a limit.
        """
        try:
            if seconds is not None and not self._selector.select(seconds):
                return []
            found = self.sock.recv(1 << 16)
        except (OSError, ValueError):  # closed, perhaps by another thread
            return None
        self._buffer += found
        if not found or len(self._buffer) > LONGEST:
            return None
        *lines, self._buffer = self._buffer.split(b"\n")
        try:
            messages = [json.loads(line) for line in lines]
        except ValueError:
            return None
        return messages if all(isinstance(x, dict) for x in messages) else None

    def close(self) -> None:
        """Close this end."""
        with suppress(OSError):
            self._selector.close()
            self.sock.close()


def listening(everywhere: bool) -> socket.socket:
    """Return a socket that accepts connections, from this host only or from everywhere."""
    return socket.create_server(("" if everywhere else "127.0.0.1", 0), backlog=4096)


def addresses(everywhere: bool) -> list[str]:
    """Return addresses at which other hosts may reach this one."""
    if not everywhere:
        return ["127.0.0.1"]
    name = socket.gethostname()
    found = [name]
    with suppress(OSError):
        found += sorted({str(x[4][0]) for x in socket.getaddrinfo(name, None, socket.AF_INET)})
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing, but selects the outgoing interface
        found.append(probe.getsockname()[0])
    return list(dict.fromkeys(found))


def connected(where: list[str], port: int) -> Wire | None:
    """Return a connection to the first address that answers; ``None`` if none does."""
    for address in where:
        with suppress(OSError):
            return Wire(socket.create_connection((address, port), PATIENCE))
    return None


# -- the hub --------------------------------------------------------------------------------------

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
    print_lines
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
        print_lines: Callable[[str, Sequence[int]], None],
        supervised: bool,
    ) -> None:
        super().__init__(name="gradtape-hub", daemon=True)
        self.listener, self.token = listener, token
        self.hosts, self.pids, self.size = hosts, pids, len(hosts)
        self.abort, self.print_lines, self.supervised = abort, print_lines, supervised
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
                self._receive(wire.rank, message)
            elif not self._accepts(wire, message):
                self.selector.unregister(wire.sock)
                wire.close()
                return

    def _accepts(self, wire: Wire, message: Message) -> bool:
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
            self._note_informed(rank)
        elif rank not in self.failures:
            self.gone.append(rank)
            # without a supervisor the launcher saw it too, and soon ends all ranks
            self._soon("decide", SUPERVISOR if self.supervised else 0.0)

    def _receive(self, rank: int, message: Message) -> None:
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
            if describe_different_collectives(self.waits) is not None:
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
            self._note_informed(rank)

    def _note_informed(self, rank: int) -> None:
        self.told.add(rank)
        if self.code and self.told >= self.wires.keys():
            self._soon("ended", 0.0)

    def _soon(self, name: str, seconds: float) -> None:
        due = time.monotonic() + seconds
        self.timers[name] = min(due, self.timers.get(name, due))

    # -- decisions ---------------------------------------------------------------------------------

    def _apart(self) -> None:
        """End the job if ranks wait in different collectives."""
        found = describe_different_collectives(self.waits)
        if found is not None and not self.failures and not self.code:
            self._end(found, 1)

    def _asked(self) -> None:
        """Decide from the ranks' reports whether one is stuck."""
        states, self.states = self.states or {}, None
        found = describe_stuck(states, self.late_after, self.hosts)
        if found is not None and not self.failures:
            self._end(found[0], 1)

    def _decide(self) -> None:
        if self.code:
            return
        if self.gone:  # the collectives of the others fail because of it, in engines that notice
            own = {r: x for r, x in self.failures.items() if not x.get("collective")}
            self._print(own)
            pids = {rank: self.pids[rank] for rank in self.gone}
            told = [
                describe_end_without_report(pids, self.hosts),
                *([describe_failed(own)] if own else []),
            ]
            self._end("; ".join(told), 1)
        elif self.failures:
            self._print(self.failures)
            codes = {x["code"] for x in self.failures.values()}
            self._end(describe_failed(self.failures), min(codes))
        elif self.left and (self.alone or any(x["code"] for x in self.left.values())):
            # the first rank that failed, or that others wait for
            rank = min(self.left, key=lambda r: (not self.left[r]["code"], self.left[r]["count"]))
            count, code = self.left[rank]["count"], self.left[rank]["code"]
            self._end(describe_left(rank, count, code, self.alone, self.hosts), code or 1)

    def _print(self, failures: dict[int, Message]) -> None:
        """Print tracebacks, equal ones once."""
        texts = {r: x["text"] for r, x in failures.items() if x["text"]}
        for text in dict.fromkeys(texts.values()):
            self.print_lines(text, [rank for rank in texts if texts[rank] == text])

    def _end(self, reason: str, code: int) -> None:
        self.code = code
        self._soon("ended", TOLD)
        for wire in self.wires.values():
            wire.send(end=reason, code=code)

    def _ended(self) -> None:
        """Abort the job if a rank did not receive the message, or cannot act on it."""
        if self.wires.keys() - self.told or self.gone:
            self.abort(self.code)


# -- the texts of reasons --------------------------------------------------------------------------

#: A rank's report of a failure: ``summary``, ``text`` (its traceback), ``code``.
Failure = Mapping[str, Any]


def rank_on_host(rank: int, hosts: Sequence[str]) -> str:
    """Return the name of a rank, with its host."""
    return f"rank {rank} on {hosts[rank]}"


def join_by_text(description: Mapping[int, str]) -> str:
    """Join the texts of ranks, with ranks of equal text together: ``ranks 0, 2 a; rank 1 b``."""
    by_text: dict[str, list[int]] = {}
    for rank, text in sorted(description.items()):
        by_text.setdefault(text, []).append(rank)
    return "; ".join(f"{ranks_in_words(ranks)} {text}" for text, ranks in by_text.items())


def describe_failed(failures: Mapping[int, Failure]) -> str:
    """Return the ranks that failed, and their errors."""
    return join_by_text({rank: str(x["summary"]) for rank, x in failures.items()})


def describe_end_without_report(pids: Mapping[int, int], hosts: Sequence[str]) -> str:
    """Return the ranks whose processes ended without a report."""
    if len(pids) > 1:
        places = ", ".join(dict.fromkeys(hosts[rank] for rank in pids))
        return f"{ranks_in_words(list(pids))} on {places} are gone: their processes {_GONE}"
    ((rank, pid),) = pids.items()
    return f"{rank_on_host(rank, hosts)} is gone: its process {pid} {_GONE}"


_GONE = (
    "ended without a report: killed (by the system if memory ran out), crashed in native code, or "
    "ended by os._exit"
)


def describe_left(
    rank: int, count: int, code: Any, waiting: Mapping[int, str], hosts: Sequence[str]
) -> str:
    """Return the message for a rank whose script ended while others need it."""
    ended = "ended its script" if not code else f"ended its script with exit code {code}"
    told = f"{rank_on_host(rank, hosts)} {ended} after {count} collectives"
    return f"{told}, and others wait for it: {join_by_text(waiting)}" if waiting else told


def describe_different_collectives(waits: Mapping[int, Failure]) -> str | None:
    """Return the message for ranks that wait in different collectives, which never end.

    Parameters
    ----------
    waits
        What each rank waits in: ``count``, ``doing`` and ``step``, as for :func:`describe_stuck`.

    Returns
    -------
    str or None
        None if ranks whose collectives have the same number wait in the same one.
    """
    for number in sorted({x["count"] for x in waits.values()}):
        there = {rank: x for rank, x in waits.items() if x["count"] == number}
        if len({x["doing"] for x in there.values()}) > 1:
            of = {rank: f" of {x['step']}" if x["step"] else "" for rank, x in there.items()}
            told = join_by_text(
                {rank: f"called {x['doing']}{of[rank]}" for rank, x in there.items()}
            )
            return f"ranks disagree in collective number {number}: {told}"
    return None


def describe_stuck(
    states: Mapping[int, Mapping[str, Any] | None], seconds: float, hosts: Sequence[str]
) -> tuple[str, list[int]] | None:
    """Return which ranks are late for the collective that others wait in; ``None`` if none is.

    Parameters
    ----------
    states
        Each rank's answer to the question where it is: ``count`` (of its collectives), ``doing``
        (the collective it is in, or None), ``step``, ``at`` (the line of its code) and ``left``.
        None for a rank that did not answer.
    seconds
        The longest wait allowed.
    hosts
        The ranks' hosts.

    Returns
    -------
    The message, and the ranks that are late.
    """
    answers = {rank: x for rank, x in states.items() if x is not None}
    most = max((x["count"] for x in answers.values()), default=0)
    waiting = [r for r, x in answers.items() if x["count"] == most and x["doing"]]
    late = [r for r in states if r not in answers or answers[r]["count"] < most]
    if not waiting or (not late and len(waiting) < len(states)):
        return None
    told = describe_different_collectives({rank: answers[rank] for rank in waiting})
    if told is not None:
        return told, []
    first = answers[waiting[0]]
    what = f"for more than {seconds:g} s in {first['doing']}, collective number {most}"
    if first["step"] is not None:
        what += f", of {first['step']}"
    if not late:
        return f"all ranks wait {what}: check the network", []
    those = [_stuck_text(rank, answers.get(rank), hosts) for rank in late]
    wait = "waits" if len(waiting) == 1 else "wait"
    return f"{'; '.join(those)}, while {ranks_in_words(waiting)} {wait} {what}", late


def _stuck_text(rank: int, state: Mapping[str, Any] | None, hosts: Sequence[str]) -> str:
    who = rank_on_host(rank, hosts)
    if state is None:
        return (
            f"{who} is stuck and does not answer: its process is stopped, or runs native code that "
            "holds Python's lock"
        )
    if state["left"]:
        return f"{who} ended its script after {state['count']} collectives"
    where = f"in {state['doing']}, its" if state["doing"] else f"at {state['at']}, after"
    return f"{who} is stuck {where} collective number {state['count']}"
