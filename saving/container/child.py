"""Run code that may crash, hang or take all memory in a separate process."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from .. import errors
from ..errors import DamagedFile, LoadError

__all__ = ["ChildEnded", "fail", "limit_self", "no_python", "run_child", "unlimited_time"]

_FAILED = 3
_TIME_IS_UP = getattr(signal, "SIGPROF", 0)
_TIMES_UP = (_TIME_IS_UP, getattr(signal, "SIGALRM", 0))
# Nobody may be left to end it: it sees to that by itself as well.
_START = """
import json, signal, sys
sys.path[:], seconds = json.loads(sys.argv[1])
if seconds is not None and hasattr(signal, "setitimer"):
    signal.setitimer(signal.ITIMER_REAL, seconds)
"""
# A frozen application is recognised by any other name than Python's own. Programs that embed Python
# may have one that is started like it: mayapy, hython.
_OWN, _LIKE = re.compile(r"(python|pypy)[\d.]*w?(\.exe)?", re.I), re.compile("py|hython", re.I)
_PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


class ChildEnded(Exception):
    """The other process returned no result.

    Attributes
    ----------
    late
        Whether it was ended because its time was up.
    """

    def __init__(self, text: str, late: bool = False) -> None:
        super().__init__(text)
        self.late = late


def no_python() -> str:
    """Return why no other Python process can be started; empty if one can.

    ``sys.executable`` is the application itself in a frozen application, and may be empty or
    another program where Python is embedded (uWSGI). Starting it could run the application again.

    Returns
    -------
    str
        The reason, and what to do.
    """
    if sys.platform in ("emscripten", "wasi"):
        return "WebAssembly, as in a browser, starts no processes; use another Python"
    path = sys.executable
    name = os.path.basename(path or "")
    frozen = getattr(sys, "frozen", False) or hasattr(sys.modules["__main__"], "__compiled__")
    if not path:
        reason = "sys.executable is empty, as in a program that embeds Python"
    elif not (os.path.isfile(path) and os.access(path, os.X_OK)):
        reason = f"sys.executable ({path}) is not an executable file"
    elif frozen and not _OWN.fullmatch(name):
        reason = f"this is a frozen application ({path}), which would start again"
    elif not _LIKE.search(name):
        reason = f"sys.executable ({path}) is another program, which embeds Python"
    else:
        return ""
    version = ".".join(map(str, sys.version_info[:2]))
    return f"{reason}; set sys.executable to the path of a Python {version} that has gradtape"


def run_child(
    code: str,
    arguments: Sequence[str],
    seconds: float | None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Run Python code in another process, and return what it prints.

    Parameters
    ----------
    code
        The code to run; the arguments are ``sys.argv[2:]``. It finds the same modules as this
        process, except those of the working directory, whose files may be untrusted.
    arguments
        Texts.
    seconds
        Its time limit; None for no limit.
    environment
        Environment variables in addition to those of this process.

    Raises
    ------
    LoadError
        The error that it passed to :func:`fail`. Also if no Python can be started.
    ChildEnded
        If it took too long, or ended in any other way.
    """
    reason = no_python()
    if reason:
        raise LoadError(
            f"it is read in another Python process, which cannot be started: {reason}, or save "
            "what the file holds in gradtape's present format where one can be started"
        )
    setting = json.dumps([_path(), seconds])
    command = [sys.executable, "-I", "-c", _START + code, setting, *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
            env={**os.environ, **environment},
        )
    except OSError as error:
        raise LoadError(f"{sys.executable} cannot be started ({error})") from None
    except subprocess.TimeoutExpired:
        raise ChildEnded("it takes too long", late=True) from None
    if done.returncode == _FAILED:
        raise _child_error(done.stdout)
    if done.returncode < 0 and -done.returncode in _TIMES_UP:
        raise ChildEnded("it takes too long", late=True)
    if done.returncode:
        raise ChildEnded(_end_of(done.returncode, done.stderr))
    return done.stdout


def _path() -> list[str]:
    """Return the module search path of the other process."""
    found = [place for place in sys.path if os.path.isabs(place)]
    root, name = os.path.split(_PACKAGE)
    if len(found) < len(sys.path) and root not in found and name == __name__.partition(".")[0]:
        found.append(root)  # this package itself was found in the working directory
    return found


def _child_error(output: bytes) -> LoadError:
    """Return the error that the other process raised."""
    try:
        name, message = json.loads(output)
        kind: Any = getattr(errors, name) if name in errors.__all__ else LoadError
        return kind(str(message)) if issubclass(kind, LoadError) else LoadError(str(message))
    except (ValueError, TypeError):
        return DamagedFile("it cannot be read")


def _end_of(code: int, output: bytes) -> str:
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else f"exit code {code}"


def fail(error: Exception, message: str) -> NoReturn:
    """End this process, the child, so that the parent raises the error with this message."""
    public = [kind.__name__ for kind in type(error).__mro__ if kind.__name__ in errors.__all__]
    print(json.dumps([public[0] if public else type(error).__name__, message]))
    sys.exit(_FAILED)


def limit_self(memory: float, seconds: float | None = None) -> None:
    """Limit this process, where the system can; it is ended if it exceeds the limits.

    Parameters
    ----------
    memory
        The maximum memory in bytes.
    seconds
        The maximum processor time; None for no limit.
    """
    if _TIME_IS_UP and seconds is not None:
        signal.signal(_TIME_IS_UP, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        import resource
    except ImportError:  # Windows
        return
    # where the system refuses, the other limits stand
    limits = [(resource.RLIMIT_CORE, 0)]
    if (held := _memory_in_use()) is not None and not math.isinf(memory):
        limits += [(resource.RLIMIT_DATA, held + int(memory))]
    for kind, most in limits:
        try:
            resource.setrlimit(kind, (most, most))
        except (ValueError, OSError):
            continue


def unlimited_time() -> None:
    """Lift the processor time limit from here on, within the limit that the parent set."""
    if _TIME_IS_UP:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _memory_in_use() -> int | None:
    """Return the bytes of writable memory of this process, if the system reports them."""
    try:
        with open("/proc/self/status") as stream:
            line = next(line for line in stream if line.startswith("VmData"))
        return 1024 * int(line.split()[1])
    except (OSError, StopIteration, ValueError):
        return None
