"""The executors that ship with gradtape, as a plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import default, hookimpl, plain


@hookimpl
def gradtape_executors() -> dict[str, Callable[..., Any]]:
    """Provide the executors that ask backends, and that run a kernel for each node."""
    return {"default": default, "plain": plain}
