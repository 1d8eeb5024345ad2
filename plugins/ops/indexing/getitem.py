"""The ops of ``x[index]`` and of ``x.at[index].set(values)``, and the adjoint of indexing.

The adjoint writes into zeros of the original's shape, and adds where an element was selected twice.
Many reads of one tensor have one adjoint, which takes linear time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Shared,
    Size,
    TensorSpec,
    as_batched,
    broadcast_shapes,
    decode_index,
    is_open,
    kind_of,
    largest,
    row_of,
    size_difference,
    sizes_differ,
)
from ..common.axes import reduced_axes, shape_only
from ..common.dynamic_shapes import elements, place_between
from ..common.kernels import as_like, complete, picked, put, scatter_add, writes_by_arrays
from ..common.op_builders import op
from .batched_index import batched_index, picked_from_shared

Index = tuple[Any, ...]


def gradients_together(
    gs: Sequence[Any], like: Any, indices: Sequence[Index], arrays: Sequence[Sequence[Any]]
) -> Any:
    """Return the gradient of a tensor, from the gradients of its elements at each index.

    Parameters
    ----------
    gs
        The gradients of the elements that were read.
    like
        The tensor, or a witness of its shape.
    indices, arrays
        For each of them, the index as a parameter of ops, and the arrays in it.

    Returns
    -------
    array
        Their sum, each at its position in zeros of the shape of ``like``.
    """
    values = [x for g, inside in zip(gs, arrays, strict=True) for x in (g, *inside)]
    return F.index_add_all_like(like, *values, indices=tuple(indices))


def _parts(values: Sequence[Any], indices: Sequence[Index]) -> Iterator[tuple[Any, Any, Index]]:
    """Yield each gradient with the arrays of its index, and the index."""
    start = 0
    for index in indices:
        end = start + 1 + sum(type(p) is tuple and p[0] == "array" for p in index)
        yield values[start], values[start + 1 : end], index
        start = end


def take_kernel(xp: Any, x: Any, indices: Any, *, axis: int | None = None) -> Any:
    """Return entries along an axis, by integers of any shape."""
    if axis is None:
        x, axis = xp.reshape(x, (-1,)), 0
    (along,) = reduced_axes(axis, x.ndim, "take")
    picked = xp.take(x, xp.reshape(indices, (-1,)), axis=along)
    return xp.reshape(picked, (*x.shape[:along], *indices.shape, *x.shape[along + 1 :]))


def _index_add_all(xp: Any, like: Any, *values: Any, indices: tuple[Index, ...]) -> Any:
    parts = list(_parts(values, indices))
    out = xp.zeros(like.shape, dtype=xp.result_type(*[g for g, _, _ in parts]))
    for g, arrays, index in parts:
        where = decode_index(index, tuple(arrays))
        if all(kind_of(array.dtype) == "b" for array in arrays):
            # they name no element twice; some libraries take no mask with other parts
            with suppress(IndexError, NotImplementedError):
                out = put(out, where if arrays else complete(where), g, add=True)
                continue
        out = scatter_add(xp, out, where, g)
    return out


def _vjp(
    gs: Any, inputs: Any, outputs: Any, needed: Any, *, indices: tuple[Index, ...]
) -> list[Any]:
    (g,), (_, *values) = gs, inputs
    grads: list[Any] = [None]
    for part, arrays, index in _parts(values, indices):
        wanted = needed[len(grads)]
        picked = F.getitem(g, *arrays, index=index) if wanted else None
        if wanted and part.dtype != g.dtype:
            picked = F.cast_like(picked, part)
        grads += [picked, *[None] * len(arrays)]
    return grads


def _spec(like: Any, *values: Any, indices: tuple[Index, ...]) -> tuple[Any, Any]:
    found = next(_parts(values, indices))[0].dtype
    for g, _, _ in _parts(values, indices):
        found = np.promote_types(found, g.dtype)
    return like.shape, found


def index_add_all_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``index_add_all_like``."""
    (like, *values), indices = xs, params["indices"]
    if not any(batched[1:]):
        return Shared(op.raw(row_of(like), *values, indices=indices))
    beside = xs[batched.index(True)]
    whole = like if batched[0] else as_batched(like, beside)
    found: list[Any] = []
    places: list[Index] = []
    parts = zip(_parts(values, indices), _parts(batched[1:], indices), strict=True)
    for (g, arrays, index), (g_batched, flags, _) in parts:
        plan = batched_index(op, index, whole, list(arrays), list(flags))
        found += [plan.back(g if g_batched else as_batched(g, beside)), *plan.arrays]
        places.append(plan.index)
    return op.raw(whole, *found, indices=tuple(places))


