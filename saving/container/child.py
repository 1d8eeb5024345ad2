"""Run what may crash, hang or take all memory in a process that has nothing to lose."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import errors
from ..errors import DamagedFile, LoadError

__all__ = ["ChildEnded", "fail", "limit_memory", "run_child"]

_FAILED = 3
_START = "import json, sys\nsys.path[:] = json.loads(sys.argv[1])\n"


class ChildEnded(Exception):
    """The other process gave no answer.

    Attributes
    ----------
    late
        Whether it was ended because its time was over.
    """

    def __init__(self, text: str, late: bool = False) -> None:
        super().__init__(text)
        self.late = late


def run_child(code: str, arguments: Sequence[str], seconds: float | None) -> bytes:
    """Run Python code in another process, and return what it prints.

    Parameters
    ----------
    code
        What it runs; the arguments are ``sys.argv[2:]``. It finds the modules that are found here.
    arguments
        Texts.
    seconds
        How long it may take; None for as long as it does.

    Raises
    ------
    LoadError
        What it gave to :func:`fail`.
    ChildEnded
        If it took too long, or ended in another way.
    """
    command = [sys.executable, "-I", "-c", _START + code, json.dumps(sys.path), *arguments]
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that what it starts ends with it
    )
    try:
        output, said = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ChildEnded("it takes too long", late=True) from None
    finally:
        if child.returncode is None:
            _end(child)
    if child.returncode == _FAILED:
        raise _told(output)
    if child.returncode:
        raise ChildEnded(_end_of(child.returncode, said))
    return output


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.communicate()


def _told(output: bytes) -> LoadError:
    """Return the error that the other process has raised."""
    try:
        name, message = json.loads(output)
        kind: Any = getattr(errors, name) if name in errors.__all__ else LoadError
        return kind(str(message)) if issubclass(kind, LoadError) else LoadError(str(message))
    except (ValueError, TypeError):
        return DamagedFile("it cannot be read")


def _end_of(code: int, said: bytes) -> str:
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else f"exit code {code}"


def fail(error: Exception, message: str) -> NoReturn:
    """End this process, the other one, so that the first raises the error with this message."""
    print(json.dumps([type(error).__name__, message]))
    sys.exit(_FAILED)


def limit_memory(most: int) -> bool:
    """Bound the address space of this process, and write no core; return whether it is bounded."""
    try:
        import resource
    except ImportError:  # Windows
        return False
    found = True
    # where the system refuses, the other limits stand
    for kind, size in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, most)):
        try:
            resource.setrlimit(kind, (size, size))
        except (ValueError, OSError):
            found = False
    return found
