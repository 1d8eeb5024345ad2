"""Ops that change picked elements in a new array: what ``x.at[index].set(values)`` records."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Tensor, as_tensor, decode_index, ops
from ..common.batching import shape_only
from ..common.kernels import kind_of
from ..common.op_builders import named, op
from .batching import put_rule
from .indexing import complete, take_along_axis

__all__ = ["put_along_axis"]


def _index_set(xp: Any, x: Any, values: Any, *arrays: Any, index: Any) -> Any:
    where = decode_index(index, arrays)
    masks = all(kind_of(array.dtype) == "b" for array in arrays)
    if masks or hasattr(getattr(xp, "add", None), "at"):
        out = xp.array(x) if hasattr(xp, "array") else xp.asarray(x, copy=True)
        out[where if arrays else complete(where)] = values
        return out
    # The array API has no such assignment: look for the last value that goes to each place.
    size = prod(x.shape)
    picked = xp.reshape(xp.reshape(xp.arange(size), x.shape)[where], (1, -1))
    if not picked.shape[1]:
        return x
    places = picked == xp.reshape(xp.arange(size), (-1, 1))
    last = xp.argmax(xp.flip(xp.astype(places, xp.int8), axis=1), axis=1)
    new = xp.take(xp.reshape(values, (-1,)), picked.shape[1] - 1 - last, axis=0)
    changed = xp.where(xp.any(places, axis=1), new, xp.reshape(x, (-1,)))
    return xp.reshape(changed, x.shape)


def _index_set_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, *, index: Any) -> list[Any]:
    (g,), (x, values, *arrays) = gs, inputs
    gx = F.index_set(g, F.zeros_like(values), *arrays, index=index) if needed[0] else None
    gv = None
    if needed[1]:
        gv = F.getitem(g, *arrays, index=index)
        if any(array.dtype.kind != "b" for array in arrays):
            # where an index is repeated, only the value that stayed has a gradient
            numbers = F.numbered_like(values)
            owners = F.index_set(F.numbered_like(x), numbers, *arrays, index=index)
            gv = F.where(F.getitem(owners, *arrays, index=index) == numbers, gv, 0.0)
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
    doc="Number the elements of ``x`` from 0, in C order.",
)


@named
def put_along_axis(x: Any, indices: Any, values: Any, axis: int | None) -> Tensor:
    """Return ``x`` with entries along ``axis`` replaced, by an index for each other position.

    Parameters
    ----------
    x
        A tensor of any dtype.
    indices
        Integers with as many axes as ``x``; the other axes broadcast.
    values
        What replaces them: numbers or a tensor that broadcasts to the places. Where an index is
        repeated, the last value stays.
    axis
        The axis along which the indices count; ``None`` counts in the flattened ``x``.

    Returns
    -------
    A new tensor of the shape and dtype of ``x``: unlike NumPy's function, this changes nothing in
    place. Gradients reach ``values``, and the entries that stay.

    Raises
    ------
    IndexError
        If an index is out of bounds, or no integer.
    ValueError
        If ``indices`` has another number of axes, or ``values`` does not broadcast.
    TypeError
        If ``values`` is of a higher kind than ``x``: floats for integers, say.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gt.put_along_axis(x, gt.constant([[0], [1]]), 9.0, axis=1).tolist()
    [[9.0, 2.0], [3.0, 9.0]]
    """
    x = as_tensor(x)
    places = take_along_axis(ops["numbered_like"](x), indices, axis)
    changed = ops["reshape"](x, shape=(-1,)).at[places].set(values)
    return ops["reshape_like"](changed, x)
