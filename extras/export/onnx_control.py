"""Control flow: lowers ops that run graphs to ONNX's ``If`` and ``Loop`` nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import spox.opset.ai.onnx.v21 as onnx

from ..core.extend import Graph, same_shape
from .onnx_arrays import Array
from .onnx_namespace import Namespace


def _vars(arrays: Sequence[Array]) -> list[Any]:
    return [onnx.identity(x.var) for x in arrays]  # a subgraph's outputs must be made in it


def _check_order(order: int) -> None:
    if order:
        raise TypeError(
            "its gradient cannot be exported to ONNX; use gradtape.where, or unroll the loop"
        )


def _check_shapes(body: Graph, count: int) -> None:
    """Refuse a loop variable whose shape may change: ONNX fixes the shape of its first value."""
    for x, y in zip(body.inputs[:count], body.outputs[:count], strict=True):
        if not same_shape(x.shape, y.shape):
            raise TypeError(f"a step may change a loop variable's shape {x.shape} to {y.shape}")


def _cond(
    xp: Namespace,
    pred: Array,
    *operands: Array,
    true: Graph,
    false: Graph,
    order: int = 0,
) -> list[Array]:
    _check_order(order)
    found = onnx.if_(
        pred.var,
        then_branch=lambda: _vars(xp.outputs(true, operands)),
        else_branch=lambda: _vars(xp.outputs(false, operands)),
    )
    return [xp.of(var) for var in found]


def _while_loop(
    xp: Namespace,
    *arrays: Array,
    cond: Graph,
    body: Graph,
    count: int,
    most: Any,
    order: int = 0,
) -> list[Array]:
    _check_order(order)
    _check_shapes(body, count)
    values, around = arrays[:count], arrays[count:]

    def step(number: Array, after: list[Array]) -> list[Array]:
        after = xp.outputs(body, [*after, *around])
        return [*xp.outputs(cond, [*after, *around]), *after]

    return _loop(xp, most, xp.outputs(cond, arrays)[0], values, step)


def _scan(
    xp: Namespace,
    *arrays: Array,
    body: Graph,
    carried: int,
    scanned: int,
    length: Any = None,
    reverse: bool = False,
    order: int = 0,
) -> list[Array]:
    _check_order(order)
    _check_shapes(body, carried)
    rows, around = arrays[carried : carried + scanned], arrays[carried + scanned :]
    count = rows[0].shape[0] if rows else length
    last = xp.asarray(count, dtype=np.int64) - 1

    def step(number: Array, carry: list[Array]) -> list[Array]:
        place = last - number if reverse else number
        seen = [xp.take(x, place, axis=0) for x in rows]
        return [xp.asarray(True), *xp.outputs(body, [*carry, *seen, *around])]

    found = _loop(xp, count, xp.asarray(True), arrays[:carried], step)
    made = found[carried:]
    return [*found[:carried], *(xp.flip(x, axis=0) if reverse else x for x in made)]


def _loop(
    xp: Namespace,
    most: Any,
    start: Array,
    values: Sequence[Array],
    step: Callable[[Array, list[Array]], list[Array]],
) -> list[Array]:
    """Return the final values of a loop, and the stacked outputs of its steps.

    Conditions and counts have one axis, because spox declares them so.
    """

    def body(number: Any, going: Any, *given: Any) -> list[Any]:
        go_on, *after = step(xp.reshape(xp.of(number), ()), [*map(xp.of, given)])
        return _vars([xp.reshape(go_on, (1,)), *after])

    found = onnx.loop(
        None if most is None else xp.reshape(xp.asarray(most, dtype=np.int64), (1,)).var,
        xp.reshape(start, (1,)).var,
        [x.var for x in values],
        body=body,
    )
    return [xp.of(var) for var in found]


#: The lowerings of ops that run graphs, by name; the namespace runs their graphs.
CONTROL: dict[str, Callable[..., list[Array]]] = {
    "cond": _cond,
    "scan": _scan,
    "while_loop": _while_loop,
}
