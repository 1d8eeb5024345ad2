"""The sizes of a symbol in a run, from its expressions and the arrays that the run has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.sizes import Dim, Open, evaluated, lowered
from .nodes import Symbol


def shape_in_run(symbol: Symbol, arrays: Mapping[Symbol, Any]) -> tuple[int | None, ...] | None:
    """Return a symbol's shape in a run, without running what computes it.

    Parameters
    ----------
    symbol
        A value of a graph.
    arrays
        The arrays of some symbols of its graph in the run, for instance of its inputs.

    Returns
    -------
    tuple or None
        The sizes, with ``None`` for those that these arrays do not determine; ``None`` if its rank
        is unknown.
    """
    if symbol.shape is None:
        return None
    homes = getattr(symbol.graph, "homes", {})
    witnesses: list[Any] = []

    def place(dim: Dim) -> tuple[Any, ...]:
        home, axis = homes.get(dim, (dim.symbol, dim.axis))
        witnesses.append(arrays[home])
        number = len(witnesses) - 1
        return ("value", number) if axis is None else ("size", number, axis)

    def known(size: Any) -> int | None:
        if not isinstance(size, Open):
            return size
        witnesses.clear()
        try:
            formula = lowered(size, place)
        except KeyError:  # the size of another symbol
            return None
        shapes = [x.shape for x in witnesses]
        number: int = evaluated(formula, shapes, lambda k: int(witnesses[k]))
        return number

    return tuple(map(known, symbol.shape))
