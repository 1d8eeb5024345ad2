"""The commands and their arguments."""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from ..core.errors import PluginError
from ..core.extend import (
    is_strict,
    lazy_module,
    near_names,
    public_package,
    raise_problems,
    registry,
)
from . import HELP
from .plugins import answer_of, check, op_table, plugin_json, plugin_table, quietly
from .templates import KINDS, new_plugin


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments
        The arguments after the program's name.
    """
    try:
        with quietly(), warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            root = parser()
    except KeyboardInterrupt:
        print("gradtape: interrupted", file=sys.stderr)
        return 130
    options = root.parse_args(arguments)
    if options.command is None:
        root.print_help()
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may lack characters
        sys.stdout.reconfigure(errors="backslashreplace")
    reports = getattr(options, "shows_plugins", False)
    try:
        if not reports:
            _refuse_problems()
            for told in noted:
                warnings.warn_explicit(told.message, told.category, told.filename, told.lineno)
        code: int = _function(options)(options) or 0
        if sys.stdout is not None:  # closed by the shell
            sys.stdout.flush()
        if reports:  # which have been shown, all of them
            _refuse_problems()
    except KeyboardInterrupt:
        print("gradtape: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # the reader of the pipe has ended (head, a closed pager): this is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(getattr(options, "code", 0))
    except Exception as error:
        if options.traceback:
            traceback.print_exc()
        else:
            text = " ".join(str(error).split()) or type(error).__name__
            # it may quote text from an untrusted file
            text = "".join(c if c.isprintable() else "?" for c in text)
            print(f"gradtape {options.command}: {text}", file=sys.stderr)
        return getattr(options, "failure", 1)
    return code


def _refuse_problems() -> None:
    """Raise if a plugin has a problem, and the user wants that to be an error."""
    if is_strict():
        raise_problems(registry())


class _Root(argparse.ArgumentParser):
    """The parser of the command line, which says how to get commands that are missing."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, and exit with 2."""
        if message.startswith("argument COMMAND: invalid choice"):
            known = registry()
            given = message.partition("'")[2].partition("'")[0]
            near = near_names(given, {"plugins", "doctor"} | known.commands.keys())
            message += (
                f"{near}. No plugin provides this command; if it is one of gradtape's own, its "
                "package is not in this installation: run pip install --force-reinstall gradtape"
                f"{known.lacking(given)}"
            )
            failed = [x.problem for x in known.plugins if x.problem not in (None, "disabled")]
            message = "; ".join([message, *failed])
        super().error(message)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    root = _Root(
        prog="gradtape",
        description="Automatic differentiation; models saved with their gradients.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action=Version, help="print the version and exit")
    root.add_argument(
        "--traceback", action="store_true", help="print the Python traceback of an error"
    )
    commands = root.add_subparsers(
        dest="command", metavar="COMMAND", parser_class=argparse.ArgumentParser
    )
    known = registry()
    # what shows why others are missing is there even if gradtape's own plugins were not found
    found = {"plugins": add_plugins, "doctor": add_doctor, **known.commands}
    clashes = [(name, told) for (kind, name), told in known.clashes.items() if kind == "command"]
    for name, told in clashes:
        command = commands.add_parser(name, help="not in use: several plugins provide it")
        _refuse(command, told)
    for name, add in found.items():
        if name in commands.choices:
            continue
        command = commands.add_parser(name, help=_help(add))
        command.set_defaults(run=None)
        _, problem = answer_of(partial(add, command))
        if problem:  # one command that fails leaves the others
            message = (
                f"{known.owner('command', name)}: the command {name!r} cannot be used: its "
                f"function raised {problem}"
            )
            commands.choices[name] = _refuse(argparse.ArgumentParser(prog=command.prog), message)
    return root


def _help(add: Callable[..., None]) -> str:
    """Return a command's help: the first line of its function's docstring."""
    line = str(add.__doc__ or "").strip().partition("\n")[0].rstrip(".").replace("%", "%%")
    return line[:1].lower() + line[1:] if line[1:2].islower() else line


def _refuse(command: argparse.ArgumentParser, message: str) -> argparse.ArgumentParser:
    """Let a command raise an error, whatever its arguments."""

    def run(options: argparse.Namespace) -> int:
        raise PluginError(message)

    command.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    command.set_defaults(run=run)
    return command


def _function(options: argparse.Namespace) -> Callable[[argparse.Namespace], int | None]:
    run: Any = options.run
    if not callable(run):
        raise PluginError(
            f"{registry().owner('command', options.command)}: the command {options.command!r} set "
            "no function: call parser.set_defaults(run=function)"
        )
    found: Callable[[argparse.Namespace], int | None] = run
    return found


# -- the commands about plugins and the installation, and the demo -----------------------------


def add_plugins(plugins: argparse.ArgumentParser) -> None:
    """List the installed plugins."""
    plugins.description = (
        "List the installed plugins, what each provides, and why any cannot be used."
    )
    plugins.add_argument(
        "--ops",
        action="store_true",
        help="list every op instead, with the plugins that provide its kernel and gradient",
    )
    plugins.add_argument(
        "--check",
        metavar="NAME",
        help="check everything that a plugin provides, and exit with 1 if anything is wrong",
    )
    plugins.add_argument("--json", action="store_true", help="print JSON")
    plugins.set_defaults(run=_plugins, shows_plugins=True)


def add_plugin(plugin: argparse.ArgumentParser) -> None:
    """Create your own plugin."""
    plugin.description = "Create your own plugin."
    steps = plugin.add_subparsers(dest="step", metavar="new", required=True)
    new = steps.add_parser(
        "new",
        help="create a distribution with a plugin, tests that pass and a workflow that runs them",
        description="Create a distribution with a plugin, tests that pass and a workflow that "
        "runs them.",
    )
    new.add_argument("name", metavar="NAME", help="name of the distribution, such as my-ops")
    new.add_argument(
        "--kind", choices=KINDS, default="op", help="what it provides (default: %(default)s)"
    )
    new.add_argument(
        "--out",
        metavar="DIR",
        default=".",
        help="create the folder NAME in this folder (default: %(default)s)",
    )
    new.set_defaults(run=_new_plugin)


def add_doctor(doctor: argparse.ArgumentParser) -> None:
    """Report versions, backends, cores and threads, and suggest improvements."""
    doctor.description = (
        "Report the versions, cores, threads, backends and executors, measure the cost of threads, "
        "and suggest improvements. Nothing is changed."
    )
    doctor.add_argument(
        "--no-measure",
        action="store_true",
        help="skip timing a matrix product (or collectives), which takes about two seconds",
    )
    doctor.add_argument(
        "--distributed",
        action="store_true",
        help="show whether several ranks can train together; under mpiexec or srun, test them",
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(run=_doctor, shows_plugins=True)


def add_demo(digits: argparse.ArgumentParser) -> None:
    """Train a model on handwritten digits, save and verify it."""
    digits.description = (
        "Train a model on handwritten digits, save it, verify the file in a new process, and draw "
        "the training curves."
    )
    digits.add_argument(
        "--out", metavar="DIR", default="demo-out", help="output folder (default: %(default)s)"
    )
    digits.add_argument(
        "--epochs",
        metavar="N",
        type=_count,
        default=100,
        help="maximum number of epochs (default: %(default)s)",
    )
    digits.add_argument(
        "--seed", metavar="N", type=_seed, default=0, help="random seed (default: %(default)s)"
    )
    digits.set_defaults(run=_demo)


class Version(argparse.Action):
    """``--version``: prints the version of the code, whatever metadata is installed."""

    def __init__(self, option_strings: Sequence[str], dest: str, **rest: object) -> None:
        super().__init__(option_strings, dest, nargs=0, help=str(rest.get("help")))

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        """Print the version and exit."""
        print(f"gradtape {public_package().__version__}")
        parser.exit()


def _count(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, got {text}")


def _seed(text: str) -> int:
    if text.isdecimal() and int(text) < 2**63:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2**63 - 1, got {text}")


def _plugins(options: argparse.Namespace) -> int:
    if options.check is not None:
        return check(options.check, options.json)
    if options.json:
        print(plugin_json(ops=options.ops))
    else:
        print(op_table() if options.ops else plugin_table())
    return 0


def _new_plugin(options: argparse.Namespace) -> int:
    written = new_plugin(options.name, options.out, options.kind)
    print("\n".join(["wrote", *(f"  {path}" for path in written)]))
    print(f'now: cd {written[0].parent}; pip install -e ".[test]"; pytest')
    return 0


def _doctor(options: argparse.Namespace) -> int:
    if options.distributed:
        told = lazy_module("cli.doctor_distributed").launcher_report
        text, code = told(options.json, measure=not options.no_measure)
        print(text, end="\n" if text else "")
        return int(code)
    doctor = lazy_module("cli.doctor")
    told = doctor.doctor_json if options.json else doctor.doctor_text
    print(told(measure=not options.no_measure))
    return 0


def _demo(options: argparse.Namespace) -> int:
    run = lazy_module("cli.demo").run
    return int(run(options.out, epochs=options.epochs, seed=options.seed))
