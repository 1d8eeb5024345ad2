"""Shapes that a trace does not know: sizes, tables that depend on sizes, and ranks.

Sizes may be expressions in a trace, and also None in shape rules. A table that depends on a size is
a constant, or an op in a trace that does not know the size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import (
    NONDIFF,
    NUMPY,
    F,
    Op,
    Open,
    Shared,
    Size,
    active_graph,
    as_size,
    as_tensor,
    contains_instance,
    current_backend,
    is_open,
    largest,
    on_device_of,
    ops,
    rank_of,
    registry,
    row_of,
    same_size,
    sizes_differ,
    smallest,
)
from .axes import together
from .op_builders import op


def whole_division(compute: Callable[[Any, Any], Any]) -> Any:
    """Return how a division computes with sizes, of which none may be 0 as a divisor."""

    def divide(a: Any, b: Any) -> Any:
        if not sizes_differ(b, 0):
            raise ZeroDivisionError  # allowed for tensors, not for sizes
        return compute(a, b)

    return np.frompyfunc(divide, 2, 1)


#: The larger and the smaller of two sizes, as ufuncs of arrays of objects.
LARGEST: Any = np.frompyfunc(largest, 2, 1)
SMALLEST: Any = np.frompyfunc(smallest, 2, 1)


def any_unknown(*values: Any) -> bool:
    """Return whether lists contain an unknown size, or an integer that a trace computes."""
    return any(
        any_unknown(*x)
        if isinstance(x, (list, tuple))
        else is_open(x) or getattr(getattr(x, "array", None), "traced", False)
        for x in values
        if type(x) is not int
    )


def as_sizes(given: Any, name: str) -> Any:
    """Return nested lists of integers as nested tuples; unknown ones stay as they are."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, (tuple, list)):
        return tuple(as_sizes(item, name) for item in given)
    return as_size(given, name)


def fixed(n: Any, name: str, what: str) -> Any:
    """Return a number that decides the form of a result, so that a trace must know it.

    Raises
    ------
    TraceError
        If it is unknown.
    """
    n = as_size(n, name)
    if is_open(n):
        raise TraceError(
            f"{name}: {what} decides the structure of a trace, so it must be known; got {n!r}, "
            "which is unknown while the function is traced. Give its TensorSpec the size, or "
            "compute with one tensor that has an axis of this size"
        )
    return n


def place_between(low: Any, high: Any, index: Any, size: Any) -> Any:
    """Return the position of an index, limited to two ends; None if its sign is unknown.

    A negative index counts from the end.
    """
    negative = index < 0
    if is_open(negative):
        return None
    return largest(size + index, low) if negative else smallest(index, high)


def elements(shape: Any) -> Any:
    """Return how many elements an array of a shape has; None if a size or the rank is unknown."""
    return None if shape is None or any(n is None for n in shape) else prod(shape)


def empty(shape: Any) -> bool:
    """Return whether an array of a shape is known to have no elements."""
    return shape is not None and any(same_size(n, 0) for n in shape)


def never_empty(x: Any, axes: tuple[int, ...]) -> Any:
    """Return ``x``, padded with a 0 along axes that turn out empty in a run of a trace."""
    open_axes = tuple(i for i in axes if is_open(x.shape[i]))
    if not open_axes:
        return x
    sizes = tuple(largest(1, x.shape[i]) for i in open_axes)
    return ops["crop_or_pad"](x, sizes=sizes, axes=open_axes)


def _checked(condition: Any, message: str) -> None:
    if condition is False:
        raise ValueError(message)


def _check_kernel(xp: Any, x: Any, *, condition: bool, message: str) -> Any:
    _checked(condition, message)
    return x


def _check_spec(x: Any, condition: Any, message: str) -> tuple[Any, Any]:
    _checked(condition, message)
    return x.shape, x.dtype


op(
    "size_checked",
    _check_kernel,
    gradients={"x": lambda g: g},
    infer=_check_spec,
    holomorphic=True,
    batch=lambda op, xs, batched, params: op.raw(xs[0], **params),
    jvp="linear",
    doc="Return ``x``; raise if a comparison of sizes does not hold.",
)


def ensured(x: Any, condition: Any, message: str) -> Any:
    """Return ``x`` if a comparison of sizes holds; each run checks what a trace does not know.

    Raises
    ------
    ValueError
        If it does not hold.
    """
    if condition is True:
        return x
    _checked(condition, message)
    return ops["size_checked"](x, condition=condition, message=message)


def ensured_alike(x: Any, shape: Any, message: str) -> Any:
    """Return ``x`` if its shape is ``shape``; each run checks what a trace does not know.

    Raises
    ------
    ValueError
        If it is not. An unknown rank is not checked.
    """
    if x.shape is None or shape is None:
        return x
    _checked(len(x.shape) == len(shape), message)
    for n, m in zip(x.shape, shape, strict=True):
        x = ensured(x, n == m, message)
    return x


