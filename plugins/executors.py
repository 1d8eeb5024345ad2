"""The executors that ship with gradtape, as a plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.extend import Graph, default, hookimpl, late, plain


@hookimpl(trylast=True)
def gradtape_executors() -> dict[str, Callable[..., Any]]:
    """Provide executors: the backend's own, a kernel call per node, and plans for NumPy."""
    return {
        "default": default,
        "plain": plain,
        "planned": _planned,
        "fused": _fused,
    }


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], Mapping[str, Any]]]:
    """Report on the cache of compiled loops."""
    return {"cache": lambda: late("plugins.fused.diagnosis").diagnosis()}


def _planned(graph: Graph) -> Any:
    return late("plugins.planned").planned(graph)


def _fused(graph: Graph) -> Any:
    return late("plugins.planned").fused(graph)


# `gradtape doctor` asks an executor why it cannot be used
_fused.unavailable = lambda: late(  # type: ignore[attr-defined]
    "plugins.fused.diagnosis"
).problem()
