"""Reading and writing parts of arrays that build ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import spox.opset.ai.onnx.v21 as onnx


def parsed(x: Any, key: Any) -> tuple[Any, dict[int, Any]]:
    """Return an index in ndonnx's form, and the index arrays in it by axis.

    The returned index has full slices at the axes of index arrays.
    """
    xp, ndim = x.xp, x.ndim
    parts = key if isinstance(key, tuple) else (key,)
    parts = tuple([xp.asarray(part) if isinstance(part, np.ndarray) else part for part in parts])
    if len(parts) == 1 and _is_mask(parts[0]):
        return parts[0].inner, {}
    if not any(part is Ellipsis for part in parts):
        parts = (*parts, Ellipsis)
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    place = next(i for i, part in enumerate(parts) if part is Ellipsis)
    parts = (*parts[:place], *[slice(None)] * (ndim - taken), *parts[place + 1 :])
    found: list[Any] = []
    arrays: dict[int, Any] = {}
    for part in parts:
        if _is_mask(part):
            raise TypeError("an index combines a mask with other parts")
        if hasattr(part, "var") and part.ndim:
            arrays[sum(v is None or isinstance(v, slice) for v in found)] = part
            part = slice(None)
        if isinstance(part, slice):
            part = slice(*[xp.inner(v) for v in (part.start, part.stop, part.step)])
        found.append(xp.inner(part))
    return tuple(found), arrays


def cut(x: Any, parts: Any) -> Any:
    """Return the elements of an index without arrays, by a single Slice node if possible."""
    xp = x.xp
    if not isinstance(parts, tuple) or not all(map(_plain_part, parts)):
        return xp.wrap(x.inner[parts])
    axes = [i for i, part in enumerate(parts) if part != slice(None)]
    if not axes:
        return x
    ends = [parts[i] + 1 if type(parts[i]) is int else parts[i].stop for i in axes]
    if not all(end is None or type(end) is int for end in ends):
        return xp.wrap(x.inner[parts])
    starts = [parts[i] if type(parts[i]) is int else parts[i].start or 0 for i in axes]
    steps = [1 if type(parts[i]) is int else parts[i].step or 1 for i in axes]
    ends = [np.iinfo(np.int64).max if end is None else end for end in ends]
    given = [onnx.const(np.array(v, np.int64)) for v in (starts, ends, axes, steps)]
    found = xp.of(onnx.slice(x.var, *given))
    single = tuple(i for i in axes if type(parts[i]) is int)
    return xp.squeeze(found, axis=single) if single else found


class At:
    """Places in an array: ``set`` and ``add`` write to them in a copy."""

    __slots__ = ("key", "x")

    def __init__(self, x: Any, key: Any) -> None:
        self.x, self.key = x, key

    def __getitem__(self, key: Any) -> At:
        return At(self.x, key)

    def set(self, values: Any) -> Any:
        return self._written(values, "none")

    def add(self, values: Any) -> Any:
        return self._written(values, "add")

    def _written(self, values: Any, reduction: str) -> Any:
        x, xp = self.x, self.x.xp
        values = xp.astype(xp.asarray(values), x.dtype)
        found, arrays = parsed(x, self.key)
        if arrays:
            return scattered(x, found, arrays, values, reduction)
        if isinstance(found, tuple) and any(part is None for part in found):
            found, values = _without_new_axes(x, found, values)
        if isinstance(found, tuple) and all(map(_plain_part, found)):
            seen = cut(x, found)
            spread = partial(_spread, parts=found, shape=x.shape)
            values = spread(xp.broadcast_to(values, seen.shape))
            if reduction == "add":
                return x + values
            return xp.where(spread(xp.ones(seen.shape, dtype=np.float32)) > 0, values, x)
        inner = x.inner.copy()
        if reduction == "add":
            values = xp.wrap(inner[found]) + values
        inner[found] = values.inner
        return xp.wrap(inner)


def _without_new_axes(x: Any, parts: Any, values: Any) -> tuple[Any, Any]:
    """Return an index without its new axes, and values without these axes."""
    xp, left = x.xp, tuple(part for part in parts if part is not None)
    kept = [part for part in parts if type(part) is not int]
    new = tuple(axis for axis, part in enumerate(kept) if part is None)
    shape = list(cut(x, left).shape)
    for axis in new:
        shape.insert(axis, 1)
    return left, xp.squeeze(xp.broadcast_to(values, tuple(shape)), axis=new)


def _plain_part(part: Any) -> bool:
    """Return whether an index has known, non-negative starts and positive steps."""
    if type(part) is int:
        return part >= 0
    if not isinstance(part, slice):
        return False
    known = all(x is None or type(x) is int for x in (part.start, part.step))
    return known and (part.start or 0) >= 0 and (part.step or 1) >= 1


def _spread(values: Any, parts: Sequence[Any], shape: Sequence[Any]) -> Any:
    """Return zeros of a shape with values at the places of slices, by a Pad node."""
    xp, before, after = values.xp, [], []
    for axis, (part, size) in enumerate(zip(parts, shape, strict=True)):
        start, step = (part, 1) if type(part) is int else (part.start or 0, part.step or 1)
        if type(part) is int:
            values = xp.expand_dims(values, axis=axis)
        count = values.shape[axis]
        if step > 1:  # zeros between values; those after the last may be cut off again
            values = xp.expand_dims(values, axis=axis + 1)
            around = [0] * values.ndim
            values = xp.padded(
                values, around, [(step - 1) * (i == axis + 1) for i in range(values.ndim)]
            )
            values = xp.reshape(
                values, (*values.shape[:axis], count * step, *values.shape[axis + 2 :])
            )
        before.append(start)
        after.append(size - start - count * step)
    return xp.padded(values, before, after) if any(map(_not_zero, (*before, *after))) else values


def _not_zero(n: Any) -> bool:
    return (n == 0) is not True


def gathered(x: Any, found: Any, arrays: dict[int, Any]) -> Any:
    """Return the elements at index arrays, which may be combined with slices."""
    xp = x.xp
    whole = cut(x, found)
    first = [*arrays, *[i for i in range(whole.ndim) if i not in arrays]]
    places = [xp.astype(places, np.int64) for places in arrays.values()]
    where = xp.stack(xp.broadcast_arrays(*places), axis=-1)
    result = xp.of(onnx.gather_nd(xp.permute_dims(whole, first).var, where.var))
    count, start = where.ndim - 1, first[0]
    if list(arrays) != list(range(start, start + len(arrays))) or start == 0:
        return result  # as in NumPy, their axes come first if they are not adjacent
    return xp.moveaxis(result, tuple(range(count)), tuple(range(start, start + count)))


def scattered(x: Any, found: Any, arrays: dict[int, Any], values: Any, reduction: str) -> Any:
    """Return ``x`` with values written or added at the places of index arrays and slices."""
    xp = x.xp
    numbers = xp.reshape(xp.arange(x.size), x.shape)
    places = gathered(numbers, found, arrays)
    values = xp.broadcast_to(values, places.shape)
    flat = onnx.scatter_nd(
        xp.reshape(x, (-1,)).var,
        xp.expand_dims(xp.reshape(places, (-1,)), axis=-1).var,
        xp.reshape(values, (-1,)).var,
        reduction=reduction,
    )
    return xp.reshape(xp.of(flat), x.shape)


def _is_mask(part: Any) -> bool:
    return hasattr(part, "var") and part.dtype.kind == "b"
