"""``gradtape train | profile``: run a script, on every rank of a job or measured."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from pathlib import Path
from typing import Any

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


# -- gradtape profile ------------------------------------------------------------------------------


def add_profile(parser: argparse.ArgumentParser) -> None:
    """Run a script and show its time by op, kernel, line or layer."""
    parser.description = (
        "Run a Python script as `python SCRIPT ARGUMENT ...` does, under gradtape.profile(), and "
        "print the table of times on standard error at the end."
    )
    parser.add_argument(
        "--by",
        action="append",
        choices=["op", "kernel", "line", "layer"],
        help="the rows of the table (default: op); repeat it for several tables",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=int,
        default=20,
        help="maximum number of rows (default: %(default)s)",
    )
    parser.add_argument(
        "--memory", action="store_true", help="measure peaks of host memory too, which is slow"
    )
    parser.add_argument("--json", metavar="FILE", help="write all rows to this file as JSON")
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="write a timeline to this file, for Perfetto or chrome://tracing",
    )
    parser.add_argument("script", metavar="SCRIPT", help="the Python file to run")
    parser.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="arguments of the script"
    )
    parser.set_defaults(run=_profile)


def _profile(options: argparse.Namespace) -> int:
    found = late("profiler.profile").profile(memory=options.memory)
    try:
        with found:
            return code_of_script(options.script, options.arguments)
    finally:
        if Path(options.script).exists():
            _tell(found, options)


def _tell(found: Any, options: argparse.Namespace) -> None:
    for by in options.by or ["op"]:
        print(found.table(by, options.top), end="\n\n", file=sys.stderr)
    if options.json:
        found.to_json(options.json)
    if options.trace:
        found.to_trace(options.trace)
