"""``gradtape inspect | verify | diff``: what files hold, prove, and have that others have not."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ..saving import diff, inspect, verify

__all__ = ["add_commands"]

_SAFE = "Nothing of the file is run."


def add_commands(commands: Any) -> None:
    """Add the commands about files to a parser."""
    shown = commands.add_parser(
        "inspect",
        help="show what a saved file holds; runs nothing of it",
        description="Show what a saved file holds: layers, shapes, functions, custom gradients, "
        f"plugins, sizes. {_SAFE}",
    )
    shown.add_argument("file", metavar="FILE")
    shown.add_argument(
        "--graph",
        metavar="NAME",
        help="list the graph of a function, as model.__call__, or of one trace: model.__call__#2",
    )
    shown.add_argument("--svg", metavar="OUT", help="with --graph: draw it into this file instead")
    shown.add_argument("--html", metavar="OUT", help="write a page about the file, without scripts")
    shown.add_argument(
        "--verify",
        action="store_true",
        help="with --html: run the file's functions on its samples, and show the result",
    )
    shown.add_argument("--json", action="store_true", help="print JSON")
    shown.set_defaults(run=_inspect, error=shown.error)

    checked = commands.add_parser(
        "verify",
        help="check a saved file against the values stored in it",
        description="Run the functions of a saved file on the samples in it, and compare outputs "
        "and gradients. This computes whatever the file says.",
    )
    checked.add_argument("file", metavar="FILE")
    checked.add_argument("--backend", metavar="NAME", help="compute there, for instance on cupy")
    checked.add_argument(
        "--max-memory",
        metavar="BYTES",
        type=_limit,
        help="what computing may take; inf for no limit (1 GiB, and 8 times the file's arrays)",
    )
    checked.add_argument(
        "--max-seconds",
        metavar="SECONDS",
        type=_limit,
        default=120.0,
        help="how long all of it may take; inf for no limit (%(default)g)",
    )
    checked.add_argument("--json", action="store_true", help="print JSON")
    checked.set_defaults(run=_verify)

    compared = commands.add_parser(
        "diff",
        help="show what two saved files hold that is not the same; runs nothing of them",
        description="Show what two saved files hold that is not the same: layers, variables, "
        f"graphs, custom gradients, plugins. {_SAFE} The exit code is 0 if they hold the same, 1 "
        "if they differ, 2 if something is wrong.",
    )
    compared.add_argument("a", metavar="A")
    compared.add_argument("b", metavar="B")
    compared.add_argument("--json", action="store_true", help="print JSON")
    compared.set_defaults(run=_diff, failure=2)


def _inspect(options: argparse.Namespace) -> int:
    if options.svg and not options.graph:
        options.error("--svg needs --graph NAME")
    if options.verify and not options.html:
        options.error("--verify needs --html OUT")
    if options.html and options.graph:
        options.error("--html and --graph exclude each other")
    found = inspect(options.file, statistics=bool(options.html))
    if options.svg:
        _write(options.file, options.svg, found.graph_svg(options.graph))
    elif options.graph:
        names = found.graph_json if options.json else found.graph_text
        print(names(options.graph))
    elif options.html:
        report = verify(options.file) if options.verify else None
        _write(options.file, options.html, found.html(report))
        return 0 if report is None or report.ok else 1
    else:
        print(found.json() if options.json else found.table())
    return 0


def _write(source: str, target: str, text: str) -> None:
    if os.path.exists(target) and os.path.samefile(source, target):
        raise ValueError(f"{target} is the file that is inspected; write to another")
    with open(target, "w", encoding="utf-8") as stream:
        stream.write(text)
    print(f"written: {target}")


def _limit(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
    return value


def _verify(options: argparse.Namespace) -> int:
    report = verify(
        options.file,
        backend=options.backend,
        max_memory=options.max_memory,
        max_seconds=options.max_seconds,
    )
    print(report.json() if options.json else report.table())
    return 0 if report.ok else 1


def _diff(options: argparse.Namespace) -> int:
    found = diff(options.a, options.b)
    print(found.json() if options.json else found.table())
    return 1 if found else 0
