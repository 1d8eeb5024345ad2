"""The executors that ship with gradtape, as a plugin.

It is imported when executors or lowerings are first needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import default, hookimpl, plain
from .planned import planned
from .planned.rules import RULES


@hookimpl(trylast=True)
def gradtape_executors() -> dict[str, Callable[..., Any]]:
    """Provide executors: the backend's own, a kernel call per node, and plans for NumPy."""
    return {"default": default, "plain": plain, "planned": planned}


@hookimpl(trylast=True)
def gradtape_lowerings() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide the steps of ops; an op with a ufunc or a formula as its kernel needs none."""
    return {(op, "planned"): rule for op, rule in RULES.items()}
