"""The executors that ship with gradtape, as a plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import hookimpl, plain


@hookimpl
def gradtape_executors() -> dict[str, Callable[..., Any]]:
    """Provide the executor that runs a graph as one Python function."""
    return {"plain": plain}
