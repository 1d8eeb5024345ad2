"""Tables that depend on a size: constants, or an op in a trace that does not know the size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    Open,
    Shared,
    Size,
    as_tensor,
    beside,
    holds,
    largest,
    ops,
    row_of,
    smallest,
)
from .op_builders import op


def _falling(first: Any, count: Any, factors: int, whole: bool) -> Any:
    """Return products of ``factors`` falling factors, from each of ``first``, ``first - 1``, ..."""
    numbers = np.arange(first, first - count, -1)
    numbers = numbers if whole else numbers.astype(np.float64)
    found = np.ones_like(numbers)
    for turn in range(factors):
        found *= numbers - turn
    return found


def _half_circle(n: int) -> Any:
    """Return the heights of a half circle of radius 1, at ``n`` points from end to end."""
    middle = (n - 1) / 2.0
    return np.sqrt(np.maximum(1.0 - ((np.arange(n) - middle) / max(middle, 0.5)) ** 2, 0.0))


def _steps(start: Any, stop: Any, step: Any, dtype: str) -> Any:
    """Return how many numbers ``arange`` returns."""
    if all(isinstance(n, (int, Size)) for n in (start, stop, step)):
        return -((start - stop) // step)
    return math.ceil((stop - start) / step)


def _below(n: Any, m: Any, k: Any) -> Any:
    """Return how many elements a matrix has on diagonal ``k`` and below."""

    def before(rows: Any) -> Any:
        rows = largest(0, rows)
        grown = smallest(rows, m)
        return grown * (grown + 1) // 2 + m * (rows - grown)

    return before(k + n) - before(k)


def index_of(index: Any) -> Any:
    """Return an index of an axis as a parameter: a number, a slice or a tuple of numbers."""
    if isinstance(index, slice):
        return ("slice", index.start, index.stop, index.step)
    return tuple(index.tolist()) if isinstance(index, np.ndarray) and index.ndim else index


def _index(given: Any) -> Any:
    if not isinstance(given, tuple):
        return given
    if given[:1] == ("slice",):
        return slice(*given[1:])
    return np.asarray(given) if given else np.zeros(0, np.intp)


def _filled(shape: Any, wrap: bool) -> Any:
    """Return the flat positions of a diagonal's elements in an array."""
    places = np.zeros(shape, np.int64)
    np.fill_diagonal(places, 1, wrap)
    return places.ravel().nonzero()[0]


def _numbered(sizes: Any) -> Any:
    if len(set(sizes)) > 1:
        raise ValueError(f"two or more axes of one size are needed, got shape {sizes}")
    return np.arange(sizes[0])


def _cycled(size: int, count: int) -> Any:
    return np.arange(count) % size if size else np.zeros(count, np.int64)


def _counted(n: Any, *_: Any) -> tuple[Any, ...]:
    """Return the shape of ``n`` numbers; a negative ``n`` counts as 0."""
    return (largest(0, n),)


#: Functions that make a table and its shape from the same arguments; None is an unknown size.
_KINDS: dict[str, tuple[Callable[..., Any], Callable[..., tuple[Any, ...]]]] = {
    "arange": (np.arange, lambda *bounds: _counted(_steps(*bounds))),
    "bartlett": (np.bartlett, _counted),
    "blackman": (np.blackman, _counted),
    "cycled": (_cycled, lambda size, count: (count,)),
    "deleted": (
        lambda size, index: np.delete(np.arange(size), _index(index)),
        lambda size, index: (None if isinstance(index, tuple) else size - 1,),
    ),
    "diagonal": (_filled, lambda shape, wrap: (None if wrap else smallest(*shape),)),
    "eye": (np.eye, lambda n, m, k: (n, m)),
    "falling": (_falling, lambda first, count, *_: _counted(count)),
    "fftfreq": (np.fft.fftfreq, lambda n, d: (n,)),
    "geomspace": (np.geomspace, lambda start, stop, num, *_: (num,)),
    "half_circle": (_half_circle, _counted),
    "hamming": (np.hamming, _counted),
    "hanning": (np.hanning, _counted),
    "indices": (np.indices, lambda sizes: (len(sizes), *sizes)),
    "inserted": (
        lambda size, index, count: np.insert(
            np.arange(size), _index(index), size + np.arange(count)
        ),
        lambda size, index, count: (size + count,),
    ),
    "kaiser": (np.kaiser, _counted),
    "linspace": (
        lambda start, stop, num, end, dtype: np.linspace(start, stop, num, end, dtype=dtype),
        lambda start, stop, num, *_: (num,),
    ),
    "logspace": (np.logspace, lambda start, stop, num, *_: (num,)),
    "numbered": (_numbered, lambda sizes: (sizes[0],)),
    "repeated": (
        lambda counts: np.repeat(np.arange(len(counts)), counts),
        lambda counts: (sum(counts),),
    ),
    "rfftfreq": (np.fft.rfftfreq, lambda n, d: (n // 2 + 1,)),
    "tri": (np.tri, lambda n, m, k: (n, m)),
    "tril_indices": (
        lambda n, k, m: np.stack(np.tril_indices(n, k, m)),
        lambda n, k, m: (2, _below(n, m, k)),
    ),
    "triu_indices": (
        lambda n, k, m: np.stack(np.triu_indices(n, k, m)),
        lambda n, k, m: (2, n * m - _below(n, m, k - 1)),
    ),
}


def _values(kind: str, arguments: tuple[Any, ...], dtype: Any) -> Any:
    if holds(arguments, Open):
        raise TypeError(f"{kind}: only a trace can make it from {arguments}")
    if kind.endswith("freq") and arguments[0] < 1:
        raise ValueError(f"{kind}: the number of points must be at least 1, got {arguments[0]}")
    return _KINDS[kind][0](*arguments).astype(dtype)


def _table_spec(like: Any, kind: str, arguments: tuple[Any, ...], dtype: str) -> tuple[Any, Any]:
    if kind not in _KINDS:  # a file may say anything
        raise ValueError(f"size_table: there is no table named {str(kind)[:40]!r}")
    return _KINDS[kind][1](*arguments), np.dtype(dtype)


op(
    "size_table",
    lambda xp, like, *, kind, arguments, dtype: xp.asarray(_values(kind, arguments, dtype)),
    gradients={"like": NONDIFF},
    infer=_table_spec,
    batch=lambda op, xs, batched, params: Shared(op.raw(row_of(xs[0]), **params)),
    doc="Return a table that NumPy makes for a size, on the backend of ``like``.",
)


def table(kind: str, *arguments: Any, dtype: Any = np.int64, like: Any = None) -> Any:
    """Return a table of a kind.

    Parameters
    ----------
    kind
        Its name in this module.
    arguments
        The arguments of its function; in a trace, sizes among them may be unknown.
    dtype
        Its dtype, ``int64`` by default.
    like
        A tensor whose backend makes the table; the current backend if not given.
    """
    if holds(arguments, Open):
        some = as_tensor(np.zeros((), np.int64)) if like is None else like
        return ops["size_table"](some, kind=kind, arguments=arguments, dtype=np.dtype(dtype).name)
    values = _values(kind, arguments, dtype)
    return as_tensor(values) if like is None else beside(values, like)
