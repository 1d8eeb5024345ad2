"""Sizes in graphs: integers that a trace knows as expressions, and the shapes of a run.

A shape that is computed with tensors (``stack([n // 2, 3])``, ``prod(shape[1:])``) stays as precise
as one that Python computes: the op's computation also runs on the known values of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..base.sizes import Dim, Open, Size, evaluated, lowered

if TYPE_CHECKING:
    from ..tensors.op import Op
    from .nodes import Symbol

#: Ints and unknown sizes, in the shape of the symbol that holds them.
Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.object_]]"

# enough for shapes and related values, but not for data
_MOST = 64
# Larger numbers may overflow in tensors, but not in sizes.
_LARGEST = 2**20
_WIDE = (np.dtype(np.int32), np.dtype(np.int64))


def _compute_of(op: Op) -> Callable[..., Any] | None:
    """Return the function that computes an op on arrays of objects."""
    if op.integers != "moves":
        return op.integers
    kernel = op.kernel
    if isinstance(kernel, str):
        found: Callable[..., Any] = getattr(np, kernel)
        return found
    return lambda *arrays, **params: kernel(np, *arrays, **params)


def known_integers(
    op: Op,
    inputs: Sequence[Any],
    params: Mapping[str, Any],
    outputs: Sequence[Symbol],
    constants: Mapping[Symbol, Any],
) -> list[Integers | None]:
    """Return the known integers of a node's outputs, with None for an unknown output.

    Parameters
    ----------
    op, inputs, params, outputs
        The node, as it was called.
    constants
        The constants of its graph.
    """
    nothing: list[Integers | None] = [None] * len(outputs)
    compute = _compute_of(op)
    if compute is None or not all(map(_may_be_known, outputs)):
        return nothing
    given = [_integers_of(x, constants) for x in inputs]
    if any(x is None for x in given):
        return nothing
    try:
        result = compute(*given, **params)
    except (ArithmeticError, TypeError, ValueError):
        return nothing  # it depends on values that only a run knows
    results = result if isinstance(result, (tuple, list)) else [result]
    return [_checked(x, symbol) for x, symbol in zip(results, outputs, strict=True)]


def _may_be_known(symbol: Symbol) -> bool:
    return symbol.shape is not None and symbol.dtype in _WIDE


def _integers_of(x: Any, constants: Mapping[Any, Any]) -> Integers | None:
    """Return the known integers of an input, which is a symbol or a weak scalar."""
    if type(x) is int:
        return _checked(x)
    if isinstance(x, (bool, float, complex)) or not _may_be_known(x):
        return None
    array = constants.get(x)
    if isinstance(array, (np.ndarray, np.generic)):
        return _checked(array.astype(object)) if array.size <= _MOST else None
    known: Integers | None = x.integers
    return known


def _checked(result: Any, symbol: Any = None) -> Integers | None:
    """Return a result as an array if a tensor would give the same; otherwise None."""
    integers: Integers = np.asarray(result, object)
    if integers.size > _MOST or (symbol is not None and integers.shape != symbol.shape):
        return None
    for n in integers.ravel().tolist():
        factors = n.terms.values() if isinstance(n, Size) else [n]
        if any(type(factor) is not int or abs(factor) > _LARGEST for factor in factors):
            return None
    return integers


# -- the shapes of a run ---------------------------------------------------------------------------


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
