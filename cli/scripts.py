"""``gradtape train``: run a script on every rank of a job, or in one process."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ..core.extend import late, place, registry
from .launching import ENGINE, become_rank, start


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
    return int(late("distributed.runner").code_of_script(options.script, options.arguments))
