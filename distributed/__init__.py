"""Train one model on several processes: ranks, collectives and data-parallel steps.

The same script runs alone and under a launcher::

    group = gt.distributed.init()      # one rank, or those started by mpiexec or srun

    @group.data_parallel
    def step(x, y): ...
"""

from __future__ import annotations

from ..plugins.ops.collectives.exchange import (
    all_gather,
    all_reduce,
    barrier,
    broadcast,
    reduce_scatter,
)
from ..public import publish
from .agreement import broadcast_variables
from .group import Group, abort, group, init, shutdown
from .parallel import DataParallel

__all__ = [
    "DataParallel",
    "Group",
    "abort",
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_variables",
    "group",
    "init",
    "reduce_scatter",
    "shutdown",
]

publish(__name__)
