"""The command line: ``gradtape plugins | plugin new | doctor | profile | train | demo | ...``.

Errors are reported in one line on standard error. The exit code is 0 for success, 1 for a failure,
2 for wrong arguments and 130 for Ctrl-C. For ``diff``, 1 means that the files differ and 2 means a
failure.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        The arguments after the program's name. ``sys.argv[1:]`` by default.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    from .commands import run

    return run(given)
