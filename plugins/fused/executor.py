"""``fused``: the executor of plans with loops."""

from __future__ import annotations

from ...core.errors import BackendUnavailable
from ...core.extend import Graph
from ..planned.plan import Run, planned_by
from .compiler import unavailable
from .loops import Loops


def fused(graph: Graph) -> Run:
    """Return a function that runs ``graph`` on NumPy with loops that LLVM compiles on first use.

    Loops over few elements include functions such as ``tanh``, which may differ from NumPy's in the
    last digit.

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
    return planned_by(graph, Loops())
