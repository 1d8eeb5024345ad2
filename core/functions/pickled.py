"""How functions are pickled: by their names, or as code."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

# Modules that accept functions without a name: Python's ``copy``, and picklers of code.
_TAKE_ANY = frozenset({"copy", "cloudpickle", "dill", "_dill"})


def found_by_name(value: Any) -> bool:
    """Return whether pickle finds a function by its name."""
    found: Any = sys.modules.get(str(value.__module__))
    for part in getattr(value, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is value


def pickled_as_code() -> bool:
    """Return whether the caller copies functions, or pickles them as code.

    Such picklers accept functions without a name, and those of the main module, which is a
    different module in each process.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if str(frame.f_globals.get("__name__")).rpartition(".")[2] in _TAKE_ANY:
            return True
        frame = frame.f_back
    return False
