"""``gradtape train``: run a script on every rank of a job."""

from __future__ import annotations

import argparse
from typing import Any

from ..distributed.runner import run_script

__all__ = ["add_train"]


def add_train(commands: Any) -> None:
    """Add the command to those of a parser."""
    parser = commands.add_parser(
        "train",
        help="run a script on each rank started by mpiexec or srun, or in one process",
        description="Run a Python script as `python SCRIPT ARGUMENT ...` does. Under a launcher, "
        "as in `mpiexec -n 4 gradtape train SCRIPT`, each rank uses its share of the cores. A rank "
        "that fails ends the job and reports the reason.",
    )
    parser.add_argument("script", metavar="SCRIPT", help="the Python file to run")
    parser.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="arguments of the script"
    )
    parser.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> int:
    return run_script(options.script, options.arguments)
