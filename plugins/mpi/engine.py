"""The MPI engine: ranks that ``mpiexec`` or ``srun`` started, with arrays in host memory."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BackendUnavailable, DistributedError
from ...core.extend import Communicator, Engine, Kept, hookimpl
from .launchers import started

__all__ = ["MPICommunicator", "MPIEngine", "gradtape_collectives"]

INSTALL = 'pip install "gradtape[mpi]"'
LIBRARY = "pip install mpich, or load the module of the cluster's MPI"
Array = NDArray[Any]
#: What results are put into.
_kept = Kept()
#: What travels with a comparison: a head, the code in it; and how many bytes of an array at most,
#: from one rank and from all together.
_HEAD, _ROOM, _ROOMS = 16, 1024, 8192
#: The memory that MPICH's ranks of a host share. It removes the file at an orderly end alone.
SHARED = re.compile(r" (/dev/shm/mpich_shm_\S+)$", re.MULTILINE)


class MPIEngine(Engine):
    """Processes that a launcher of MPI started."""

    name = "mpi"

    def unavailable(self) -> str | None:
        """Return what to install if mpi4py, or its MPI library, is missing; MPI is not started."""
        try:
            _mpi(start=False)
        except BackendUnavailable as error:
            return str(error)
        return None

    def launched(self) -> bool:
        """Return whether a launcher's variables are in the environment."""
        return started() > 1

    def connect(self, **options: Any) -> Communicator:
        """Join ``MPI.COMM_WORLD``.

        Raises
        ------
        BackendUnavailable
            If mpi4py cannot be imported, with what to install.
        DistributedError
            If a launcher started several processes which MPI takes for jobs of one.
        """
        if options:
            raise TypeError(f"distributed.init: the engine 'mpi' takes no {', '.join(options)}")
        world = _mpi().COMM_WORLD
        if world.Get_size() < started():
            raise DistributedError(
                f"a launcher started {started()} processes, and MPI "
                f"({_library()}) sees {world.Get_size()}: the launcher belongs to another MPI. "
                "Use the mpiexec that came with this one, or srun --mpi=pmi2 or --mpi=pmix"
            )
        own = world.Dup()
        _unname_shared_memory(own)
        return MPICommunicator(own)

    def diagnosis(self) -> Sequence[str]:
        """Return the versions of mpi4py and of its library."""
        import mpi4py

        return (f"mpi4py {mpi4py.__version__} with {_library()}",)


