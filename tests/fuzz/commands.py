"""The command line of the fuzzers: a subcommand for each, and options that all of them share."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

__all__ = ["COMMANDS", "Clock", "main"]

#: Subcommands: the module with ``add_arguments(parser)`` and ``run(options) -> int``, and the text
#: of ``--help``. ``run`` returns 1 if it found something that is not explained, otherwise 0.
COMMANDS = {
    "autograph": ("autograph", "programs of Python statements, compared with their traces"),
    "files": ("files", "changed saved files, checked for crashes, hangs and wrong values"),
    "nestings": ("nestings", "functions that wrap functions, in one another, in every mode"),
    "numpy": ("numpy_calls", "calls of functions with a NumPy namesake, compared with NumPy"),
    "programs": ("programs", "programs of several ops, compared with differences in every mode"),
    "training": ("training", "models, data and callbacks, in ways of training that must agree"),
    "traps": ("traps", "hard points of ops, where gradients must be right or refused"),
}
NEED_SCIPY = ("programs", "traps")


class Clock:
    """The limit of a run: ``seconds`` of wall time or ``count`` cases, whichever comes first.

    Parameters
    ----------
    seconds
        Wall time; ``None`` for no limit.
    count
        The number of cases; ``None`` for no limit.
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
    """Run a fuzzer; return its exit code, which is 1 if it found something unexplained.

    Parameters
    ----------
    arguments
        The arguments of the command line; ``sys.argv[1:]`` by default.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser(given[0] if given else "").parse_args(given)
    if options.command in NEED_SCIPY and find_spec("scipy") is None:
        print(
            f"fuzz {options.command}: some ops that it draws have kernels from SciPy, which is not "
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
    """Return the parser, with the arguments of one subcommand, whose module alone is imported."""
    root = argparse.ArgumentParser(
        prog="python tests/fuzz",
        description="Look for wrong values, errors and gradients.",
    )
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, text) in COMMANDS.items():
        one = commands.add_parser(name, help=text, description=text)
        one.add_argument("--seed", metavar="S", type=int, default=0, help="(%(default)s)")
        one.add_argument("--seconds", metavar="N", type=float, help="stop after N seconds")
        if name == command:
            fuzzer = import_module(f".{module}", __package__)
            fuzzer.add_arguments(one)
            one.set_defaults(run=fuzzer.run)
    return root
