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
        help="run a script on each rank that mpiexec or srun started; alone without them",
        description="Run a Python script as `python SCRIPT ARGUMENT ...` does. Under a launcher, "
        "as in `mpiexec -n 4 gradtape train SCRIPT`, each rank computes with its share of the "
        "cores, and a rank that fails ends the job and says why.",
    )
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER)
    parser.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> int:
    return run_script(options.script, options.arguments)
