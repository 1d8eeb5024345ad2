"""The commands and their arguments."""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence

from ..core.extend import public
from . import demo
from .distributed import add_train
from .doctor import doctor_json, doctor_text
from .doctor_of_ranks import told as of_ranks
from .files import add_commands
from .new_plugin import KINDS, new_plugin
from .plugins import op_table, plugin_json, plugin_table
from .profiling import add_profile
from .tutorial import add_tutorial

__all__ = ["parser", "run"]


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments
        The arguments after the program's name.
    """
    root = parser()
    options = root.parse_args(arguments)
    if options.command is None:
        root.print_help()
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may lack characters
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code: int = options.run(options)
        if sys.stdout is not None:  # closed by the shell
            sys.stdout.flush()
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


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    root = argparse.ArgumentParser(
        prog="gradtape", description="Automatic differentiation; models saved with their gradients."
    )
    root.add_argument("--version", action=Version, help="print the version and exit")
    root.add_argument(
        "--traceback", action="store_true", help="print the Python traceback of an error"
    )
    commands = root.add_subparsers(dest="command", metavar="COMMAND")

    plugins = commands.add_parser(
        "plugins",
        help="list the installed plugins",
        description="List the installed plugins, what each provides, and why any cannot be used.",
    )
    plugins.add_argument(
        "--ops",
        action="store_true",
        help="list every op instead, with the plugins that provide its kernel and gradient",
    )
    plugins.add_argument("--json", action="store_true", help="print JSON")
    plugins.set_defaults(run=_plugins)

    plugin = commands.add_parser(
        "plugin", help="create your own plugin", description="Create your own plugin."
    )
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

    doctor = commands.add_parser(
        "doctor",
        help="report versions, backends, cores and threads, and suggest improvements",
        description="Report the versions, cores, threads, backends and executors, measure the cost "
        "of threads, and suggest improvements. Nothing is changed.",
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
    doctor.set_defaults(run=_doctor)

    add_profile(commands)
    add_train(commands)

    digits = commands.add_parser(
        "demo",
        help="train a model on handwritten digits, save and verify it",
        description="Train a model on handwritten digits, save it, verify the file in a new "
        "process, and draw the training curves.",
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

    add_commands(commands)
    add_tutorial(commands)
    return root


class Version(argparse.Action):
    """``--version``: prints the version of the code, whatever metadata is installed."""

    def __init__(self, option_strings: Sequence[str], dest: str, **rest: object) -> None:
        super().__init__(option_strings, dest, nargs=0, help=str(rest.get("help")))

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        """Print the version and exit."""
        print(f"gradtape {public('__version__')}")
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
        text, code = of_ranks(options.json, measure=not options.no_measure)
        print(text, end="\n" if text else "")
        return code
    told = doctor_json if options.json else doctor_text
    print(told(measure=not options.no_measure))
    return 0


def _demo(options: argparse.Namespace) -> int:
    return demo.run(options.out, epochs=options.epochs, seed=options.seed)