op(
    "index_add_all_like",
    _index_add_all,
    vjp=_vjp,
    shapes_only=("like", "out"),
    infer=_spec,
    batch=index_add_all_rule,
    jvp="linear",
    doc="Add arrays to zeros of the shape of ``like``, each at its index: the adjoint of reads.",
)


# -- one index -------------------------------------------------------------------------------------


def index_shape(shape: Any, index: tuple[Any, ...], arrays: tuple[TensorSpec, ...]) -> Any:
    """Return the shape of ``x[index]``, by NumPy's rules, with unknown sizes."""
    if shape is None or any(array.shape is None for array in arrays):
        return None
    parts = [arrays[p[1]] if isinstance(p, tuple) and p[0] == "array" else p for p in index]
    used = sum(_axes_used(part) for part in parts)
    if used > len(shape):
        raise IndexError(f"getitem: too many indices for shape {shape}: {used}")
    if "..." not in [p for p in parts if isinstance(p, str)]:
        parts.append("...")
    advanced = bool(arrays)
    sizes = list(shape)
    picked: list[Any] = []  # what the advanced indices give, broadcast together
    places: list[int] = []  # their positions in the index
    front = 0  # how many axes of the result precede the first of them
    result: list[int | None] = []
    for place, part in enumerate(parts):
        if isinstance(part, str):
            kept = len(shape) - used if part == "..." else 0
            result += sizes[:kept] if part == "..." else [1]
            del sizes[:kept]
        elif isinstance(part, tuple):
            result.append(_sliced(sizes.pop(0), slice(*part[1:])))
        else:
            if advanced and not places:
                front = len(result)
            places.append(place)
            picked.append(_picked(part, sizes, shape))
    if not advanced:
        return tuple(result)
    if places != list(range(places[0], places[-1] + 1)):
        front = 0  # apart from each other, they go first
    try:
        joined = broadcast_shapes(*picked, op="getitem") or ()
    except ValueError as error:  # an IndexError for NumPy
        raise IndexError(str(error)) from None
    return (*result[:front], *joined, *result[front:])


def _axes_used(part: Any) -> int:
    if isinstance(part, str):
        return 0
    if isinstance(part, TensorSpec) and part.dtype.kind == "b":
        return len(part.shape or ())
    return 1


def _picked(part: Any, sizes: list[Any], shape: Any) -> Any:
    """Return the shape of an integer, index array or mask; remove its axes from ``sizes``."""
    if isinstance(part, (int, Size)):
        size = sizes.pop(0)
        if size is not None and ((part < -size) is True or (part >= size) is True):
            raise IndexError(f"getitem: index {part} is out of bounds for size {size} in {shape}")
        return ()
    if part.dtype.kind != "b":
        sizes.pop(0)
        return part.shape
    for n in part.shape:
        size = sizes.pop(0)
        if sizes_differ(n, size):
            raise IndexError(f"getitem: a mask of shape {part.shape} does not fit shape {shape}")
    return (getattr(part, "trues", None),)


