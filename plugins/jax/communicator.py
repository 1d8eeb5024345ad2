"""``JaxCommunicator``: collectives between processes, as small JAX programs."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...core.errors import DistributedError
from ...core.extend import Communicator, ranks_in_words
from .spmd import Replicas

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .joining import Launch

Array: TypeAlias = "NDArray[Any]"
# Longer messages are padded to a power of two, so that few lengths are compiled.
_SHORTEST = 256


class JaxCommunicator(Communicator):
    """The processes of a job, and all their devices.

    Parameters
    ----------
    launch
        How the process joined the job, and the number of devices to use.

    Attributes
    ----------
    local
        The devices of this process.
    mesh
        All devices on the axis ``"data"``, ordered by process.
    everywhere, rows
        Shardings on the mesh: the whole array on each device; the first axis split.
    """

    engine = "jax"
    watched = True

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self.rank, self.size = jax.process_index(), jax.process_count()
        all_devices = self._used(launch.devices)
        self.local = [d for d in all_devices if d.process_index == self.rank]
        self._devices = len(all_devices)
        self.mesh = Mesh(np.array(all_devices), ("data",))
        spec: Any = PartitionSpec  # which JAX gives no types
        self.everywhere = NamedSharding(self.mesh, spec())
        self.rows = NamedSharding(self.mesh, spec("data"))
        firsts = all_devices[:: len(self.local)]
        one_each = Mesh(np.array(firsts), ("data",))
        self._by_process = NamedSharding(one_each, spec("data"))
        self._on_processes = NamedSharding(one_each, spec())

    @property
    def devices(self) -> int:
        """The number of devices of all processes."""
        return self._devices

    def _used(self, wanted: int | None) -> list[Any]:
        """Return the devices of all processes, equally many of each."""
        found: list[list[Any]] = [[] for _ in range(self.size)]
        for device in sorted(jax.devices(), key=lambda d: d.id):
            found[device.process_index].append(device)
        by_count: dict[int, list[int]] = {}
        for rank, devices in enumerate(found):
            by_count.setdefault(len(devices), []).append(rank)
        told = "; ".join(f"{n} on {ranks_in_words(r)}" for n, r in by_count.items())
        if wanted is None and len(by_count) > 1:
            raise DistributedError(
                f"distributed.init: processes need equally many devices: {told}; pass devices= for "
                "the number that each uses"
            )
        if wanted is not None and wanted > min(by_count):
            raise DistributedError(
                f"distributed.init: devices={wanted}, and there are fewer: {told}"
            )
        return [device for devices in found for device in devices[:wanted]]

    # -- between processes -------------------------------------------------------------------------

    def all_reduce(self, array: Array, reduction: str = "sum") -> Array:
        """Reduce by XLA; ``float16`` is summed in ``float32``."""
        if array.dtype == np.float16:
            return self.all_reduce(array.astype(np.float32), reduction).astype(np.float16)
        if array.dtype.kind == "c":
            parts = array.reshape(-1).view(array.real.dtype)
            return self.all_reduce(parts, reduction).view(array.dtype).reshape(array.shape)
        # the first collective of a data-parallel step is the same, so that the two can meet
        if reduction == "max":
            return self.over_devices(array)
        return self._run(reduction, array)

    def over_devices(self, array: Array) -> Array:
        """Return the maximum over all devices; the devices of one process pass the same array."""
        with jax.enable_x64(True):
            given = self.put(array[None], self.rows, (self.devices, *array.shape), repeat=True)
            return np.asarray(_program("max", self.everywhere)(given).addressable_data(0))

    def all_gather(self, array: Array) -> Array:
        """Gather all arrays, as bytes."""
        found = self._run("gather", _bytes(array))
        return found.view(array.dtype).reshape(self.size, *array.shape)

    def broadcast(self, array: Array, root: int = 0) -> Array:
        """Return the root's array: the sum of its bytes and the others' zeros."""
        given = _bytes(array)
        found = self._run("sum", given if self.rank == root else np.zeros_like(given))
        return found.view(array.dtype).reshape(array.shape)

    def reduce_scatter(self, array: Array) -> Array:
        """Return this process's rows of the sum."""
        if array.dtype == np.float16:
            return self.reduce_scatter(array.astype(np.float32)).astype(np.float16)
        if array.dtype.kind == "c":
            parts = array[..., None].view(array.real.dtype)
            return self.reduce_scatter(parts).view(array.dtype)[..., 0]
        return self._run("scatter", array)

    def exchange(self, message: bytes) -> list[bytes]:
        """Gather the lengths of all messages, then the messages, padded to the longest."""
        lengths = self.all_gather(np.array(len(message), np.int64)).tolist()
        longest = max(_SHORTEST, 1 << (max(lengths) - 1).bit_length())
        found = self.all_gather(np.frombuffer(message.ljust(longest, b"\0"), np.uint8))
        return [row[:n].tobytes() for row, n in zip(found, lengths, strict=True)]

    def run_step(self, description: str, run: Callable[[], Any]) -> Any:
        """Run a program of all processes, which waits for each of them."""
        return run()

    def barrier(self) -> None:
        """Gather a byte from every process."""
        self.all_gather(np.zeros(1, np.uint8))

    def abort(self, reason: str, code: int = 1) -> None:
        """End this process. The others notice that its connections are closed."""
        if self.size == 1:
            raise SystemExit(code)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def close(self) -> None:
        """Do nothing: JAX leaves the job when the process ends."""

    def _run(self, name: str, array: Array) -> Array:
        with jax.enable_x64(True):
            given = self.put(array[None], self._by_process, (self.size, *array.shape))
            back = self._by_process if name == "scatter" else self._on_processes
            return np.asarray(_program(name, back)(given).addressable_data(0))

    # -- on devices --------------------------------------------------------------------------------

    def put(
        self,
        array: Any,
        where: Any,
        shape: tuple[int, ...],
        repeat: bool = False,
        alias: bool = True,
    ) -> jax.Array:
        """Return a global array from this process's part.

        Parameters
        ----------
        array
            This process's rows, in host memory or on a device; for a replicated sharding the whole
            array.
        where
            The sharding of the global array.
        shape
            The shape of the global array.
        repeat
            Whether each device of this process gets the whole ``array``.
        alias
            Whether CPU devices may use the memory of ``array``.
        """
        devices = sorted(where.addressable_devices, key=lambda d: d.id)
        if repeat or where.is_fully_replicated:
            parts = [array] * len(devices)
        else:
            rows = len(array) // len(devices)
            parts = [array[i * rows : (i + 1) * rows] for i in range(len(devices))]
        placed = jax.device_put(parts, devices, may_alias=alias)
        return jax.make_array_from_single_device_arrays(shape, where, placed)

    def place(self, array: Any, where: Any, total: int, whole: bool) -> jax.Array:
        """Return an argument on all devices.

        Parameters
        ----------
        array
            This process's rows, or the whole array.
        where
            ``everywhere`` or ``rows``.
        total
            The number of rows of all processes.
        whole
            Whether ``array`` has the rows of all processes.
        """
        shape = array.shape if where is self.everywhere else (total, *array.shape[1:])
        first = 0 if whole or where is self.everywhere else self.rank * (total // self.size)
        if not isinstance(array, np.ndarray):
            if whole and where is self.rows:
                rows = total // self.size
                array = array[self.rank * rows : (self.rank + 1) * rows]
            return self.put(array, where, shape)

        def part(index: Any) -> Any:
            if where.is_fully_replicated:
                return array
            return array[index[0].start - first : index[0].stop - first]

        # device_put(array, where) would return a 32-bit copy that JAX made of this array before
        return jax.make_array_from_callback(shape, where, part)

    def on_first(self, parts: list[Any]) -> jax.Array:
        """Return the concatenation of arrays on this process's first device."""
        return jnp.concatenate(jax.device_put(parts, self.local[0]))

    def ticket(self, code: int) -> jax.Array:
        """Return a number that a program compares between all processes before anything else.

        Its last bit is not compared. The program returns whether a process has set it.
        """
        with jax.enable_x64(True):
            return self.put(
                np.array([[code, -(code & ~1)]]), self.rows, (self.devices, 2), repeat=True
            )

    @functools.cached_property
    def replicas(self) -> Replicas:
        """The variables that are on all devices."""
        return Replicas(self)

    def parallel(self, step: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
        """Return the step as one program over the whole batch."""
        from .steps import XlaStep

        return XlaStep(self, step, **options)


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@functools.cache
def _program(name: str, where: Any) -> Any:
    return jax.jit(_REDUCTIONS[name], out_shardings=where)


def _sum(x: Any) -> Any:
    return jnp.sum(x, axis=0, dtype=x.dtype)


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "scatter": _sum,
    "gather": lambda x: x,
    "max": lambda x: jnp.max(x, axis=0),
    "min": lambda x: jnp.min(x, axis=0),
}
