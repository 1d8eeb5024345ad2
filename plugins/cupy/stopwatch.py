"""The time of steps on a GPU, measured with its events, and NVTX ranges for NVIDIA's tools."""

from __future__ import annotations

from typing import Any

from ...core.extend import Stopwatch


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
