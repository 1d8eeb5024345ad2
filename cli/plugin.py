"""The commands that ship with gradtape, as a plugin, and what `gradtape doctor` lists for all.

Their modules are light: what a command computes with is imported when it runs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ..core.extend import VARIABLES, hookimpl, lazy_module
from .commands import add_demo, add_doctor, add_plugin, add_plugins
from .launching import add_train
from .tutorial import add_tutorial


@hookimpl(trylast=True)
def gradtape_commands() -> dict[str, Callable[[argparse.ArgumentParser], None]]:
    """Provide the commands, in the order of ``gradtape --help``."""
    return {
        "plugins": add_plugins,
        "plugin": add_plugin,
        "doctor": add_doctor,
        "train": add_train,
        "demo": add_demo,
        "inspect": add_inspect,
        "verify": add_verify,
        "diff": add_diff,
        "tutorial": add_tutorial,
    }


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], Mapping[str, Any]]]:
    """List libraries and settings that belong to no other plugin."""
    # also libraries of packages that would be slow to import for the report
    packages = {"pluggy": "pluggy", "matplotlib": "matplotlib", "sklearn": "scikit-learn"}
    return {"gradtape": lambda: {"packages": packages, "variables": list(VARIABLES)}}


_SAFE = "Nothing in a file is run."


def add_inspect(shown: argparse.ArgumentParser) -> None:
    """Show the contents of a saved file, without running anything in it."""
    shown.description = (
        "Show the contents of a saved file: layers, shapes, functions, custom gradients, plugins, "
        f"sizes. {_SAFE}"
    )
    shown.add_argument("file", metavar="FILE", help="the saved file")
    shown.add_argument(
        "--graph",
        metavar="NAME",
        help="list the graph of a function, such as model.__call__, or of one trace, such as "
        "model.__call__#2",
    )
    shown.add_argument(
        "--svg", metavar="OUT", help="with --graph: draw the graph into this file instead"
    )
    shown.add_argument(
        "--html", metavar="OUT", help="write an HTML page about the file, without scripts"
    )
    shown.add_argument(
        "--verify",
        action="store_true",
        help="with --html: run the file's functions on its samples and show the result",
    )
    shown.add_argument("--json", action="store_true", help="print JSON")
    shown.set_defaults(run=_inspect, error=shown.error)


def add_verify(checked: argparse.ArgumentParser) -> None:
    """Run a saved file's functions and compare the results with those stored in it."""
    checked.description = (
        "Run the functions of a saved file on the samples in it, and compare outputs and gradients "
        "with the stored ones. This runs the computations in the file, within limits of memory and "
        "time."
    )
    checked.add_argument("file", metavar="FILE", help="the saved file")
    checked.add_argument(
        "--backend", metavar="NAME", help="the backend to compute on, such as cupy"
    )
    checked.add_argument(
        "--max-memory",
        metavar="BYTES",
        type=_limit,
        help="maximum memory of the computations; inf for no limit (default: 1 GiB plus 8 times "
        "the size of the file's arrays)",
    )
    checked.add_argument(
        "--max-seconds",
        metavar="SECONDS",
        type=_limit,
        default=120.0,
        help="maximum time in total; inf for no limit (default: %(default)g)",
    )
    checked.add_argument("--json", action="store_true", help="print JSON")
    checked.set_defaults(run=_verify)


def add_diff(compared: argparse.ArgumentParser) -> None:
    """Show the differences between two saved files, without running anything in them."""
    compared.description = (
        "Show the differences between two saved files: layers, variables, graphs, custom "
        f"gradients, plugins. {_SAFE} The exit code is 0 if the contents are the same, 1 if they "
        "differ, and 2 for an error."
    )
    compared.add_argument("a", metavar="A", help="a saved file")
    compared.add_argument("b", metavar="B", help="the file to compare it with")
    compared.add_argument("--json", action="store_true", help="print JSON")
    compared.set_defaults(run=_diff, failure=2)


def _inspect(options: argparse.Namespace) -> int:
    if options.svg and not options.graph:
        options.error("--svg needs --graph NAME")
    if options.verify and not options.html:
        options.error("--verify needs --html OUT")
    if options.html and options.graph:
        options.error("--html and --graph cannot be combined; pass one of them")
    saving = lazy_module("saving")
    found = saving.inspect(options.file, statistics=bool(options.html))
    if options.svg:
        _write(options.file, options.svg, found.graph_svg(options.graph))
    elif options.graph:
        names = found.graph_json if options.json else found.graph_text
        print(names(options.graph))
    elif options.html:
        report = saving.verify(options.file) if options.verify else None
        _write(options.file, options.html, found.html(report))
        return 0 if report is None or report.ok else 1
    else:
        print(found.json() if options.json else found.table())
    return 0


def _write(source: str, target: str, text: str) -> None:
    if os.path.exists(target) and os.path.samefile(source, target):
        raise ValueError(f"{target} is the file being inspected; write to another file")
    with open(target, "w", encoding="utf-8") as stream:
        stream.write(text)
    print(f"written: {target}")


def _limit(text: str) -> float:
    with suppress(ValueError):
        if (value := float(text)) > 0:
            return value
    raise argparse.ArgumentTypeError(f"must be a number greater than 0, such as 1e9, got {text!r}")


def _verify(options: argparse.Namespace) -> int:
    report = lazy_module("saving").verify(
        options.file,
        backend=options.backend,
        max_memory=options.max_memory,
        max_seconds=options.max_seconds,
    )
    code = options.code = 0 if report.ok else 1
    print(report.json() if options.json else report.table())
    return code


def _diff(options: argparse.Namespace) -> int:
    found = lazy_module("saving").diff(options.a, options.b)
    code = options.code = 1 if found else 0
    print(found.json() if options.json else found.table())
    return code
