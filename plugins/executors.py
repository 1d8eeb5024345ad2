"""The executors that ship with gradtape, as a plugin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..core.extend import Graph, default, hookimpl, late, plain

Run: TypeAlias = Callable[[Sequence[Any]], list[Any]]


@hookimpl
def gradtape_executors() -> dict[str, Callable[..., Any]]:
    """Provide the executors that ask backends, run a kernel for each node, and plan for NumPy."""
    return {"default": default, "plain": plain, "planned": _planned}


def _planned(graph: Graph) -> Run:
    run: Run = late("plugins.planned").planned(graph)
    return run
