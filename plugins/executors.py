"""The executors that ship with gradtape, as a plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import Graph, default, hookimpl, late, plain


@hookimpl(trylast=True)
def gradtape_executors() -> dict[str, Callable[..., Any]]:
    """Provide executors: the backend's own, a kernel call per node, and plans for NumPy."""
    return {
        "default": default,
        "plain": plain,
        "planned": lambda graph: _of_plans("planned", graph),
        "fused": lambda graph: _of_plans("fused", graph),
    }


def _of_plans(name: str, graph: Graph) -> Any:
    return getattr(late("plugins.planned"), name)(graph)
