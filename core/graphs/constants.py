"""A graph's constants on the backend where it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ops.dispatch import backend_for_type, is_transformed
from .graph import Graph
from .nodes import Symbol


def local_constants(graph: Graph, arrays: Sequence[Any]) -> dict[Symbol, Any]:
    """Return a graph's constants on the backend and device of its inputs or variables.

    Parameters
    ----------
    graph
        The program.
    arrays
        The arrays of its inputs.

    Returns
    -------
    dict
        Symbols of constants, with their arrays.

    Raises
    ------
    TypeError
        If no backend owns one of the arrays.

    Examples
    --------
    >>> from gradtape.plugin import local_constants
    >>> shift = gt.function(lambda x: x + np.array([1.0, 2.0], "float32"))
    >>> graph = shift.get_concrete_function(gt.TensorSpec([2])).graph
    >>> [array.tolist() for array in local_constants(graph, [np.zeros(2)]).values()]
    [[1.0, 2.0]]
    """
    constants = graph.constants
    if not constants:
        return constants
    candidates = [*arrays, *(variable.array for variable in graph.variables)]
    for array in candidates:
        if is_transformed(array):
            continue
        here = backend_for_type(type(array))
        moved = {}
        for symbol, constant in constants.items():
            owner = backend_for_type(type(constant))
            if owner is not here:
                constant = here.asarray(owner.to_numpy(constant), device=here.device(array))
            elif here.waits and here.device(constant) != here.device(array):
                constant = here.asarray(constant, device=here.device(array))
            moved[symbol] = constant
        return moved
    return constants
