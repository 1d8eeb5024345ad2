"""Names directly under ``tf`` that gather, scatter and order elements."""

from __future__ import annotations

from typing import Any

import gradtape

from ....core.extend import known_size, sizes_differ
from ....plugins.ops.common.axes import axis_of
from ..dtypes import cast, int32
from ..names import adapts
from ..tensors import convert_to_tensor, sizes

__all__ = "argsort searchsorted sort unique".split()

# -- indexing --------------------------------------------------------------------------------------


def alone(condition: Any, x: Any, y: Any) -> Any:
    """Return the condition of a ``tf.where`` without ``x`` and ``y`` as a tensor."""
    if x is not None or y is not None:
        raise ValueError("where: pass both x and y, or neither")
    return convert_to_tensor(condition)


def over_batch(fn: Any, batch_dims: int) -> Any:
    for _ in range(batch_dims):
        fn = gradtape.vmap(fn)
    return fn


def gathered(params: Any, indices: Any, axis: Any, batch_dims: int) -> Any:
    """Return the slices of ``params`` along ``axis`` at ``indices``, example by example."""
    batch_dims = batch_dims % max(indices.ndim, 1) if batch_dims < 0 else batch_dims
    axis = batch_dims if axis is None else axis_of(params, axis, "gather") % params.ndim
    if axis < batch_dims:
        raise ValueError(f"gather: axis {axis} is a batch axis: pass {batch_dims} or more")
    inner = axis - batch_dims
    return over_batch(lambda p, i: gradtape.take(p, i, inner), batch_dims)(params, indices)


def zeros_of(shape: Any, like: Any) -> Any:
    """Return zeros of a shape, in the dtype of updates."""
    return gradtape.zeros(sizes(shape, "scatter_nd"), convert_to_tensor(like).dtype)


def index_of(indices: Any) -> tuple[Any, ...]:
    return tuple(gradtape.unstack(convert_to_tensor(indices), -1))


def fitting(updates: Any, indices: Any, shape: Any, op: str) -> Any:
    """Return updates of one slice per index, or one number, as far as the trace knows the sizes."""
    given = (updates if hasattr(updates, "shape") else convert_to_tensor(updates)).shape
    places = convert_to_tensor(indices).shape
    if not given or shape is None or places is None:
        return updates
    wanted = (*places[:-1], *shape[places[-1] :]) if known_size(places[-1]) else given
    if len(given) != len(wanted) or any(map(sizes_differ, given, wanted)):
        raise ValueError(f"{op}: updates must have shape {wanted} or (), got {tuple(given)}")
    return updates


def shifts(shift: Any, axis: Any) -> Any:
    """Return the shifts of a roll, which must be as many as the axes."""
    counts = [len(x) if isinstance(x, tuple) else 1 for x in (shift, axis)]
    if counts[0] != counts[1]:
        raise ValueError(f"roll: got {counts[0]} shifts for {counts[1]} axes")
    return shift


@adapts("unique")
def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> tuple[Any, Any]:
    """Return the distinct elements in order of first occurrence, and each element's index there."""
    values, first, inverse = gradtape.unique(
        convert_to_tensor(x), return_index=True, return_inverse=True
    )
    order = gradtape.argsort(first)
    return gradtape.take(values, order), cast(
        gradtape.take(gradtape.argsort(order), inverse), out_idx
    )


# -- order -----------------------------------------------------------------------------------------


def _descending(direction: str, op: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"{op}: direction is 'ASCENDING' or 'DESCENDING', got {direction!r}")
    return direction == "DESCENDING"


@adapts("sort")
def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Any:
    """Return the elements in order along ``axis``."""
    down = _descending(direction, "sort")
    ordered = gradtape.sort(convert_to_tensor(values), axis)
    return gradtape.flip(ordered, axis) if down else ordered


@adapts("argsort")
def argsort(
    values: Any,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Any:
    """Return the indices that sort the elements along ``axis``; equal ones stay in order."""
    values = convert_to_tensor(values)
    if not _descending(direction, "argsort"):
        return cast(gradtape.argsort(values, axis), int32)
    # sort the reversed elements and read from the end, so that equal ones stay in order
    order = gradtape.flip(gradtape.argsort(gradtape.flip(values, axis), axis), axis)
    return cast(values.shape[axis] - 1 - order, int32)


@adapts("searchsorted")
def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = int32,
    name: str | None = None,
) -> Any:
    """Return the indices at which values belong in sorted sequences, row by row."""
    rows, values = convert_to_tensor(sorted_sequence), convert_to_tensor(values)
    found = over_batch(lambda r, v: gradtape.searchsorted(r, v, side), rows.ndim - 1)(rows, values)
    return cast(found, out_type)
