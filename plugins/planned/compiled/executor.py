"""``fused``: the executor of plans with loops."""

from __future__ import annotations

from ....core.errors import BackendUnavailable
from ....core.extend import Graph
from ..plan import Run, planned_by
from .compiler import unavailable
from .loops import Loops

__all__ = ["fused"]


def fused(graph: Graph) -> Run:
    """Return what runs ``graph`` on NumPy with loops that LLVM compiles at the first call.

    Functions such as ``tanh`` are in loops over few elements, and may differ from NumPy's in the
    last place.

    Parameters
    ----------
    graph
        A graph as it was traced.

    Raises
    ------
    BackendUnavailable
        If llvmlite is missing, with what to install.
    """
    reason = unavailable()
    if reason is not None:
        raise BackendUnavailable(f"executor 'fused': {reason}")
    return planned_by(graph, Loops())
