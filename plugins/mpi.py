"""The MPI engine: ranks started by ``mpiexec`` or ``srun``, with arrays in host memory.

mpi4py is imported when a job is joined. The launchers know the variables of the processes that they
start.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..core.errors import BackendUnavailable, DistributedError
from ..core.extend import Communicator, Engine, Launcher, Place, ReusedArrays, hookimpl

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MPICommunicator", "MPIEngine", "gradtape_collectives", "gradtape_launchers"]

INSTALL = 'pip install "gradtape[mpi]"'
LIBRARY = "pip install mpich, or load the module of the cluster's MPI"
Array: TypeAlias = "NDArray[Any]"
#: The memory of results.
_kept = ReusedArrays()
#: The packet of a comparison: the size of its head, which holds the code, and the most bytes of an
#: array, from one rank and from all ranks together.
_HEAD, _ROOM, _ROOMS = 16, 1024, 8192
#: The shared memory of MPICH's ranks on a host. MPICH removes the file only at a normal exit.
SHARED = r" (/dev/shm/mpich_shm_\S+)$"


class MPIEngine(Engine):
    """The engine ``"mpi"``: processes started by an MPI launcher."""

    name = "mpi"

    def unavailable(self) -> str | None:
        """Return what to install if mpi4py or its MPI library is missing. MPI is not started."""
        try:
            _mpi(start=False)
        except BackendUnavailable as error:
            return str(error)
        return None

    def launched(self) -> bool:
        """Return whether the environment holds a launcher's variables."""
        return started() > 1

    def connect(self, **options: Any) -> Communicator:
        """Join ``MPI.COMM_WORLD``.

        Raises
        ------
        BackendUnavailable
            If mpi4py cannot be imported. The message says what to install.
        DistributedError
            If a launcher started several processes, and MPI sees each as a job of its own.
        """
        if options:
            raise TypeError(f"distributed.init: the engine 'mpi' takes no {', '.join(options)}")
        world = _mpi().COMM_WORLD
        if world.Get_size() < started():
            raise DistributedError(
                f"distributed.init: a launcher started {started()} processes, but MPI "
                f"({_library()}) sees {world.Get_size()}: the launcher belongs to another MPI "
                "library. Use the mpiexec of this library, or srun --mpi=pmi2 or --mpi=pmix"
            )
        own = world.Dup()
        _unname_shared_memory(own)
        return MPICommunicator(own, world.Dup())

    def diagnosis(self) -> Sequence[str]:
        """Return the versions of mpi4py and of its library."""
        import mpi4py

        return (f"mpi4py {mpi4py.__version__} with {_library()}",)


