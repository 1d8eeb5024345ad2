"""The command line: ``gradtape plugins | plugin new | doctor | profile | train | demo | ...``.

Errors are reported in one line on standard error. The exit code is 0 for success, 1 for a failure,
2 for wrong arguments and 130 for Ctrl-C. For ``diff``, 1 means that the files differ and 2 means a
failure.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..core.errors import PluginError
from .choosing import choosing, split

__all__ = ["main"]


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
