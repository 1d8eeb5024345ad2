"""The command line: ``gradtape plugins | plugin new | doctor | profile | train | demo | ...``.

What a user can cause is told in one line on standard error; the exit code is 0 for success, 1 for a
failure (of ``diff``: 2, since 1 says that files differ), 2 for wrong arguments, 130 for Ctrl-C.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .launching import start_rank

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        What follows the program's name; ``sys.argv[1:]`` by default.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    start_rank(given)  # before NumPy, which reads how many threads it may start
    from .commands import run

    return run(given)