def _sliced(size: Any, part: slice) -> Any:
    """Return the size of a slice of an axis; None if it or a sign is unknown."""
    if not any(is_open(n) for n in (size, part.start, part.stop, part.step)):
        return None if size is None else len(range(*part.indices(size)))
    step = 1 if part.step is None else part.step
    if size is None or not isinstance(step, int) or not step:
        return None
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first, last = (low, high) if step > 0 else (high, low)
    start, stop = (
        first if part.start is None else place_between(low, high, part.start, size),
        last if part.stop is None else place_between(low, high, part.stop, size),
    )
    if start is None or stop is None:
        return None
    way = size_difference(stop, start) if step > 0 else size_difference(start, stop)
    return largest((way + abs(step) - 1) // abs(step), 0)


def _getitem_kernel(xp: Any, x: Any, *arrays: Any, index: Any) -> Any:
    where = decode_index(index, arrays)
    return picked(xp, x, where) if arrays else x[complete(where)]


def _getitem_together(gs: list[Any], inputs: list[Any], params: list[dict[str, Any]]) -> Any:
    indices = [settings["index"] for settings in params]
    if len(gs) == 1:
        return F.index_add_like(gs[0], *inputs[0], index=indices[0])
    return gradients_together(gs, inputs[0][0], indices, [arrays for _, *arrays in inputs])


def getitem_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``getitem``."""
    x, *arrays = xs
    if not batched[0]:
        return picked_from_shared(op, x, arrays, batched[1:], params["index"])
    plan = batched_index(op, params["index"], x, arrays, batched[1:])
    return plan.out(op.raw(x, *plan.arrays, index=plan.index))


op(
    "getitem",
    _getitem_kernel,
    together=_getitem_together,
    infer=lambda x, *arrays, index: (index_shape(x.shape, index, arrays), x.dtype),
    batch=getitem_rule,
    jvp="linear",
    integers="moves",
    doc="Select elements by integers, slices and index arrays.",
)


def index_add_kernel(xp: Any, g: Any, like: Any, *arrays: Any, index: Any) -> Any:
    out = xp.zeros(like.shape, dtype=g.dtype)
    where = decode_index(index, arrays)
    if all(kind_of(array.dtype) == "b" for array in arrays):
        # slices and masks name no element twice; some libraries take no mask with other parts
        with suppress(IndexError, NotImplementedError):
            return put(out, where if arrays else complete(where), g)
    return scatter_add(xp, out, where, g)


def put_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``index_add_like`` and ``index_set``."""
    adding = op.name == "index_add_like"
    first, second, *arrays = xs
    if adding and not batched[0] and not any(batched[2:]):
        row = row_of(second)
        return Shared(op.raw(first, row, *arrays, index=params["index"]))
    like = xs[batched.index(True)]
    first, second = (
        x if b else as_batched(x, like) for x, b in zip(xs[:2], batched[:2], strict=True)
    )
    whole = second if adding else first
    plan = batched_index(op, params["index"], whole, arrays, batched[2:])
    if adding:
        return op.raw(plan.back(first), whole, *plan.arrays, index=plan.index)
    return op.raw(whole, plan.back(second), *plan.arrays, index=plan.index)


op(
    "index_add_like",
    index_add_kernel,
    vjp=lambda gs, inputs, outputs, needed, index: [
        F.getitem(gs[0], *inputs[2:], index=index),
        *[None] * (len(inputs) - 1),
    ],
    shapes_only=("g", "like", "out"),
    infer=lambda g, like, *arrays, index: (like.shape, g.dtype),
    batch=put_rule,
    jvp="linear",
    doc="Add ``g`` to zeros of the shape of ``like``, at an index: the adjoint of getitem.",
)


def _index_set(xp: Any, x: Any, values: Any, *arrays: Any, index: Any) -> Any:
    where = decode_index(index, arrays)
    masks = all(kind_of(array.dtype) == "b" for array in arrays)
    if masks or writes_by_arrays(xp, x):
        scalar = isinstance(x, np.generic)  # a reduction's result, which cannot be written to
        out = x.copy() if hasattr(x, "copy") and not scalar else xp.asarray(x, copy=True)
        with suppress(IndexError, NotImplementedError):  # a wrong index raises again below
            return put(out, where if arrays else complete(where), values)
    # The array API has no such assignment: look for the last value that goes to each place.
    size = prod(x.shape)
    numbers = picked(xp, xp.reshape(xp.arange(size), x.shape), where)
    numbers = xp.reshape(numbers, (1, -1))
    if not numbers.shape[1]:
        return x
    places = numbers == xp.reshape(xp.arange(size), (-1, 1))
    last = xp.argmax(xp.flip(xp.astype(places, xp.int8), axis=1), axis=1)
    new = xp.take(xp.reshape(values, (-1,)), numbers.shape[1] - 1 - last, axis=0)
    changed = xp.where(xp.any(places, axis=1), new, xp.reshape(x, (-1,)))
    return xp.reshape(changed, x.shape)


def _index_set_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, *, index: Any) -> list[Any]:
    (g,), (x, values, *arrays) = gs, inputs
    gx = F.index_set(g, F.zeros_like(values), *arrays, index=index) if needed[0] else None
    gv = None
    if needed[1]:
        gv = F.getitem(g, *arrays, index=index)
        if any(kind_of(array.dtype) != "b" for array in arrays):
            # where an index is repeated, only the value that stayed has a gradient
            numbers = F.numbered_like(values)
            owners = F.index_set(F.numbered_like(x), numbers, *arrays, index=index)
            gv = F.where(F.getitem(owners, *arrays, index=index) == numbers, gv, 0.0)
        gv = as_like(gv, values)
    return [gx, gv, *[None] * len(arrays)]


