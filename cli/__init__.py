"""The command line: ``gradtape plugins | plugin new | doctor | profile | train | demo | ...``.

Errors are reported in one line on standard error. The exit code is 0 for success, 1 for a failure,
2 for wrong arguments and 130 for Ctrl-C. For ``diff``, 1 means that the files differ and 2 means a
failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..core.errors import PluginError

__all__ = ["main"]

#: The environment variable that each option adds to.
_VARIABLES = {
    "--plugin": "GRADTAPE_PLUGIN_MODULES",
    "--disable-plugin": "GRADTAPE_DISABLE_PLUGINS",
}
#: What the help says about the options.
HELP = """\
every command takes:
  --plugin MODULE[:OBJECT]
                        register a module, or an object in it, as a plugin
  --disable-plugin NAME
                        disable a plugin: NAME or DISTRIBUTION:NAME
These stand before the name of a script, whose own arguments follow it."""


def split(arguments: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the arguments without the options about plugins, and these by their variables.

    What follows a Python script, or ``--``, is left as it is.

    Parameters
    ----------
    arguments
        The arguments of the command line.

    Raises
    ------
    PluginError
        If an option has no value.
    """
    rest: list[str] = []
    chosen: dict[str, list[str]] = {}
    given = iter(arguments)
    for argument in given:
        option, equals, value = argument.partition("=")
        if option in _VARIABLES:
            value = value if equals else next(given, "")
            if not value or value.startswith("-"):
                raise PluginError(f"{option} needs a value")
            chosen.setdefault(_VARIABLES[option], []).append(value)
            continue
        rest.append(argument)
        if argument == "--" or argument.endswith(".py"):
            return [*rest, *given], chosen
    return rest, chosen


@contextmanager
def choosing(chosen: dict[str, list[str]]) -> Iterator[None]:
    """Use and disable plugins in a block, as options say.

    Parameters
    ----------
    chosen
        By environment variable, the names to add to it.

    Yields
    ------
    None
    """
    before = {variable: os.environ.get(variable) for variable in chosen}
    for variable, names in chosen.items():
        os.environ[variable] = ",".join([os.environ.get(variable, ""), *names]).strip(",")
    try:
        _forget(chosen)
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                del os.environ[variable]
            else:
                os.environ[variable] = value
        _forget(chosen)


def _forget(chosen: dict[str, list[str]]) -> None:
    """Have plugins discovered again, if they were already."""
    host = sys.modules.get(f"{__name__.partition('.')[0]}.core.registry.host")
    if chosen and host is not None:
        host.HOST.forget()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        The arguments after the program's name. ``sys.argv[1:]`` by default.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        given, chosen = split(given)
    except PluginError as error:
        print(f"gradtape: {error}", file=sys.stderr)
        return 2
    with choosing(chosen):
        from .commands import run

        return run(given)
