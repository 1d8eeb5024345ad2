"""Sorting, partitioning, and searching in sorted vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Operators,
    Tensor,
    as_operands,
    as_size,
    as_tensor,
    is_transformed,
    known_size,
    on_device_of,
    ops,
    rank_of,
    shapes_differ,
    sizes_differ,
    to_numpy,
)
from ..common.axes import aligned, along, axis_of, one_axis, together
from ..common.dynamic_shapes import fixed, known_rank
from ..common.kernels import index_along_axis, put, scatter_add, writes_by_arrays
from ..common.op_builders import named, op, same_shape
from .selection import INDEX
from .take import take_along_axis

_KINDS = ("quicksort", "mergesort", "heapsort", "stable")


def _check_kind(name: str, kind: str | None, stable: bool | None) -> None:
    if kind is not None and stable is not None:
        raise ValueError(f"{name}: kind and stable mean the same; pass one of them")
    if kind is not None and not isinstance(kind, str):
        raise TypeError(f"{name}: kind must be text, got {kind!r}")
    if kind is not None and kind not in _KINDS:
        raise ValueError(f"{name}: kind must be one of {', '.join(_KINDS)}, got {kind!r}")


_argsort = op(
    "argsort",
    lambda xp, x, *, axis=-1: xp.argsort(x, axis=axis, stable=True),
    gradients={"x": NONDIFF},
    infer=same_shape("argsort", lambda dtype: INDEX),
    batch=along("axis"),
    doc="Return the indices that sort along an axis; equal elements keep their order.",
)


def _unsort(xp: Any, g: Any, order: Any, *, axis: int) -> Any:
    out = xp.zeros(g.shape, dtype=g.dtype)
    where = index_along_axis(xp, g.shape, order, axis)
    if not writes_by_arrays(xp, out):
        return scatter_add(xp, out, where, g)
    return put(out, where, g)  # an order names every element once


_sort = op(
    "sort",
    lambda xp, x, *, axis=-1: xp.sort(x, axis=axis),
    gradients={
        # which element went where is asked for here only: values alone are quicker to sort
        "x": lambda g, x, axis: F.unsort(g, F.sort_order(x, axis=axis), axis=axis)
    },
    infer=same_shape("sort"),
    holomorphic=True,
    batch=along("axis"),
    doc="Sort along an axis.",
)
op(
    "sort_order",
    lambda xp, x, *, axis: xp.argsort(x, axis=axis),
    gradients={"x": NONDIFF},
    infer=same_shape("sort_order", lambda dtype: INDEX),
    batch=along("axis"),
    doc="Return indices that sort along an axis, with equal elements in any order.",
)
op(
    "unsort",
    _unsort,
    gradients={
        "g": lambda g, order, axis: F.take_along_axis(g, order, axis=axis),
        "order": NONDIFF,
    },
    infer=lambda g, order, axis: (g.shape, g.dtype),
    holomorphic=True,
    batch=along("axis"),
    jvp="linear",
    doc="Put elements along an axis back to the positions from which an order took them.",
)


@named
def argsort(
    x: Any,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Tensor:
    """Return the indices that sort ``x`` along ``axis``; they have no gradient.

    Parameters
    ----------
    x
        A tensor of any dtype; complex numbers are ordered by their real parts, then by their
        imaginary parts, and nan comes last.
    axis
        The axis to sort along, the last by default; ``None`` sorts the flattened ``x``.
    kind
        NumPy's name for an algorithm, ``"quicksort"``, ``"mergesort"``, ``"heapsort"`` or
        ``"stable"``. It is ignored: equal elements always keep their order.
    stable
        Ignored too: equal elements always keep their order.
    descending
        Whether the largest element comes first, after nan.

    Returns
    -------
    An integer tensor of the shape of ``x``. Equal elements keep their order.

    Raises
    ------
    ValueError
        If ``kind`` is another word, or comes with ``stable``.

    Examples
    --------
    >>> gt.argsort(gt.constant([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    _check_kind("argsort", kind, stable)
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    axis = one_axis(axis, "argsort")
    if not descending:
        return _argsort(x, axis=axis)
    x = as_tensor(x)
    order = _argsort(ops["flip"](x, axis=axis), axis=axis)
    known_rank(x, "argsort")
    return x.shape[axis_of(x, axis, "argsort")] - 1 - ops["flip"](order, axis=axis)


@named
def sort(
    x: Any,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Tensor:
    """Return ``x`` in ascending order along ``axis``, or in descending order.

    Parameters
    ----------
    x
        A tensor of any dtype; complex numbers are in the order of their real parts, then imaginary
        parts, and nan comes last.
    axis
        The axis to sort along, the last by default; ``None`` sorts the flattened ``x``.
    kind, stable
        As for :func:`argsort`; the sorted values are the same for each.
    descending
        Whether the largest element comes first, after nan.

    Returns
    -------
    A tensor of the shape and dtype of ``x``. Gradients go back to the elements' original positions.

    Raises
    ------
    ValueError
        If ``kind`` is another word, or comes with ``stable``.

    Examples
    --------
    >>> gt.sort(gt.constant([[3.0, 1.0], [2.0, 4.0]]), axis=0).tolist()
    [[2.0, 1.0], [3.0, 4.0]]
    """
    _check_kind("sort", kind, stable)
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    axis = one_axis(axis, "sort")
    if not descending:
        return _sort(x, axis=axis)
    # turned twice, so that equal elements keep their order
    return ops["flip"](_sort(ops["flip"](x, axis=axis), axis=axis), axis=axis)


def _argpartition_kernel(xp: Any, x: Any, *, kth: Any, axis: int = -1) -> Any:
    if hasattr(xp, "argpartition"):
        return xp.argpartition(x, kth, axis=axis)
    return xp.argsort(x, axis=axis, stable=True)


def _argpartition_spec(x: Any, *, kth: Any, axis: int) -> tuple[Any, Any]:
    if x.shape is not None:
        size = x.shape[axis_of(x, axis, "argpartition")]
        ranks = kth if isinstance(kth, tuple) else (kth,)
        if all(type(k) is int for k in ranks):  # their ends say all, and there may be many
            ranks = (min(ranks), max(ranks)) if ranks else ()
        for k in ranks:
            outside = size is not None and ((k < -size) is True or (k >= size) is True)
            if outside and sizes_differ(size, 0):  # of nothing, NumPy takes any
                raise ValueError(f"argpartition: kth={k} is out of bounds for size {size}")
    return x.shape, INDEX


_argpartition = op(
    "argpartition",
    _argpartition_kernel,
    gradients={"x": NONDIFF},
    infer=_argpartition_spec,
    batch=along("axis"),
    doc="Return the indices that move the elements of some ranks to their sorted positions.",
)


def _rank(k: Any) -> Any:
    return as_size(k, "argpartition")


@named
def argpartition(x: Any, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """Return the indices that :func:`partition` applies; they have no gradient.

    Parameters
    ----------
    x
        A tensor of any dtype.
    kth
        The rank from 0, or several ranks; negative ones count from the end.
    axis
        The axis to partition along, the last by default; ``None`` flattens first.

    Returns
    -------
    An integer tensor of the shape of ``x``. It says which elements come before and after, but in no
    particular order.

    Raises
    ------
    ValueError
        If ``kth`` is out of bounds.
    TypeError
        If ``kth`` does not hold integers.

    Examples
    --------
    >>> gt.argpartition(gt.constant([3.0, 1.0, 2.0]), 1)[1].item()
    2
    """
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    try:
        several = np.ndim(kth)
        ranks = tuple(map(_rank, kth)) if several else _rank(kth)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"argpartition: kth must hold integers, got {kth!r}") from None
    return _argpartition(x, kth=ranks, axis=one_axis(axis, "argpartition"))


@named
def partition(x: Any, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """Return ``x`` with the ``kth`` smallest element at its sorted position along an axis.

    Parameters
    ----------
    x
        A tensor of any dtype.
    kth
        The rank from 0, or several; a negative one counts from the end.
    axis
        The axis to partition along, the last by default; ``None`` flattens first.

    Returns
    -------
    A tensor of the shape and dtype of ``x``, with no larger element before the ``kth``, and no
    smaller one after it. Gradients go back to the elements' original positions.

    Raises
    ------
    ValueError
        If ``kth`` is out of bounds.
    TypeError
        If ``kth`` does not hold integers.

    Examples
    --------
    >>> gt.partition(gt.constant([3.0, 1.0, 2.0]), 1).tolist()
    [1.0, 2.0, 3.0]
    """
    x = as_tensor(x)
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    return take_along_axis(x, argpartition(x, kth, axis), axis)


def _searchsorted_kernel(xp: Any, x: Any, values: Any, *, side: str = "left") -> Any:
    found = xp.searchsorted(x, xp.reshape(values, (-1,)), side=side)
    return xp.reshape(xp.asarray(found), values.shape)


def _searchsorted_spec(x: Any, values: Any, *, side: str) -> tuple[Any, Any]:
    if x.shape is not None and len(x.shape) != 1:
        raise ValueError(f"searchsorted: x must be a vector, got shape {x.shape}")
    return values.shape, INDEX


def searchsorted_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``searchsorted``; different vectors are compared element by element."""
    (x, values), (bx, _) = xs, batched
    if not bx:
        return op.raw(x, values, **params)
    x, values = together(xs, batched)
    values = F.expand_dims(values, axis=-1)
    x = aligned(x, rank_of(values, op) - 1, op)
    before = F.less(x, values) if params["side"] == "left" else F.less_equal(x, values)
    return F.sum(F.cast(before, dtype="int64"), axis=-1, keepdims=False)


_searchsorted = op(
    "searchsorted",
    _searchsorted_kernel,
    gradients={"x": NONDIFF, "values": NONDIFF},
    infer=_searchsorted_spec,
    batch=searchsorted_rule,
    doc="Return the positions at which values would be inserted into a sorted vector.",
)


@named
def searchsorted(x: Any, values: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Return the insertion positions of values in a sorted vector; they have no gradient.

    Parameters
    ----------
    x
        A vector in ascending order.
    values
        Numbers or a tensor of any shape.
    side
        ``"left"`` (the default): before equal elements; ``"right"``: after them.
    sorter
        Indices that sort ``x``, if it is not sorted.

    Returns
    -------
    An integer tensor of the shape of ``values``.

    Raises
    ------
    ValueError
        If ``x`` is not a vector, ``sorter`` has another size, or ``side`` is another word.
    TypeError
        If ``side`` is not a string.

    Examples
    --------
    >>> x = gt.constant([1.0, 2.0, 3.0])
    >>> gt.searchsorted(x, [2.0, 2.5]).tolist()
    [1, 2]
    >>> gt.searchsorted(x, [2.0, 2.5], side="right").tolist()
    [2, 2]
    """
    if not isinstance(side, str):
        raise TypeError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    x = as_tensor(x)
    if sorter is not None:
        order = on_device_of(sorter, x, weak=False)
        if shapes_differ(order.shape, x.shape):
            raise ValueError(
                f"searchsorted: sorter needs one index per element of x, got shape {order.shape} "
                f"for {x.shape}"
            )
        x = ops["take"](x, order, axis=0)
    return _searchsorted(x, on_device_of(values, x), side=side)


@named
def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """Return the bin number of each element; the numbers have no gradient.

    Parameters
    ----------
    x
        Real numbers, of any shape.
    bins
        The edges between the bins: a vector in ascending or in descending order.
    right
        Whether an edge belongs to the bin below it; by default it belongs to the one above.

    Returns
    -------
    An integer tensor of the shape of ``x``: 0 before the first edge, ``len(bins)`` after the last.

    Raises
    ------
    ValueError
        If ``bins`` is not a vector, or neither ascends nor descends (not checked in a trace).
    TypeError
        If ``x`` or ``bins`` is complex.

    Examples
    --------
    >>> gt.digitize([0.2, 6.4, 1.0], [0.0, 1.0, 2.5]).tolist()
    [1, 3, 2]
    >>> gt.digitize([0.2, 6.4, 1.0], [2.5, 1.0, 0.0], right=True).tolist()
    [2, 0, 2]
    """
    x = on_device_of(x, as_tensor(bins)) if isinstance(bins, Operators) else as_tensor(x)
    bins = on_device_of(bins, x)
    if "c" in (x.dtype.kind, bins.dtype.kind):
        raise TypeError("digitize: complex numbers have no order, so they cannot be binned")
    if bins.shape is not None and len(bins.shape) != 1:
        raise ValueError(f"digitize: the bins must be a vector, got shape {bins.shape}")
    if bins.shape is None:
        raise ValueError("digitize: the rank of the bins is unknown in this trace; give a shape")
    side, (size,) = "left" if right else "right", bins.shape
    upwards = _searchsorted(bins, x, side=side)
    if (size < 2) is True:
        return upwards
    if is_transformed(bins.array):
        falling = bins[0] > bins[-1] if known_size(size) else ops["any"](bins[:1] > bins[-1:])
    else:
        steps = np.diff(to_numpy(bins.array))
        falling = bool((steps < 0).any())
        if falling and (steps > 0).any():
            raise ValueError("digitize: the bins must ascend or descend")
        if not falling:
            return upwards
    downwards = size - _searchsorted(ops["flip"](bins, axis=0), x, side=side)
    return ops["where"](falling, downwards, upwards) if type(falling) is Tensor else downwards


@named
def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """Return the indices that sort by several keys, the last of them first.

    Parameters
    ----------
    keys
        Tensors of the same shape, or a tensor with the keys along its first axis. The last key
        decides; ties are broken by the key before it, and so on.
    axis
        The axis to sort along, the last by default.

    Returns
    -------
    An integer tensor of the shape of a key; it has no gradient. Elements that are equal in all keys
    keep their order.

    Raises
    ------
    TypeError
        If there are no keys, or a number is given instead.
    ValueError
        If their shapes differ.
    TraceError
        If a trace does not know the number of keys.

    Examples
    --------
    >>> names, surnames = gt.constant([2, 1, 3]), gt.constant([1, 1, 0])
    >>> gt.lexsort((names, surnames)).tolist()
    [2, 1, 0]
    """
    columns = (
        as_operands(list(keys)) if isinstance(keys, (list, tuple)) else _rows_of(as_tensor(keys))
    )
    if not columns:
        raise TypeError("lexsort: at least one key is needed")
    shapes = [x.shape for x in columns]
    if any(shapes_differ(shape, shapes[0]) for shape in shapes):
        raise ValueError(f"lexsort: keys must have the same shape, got {shapes}")
    if shapes[0] == () and axis in (-1, 0):  # each key is one number, as for NumPy
        return on_device_of(np.int64(0), columns[0])
    axis = one_axis(axis, "lexsort")
    order = _argsort(columns[0], axis=axis)
    for key in columns[1:]:  # each sort keeps the order that the keys before have made
        finer = _argsort(take_along_axis(key, order, axis), axis=axis)
        order = take_along_axis(order, finer, axis)
    return order


def _rows_of(keys: Tensor) -> list[Tensor]:
    if keys.shape == ():
        raise TypeError("lexsort: keys must be a sequence, or a tensor of at least one axis")
    known_rank(keys, "lexsort")
    return [keys[i] for i in range(fixed(keys.shape[0], "lexsort", "the number of keys"))]
