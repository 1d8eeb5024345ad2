"""Branches and loops as XLA's, because their conditions are unknown while JAX traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax

from ...core.extend import GradientTape, Tensor, is_differentiable, recording_to, registry, replay
from .compiling import Refused, portable, traced


def _program(name: str, in_trace: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Return a kernel that runs a control-flow op eagerly, or with XLA's ops while JAX traces."""

    def kernel(*arrays: Any, order: int = 0, **params: Any) -> list[Any]:
        op, owner = registry().op(name), registry().backend("jax")
        settings = {**op.defaults, **params}
        settings.pop("order", None)
        if any(isinstance(x, jax.core.Tracer) for x in arrays):
            found = in_trace(op, owner, list(arrays), order, settings)
            if found is not NotImplemented:
                return found
        result: list[Any] = portable(name)(*arrays, order=order, **settings)
        return result

    return kernel


def _cond(op: Any, owner: Any, arrays: list[Any], order: int, params: Any) -> Any:
    chosen, *operands = arrays
    if order == 0:
        yes, no = (traced(params[key], owner) for key in ("true", "false"))
        return lax.cond(chosen, yes, no, operands)
    if not isinstance(chosen, jax.core.Tracer):
        return NotImplemented

    def branch(way: bool) -> Callable[[Sequence[Any]], list[Any]]:
        def run(given: Sequence[Any]) -> list[Any]:
            with jax.ensure_compile_time_eval():
                flag = owner.asarray(way)
            with recording_to(()):
                found = op.eager([Tensor(flag), *map(Tensor, given)], order, params)
            return [y.array for y in found]

        return run

    return lax.cond(chosen, branch(True), branch(False), operands)


def _while_loop(op: Any, owner: Any, arrays: list[Any], order: int, params: Any) -> Any:
    if order:
        raise Refused("op 'while_loop' has no gradient in XLA, where its step count is unknown")
    count, most = params["count"], params["most"]
    values, around = arrays[:count], arrays[count:]
    holds, body = (traced(params[key], owner) for key in ("cond", "body"))

    def go_on(state: Any) -> Any:
        done, now = state
        further = holds([*now, *around])[0]
        return further if most is None else further & (done < most)

    def step(state: Any) -> Any:
        done, now = state
        return done + 1, body([*now, *around])

    return lax.while_loop(go_on, step, (0, values))[1]


def _scan(op: Any, owner: Any, arrays: list[Any], order: int, params: Any) -> Any:
    if order > 1:
        return NotImplemented  # unrolled while it is traced
    a, b = params["carried"], params["carried"] + params["scanned"]
    count = len(params["body"].inputs)
    carry, xs, around, gs = arrays[:a], arrays[a:b], arrays[b:count], arrays[count:]
    body = traced(params["body"], owner)
    length = xs[0].shape[0] if xs else params["length"]

    def step(now: list[Any], row: list[Any]) -> Any:
        found = body([*now, *row, *around])
        return found[:a], (found[a:], now if order else None)

    settings = {"length": length, "reverse": params["reverse"]}
    last, (rows, before) = lax.scan(step, carry, xs, **settings)
    if order == 0:
        return [*last, *rows]
    return _scan_backwards(op, carry, xs, around, gs, before, params)


def _scan_backwards(
    op: Any,
    carry: list[Any],
    xs: list[Any],
    around: list[Any],
    gs: list[Any],
    before: list[Any],
    params: Any,
) -> list[Any]:
    """Return the gradient of a scan: the gradient of a step, scanned from last to first."""
    a, body = len(carry), params["body"]
    followed = [i for i, y in enumerate(body.outputs) if is_differentiable(y.dtype)]
    upstream = dict(zip(followed, gs, strict=True))
    moving = [i for i in range(a) if i in upstream]
    rows = [i for i in followed if i >= a]
    wanted = [is_differentiable(Tensor(x).dtype) for x in [*carry, *xs, *around]]

    def step(state: Any, row: Any) -> Any:
        now_gs, sums = state
        now, x, g_rows = row
        found = _pulled(body, [*now, *x, *around], [*now_gs, *g_rows], [*moving, *rows])
        g_carry = [found[i] for i in moving]
        g_xs = [g for g, w in zip(found[a : a + len(xs)], wanted[a:], strict=False) if w]
        parts = [g for g, w in zip(found[a + len(xs) :], wanted[a + len(xs) :], strict=True) if w]
        return (g_carry, [s + g for s, g in zip(sums, parts, strict=True)]), g_xs

    start = [upstream[i] for i in moving]
    kept = zip(around, wanted[a + len(xs) :], strict=True)
    sums = [lax.full_like(x, 0) for x, follows in kept if follows]
    (g_carry, sums), g_xs = lax.scan(
        step,
        (start, sums),
        (before, xs, [upstream[i] for i in rows]),
        length=xs[0].shape[0] if xs else params["length"],
        reverse=not params["reverse"],
    )
    return [*g_carry, *g_xs, *sums]


def _pulled(body: Any, arrays: list[Any], gs: list[Any], followed: list[int]) -> list[Any]:
    """Return the gradients of a step with respect to its inputs, by the rules of its ops."""
    tensors = [Tensor(x) for x in arrays]
    sources = [x for x in tensors if is_differentiable(x.dtype)]
    with recording_to(()):
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            outputs = replay(body, tensors)
        found = tape.gradient(
            [outputs[i] for i in followed],
            sources,
            output_gradients=[Tensor(g) for g in gs],
            unconnected_gradients="zero",
        )
    grads = iter(found)
    return [next(grads).array if is_differentiable(x.dtype) else None for x in tensors]


KERNELS: dict[str, Callable[..., Any]] = {
    "cond": _program("cond", _cond),
    "scan": _program("scan", _scan),
    "while_loop": _program("while_loop", _while_loop),
}