op(
    "index_set",
    _index_set,
    vjp=_index_set_vjp,
    shapes_only=("x", "values", "out"),
    infer=lambda x, values, *arrays, index: (x.shape, x.dtype),
    batch=put_rule,
    jvp="linear",
    doc="Replace the elements at an index by ``values``, of their shape and dtype.",
)
op(
    "numbered_like",
    lambda xp, x: xp.reshape(xp.arange(prod(x.shape)), x.shape),
    gradients={"x": NONDIFF},
    infer=lambda x: (x.shape, np.dtype(np.int64)),
    batch=shape_only,
    reads="shapes",
    doc="Number the elements of ``x`` from 0, in C order.",
)


# -- repeated indices in x.at[index].multiply ------------------------------------------------------


def _occurrences(xp: Any, places: Any) -> Any:
    order = xp.argsort(places, stable=True)
    ordered = xp.take(places, order, axis=0)
    first = xp.searchsorted(ordered, ordered)
    return xp.take(xp.arange(places.shape[0]) - first, xp.argsort(order), axis=0)


def _one_per_occurrence(xp: Any, x: Any, occurrences: Any) -> Any:
    most = int(xp.max(occurrences)) + 1 if occurrences.shape[0] else 0
    return xp.ones((most, prod(x.shape)), dtype=x.dtype)


def _occurrences_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    # as one vector, in which the places of each example are others
    (places,) = xs
    example = F.cumsum(F.ones_like(places), axis=0, reverse=False)
    others = places + example * (F.sum(places) + 1)
    return F.reshape_like(op.raw(F.reshape(others, shape=(-1,))), places)


def _ones_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    x, occurrences = xs
    if batched[1]:
        occurrences = F.reshape(occurrences, shape=(-1,))
    return Shared(op.raw(row_of(x) if batched[0] else x, occurrences))


op(
    "occurrences",
    _occurrences,
    gradients={"places": NONDIFF},
    infer=lambda places: (places.shape, np.dtype(np.int64)),
    batch=_occurrences_rule,
    doc="Count, for each element of a vector, the equal ones before it.",
)
op(
    "one_per_occurrence",
    _one_per_occurrence,
    gradients={"x": NONDIFF, "occurrences": NONDIFF},
    infer=lambda x, occurrences: ((None, elements(x.shape)), x.dtype),
    batch=_ones_rule,
    doc="Return ones of the dtype of ``x``, one row per occurrence and one column per element.",
)
