"""Streams, events, pinned memory and NVTX ranges of a pretend CUDA, which say what they are told.

Work is done at once, whatever stream it is given to.
"""

from __future__ import annotations

import threading
import types
from typing import Any

__all__ = ["Timeline"]


class _Here(threading.local):
    """A thread's current streams, the innermost last."""

    def __init__(self) -> None:
        self.streams: list[Any] = []


class Timeline:
    """What happens on the streams of a pretend library; each event is a millisecond later.

    Attributes
    ----------
    said
        Which stream copied, and which waited for which.
    names, ranges
        The NVTX ranges that began, and those that are open.
    waits
        How often the host waited for an event.
    """

    def __init__(self) -> None:
        self.said: list[str] = []
        self.names: list[str] = []
        self.ranges: list[str] = []
        self.waits = self._now = 0
        here = _Here()
        timeline = self

        class Stream:
            def __init__(
                self, null: bool = False, non_blocking: bool = False, ptds: bool = False
            ) -> None:
                self.name = "copies" if non_blocking else "main"
                self.ptr = 0 if null else 2 if ptds else id(self)

            def __enter__(self) -> Stream:
                here.streams.append(self)
                return self

            def __exit__(self, *error: object) -> None:
                here.streams.pop()

            def wait_event(self, event: Any) -> None:
                timeline.said.append(f"{self.name} waits for {event.of}")

        class Event:
            def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
                self.timed = not disable_timing

            def record(self, stream: Any = None) -> None:
                self.of = (stream or timeline.stream()).name
                timeline._now += 1
                self.at = timeline._now

            def synchronize(self) -> None:
                timeline.waits += 1

        main = Stream(null=True)
        self.stream = lambda: here.streams[-1] if here.streams else main
        self.names_of_cuda = {
            "Stream": Stream,
            "Event": Event,
            "get_current_stream": lambda device_id=-1: self.stream(),
            "get_elapsed_time": self._between,
            "alloc_pinned_memory": bytearray,
            "nvtx": types.SimpleNamespace(RangePush=self._push, RangePop=self.ranges.pop),
        }

    def _between(self, start: Any, end: Any) -> float:
        assert start.timed
        assert end.timed
        return float(end.at - start.at)

    def _push(self, name: str) -> None:
        self.ranges.append(name)
        self.names.append(name)

    def copies(self, stream: Any) -> None:
        """Note that a stream copies to the device."""
        self.said.append(f"{(stream or self.stream()).name} copies")