class MPICommunicator(Communicator):
    """All ranks of an MPI job.

    Parameters
    ----------
    comm, comparing
        Two of ``MPI.Comm`` that no other code uses. A comparison has one to itself: if ranks run
        different code, it then never receives the message of another collective.
    """

    engine = "mpi"
    watched = True

    def __init__(self, comm: Any, comparing: Any) -> None:
        mpi = _mpi()
        self.comm, self._comparing = comm, comparing
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._ops = {"sum": mpi.SUM, "min": mpi.MIN, "max": mpi.MAX}
        self._sum, self._in_place = mpi.SUM, mpi.IN_PLACE
        self._room = min(_ROOM, _ROOMS // self.size // _HEAD * _HEAD)
        self._packet = np.zeros(_HEAD + self._room, np.uint8)
        self._packets = np.zeros((self.size, self._packet.size), np.uint8)
        self._code, self._codes = self._packet.view(np.int64), self._packets.view(np.int64)[:, 0]
        self._buffers = [self._packet, mpi.BYTE], [self._packets, mpi.BYTE]

    def all_reduce(self, array: Array, reduction: str = "sum") -> Array:
        """Call ``MPI_Allreduce``; ``float16`` is summed in ``float32``."""
        if array.dtype == np.float16:
            return self.all_reduce(array.astype(np.float32), reduction).astype(np.float16)
        out = _kept.empty(array.size, array.dtype).reshape(array.shape)
        self.comm.Allreduce(array, out, self._ops[reduction])
        return out

    def reduce_in_place(self, array: Array) -> None:
        """Call ``MPI_Allreduce`` in place."""
        self.comm.Allreduce(self._in_place, array, self._sum)

    def start_in_place(self, array: Array) -> Callable[[], object]:
        """Start ``MPI_Iallreduce``. The MPI library decides whether it makes progress meanwhile."""
        wait: Callable[[], object] = self.comm.Iallreduce(self._in_place, array, self._sum).Wait
        return wait

    def all_gather(self, array: Array) -> Array:
        """Call ``MPI_Allgather``."""
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
        """Gather the lengths of all ranks' messages, then the messages."""
        found: list[bytes] = self.comm.allgather(message)
        return found

    def compare(self, code: int, array: Array) -> tuple[bool, Array | None]:
        """Gather the codes of all ranks by ``MPI_Allgather``, and small arrays with them.

        Packets have the same length on all ranks, whichever collective each calls. A short packet
        takes hardly longer than the code alone.
        """
        self._code[0] = code
        size = array.nbytes
        carried = 0 < size <= self._room
        if carried:
            self._packet[_HEAD : _HEAD + size] = _bytes(array)
        self._comparing.Allgather(*self._buffers)
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
        """Free the communicators. MPI itself ends with the process."""
        self._comparing.Free()
        self.comm.Free()


def _bytes(array: Array) -> Array:
    """Return an array's memory as bytes, so that MPI can move any dtype."""
    return array.reshape(-1).view(np.uint8)


def _mpi(start: bool = True) -> Any:
    """Return ``mpi4py.MPI``, and start MPI unless ``start`` is false."""
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
    except RuntimeError as error:  # mpi4py's error for a library that it does not find
        why = str(error).splitlines()[0]
        raise BackendUnavailable(
            f"engine 'mpi': mpi4py finds no MPI library ({why}); {LIBRARY}"
        ) from error
    if start and not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    return MPI


def _unname_shared_memory(comm: Any) -> None:
    """Remove the names of the shared memory that all ranks of the host have mapped.

    Mapped memory stays usable without its name, and the system frees it with the last process. With
    its name it would remain after a job is killed.
    """
    comm.Barrier()
    with suppress(OSError):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            found = set(re.findall(SHARED, maps.read(), re.MULTILINE))
        for path in found:
            with suppress(FileNotFoundError):
                os.unlink(path)
    comm.Barrier()


def _library() -> str:
    first = str(_mpi(start=False).Get_library_version()).splitlines()[0]
    return " ".join(first.partition(",")[0].split())


@hookimpl(trylast=True)
def gradtape_collectives() -> list[Engine]:
    """Provide the engine ``"mpi"``."""
    return [MPIEngine()]


# -- launchers -------------------------------------------------------------------------------------


#: The variables of the rank and the number of processes: MPICH and Intel MPI, Open MPI, SLURM.
WORLD = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
#: The same for the processes of one host.
HOST = (
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
)


class MPILauncher(Launcher):
    """``mpiexec``, and the variables that it, SLURM and others set for the processes they start."""

    def place(self, environment: Mapping[str, str]) -> Place | None:
        """Return the place that the variables say."""
        return place(environment)

    def command(self, ranks: int, program: Sequence[str]) -> Sequence[str]:
        """Return a command with the ``mpiexec`` in the folder of Python, or on the path."""
        beside = os.path.dirname(sys.executable)
        import shutil  # for jobs only

        path = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
        if path is None:
            raise BackendUnavailable(
                "no mpiexec was found: pip install mpich, or load the module of the cluster's MPI"
            )
        return [path, "-n", str(ranks), *program]


@hookimpl(trylast=True)
def gradtape_launchers() -> dict[str, Launcher]:
    """Provide the launcher of the engine ``"mpi"``."""
    return {"mpi": MPILauncher()}


def place(environment: Mapping[str, str] = os.environ) -> Place | None:
    """Return this process's place in its job; ``None`` if no launcher started it."""
    world = _pair(WORLD, environment)
    if world is None:
        return None
    local = _pair(HOST, environment) or _of_slurm(environment) or (0, 1)
    return Place(*world, *local)


def started() -> int:
    """Return the number of processes that a launcher started; 1 without a launcher."""
    found = place()
    return 1 if found is None else found.size


def _pair(
    names: tuple[tuple[str, str], ...], environment: Mapping[str, str]
) -> tuple[int, int] | None:
    for rank, size in names:
        values = environment.get(rank, ""), environment.get(size, "")
        if values[0].isdecimal() and values[1].isdecimal():
            return int(values[0]), int(values[1])
    return None


def _of_slurm(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the place on the host from SLURM's list of tasks, such as ``4(x2),3``."""
    rank, node = environment.get("SLURM_LOCALID", ""), environment.get("SLURM_NODEID", "")
    tasks: list[int] = []
    for part in environment.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if found:
            tasks += [int(found[1])] * int(found[2] or 1)
    if not (rank.isdecimal() and node.isdecimal() and int(node) < len(tasks)):
        return None
    return int(rank), tasks[int(node)]
