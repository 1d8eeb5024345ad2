"""``gradtape profile``: run a script, and show what takes its time; as a plugin."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from ..core.extend import hookimpl, lazy_module
from .profile import Profile, profile


@hookimpl(trylast=True)
def gradtape_commands() -> dict[str, Callable[[argparse.ArgumentParser], None]]:
    """Provide the command."""
    return {"profile": add_profile}


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
    found = profile(memory=options.memory)
    try:
        with found:
            code_of_script = lazy_module("distributed.runner").code_of_script
            return int(code_of_script(options.script, options.arguments))
    finally:
        if Path(options.script).exists():
            _print_profile(found, options)


def _print_profile(found: Profile, options: argparse.Namespace) -> None:
    for by in options.by or ["op"]:
        print(found.table(by, options.top), end="\n\n", file=sys.stderr)
    if options.json:
        found.to_json(options.json)
    if options.trace:
        found.to_trace(options.trace)
