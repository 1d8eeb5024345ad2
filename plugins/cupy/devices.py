"""GPUs: kernels on the GPU of their arrays, copies on a second stream, the time of steps.

Kernels explain when a GPU's memory is full. Steps are measured with the GPU's events, and NVTX
ranges show them in NVIDIA's tools.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ...core.errors import BackendMismatch, OutOfMemory
from ...core.extend import (
    Backend,
    Sender,
    Stopwatch,
    Tensor,
    TensorSpec,
    Variable,
    active_tapes,
    describe,
)

_LARGEST = 3  # the number of kinds of arrays that an error names


def guarded(cupy: Any, kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a kernel in the form that ops call.

    Parameters
    ----------
    cupy
        The module.
    kernel
        A function of its arrays.
    name
        The op's name.
    """
    full = cupy.cuda.memory.OutOfMemoryError
    if cupy.cuda.runtime.getDeviceCount() > 1:
        kernel = _placed(cupy, kernel, name)

    def run(*arrays: Any, **params: Any) -> Any:
        try:
            return kernel(*arrays, **params)
        except full as error:
            raise OutOfMemory(failure_text(cupy, name, arrays, error)) from error

    return run


class Scope:
    """A context where operators run on the GPU of an array, and explain when memory is full."""

    def __init__(self, cupy: Any, array: Any) -> None:
        self._cupy, self._given = cupy, (array.shape, array.dtype)  # and not the array itself
        self._device = array.device if cupy.cuda.runtime.getDeviceCount() > 1 else None

    def __enter__(self) -> None:
        if self._device is not None:
            self._device.__enter__()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self._device is not None:
            self._device.__exit__(kind, error, traceback)
        if isinstance(error, self._cupy.cuda.memory.OutOfMemoryError):
            name = "a gradient or an update"
            raise OutOfMemory(
                failure_text(self._cupy, name, [TensorSpec(*self._given)], error)
            ) from error


def _placed(cupy: Any, kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a kernel that runs on the GPU of its arrays, whatever the current GPU is."""
    current, array_type = cupy.cuda.runtime.getDevice, cupy.ndarray

    def run(*arrays: Any, **params: Any) -> Any:
        devices = {x.device.id for x in arrays if isinstance(x, array_type)}
        if len(devices) > 1:
            several = [f"cupy:{number}" for number in sorted(devices)]
            raise BackendMismatch(
                f"{name}: the inputs are on devices {' and '.join(several)}; "
                f"move one with tensor.to({several[0]!r})"
            )
        if not devices or current() in devices:
            return kernel(*arrays, **params)
        with cupy.cuda.Device(devices.pop()):
            return kernel(*arrays, **params)

    return run


def failure_text(cupy: Any, name: str, arrays: Sequence[Any], error: Exception) -> str:
    """Return the message of an error for an op that has got no memory."""
    given = [describe(x.shape, x.dtype) if hasattr(x, "dtype") else repr(x) for x in arrays]
    pool = cupy.get_default_memory_pool()
    free, total = cupy.cuda.runtime.memGetInfo()
    tapes = len(active_tapes.get())
    recording = f"; {tapes} tape{'s record' if tapes > 1 else ' records'}" if tapes else ""
    return (
        f"{name}: the GPU has no memory left (given {', '.join(given)}): {error}. "
        f"CuPy's pool has {_size(pool.total_bytes())}, {_size(pool.used_bytes())} of it in use; "
        f"of {_size(total)} on the device {_size(free)} are free. {_arrays_text(cupy)}{recording}. "
        "Release tensors and tapes, use smaller batches, or wrap layers in gt.recompute_grad; "
        "cupy.get_default_memory_pool().free_all_blocks() frees what the pool does not use"
    )


def _arrays_text(cupy: Any) -> str:
    """Return a description of the arrays in memory, the largest first."""
    seen: dict[int, Any] = {}
    for holder in gc.get_objects():
        with suppress(Exception):  # objects being created or destroyed lack attributes
            array = holder.array if issubclass(type(holder), (Tensor, Variable)) else holder
            if issubclass(type(array), cupy.ndarray) and array.base is None:
                seen[id(array)] = array
    sizes: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for array in seen.values():
        kind = describe(array.shape, array.dtype)
        sizes[kind] += array.nbytes
        count[kind] += 1
    most = [f"{count[k]} of {k} ({_size(size)})" for k, size in sizes.most_common(_LARGEST)]
    return f"Largest arrays: {', '.join(most)}" if most else "Python holds no arrays there"


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


# -- on a second stream ---------------------------------------------------------------------


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
