"""Arrays that NumPy makes of numbers alone, where a trace does not know the numbers yet.

With known numbers, functions call NumPy themselves; with sizes that are open, one op does it in
each run, so that values are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import (
    NONDIFF,
    Open,
    Size,
    Tensor,
    as_size,
    as_tensor,
    holds,
    is_open,
    largest,
    smallest,
)
from ..common.batching import shape_only
from ..common.op_builders import op

__all__ = ["as_sizes", "filled_places", "fixed", "in_order", "index_of", "made", "open_among"]


def open_among(*values: Any) -> bool:
    """Return whether a number in lists is open, or an integer that a trace computes."""
    return any(
        open_among(*x)
        if isinstance(x, (list, tuple))
        else is_open(x) or getattr(getattr(x, "array", None), "traced", False)
        for x in values
    )


def as_sizes(given: Any, name: str) -> Any:
    """Return nested lists of integers as nested tuples; those that are open stay what they are."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, (tuple, list)):
        return tuple(as_sizes(item, name) for item in given)
    return as_size(given, name)


def fixed(n: Any, name: str, what: str) -> Any:
    """Return a number on which the form of a result depends, so that a trace must know it.

    Raises
    ------
    TraceError
        If it is open.
    """
    n = as_size(n, name)
    if is_open(n):
        raise TraceError(
            f"{name}: {what} decides what a trace is made of, and must be known; got {n!r}, which "
            "is not known while a function is traced. Give its TensorSpec the size, or compute "
            "with one tensor that has it as an axis"
        )
    return n


# -- makers, and the shapes that they give ---------------------------------------------------------


def _steps(start: Any, stop: Any, step: Any) -> tuple[Any, ...]:
    if all(isinstance(n, (int, Size)) for n in (start, stop, step)):
        return (largest(-((start - stop) // step), 0),)
    return (largest(math.ceil((stop - start) / step), 0),)


def _below(n: Any, m: Any, k: Any) -> Any:
    """Return how many elements a matrix has on diagonal ``k`` and below."""

    def before(t: Any) -> Any:
        rows = largest(t, 0)
        grown = smallest(rows, m)
        return grown * (grown + 1) // 2 + m * (rows - grown)

    return before(k + n) - before(k)


def _spaced(make: Callable[..., Any]) -> Callable[..., Any]:
    def spaced(*arguments: Any, dtype: Any) -> Any:
        *bounds, asked = arguments
        return make(*bounds, dtype=asked).astype(dtype)

    return spaced


def _spaced_shape(start: Any, stop: Any, num: Any, *rest: Any) -> tuple[Any, ...]:
    return (largest(num, 0),)


def index_of(index: Any) -> Any:
    """Return what indexes an axis as a parameter: a number, a slice or a tuple of numbers."""
    if isinstance(index, slice):
        return ("slice", index.start, index.stop, index.step)
    return tuple(index.tolist()) if isinstance(index, np.ndarray) and index.ndim else index


def _index(given: Any) -> Any:
    if not isinstance(given, tuple):
        return given
    if given[:1] == ("slice",):
        return slice(*given[1:])
    return np.asarray(given) if given else np.zeros(0, np.intp)


def filled_places(shape: Any, wrap: bool) -> Any:
    """Return where the elements of a diagonal are among those of an array."""
    places = np.zeros(shape, np.int64)
    np.fill_diagonal(places, 1, wrap)
    return places.ravel().nonzero()[0]


def _alike(sizes: Any) -> Any:
    if len(set(sizes)) > 1:
        raise ValueError(f"two or more axes of one size are needed, got shape {sizes}")
    return np.arange(sizes[0])


def in_order(cuts: Any, size: int) -> list[int]:
    """Return where to cut an axis, counted from its start.

    Raises
    ------
    ValueError
        If the places do not ascend.
    """
    found = [n if n >= 0 else max(n + size, 0) for n in cuts]
    if found != sorted(found):
        raise ValueError(f"indices must ascend, got {list(cuts)} for size {size}")
    return found


#: By name, what makes an array of the arguments, and the shape that it has.
_MAKERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "arange": (np.arange, _steps),
    "eye": (np.eye, lambda n, m, k: (largest(n, 0), largest(m, 0))),
    "tri": (np.tri, lambda n, m, k: (largest(n, 0), largest(m, 0))),
    "linspace": (_spaced(np.linspace), _spaced_shape),
    "logspace": (_spaced(np.logspace), _spaced_shape),
    "geomspace": (_spaced(np.geomspace), _spaced_shape),
    "indices": (np.indices, lambda sizes: (len(sizes), *sizes)),
    "tril_indices": (
        lambda n, k, m, dtype: np.asarray(np.tril_indices(n, k, m), dtype),
        lambda n, k, m: (2, _below(n, m, k)),
    ),
    "triu_indices": (
        lambda n, k, m, dtype: np.asarray(np.triu_indices(n, k, m), dtype),
        lambda n, k, m: (2, n * m - _below(n, m, k - 1)),
    ),
    "alike": (lambda sizes, dtype: _alike(sizes), lambda sizes: (sizes[0],)),
    "diagonal": (
        lambda shape, wrap, dtype: filled_places(shape, wrap),
        lambda shape, wrap: (None if wrap else smallest(*shape),),
    ),
    "deleted": (
        lambda size, index, dtype: np.delete(np.arange(size), _index(index)),
        lambda size, index: (None if isinstance(index, tuple) else size - 1,),
    ),
    "inserted": (
        lambda size, index, count, dtype: np.insert(
            np.arange(size), _index(index), size + np.arange(count)
        ),
        lambda size, index, count: (size + count,),
    ),
    "cycled": (
        lambda size, count, dtype: np.arange(count) % size if size else np.zeros(count, np.intp),
        lambda size, count: (count,),
    ),
    "repeated": (
        lambda counts, dtype: np.repeat(np.arange(len(counts)), counts),
        lambda counts: (sum(counts),),
    ),
}


def _make(xp: Any, like: Any, *, maker: str, arguments: tuple[Any, ...], dtype: str) -> Any:
    if holds(arguments, Open):
        raise TypeError(f"{maker}: sizes of a trace")  # the trace takes it from here
    make, _ = _MAKERS[maker]
    return xp.asarray(make(*arguments, dtype=np.dtype(dtype)))


_made = op(
    "made_of",
    _make,
    gradients={"like": NONDIFF},
    infer=lambda like, maker, arguments, dtype: (_MAKERS[maker][1](*arguments), np.dtype(dtype)),
    batch=shape_only,
    doc="Return what NumPy makes of numbers, on the backend of ``like``: ``arange`` and others.",
)


def made(maker: str, *arguments: Any, dtype: Any = np.int64) -> Tensor:
    """Return the array that a maker makes of numbers, some of which are open, in each run."""
    like = as_tensor(np.zeros((), np.int64))
    return _made(like, maker=maker, arguments=arguments, dtype=np.dtype(dtype).name)