# -- tables ----------------------------------------------------------------------------------------


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
    # np.fft is imported at its first use
    "fftfreq": (lambda n, d: np.fft.fftfreq(n, d), lambda n, d: (n,)),
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
        lambda counts: NUMPY.repeat(np.arange(len(counts)), counts),
        lambda counts: (sum(counts),),
    ),
    "rfftfreq": (lambda n, d: np.fft.rfftfreq(n, d), lambda n, d: (n // 2 + 1,)),
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
    if contains_instance(arguments, Open):
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
    if contains_instance(arguments, Open):
        some = as_tensor(np.zeros((), np.int64)) if like is None else like
        return ops["size_table"](some, kind=kind, arguments=arguments, dtype=np.dtype(dtype).name)
    if like is None and makes_tables():
        some = as_tensor(np.zeros((), np.int64))
        return ops["size_table"](some, kind=kind, arguments=arguments, dtype=np.dtype(dtype).name)
    values = _values(kind, arguments, dtype)
    return as_tensor(values) if like is None else on_device_of(values, like)


def makes_tables() -> bool:
    """Return whether the current backend makes tables itself, and now rather than in a trace."""
    if active_graph.get() is not None:
        return False
    return ("size_table", current_backend().name) in registry().tables["kernels"]


# -- ranks -----------------------------------------------------------------------------------------

Places = tuple[tuple[int, ...], ...]


def _inserted(shape: Any, places: Places) -> Any:
    if len(shape) >= len(places):
        return shape
    new, sizes = places[len(shape)], iter(shape)
    return tuple(1 if i in new else next(sizes) for i in range(len(shape) + len(new)))


def _insert_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    (x,), places = xs, params["places"]
    rank = rank_of(x, op) - 1
    new = places[rank] if rank < len(places) else ()
    return F.expand_dims(x, axis=tuple(n + 1 for n in new)) if new else x


_insert_axes = op(
    "insert_axes",
    lambda xp, x, *, places: xp.reshape(x, _inserted(x.shape, places)),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=lambda x, places: (None if x.shape is None else _inserted(x.shape, places), x.dtype),
    holomorphic=True,
    batch=_insert_rule,
    jvp="linear",
    view="reshape",
    doc="Insert axes of size 1: ``places[n]`` are their positions if ``x`` has n axes.",
)


def _drop_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    x, like = together(xs, batched)
    return F.squeeze(x, axis=-1) if rank_of(like, op) == 2 else x


_drop_column = op(
    "drop_column_like",
    lambda xp, x, like: xp.reshape(x, _dropped(x.shape, like.shape)),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like), "like": NONDIFF},
    infer=lambda x, like: (_dropped(x.shape, like.shape), x.dtype),
    holomorphic=True,
    batch=_drop_rule,
    jvp="linear",
    doc="Remove the last axis, of size 1, from ``x`` if ``like`` is a vector.",
)


def _dropped(shape: Any, like: Any) -> Any:
    if shape is None or like is None:
        return None
    return shape[:-1] if len(like) == 1 else shape


def with_axes(x: Any, places: Places) -> Any:
    """Return a tensor with axes of size 1 inserted: at ``places[n]`` if it has n axes."""
    if x.shape is None:
        return _insert_axes(x, places=places)
    new = places[len(x.shape)] if len(x.shape) < len(places) else ()
    return ops["expand_dims"](x, axis=new) if new else x


def as_vector(x: Any) -> Any:
    """Return a tensor unchanged, or a number as a vector of size 1."""
    return with_axes(x, ((0,),))


def as_columns(b: Any) -> Any:
    """Return the right-hand sides of systems as columns; a vector becomes one column."""
    return with_axes(b, ((), (1,)))


def like_columns(x: Any, b: Any) -> Any:
    """Return the solutions of systems in the form of the right-hand sides ``b``."""
    if b.shape is None:
        return _drop_column(x, b)
    return ops["squeeze"](x, axis=-1) if len(b.shape) == 1 else x


def known_rank(x: Any, name: str) -> int:
    """Return a tensor's rank.

    Raises
    ------
    TraceError
        If it is unknown in a trace.
    """
    if x.shape is None:
        raise TraceError(
            f"{name}: the rank is unknown in this trace; give the argument's TensorSpec a shape, "
            "None for each size that may vary"
        )
    return len(x.shape)


def needs_axes(x: Any, count: int, name: str) -> Any:
    """Return ``x`` as a tensor; raise if it is known to have fewer axes than ``count``."""
    x = as_tensor(x)
    if x.shape is not None and len(x.shape) < count:
        least = "one axis is" if count == 1 else f"{count} axes are"
        raise ValueError(f"{name}: at least {least} needed, got shape {x.shape}")
    return x
