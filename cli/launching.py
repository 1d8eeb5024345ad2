"""Starts ranks for ``gradtape train``, each as the child of a supervisor, with its threads set.

Whatever starts the ranks sees a small process, the supervisor, which runs the rank as its child and
can report how the rank died. The rank's environment is complete when its Python starts. The cores
that a process may use are divided among the ranks of a host.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.errors import UnknownOp
from ..core.extend import (
    PLACE,
    TRAINING,
    Launcher,
    Place,
    cores,
    lazy_module,
    place,
    quota,
    registry,
)
from . import supervisor

#: The variable with the engine that ``init`` takes.
ENGINE = "GRADTAPE_ENGINE"
#: Seconds for the other ranks to end by themselves after one has failed.
PATIENCE = 5.0
#: The variables of the number of BLAS threads. NumPy's first import reads them.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def become_rank(found: Place, script: str, arguments: Sequence[str]) -> None:
    """Become the supervisor of a rank that another program has started; this does not return.

    Parameters
    ----------
    found
        The rank's place.
    script, arguments
        The script to run, and its arguments.
    """
    os.environ.update(_variables(found))
    _become(_supervised(found, script, arguments))


def start(engine: str, ranks: int, script: str, arguments: Sequence[str]) -> int:
    """Start a job on this host by the launcher of an engine, and return its exit code.

    Parameters
    ----------
    engine
        The engine's name.
    ranks
        The number of ranks.
    script, arguments
        The script to run, and its arguments.

    Raises
    ------
    UnknownOp
        If no plugin provides the engine, or a launcher for it.
    BackendUnavailable
        If the launcher's command is missing.
    """
    registry().engine(engine)  # raises, with near names
    launcher = registry().launchers.get(engine)
    if launcher is None:
        known = registry().launchers
        raise UnknownOp(
            f"no plugin provides a launcher for the engine {engine!r} (hook gradtape_launchers)"
            f"; there are: {', '.join(known) or 'none'}. Start its ranks as its documentation "
            f"says, with {ENGINE}={engine}"
        )
    own = {**os.environ, ENGINE: engine}
    program = [sys.executable, *_flags(), "-m", "gradtape", "train", script, *arguments]
    command = launcher.command(ranks, program)
    if command is not None:
        return subprocess.call([*command], env=own)
    return _together(launcher, ranks, script, arguments, own)


def _together(
    launcher: Launcher, ranks: int, script: str, arguments: Sequence[str], own: dict[str, str]
) -> int:
    """Start the ranks of a job, wait for them, and end those that outlive a failure."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for rank, variables in enumerate(launcher.environments(ranks)):
            found = Place(rank, ranks, rank, ranks)
            environment = {**own, **_variables(found), **variables}
            command = _supervised(found, script, arguments)
            started.append(subprocess.Popen(command, env=environment))
        codes = _polled(started)
        while None in codes and not any(codes):
            time.sleep(0.02)
            codes = _polled(started)
        code = next(filter(None, codes), 0)
        until = time.monotonic() + PATIENCE
        while None in codes and time.monotonic() < until:
            time.sleep(0.02)
            codes = _polled(started)
        return code if code >= 0 else 128 - code
    finally:
        for process in started:
            process.terminate()  # which the supervisor forwards to its rank
        for process in started:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


def _polled(started: Sequence[subprocess.Popen[bytes]]) -> list[int | None]:
    """Return the exit codes of processes, None for those that run."""
    return [process.poll() for process in started]


def _variables(found: Place) -> dict[str, str]:
    """Return the variables that a rank finds."""
    return {**threads_to_set(found), TRAINING: "1", PLACE: ",".join(map(str, found))}


def _supervised(found: Place, script: str, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs a rank and its supervisor."""
    ranks = [str(found.rank), str(found.size)]
    runner = ["-m", "gradtape.distributed.runner", script, *arguments]
    isolated = [sys.executable, "-I", "-S", supervisor.__file__]
    return [*isolated, *ranks, sys.executable, *_flags(), *runner]


def _flags() -> list[str]:
    """Return the options of this Python."""
    return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]


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


def add_train(parser: argparse.ArgumentParser) -> None:
    """Run a script on several ranks, or in one process."""
    parser.description = (
        "Run a Python script like `python SCRIPT ARGUMENT ...`. With `--engine NAME --ranks N`, or "
        "under a launcher, for example `mpiexec -n 4 gradtape train SCRIPT`, each rank uses its "
        "share of the cores. A rank that fails ends the job, and all ranks print the reason."
    )
    parser.add_argument(
        "--engine",
        metavar="NAME",
        help="the engine that connects the ranks, such as mpi or jax (default: the environment "
        f"variable {ENGINE})",
    )
    parser.add_argument(
        "--ranks",
        metavar="N",
        type=int,
        help="start this number of ranks on this host, by the launcher of the engine",
    )
    parser.add_argument("script", metavar="SCRIPT", help="a Python file")
    parser.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="arguments of the script"
    )
    parser.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> int:
    engine = options.engine or os.environ.get(ENGINE)
    exists = Path(options.script).exists()  # otherwise the last line says that it does not
    if options.ranks is not None:
        if options.ranks < 1:
            raise ValueError(f"--ranks must be at least 1, got {options.ranks}")
        if engine is None:
            raise ValueError(
                "--ranks needs an engine, whose launcher starts the ranks: add --engine NAME; "
                f"there are launchers for {', '.join(registry().launchers)}"
            )
        if exists:
            return start(engine, options.ranks, options.script, options.arguments)
    if options.engine:
        registry().engine(options.engine)  # raises, with near names
        os.environ[ENGINE] = options.engine
    found = place()
    if found is not None and found.size > 1 and exists:
        become_rank(found, options.script, options.arguments)
    return int(lazy_module("distributed.runner").code_of_script(options.script, options.arguments))
