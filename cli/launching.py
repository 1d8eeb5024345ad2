"""Sets up a supervisor and threads for ``gradtape train`` under a launcher, before imports.

The launcher sees a small process, the supervisor, which runs the rank as its child and can report
how the rank died. The rank's environment is complete when its Python starts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from ..plugins.mpi.launchers import TRAINING, Place, place
from . import supervisor
from .cores import cores, quota

__all__ = ["THREADS", "share_of_cores", "start_rank", "threads_to_set"]

#: The variables of the number of BLAS threads. NumPy's first import reads them.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def start_rank(arguments: Sequence[str]) -> None:
    """Become the supervisor of a rank if the command is ``train`` and a launcher started several.

    In that case this does not return.

    Parameters
    ----------
    arguments
        The arguments of the command line. If they name no script, the command reports it.
    """
    found = place()
    if found is None or found.size == 1 or list(arguments[:1]) != ["train"]:
        return
    script = arguments[1] if len(arguments) > 1 else "-"
    if script.startswith("-") or not os.path.exists(script):
        return
    os.environ.update(threads_to_set(found))
    os.environ[TRAINING] = "1"
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    ranks = [str(found.rank), str(found.size)]
    runner = ["-m", "gradtape.distributed.runner", *arguments[1:]]
    _become(
        [sys.executable, "-I", "-S", supervisor.__file__, *ranks, sys.executable, *flags, *runner]
    )


def threads_to_set(found: Place, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return variables that limit BLAS to this rank's cores; none if the user has set any."""
    if any(environment.get(name) for name in THREADS):
        return {}
    return dict.fromkeys(THREADS, str(share_of_cores(found.local_size, environment)))


def share_of_cores(ranks: int, environment: Mapping[str, str] = os.environ) -> int:
    """Return the number of cores for each of the host's ranks.

    A launcher may bind a rank to cores, its own or shared ones. The share is at most the number of
    these cores, and at most a fair part of the cores of the launcher's own process.
    """
    told = environment.get("SLURM_CPUS_PER_TASK", "")
    mine = len(cores())
    if told.isdecimal():
        return max(1, min(int(told), mine))
    whole = max(mine, len(cores(os.getppid())))
    bound = quota()
    if bound is not None:
        whole = min(whole, max(1, int(bound)))
    return max(1, min(mine, whole // ranks))


def _become(command: list[str]) -> None:
    """Replace this program by another, in the same process if the system allows it."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "nt":
        sys.exit(subprocess.call(command, close_fds=False))
    os.execv(command[0], command)