class MPICommunicator(Communicator):
    """All ranks of an MPI job.

    Parameters
    ----------
    comm
        An ``MPI.Comm`` that nobody else uses.
    """

    engine = "mpi"
    watched = True

    def __init__(self, comm: Any) -> None:
        mpi = _mpi()
        self.comm = comm
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._ops = {"sum": mpi.SUM, "min": mpi.MIN, "max": mpi.MAX}
        self._sum, self._in_place = mpi.SUM, mpi.IN_PLACE
        self._room = min(_ROOM, _ROOMS // self.size // _HEAD * _HEAD)
        self._packet = np.zeros(_HEAD + self._room, np.uint8)
        self._packets = np.zeros((self.size, self._packet.size), np.uint8)
        self._code, self._codes = self._packet.view(np.int64), self._packets.view(np.int64)[:, 0]
        self._buffers = [self._packet, mpi.BYTE], [self._packets, mpi.BYTE]

    def all_reduce(self, array: Array, reduction: str = "sum") -> Array:
        """Return ``MPI_Allreduce`` of the arrays; half precision is summed in ``float32``."""
        if array.dtype == np.float16:
            return self.all_reduce(array.astype(np.float32), reduction).astype(np.float16)
        out = _kept.empty(array.size, array.dtype).reshape(array.shape)
        self.comm.Allreduce(array, out, self._ops[reduction])
        return out

    def reduce_in_place(self, array: Array) -> None:
        """Call ``MPI_Allreduce`` with the array as both buffers."""
        self.comm.Allreduce(self._in_place, array, self._sum)

    def start_in_place(self, array: Array) -> Callable[[], object]:
        """Begin ``MPI_Iallreduce``; whether it goes on meanwhile is up to the MPI library."""
        wait: Callable[[], object] = self.comm.Iallreduce(self._in_place, array, self._sum).Wait
        return wait

    def all_gather(self, array: Array) -> Array:
        """Return ``MPI_Allgather`` of the arrays."""
        out = np.empty((self.size, *array.shape), array.dtype)
        self.comm.Allgather(_bytes(array), _bytes(out))
        return out

    def broadcast(self, array: Array, root: int = 0) -> Array:
        """Return the root's array by ``MPI_Bcast``."""
        out = array.copy() if self.rank == root else np.empty_like(array)
        self.comm.Bcast(_bytes(out), root)
        return out

    def reduce_scatter(self, array: Array) -> Array:
        """Return this rank's rows by ``MPI_Reduce_scatter_block``."""
        if array.dtype == np.float16:
            return self.reduce_scatter(array.astype(np.float32)).astype(np.float16)
        out = np.empty((array.shape[0] // self.size, *array.shape[1:]), array.dtype)
        self.comm.Reduce_scatter_block(array, out, self._sum)
        return out

    def exchange(self, message: bytes) -> list[bytes]:
        """Return all ranks' messages: first their lengths are gathered, then they are."""
        found: list[bytes] = self.comm.allgather(message)
        return found

    def compare(self, code: int, array: Array) -> tuple[bool, Array | None]:
        """Gather all ranks' codes by ``MPI_Allgather``, and their arrays with them if small.

        Packets have the same length on all ranks, whatever they call. Up to some hundred bytes cost
        no more than the code alone.
        """
        self._code[0] = code
        size = array.nbytes
        carried = 0 < size <= self._room
        if carried:
            self._packet[_HEAD : _HEAD + size] = _bytes(array)
        self.comm.Allgather(*self._buffers)
        if self._codes.tolist().count(code) != self.size:
            return False, None
        if not carried:
            return True, None
        rows = self._packets[:, _HEAD : _HEAD + size].view(array.dtype)
        return True, rows.reshape(self.size, *array.shape)

    def barrier(self) -> None:
        """Wait in ``MPI_Barrier``."""
        self.comm.Barrier()

    def abort(self, reason: str, code: int = 1) -> None:
        """Call ``MPI_Abort``."""
        self.comm.Abort(code)

    def close(self) -> None:
        """Free the communicator; MPI itself ends with the process."""
        self.comm.Free()


def _bytes(array: Array) -> Array:
    """Return an array's memory as bytes: what is only moved needs no type that MPI knows."""
    return array.reshape(-1).view(np.uint8)


def _mpi(start: bool = True) -> Any:
    """Return ``mpi4py.MPI``, with MPI started if it is to be."""
    try:
        import mpi4py

        if "mpi4py.MPI" not in sys.modules and not start:
            before = mpi4py.rc.initialize, mpi4py.rc.finalize
            mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
            try:
                from mpi4py import MPI
            finally:
                mpi4py.rc.initialize, mpi4py.rc.finalize = before
        from mpi4py import MPI
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "mpi4py":
            reason = f"mpi4py is not installed; {INSTALL}"
        else:
            reason = f"mpi4py cannot be imported ({error}); {INSTALL}"
        raise BackendUnavailable(f"engine 'mpi': {reason}") from error
    except RuntimeError as error:  # its own word for a library that it does not find
        why = str(error).splitlines()[0]
        raise BackendUnavailable(
            f"engine 'mpi': mpi4py finds no MPI library ({why}); {LIBRARY}"
        ) from error
    if start and not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    return MPI


def _unname_shared_memory(comm: Any) -> None:
    """Remove the names of the shared memory that all ranks of the host have mapped by now.

    Mapped memory lives on without its name, and the system frees it with the last process; named,
    it would stay for ever after a job that was killed.
    """
    comm.Barrier()
    with suppress(OSError):
        for path in set(SHARED.findall(Path("/proc/self/maps").read_text())):
            Path(path).unlink(missing_ok=True)
    comm.Barrier()


def _library() -> str:
    first = str(_mpi(start=False).Get_library_version()).splitlines()[0]
    return " ".join(first.partition(",")[0].split())


@hookimpl
def gradtape_collectives() -> list[Engine]:
    """Provide the engine ``"mpi"``."""
    return [MPIEngine()]
