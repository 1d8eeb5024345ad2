"""What converted code calls instead of Python's builtin functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.extend import hookimpl, late
from .conversion import do_not_convert, missing_library, running


@hookimpl(trylast=True)
def gradtape_converters() -> Mapping[Any, Callable[..., Any]]:
    """Provide them; none without the library for conversions, since then nothing is converted."""
    found: Mapping[Any, Callable[..., Any]] = {}
    if missing_library() is None:
        found = late("autograph.overloads").OVERLOADS
    return found


@hookimpl(trylast=True)
def gradtape_services() -> dict[str, Any]:
    """Provide what ``gradtape.function`` converts functions with."""
    return {"autograph.running": running, "autograph.do_not_convert": do_not_convert}
