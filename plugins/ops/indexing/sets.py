"""Vectors as sets: their distinct elements, membership, unions and differences."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Tensor,
    as_batched,
    as_operands,
    kind_of,
    on_device_of,
    ops,
    rank_of,
)
from ..common.axes import one_axis, reduced_axes, refused
from ..common.op_builders import named, op
from .selection import INDEX, SIZES_DIFFER


def _unique_kernel(
    xp: Any, x: Any, *, axis: int | None = None, equal_nan: bool = True
) -> tuple[Any, ...]:
    if hasattr(xp, "unique"):
        values, indices, inverse, counts = xp.unique(x, True, True, True, axis, equal_nan=equal_nan)
    elif axis is None and not (equal_nan and kind_of(x.dtype) in "fc" and xp.any(xp.isnan(x))):
        values, indices, inverse, counts = xp.unique_all(x)
    else:
        raise TypeError(
            f"the standard has none along an axis, or of nan that are equal; {xp.__name__} has no "
            "unique of its own"
        )
    shape = x.shape if axis is None else (x.shape[axis],)
    return values, indices, xp.reshape(inverse, shape), counts


def _unique_spec(x: Any, *, axis: int | None, equal_nan: bool) -> list[tuple[Any, Any]]:
    count = ((None,), INDEX)
    if axis is None:
        return [((None,), x.dtype), count, (x.shape, INDEX), count]
    if x.shape is None:
        return [(None, x.dtype), count, ((None,), INDEX), count]
    (along,) = reduced_axes(axis, len(x.shape), "unique")
    slices = tuple(None if i == along else n for i, n in enumerate(x.shape))
    return [(slices, x.dtype), count, ((x.shape[along],), INDEX), count]


def _unique_vjp(
    gs: Any, inputs: Any, outputs: Any, needed: Any, *, axis: int | None, equal_nan: bool
) -> list[Any]:
    return [F.take_adjoint(gs[0], outputs[1], inputs[0], axis=axis)]


def _unique_jvp(
    tangents: Any, inputs: Any, outputs: Any, *, axis: int | None, equal_nan: bool
) -> list[Any]:
    return [ops["take"](tangents[0], outputs[1], axis=axis), None, None, None]


_unique = op(
    "unique",
    _unique_kernel,
    vjp=_unique_vjp,
    jvp=_unique_jvp,
    infer=_unique_spec,
    batch=refused(SIZES_DIFFER),
    doc="Return the distinct values, their first indices, the inverse indices and counts.",
)


@named
def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """Return the distinct values of a tensor, in ascending order.

    Parameters
    ----------
    x
        A tensor of any shape.
    return_index
        Also return the indices of their first occurrences in the flattened ``x``.
    return_inverse
        Also return, for each element, the index of its value: a tensor of the shape of ``x``.
    return_counts
        Also return how often each value occurs.
    axis
        Treat whole slices along an axis as values, in the order of their elements; indices are then
        vectors.
    equal_nan
        Whether all nan are one value, as in NumPy, or each is a separate value.

    Returns
    -------
    A vector (slices along ``axis``), or a tuple of it and the other requested results, in this
    order. Its size depends on the values, so a trace does not know it.

    Notes
    -----
    The gradient of a value goes to its first occurrence. The same holds for the other set
    functions.

    Examples
    --------
    >>> gt.unique(gt.constant([3, 1, 3])).tolist()
    [1, 3]
    >>> gt.grad(lambda x: gt.sum(gt.unique(x) ** 2))(gt.constant([3.0, 1.0, 3.0])).tolist()
    [6.0, 2.0, 0.0]
    >>> values, counts = gt.unique(gt.constant([3, 1, 3]), return_counts=True)
    >>> counts.tolist()
    [1, 2]
    """
    asked = (True, return_index, return_inverse, return_counts)
    along = None if axis is None else one_axis(axis, "unique")
    found = _unique(x, axis=along, equal_nan=bool(equal_nan))
    kept = tuple(y for y, wanted in zip(found, asked, strict=True) if wanted)
    return kept if len(kept) > 1 else kept[0]


class UniqueAllResult(NamedTuple):
    """The result of :func:`unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCountsResult(NamedTuple):
    """The result of :func:`unique_counts`."""

    values: Any
    counts: Any


class UniqueInverseResult(NamedTuple):
    """The result of :func:`unique_inverse`."""

    values: Any
    inverse_indices: Any


@named
def unique_all(x: Any) -> UniqueAllResult:
    """Return the distinct values, their first indices, the inverse indices and the counts.

    As in the array API standard, and unlike :func:`unique`, every nan is a separate value.

    Returns
    -------
    values
        A vector in ascending order, of the dtype of ``x``.
    indices
        For each value, the index of its first occurrence in the flattened ``x``.
    inverse_indices
        For each element of ``x``, the index of its value, in the shape of ``x``.
    counts
        How often each value occurs.

    Examples
    --------
    >>> found = gt.unique_all(gt.constant([3, 1, 3]))
    >>> found.values.tolist(), found.indices.tolist()
    ([1, 3], [1, 0])
    >>> found.inverse_indices.tolist(), found.counts.tolist()
    ([1, 0, 1], [1, 2])
    """
    return UniqueAllResult(*_unique(x, axis=None, equal_nan=False))


@named
def unique_counts(x: Any) -> UniqueCountsResult:
    """Return the distinct values, and how often each occurs; every nan is a separate value.

    Returns
    -------
    values
        A vector in ascending order, of the dtype of ``x``.
    counts
        How often each value occurs.

    Examples
    --------
    >>> gt.unique_counts(gt.constant([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    values, _, _, counts = unique_all(x)
    return UniqueCountsResult(values, counts)


@named
def unique_inverse(x: Any) -> UniqueInverseResult:
    """Return the distinct values, and for each element of ``x`` the index of its value.

    Every nan is a separate value.

    Returns
    -------
    values
        A vector in ascending order, of the dtype of ``x``.
    inverse_indices
        An integer tensor of the shape of ``x``: ``values[inverse_indices]`` is ``x``.

    Examples
    --------
    >>> gt.unique_inverse(gt.constant([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    values, _, inverse, _ = unique_all(x)
    return UniqueInverseResult(values, inverse)


@named
def unique_values(x: Any) -> Tensor:
    """Return the distinct values, in ascending order; every nan is a separate value.

    Returns
    -------
    A vector of the dtype of ``x``. Its size depends on the values, so a trace does not know it.

    Examples
    --------
    >>> gt.unique_values(gt.constant([3, 1, 3])).tolist()
    [1, 3]
    """
    return unique_all(x).values


def _isin_kernel(xp: Any, x: Any, values: Any) -> Any:
    if not values.shape[0]:
        return xp.zeros(x.shape, dtype=xp.bool)
    common = xp.result_type(x, values)
    if kind_of(common) in "bc":  # the standard does not sort these
        return xp.any(xp.expand_dims(x, axis=-1) == values, axis=-1)
    ordered = xp.sort(xp.astype(values, common))
    flat = xp.reshape(xp.astype(x, common), (-1,))
    places = xp.searchsorted(ordered, flat)
    places = xp.where(places == ordered.shape[0], 0, places)
    return xp.reshape(xp.take(ordered, places, axis=0) == flat, x.shape)


def isin_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``isin``."""
    x, values = xs
    if not batched[1]:
        return op.raw(x, values)
    x = x if batched[0] else as_batched(x, values)
    apart = F.expand_dims(values, axis=tuple(range(1, rank_of(x, op))))
    return F.any(F.equal(F.expand_dims(x, axis=-1), apart), axis=-1)


_isin = op(
    "isin",
    _isin_kernel,
    gradients={"x": NONDIFF, "values": NONDIFF},
    infer=lambda x, values: (x.shape, np.dtype(bool)),
    batch=isin_rule,
    doc="Return whether each element is among the elements of a vector.",
)


@named
def isin(x: Any, values: Any, *, invert: bool = False) -> Tensor:
    """Return whether each element is among some values; it has no gradient.

    Parameters
    ----------
    x
        A tensor of any shape.
    values
        The values to look for, of any shape.
    invert
        Return instead whether it is not among them.

    Returns
    -------
    A boolean tensor of the shape of ``x``.

    Notes
    -----
    nan equals no value.

    Examples
    --------
    >>> gt.isin(gt.constant([1, 2, 3]), [2, 3, 5]).tolist()
    [False, True, True]
    """
    x, values = as_operands((x, values))
    found = _isin(x, ops["reshape"](on_device_of(values, x), shape=(-1,)))
    return ops["logical_not"](found) if invert else found


def _pair(x: Any, y: Any) -> tuple[Any, Any]:
    first, other = as_operands((x, y))
    return ops["reshape"](first, shape=(-1,)), ops["reshape"](
        on_device_of(other, first), shape=(-1,)
    )


def _alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two tensors as vectors of their promoted dtype."""
    x, y = _pair(x, y)
    both = np.result_type(x.dtype, y.dtype).name
    return ops["cast"](x, dtype=both), ops["cast"](y, dtype=both)


@named
def union1d(x: Any, y: Any) -> Tensor:
    """Return the values that occur in ``x`` or ``y``, in ascending order.

    Parameters
    ----------
    x, y
        Tensors of any shapes, which are flattened; their dtypes promote.

    Returns
    -------
    A vector. Its size depends on the values, so a trace does not know it.

    Examples
    --------
    >>> gt.union1d(gt.constant([1, 2]), gt.constant([3, 2])).tolist()
    [1, 2, 3]
    """
    return unique(ops["concatenate"](*_pair(x, y), axis=0))


@named
def intersect1d(x: Any, y: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Return the values that occur in both tensors, in ascending order.

    Parameters
    ----------
    x, y
        Tensors of any shapes, which are flattened; their dtypes promote.
    assume_unique
        Only for NumPy's signature: the result does not depend on it.
    return_indices
        Also return the indices of their first occurrences in ``x`` and in ``y``.

    Returns
    -------
    A vector; with ``return_indices`` a tuple of it and two integer vectors. Their size depends on
    the values, so a trace does not know it.

    Examples
    --------
    >>> gt.intersect1d(gt.constant([1, 2, 3]), gt.constant([3, 2, 5])).tolist()
    [2, 3]
    """
    x, y = _alike(x, y)
    values, places = unique(x, return_index=True)
    kept = isin(values, y)
    if not return_indices:
        return values[kept]
    others, theirs = unique(y, return_index=True)
    return values[kept], places[kept], theirs[isin(others, x)]


@named
def setdiff1d(x: Any, y: Any, assume_unique: bool = False) -> Tensor:
    """Return the values of ``x`` that do not occur in ``y``, in ascending order.

    Parameters
    ----------
    x, y
        Tensors of any shapes, which are flattened; their dtypes promote.
    assume_unique
        Keep every such element, repeated ones too, in the order of ``x``.

    Returns
    -------
    A vector. Its size depends on the values: a trace does not know it.

    Examples
    --------
    >>> gt.setdiff1d(gt.constant([3, 1, 2, 3]), gt.constant([2])).tolist()
    [1, 3]
    >>> gt.setdiff1d(gt.constant([3, 1, 2]), gt.constant([2]), assume_unique=True).tolist()
    [3, 1]
    """
    x, y = _pair(x, y)
    values = x if assume_unique else unique(x)
    return values[isin(values, y, invert=True)]


@named
def setxor1d(x: Any, y: Any, assume_unique: bool = False) -> Tensor:
    """Return the values that occur in exactly one of two tensors, in ascending order.

    Parameters
    ----------
    x, y
        Tensors of any shapes, which are flattened; their dtypes promote.
    assume_unique
        Only for NumPy's signature: the result is the same for values that are unique.

    Returns
    -------
    A vector. Its size depends on the values: a trace does not know it.

    Examples
    --------
    >>> gt.setxor1d(gt.constant([1, 2]), gt.constant([3, 2])).tolist()
    [1, 3]
    """
    x, y = _alike(x, y)
    parts = [a[isin(a, b, invert=True)] for a, b in ((x, y), (y, x))]
    return unique(ops["concatenate"](*parts, axis=0))
