"""The launchers of MPI: ``mpiexec``, and the variables of the processes that launchers start."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...core.errors import BackendUnavailable
from ...core.extend import Launcher, Place, hookimpl

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
        beside = str(Path(sys.executable).parent)
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
