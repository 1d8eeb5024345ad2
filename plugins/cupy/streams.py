"""Work beside the current stream: copies to a GPU while it computes, and the time of steps.

Steps are measured with the GPU's events, and NVTX ranges show them in NVIDIA's tools.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.extend import Backend, Sender, Stopwatch


class GpuSender(Sender):
    """Copies from pinned memory on a stream that is used for nothing else.

    CuPy reuses memory as soon as Python has released it, so a copy could overwrite an array that
    the GPU still reads. Therefore the stream waits for the work that the GPU had received at the
    last :meth:`mark`, and takes memory from its own pool.
    """

    def __init__(self, backend: Backend, cupy: Any, device: str | None) -> None:
        super().__init__(backend, device)
        self._cupy = cupy
        with self._place():
            self._stream = self._cupy.cuda.Stream(non_blocking=True)
        self._before: Any = None
        #: Pinned memory that may still be read, until the second array after it is taken.
        self._held: list[Any] = []

    def _place(self) -> Any:
        return self._cupy.cuda.Device(int(self.device or 0))

    def send(self, value: Any) -> Any:
        """Start a copy."""
        cuda = self._cupy.cuda
        with self._place():
            pinned = cuda.alloc_pinned_memory(max(1, value.nbytes))
            source = self._host_array(pinned, value)
            with self._stream:
                if self._before is not None:
                    self._stream.wait_event(self._before)
                target = self._cupy.empty(value.shape, dtype=value.dtype)
                target.set(source, stream=self._stream)
            done = cuda.Event(disable_timing=True)
            done.record(self._stream)
        return target, done, source

    def take(self, sent: Any) -> Any:
        """Make the current stream, but not the host, wait for the copy."""
        target, done, source = sent
        with self._place():
            self._cupy.cuda.get_current_stream().wait_event(done)
        self._held = [*self._held[-3:], source]
        return target

    def mark(self) -> None:
        """Mark the work that the GPU has received so far."""
        with self._place():
            self._before = self._cupy.cuda.Event(disable_timing=True)
            self._before.record()

    @staticmethod
    def _host_array(pinned: Any, value: Any) -> Any:
        """Return a copy of a NumPy array in pinned memory."""
        found = np.frombuffer(pinned, value.dtype, value.size).reshape(value.shape)
        found[...] = value
        return found


class GpuStopwatch(Stopwatch):
    """Records an event on the current stream before and after each step, and waits for none.

    Parameters
    ----------
    cupy
        CuPy.
    """

    clock = "GPU"

    def __init__(self, cupy: Any) -> None:
        self._cuda = cupy.cuda
        self._nvtx = getattr(cupy.cuda, "nvtx", None)
        #: The last event on each device, by the device's number.
        self._last: dict[int, Any] = {}

    def start(self, name: str) -> Any:
        """Begin an NVTX range, and record an event."""
        if self._nvtx is not None:
            self._nvtx.RangePush(name)
        return self._moment()

    def stop(self, result: Any) -> Any:
        """Record an event, and end the NVTX range."""
        moment = self._moment()
        if self._nvtx is not None:
            self._nvtx.RangePop()
        return moment

    def settle(self) -> None:
        """Wait for the last event of each device."""
        for event in self._last.values():
            event.synchronize()

    def seconds(self, start: Any, stop: Any) -> float:
        """Return the seconds between two events; 0 if they are on two devices."""
        if start[0] != stop[0]:
            return 0.0
        return float(self._cuda.get_elapsed_time(start[1], stop[1])) / 1e3

    def _moment(self) -> tuple[int, Any]:
        device = int(self._cuda.runtime.getDevice())
        event = self._cuda.Event()
        event.record()
        self._last[device] = event
        return device, event
