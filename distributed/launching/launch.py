"""What ``gradtape train`` does before the script runs: threads, and a process for each rank."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from ...plugins.mpi.launchers import Place, place
from ...plugins.numpy.threads import quota
from . import supervisor
from .runner import run_script

__all__ = ["THREADS", "TRAINING", "share_of_cores", "threads_to_set", "train"]

#: What says how many threads BLAS uses. It is read when NumPy is first imported.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Set for ranks that ``gradtape train`` started: they tell on rank 0 what they are.
TRAINING = "GRADTAPE_TRAINING"


def train(script: str, arguments: list[str]) -> int:
    """Run a script on this rank; alone, if no launcher started several.

    Parameters
    ----------
    script
        Its path.
    arguments
        What it finds in ``sys.argv[1:]``.

    Returns
    -------
    int
        The exit code that it asks for.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    if not Path(script).exists():
        raise FileNotFoundError(f"there is no file {script!r}")
    found = place()
    if found is None or found.size == 1:
        return run_script(script, arguments)
    os.environ.update(threads_to_set(found))
    os.environ[TRAINING] = "1"
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    command = [sys.executable, *flags, "-m", "gradtape.distributed.launching.runner", script]
    _become(
        [
            *(sys.executable, "-I", "-S", supervisor.__file__, str(found.rank), str(found.size)),
            *(*command, *arguments),
        ]
    )


def threads_to_set(found: Place, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what bounds BLAS's threads to this rank's cores; nothing if the user has set any."""
    if any(environment.get(name) for name in THREADS):
        return {}
    return dict.fromkeys(THREADS, str(share_of_cores(found.local_size, environment)))


def share_of_cores(ranks: int, environment: Mapping[str, str] = os.environ) -> int:
    """Return how many cores each of the host's ranks has.

    A launcher may have bound this rank to some cores, or to some that it shares with others: it gets
    no more than it may use, and no more than its part of what the launcher's own process may.
    """
    told = environment.get("SLURM_CPUS_PER_TASK", "")
    mine = _allowed(0)
    if told.isdecimal():
        return max(1, min(int(told), mine))
    whole = max(mine, _allowed(os.getppid()))
    bound = quota()
    if bound is not None:
        whole = min(whole, max(1, int(bound)))
    return max(1, min(mine, whole // ranks))


def _allowed(process: int) -> int:
    try:
        return len(os.sched_getaffinity(process))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def _become(command: list[str]) -> NoReturn:
    """Go on as another program, in the same process where the system allows it."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "nt":
        sys.exit(subprocess.call(command, close_fds=False))
    os.execv(command[0], command)
