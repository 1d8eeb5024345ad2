"""``gradtape profile``: run a script, and tell what took time in it."""

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
        help="run a script, and tell what took time by op, kernel, line or layer",
        description="Run a Python script as `python SCRIPT ARGUMENT ...` does, under "
        "gradtape.profile(), and print its table on standard error when it ends.",
    )
    parser.add_argument(
        "--by",
        action="append",
        choices=["op", "kernel", "line", "layer"],
        help="what the rows are; several tables if it is given several times (op)",
    )
    parser.add_argument("--top", metavar="N", type=int, default=20, help="rows (%(default)s)")
    parser.add_argument(
        "--memory", action="store_true", help="measure peaks of host memory too, which is slow"
    )
    parser.add_argument("--json", metavar="FILE", help="write all rows there")
    parser.add_argument(
        "--trace", metavar="FILE", help="write a timeline there, for Perfetto or chrome://tracing"
    )
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER)
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
    """Return the exit code that a script asks for."""
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
