"""Runs a script as ``__main__`` on one rank, as the child of its supervisor."""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path

from ..core.extend import place
from .faults import hooks
from .faults.lifeline import DONE, hostname, report_to_supervisor
from .group import joined


def main() -> None:
    """Run the script that the arguments name, and exit with its exit code."""
    _, script, *arguments = sys.argv
    _die_with_parent()
    found = place()
    rank, size = (found.rank, found.size) if found else (0, 1)
    hooks.install(rank, size, hostname())
    try:
        code = run_script(script, arguments)
    except BaseException as error:
        hooks.failed(error)
    if not (joined() or code or rank):
        print(
            f"gradtape train: {size} ranks each ran the whole script; it never called "
            "gt.distributed.init()",
            file=sys.stderr,
        )
    report_to_supervisor(DONE)
    if code:
        hooks.leave(code)
        sys.exit(code)


def run_script(script: str, arguments: list[str]) -> int:
    """Run a script like ``python SCRIPT ARGUMENT ...``, and return its exit code."""
    before, first = sys.argv, sys.path[:1]
    sys.argv = [script, *arguments]
    if not sys.flags.safe_path:
        sys.path[:1] = [str(Path(script).resolve().parent)]
    if not Path(script).exists():
        raise FileNotFoundError(f"there is no file {script!r}")
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        return hooks.exit_code(leaving)
    finally:
        sys.argv = before
        if not sys.flags.safe_path:
            sys.path[:1] = first
    return 0


def code_of_script(script: str, arguments: list[str]) -> int:
    """Run a script and return its exit code; report its errors as Python does, with their lines."""
    if not Path(script).exists():
        raise FileNotFoundError(f"there is no file {script!r}")
    try:
        return run_script(script, arguments)
    except Exception as error:
        lines = error.__traceback__
        while lines is not None and lines.tb_frame.f_code.co_filename != script:
            lines = lines.tb_next
        traceback.print_exception(error.with_traceback(lines))
        return 1


def _die_with_parent() -> None:
    """On Linux, end this process when the supervisor ends, however that ends."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:  # the supervisor ended before prctl
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
