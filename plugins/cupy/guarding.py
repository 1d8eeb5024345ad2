"""Kernels that run on the GPU of their arrays, and explain when its memory is full."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ...core.errors import BackendMismatch, OutOfMemory
from ...core.extend import Tensor, Variable, active_tapes, describe

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
            raise OutOfMemory(_told(cupy, name, arrays, error)) from error

    return run


class Scope:
    """A context where operators run on the GPU of an array, and explain when memory is full."""

    def __init__(self, cupy: Any, array: Any) -> None:
        self._cupy, self._array = cupy, array
        self._device = array.device if cupy.cuda.runtime.getDeviceCount() > 1 else None

    def __enter__(self) -> None:
        if self._device is not None:
            self._device.__enter__()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self._device is not None:
            self._device.__exit__(kind, error, traceback)
        if isinstance(error, self._cupy.cuda.memory.OutOfMemoryError):
            name = "a gradient or an update"
            raise OutOfMemory(_told(self._cupy, name, [self._array], error)) from error


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


def _told(cupy: Any, name: str, arrays: Sequence[Any], error: Exception) -> str:
    given = [describe(x.shape, x.dtype) if hasattr(x, "dtype") else repr(x) for x in arrays]
    pool = cupy.get_default_memory_pool()
    free, total = cupy.cuda.runtime.memGetInfo()
    tapes = len(active_tapes.get())
    recording = f"; {tapes} tape{'s record' if tapes > 1 else ' records'}" if tapes else ""
    return (
        f"{name}: the GPU has no memory left (given {', '.join(given)}): {error}. "
        f"CuPy's pool has {_size(pool.total_bytes())}, {_size(pool.used_bytes())} of it in use; "
        f"of {_size(total)} on the device {_size(free)} are free. {_held(cupy)}{recording}. "
        "Release tensors and tapes, use smaller batches, or wrap layers in gt.recompute_grad; "
        "cupy.get_default_memory_pool().free_all_blocks() frees what the pool does not use"
    )


def _held(cupy: Any) -> str:
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
