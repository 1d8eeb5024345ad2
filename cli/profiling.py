"""``gradtape profile``: run a script and show what took time in it."""

from __future__ import annotations

import argparse
import runpy
import sys
from typing import Any

from ..profiler.profile import Profile, profile

__all__ = ["add_profile"]


def add_profile(commands: Any) -> None:
    """Add the command to those of a parser."""
    parser = commands.add_parser(
        "profile",
        help="run a script and show its time by op, kernel, line or layer",
        description="Run a Python script as `python SCRIPT ARGUMENT ...` does, under "
        "gradtape.profile(), and print the table of times on standard error at the end.",
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
    before = sys.argv
    sys.argv = [options.script, *options.arguments]
    found = profile(memory=options.memory)
    code: int = 0
    try:
        with found:
            runpy.run_path(options.script, run_name="__main__")
    except SystemExit as leaving:
        code = _code(leaving)
    finally:
        sys.argv = before
        _tell(found, options)
    return code


def _code(leaving: SystemExit) -> int:
    """Return the exit code that a script passed to ``sys.exit``."""
    if isinstance(leaving.code, str):
        print(leaving.code, file=sys.stderr)
        return 1
    return leaving.code or 0


def _tell(found: Profile, options: argparse.Namespace) -> None:
    for by in options.by or ["op"]:
        print(found.table(by, options.top), end="\n\n", file=sys.stderr)
    if options.json:
        found.to_json(options.json)
    if options.trace:
        found.to_trace(options.trace)
