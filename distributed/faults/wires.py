"""Messages between ranks over TCP, outside the engine: one JSON object per line."""

from __future__ import annotations

import json
import selectors
import socket
import threading
from contextlib import suppress
from typing import Any

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
