"""``gradtape train``: run a script on every rank of a job."""

from __future__ import annotations

import argparse
from typing import Any

from ..distributed.runner import run_script

__all__ = ["add_train"]


def add_train(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser(
        "train",
        help="run a script on each rank that mpiexec or srun started, or in one process",
        description="Run a Python script like `python SCRIPT ARGUMENT ...`. Under a launcher, for "
        "example `mpiexec -n 4 gradtape train SCRIPT`, each rank uses its share of the cores. A "
        "rank that fails ends the job, and all ranks print the reason.",
    )
    parser.add_argument("script", metavar="SCRIPT", help="a Python file")
    parser.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="arguments of the script"
    )
    parser.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> int:
    return run_script(options.script, options.arguments)
