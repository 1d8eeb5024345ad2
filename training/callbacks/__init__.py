"""Callbacks for :func:`gradtape.training.fit`, with Keras's names, arguments and defaults."""

from __future__ import annotations

from typing import Any

from ...layers import find, is_reference
from . import callback, control, progress, writing
from .callback import *
from .control import *
from .progress import *
from .writing import *

__all__: list[str] = []
__all__ += callback.__all__
__all__ += control.__all__
__all__ += progress.__all__
__all__ += writing.__all__


def named() -> dict[str, Any]:
    """Return gradtape's callbacks by name, as their plugin provides them."""
    return {x: globals()[x] for x in __all__ if x not in ("Callback", "Progbar")}


def given(callback: Any) -> Any:
    """Return the callback for a name, or for a name and configuration; others as they are.

    Raises
    ------
    UnknownName
        If no plugin provides the name.
    """
    by_name = isinstance(callback, str) or is_reference("callback", callback)
    return find("callback", callback) if by_name else callback
