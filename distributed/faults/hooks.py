"""Hooks by which an uncaught exception ends the job, instead of leaving other ranks waiting."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import traceback
from contextlib import suppress
from types import TracebackType
from typing import Any, NoReturn

from .lifeline import DONE, Lifeline, leave_at_once, print_for_ranks, report_to_supervisor

_RUNNER = os.path.join("distributed", "runner.py")
#: The lifeline of this process, once it has one.
_lines: list[Lifeline] = []
#: The process that has the hooks. Its children do not use them.
_installed: list[int] = []
#: Its rank, the number of ranks, and its host, for failures before the ranks are connected.
_place: list[tuple[int, int, str]] = [(0, 1, "")]


def line() -> Lifeline | None:
    """Return the lifeline of this process."""
    return _lines[0] if _lines else None


def installed() -> bool:
    """Return whether this process has the hooks."""
    return _installed == [os.getpid()]


def install(rank: int, size: int, host: str, found: Lifeline | None = None) -> None:
    """Let uncaught exceptions of this process end the job.

    Parameters
    ----------
    rank, size, host
        This rank, the number of ranks, and its host.
    found
        The connection that informs the other ranks. Without it only the launcher ends them.
    """
    _place[0] = rank, size, host
    if found is not None:
        _lines[:] = [found]
    if installed():
        return
    _installed[:] = [os.getpid()]
    before, before_in_threads = sys.excepthook, threading.excepthook
    own = before is not sys.__excepthook__  # another tool's hook, which prints the error itself

    def hook(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        if not installed():
            before(kind, error, where)
            return
        if own:
            before(kind, error, where)
        failed(error, printed=own)

    def hook_in_threads(found: threading.ExceptHookArgs) -> None:
        if not installed() or found.exc_value is None:
            before_in_threads(found)
            return
        failed(found.exc_value)

    sys.excepthook = hook
    threading.excepthook = hook_in_threads
    atexit.register(leave)


def forget() -> None:
    """Forget the lifeline. The hooks stay installed."""
    _lines.clear()


def leave(code: int = 0) -> None:
    """Wait, at the end of the script, until those of all ranks have ended."""
    if installed() and _lines:
        _lines[0].leave(code)


def failed(error: BaseException, printed: bool = False) -> NoReturn:
    """End the job for an exception.

    Parameters
    ----------
    error
        The uncaught exception.
    printed
        Whether its traceback has been printed already.
    """
    code, summary, text = _report(error)
    text = None if printed else text
    if _lines:
        _lines[0].fail(summary, text, code, error)
    end_before_connection(code, text or (None if printed else summary))


def end_before_connection(code: int, text: str | None) -> NoReturn:
    """End this process and the job before the ranks are connected."""
    rank, size, host = _place[0]
    if text:
        print_for_ranks(text, rank, size, {rank: host})
    report_to_supervisor(DONE)
    mpi: Any = sys.modules.get("mpi4py.MPI")
    with suppress(Exception):
        if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
            sys.stdout.flush()
            mpi.COMM_WORLD.Abort(code)
    leave_at_once(code)


def _report(error: BaseException) -> tuple[int, str, str | None]:
    """Return the exit code, a line for all ranks, and the traceback."""
    if isinstance(error, KeyboardInterrupt):
        return 130, "was interrupted", None
    where = error.__traceback__
    while where is not None and _is_runner_frame(where):
        where = where.tb_next
    lines = traceback.format_exception(type(error), error, where)
    told = " ".join(str(error).split())
    told = told if len(told) < 500 else f"{told[:500]}..."
    name = type(error).__name__
    return 1, f"raised {name}: {told}" if told else f"raised {name}", "".join(lines)


def exit_code(leaving: SystemExit) -> int:
    """Return the exit code that a script asks for."""
    if leaving.code is None:
        return 0
    return leaving.code if isinstance(leaving.code, int) else 1


def _is_runner_frame(where: TracebackType) -> bool:
    """Return whether a frame belongs to the code that runs the script: runpy or its caller."""
    name = where.tb_frame.f_code.co_filename
    return name.startswith("<frozen runpy") or name.endswith(_RUNNER)
