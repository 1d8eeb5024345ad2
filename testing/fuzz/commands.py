"""The command line of the fuzzers: a subcommand each, with the options that all of them take."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

__all__ = ["COMMANDS", "Clock", "main"]

#: Subcommands: the module that has ``add_arguments(parser)`` and ``run(options) -> int``, and what
#: ``--help`` says. ``run`` returns 1 if it found something that is not explained, else 0.
COMMANDS = {
    "files": ("files", "saved files, changed, against a crash, a hang or other values"),
    "numpy": ("numpy_calls", "calls of functions with a NumPy namesake, against NumPy"),
    "programs": ("programs", "programs of several ops, against differences, in every mode"),
    "traps": ("traps", "ways of using gradtape that must be right, or an error in words"),
}
NEED_SCIPY = ("programs", "traps")


class Clock:
    """How long to go on: ``seconds`` of wall time or ``count`` cases, whichever comes first.

    Parameters
    ----------
    seconds
        Wall time; ``None`` for as long as it takes.
    count
        Number of cases; ``None`` for as many as there is time for.
    """

    def __init__(self, seconds: float | None = None, count: int | None = None) -> None:
        self.count = count
        self.start = time.monotonic()
        self.end = None if seconds is None else self.start + seconds

    def runs(self, done: int) -> bool:
        """Return whether there is time for another case after ``done`` of them."""
        if self.count is not None and done >= self.count:
            return False
        return self.end is None or time.monotonic() < self.end

    @property
    def elapsed(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self.start


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a fuzzer and return its exit code: 1 if something unexplained was found.

    Parameters
    ----------
    arguments
        What follows the program's name; ``sys.argv[1:]`` by default.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser(given[0] if given else "").parse_args(given)
    if options.command in NEED_SCIPY and find_spec("scipy") is None:
        print(
            f"fuzz {options.command}: some ops it draws have kernels from SciPy, which is not "
            'installed; pip install "gradtape[scipy]"',
            file=sys.stderr,
        )
        return 2
    try:
        code: int = options.run(options)
    except KeyboardInterrupt:
        print("fuzz: interrupted", file=sys.stderr)
        return 130
    return code


def _parser(command: str) -> argparse.ArgumentParser:
    """Return the parser, with the arguments of one subcommand: only its module is imported."""
    root = argparse.ArgumentParser(
        prog="python -m gradtape.testing.fuzz",
        description="Look for values, errors and gradients that are wrong.",
    )
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, text) in COMMANDS.items():
        one = commands.add_parser(name, help=text, description=text)
        one.add_argument("--seed", metavar="S", type=int, default=0, help="(%(default)s)")
        one.add_argument("--seconds", metavar="N", type=float, help="stop after so long")
        if name == command:
            fuzzer = import_module(f".{module}", __package__)
            fuzzer.add_arguments(one)
            one.set_defaults(run=fuzzer.run)
    return root
