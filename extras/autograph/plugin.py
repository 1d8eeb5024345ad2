"""What converted code calls instead of Python's builtin functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.extend import hookimpl, late
from .conversion import missing_library


@hookimpl(trylast=True)
def gradtape_converters() -> Mapping[Any, Callable[..., Any]]:
    """Provide them; none without the library for conversions, since then nothing is converted."""
    found: Mapping[Any, Callable[..., Any]] = {}
    if missing_library() is None:
        found = late("autograph.overloads").OVERLOADS
    return found
