"""``fused``: the plugin of plans with loops that LLVM compiles.

It is imported when executors, lowerings or reports are first needed. Nothing else names this
folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.errors import BackendUnavailable
from ...core.extend import Graph, hookimpl
from ..planned import Run, planned_by
from .compiler import CACHE, cache_folder, has_kept_code, unavailable, unusable
from .forms import FORMS
from .loops import FusedLoops


def fused(graph: Graph) -> Run:
    """Return a function that runs ``graph`` on NumPy with loops that LLVM compiles on first use.

    Results are those of NumPy, bit for bit.

    Parameters
    ----------
    graph
        A traced graph.

    Raises
    ------
    BackendUnavailable
        If llvmlite is missing; the message says what to install.
    """
    reason = unavailable()
    if reason is not None:
        raise BackendUnavailable(f"executor 'fused': {reason}")
    return planned_by(graph, FusedLoops())


def fused_loops() -> FusedLoops:
    """Return the loops that plans of the default executor change to.

    Raises
    ------
    BackendUnavailable
        If llvmlite is missing; the message says what to install.
    """
    reason = unavailable()
    if reason is not None:
        raise BackendUnavailable(reason)
    loops = FusedLoops()
    if has_kept_code():  # most loops need no compiler
        loops.patience = 0.05
    return loops


def problem() -> str | None:
    """Return why loops cannot be compiled here; ``None`` if they can."""
    return unavailable() or unusable()


def diagnosis() -> dict[str, Any]:
    """Return the folder of the cache, why it cannot be used, if so, and what to do."""
    folder, told = (None, None) if unavailable() else cache_folder()
    advice = []
    if told:
        advice.append(
            f"Compiled loops cannot be cached in {folder} ({told}), so every process compiles them "
            f"again: set {CACHE} to a folder of your own, or to an empty string to turn the cache "
            "off."
        )
    return {
        "packages": {"llvmlite": "llvmlite"},
        "variables": [CACHE, "GRADTAPE_EXECUTOR"],
        "path": str(folder) if folder else None,
        "problem": told,
        "lines": [f"{folder or 'none'}: {told or 'ready'}"],
        "advice": advice,
    }


# `gradtape doctor` asks an executor why it cannot be used
fused.unavailable = problem  # type: ignore[attr-defined]
# where plans of the default executor find loops
fused.emitter = fused_loops  # type: ignore[attr-defined]


@hookimpl(trylast=True)
def gradtape_executors() -> dict[str, Callable[..., Any]]:
    """Provide the executor of plans with loops."""
    return {"fused": fused}


@hookimpl(trylast=True)
def gradtape_lowerings() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide the forms of ops; one with a ufunc or a formula as its kernel needs none."""
    return {(op, "llvm"): form for op, form in FORMS.items()}


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], Mapping[str, Any]]]:
    """Report on the cache of compiled loops."""
    return {"cache": diagnosis}
