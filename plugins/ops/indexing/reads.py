"""The adjoint of many reads of one tensor: their gradients in one array, in linear time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ....core.extend import F, Op, Shared, as_batched, decode_index, row_of
from ..common.axes import reduced_axes
from ..common.kernels import kind_of
from ..common.op_builders import op
from ..common.scattering import complete, put, scatter_add
from .batched_index import batched_index

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
