"""Reads the environment variables that launchers set for the processes that they start."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["TRAINING", "Place", "place", "started"]

#: Set for ranks started by ``gradtape train``: ``init`` then prints a header.
TRAINING = "GRADTAPE_TRAINING"
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


class Place(NamedTuple):
    """The rank of this process and the number of processes, in the job and on its host."""

    rank: int
    size: int
    local_rank: int
    local_size: int


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
