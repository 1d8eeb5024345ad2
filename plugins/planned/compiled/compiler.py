"""numba, as the compiler of loops; what it compiled is kept in files for the next process."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from platform import machine
from typing import Any

from ....core.errors import BackendUnavailable

__all__ = ["CACHE", "cached", "compiled", "unavailable"]

#: The environment variable that names the folder of compiled loops; empty for none.
CACHE = "GRADTAPE_CACHE_DIR"
#: With so many sources the folder is emptied: constants such as learning rates are in the source.
_MOST_FILES = 1000
#: Invalid, divided by zero, overflow: bits of ``fenv.h``.
_FLAGS = {"x86_64": 1 | 4 | 8, "AMD64": 1 | 4 | 8, "aarch64": 1 | 2 | 4, "arm64": 1 | 2 | 4}

_HEAD = f"""import numpy as np
from numba import types

FLAGS = {_FLAGS.get(machine(), 0)}
clear = types.ExternalFunction("feclearexcept", types.int32(types.int32))
noted = types.ExternalFunction("fetestexcept", types.int32(types.int32))
"""


@cache
def unavailable() -> str | None:
    """Return why loops cannot be compiled here, or None if they can; numba is not imported."""
    if find_spec("numba") is None:
        return 'loops are compiled by numba, which is missing; pip install "gradtape[numba]"'
    if machine() not in _FLAGS or os.name == "nt":
        return f"loops need the floating-point flags of the C library, unknown on {machine()}"
    return None


@cache
def compiled(source: str) -> Callable[..., int]:
    """Return the function ``loop`` that a source defines, compiled for its ``TYPES``.

    Parameters
    ----------
    source
        Lines that define both; numbers, ``np``, ``types`` and floating-point flags are there.
    """
    text = _HEAD + source
    path = _kept(text)
    if path is not None:
        try:
            return _jitted(text, path)
        except Exception:  # what is kept is damaged, or of another release: compiled anew, then
            path.unlink(missing_ok=True)
    return _jitted(text, None)


def _jitted(text: str, path: Path | None) -> Callable[..., int]:
    try:
        numba: Any = import_module("numba")
    except Exception as error:  # which numba raises beside a NumPy that it does not know
        raise BackendUnavailable(
            f"executor 'fused': numba cannot be imported ({type(error).__name__}: {error})"
        ) from error
    # numba imports the module of what it has kept, in whichever process that is
    scope: dict[str, Any] = {"__name__": numba.__name__}
    exec(compile(text, "<loop>" if path is None else str(path), "exec"), scope)
    options = {"nogil": True, "error_model": "numpy", "cache": path is not None}
    loop = numba.njit([scope["TYPES"]], **options)(scope["loop"])
    _hits.extend(loop.stats.cache_hits.values())
    return loop


_hits: list[int] = []


def cached() -> int:
    """Return how many loops of this process were found compiled."""
    return sum(_hits)


def _kept(text: str) -> Path | None:
    """Return a file of this source in the user's own cache, beside which numba keeps its code."""
    try:
        folder = _folder()
        if folder is None:
            return None
        path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.py"
        if not path.exists():
            if len(os.listdir(folder)) > _MOST_FILES:
                _empty(folder)
            with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".tmp", delete=False) as file:
                file.write(text)
            os.replace(file.name, path)
        return path
    except OSError:  # a full disk, a home that cannot be written: compiled anew, then
        return None


def _folder() -> Path | None:
    named = os.environ.get(CACHE)
    if named == "":
        return None
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(named) if named else Path(caches) / "gradtape" / "loops"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # numba unpickles what it finds there: nobody else may write to it
    state = folder.stat()
    return folder if state.st_uid == os.getuid() and not state.st_mode & 0o022 else None


def _empty(folder: Path) -> None:
    for path in (*folder.glob("*.py"), *(folder / "__pycache__").glob("*.nb?")):
        path.unlink(missing_ok=True)
