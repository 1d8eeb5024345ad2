"""``gradtape train``: run a script on every rank of a job."""

from __future__ import annotations

import argparse
import traceback
from pathlib import Path

from ..core.extend import late

__all__ = ["add_train", "code_of_script"]


def add_train(parser: argparse.ArgumentParser) -> None:
    """Run a script on each rank that mpiexec or srun started, or in one process."""
    parser.description = (
        "Run a Python script like `python SCRIPT ARGUMENT ...`. Under a launcher, for example "
        "`mpiexec -n 4 gradtape train SCRIPT`, each rank uses its share of the cores. A rank that "
        "fails ends the job, and all ranks print the reason."
    )
    parser.add_argument("script", metavar="SCRIPT", help="a Python file")
    parser.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="arguments of the script"
    )
    parser.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> int:
    return code_of_script(options.script, options.arguments)


def code_of_script(script: str, arguments: list[str]) -> int:
    """Run a script and return its exit code; report its errors as Python does, with their lines."""
    if not Path(script).exists():
        raise FileNotFoundError(f"there is no file {script!r}")
    try:
        return int(late("distributed.runner").run_script(script, arguments))
    except Exception as error:
        lines = error.__traceback__
        while lines is not None and lines.tb_frame.f_code.co_filename != script:
            lines = lines.tb_next
        traceback.print_exception(error.with_traceback(lines))
        return 1
