"""Kernels for ops whose portable ones read values, which are unknown while JAX traces.

Branches and loops are XLA's. Indices out of range are clamped or dropped by JAX, where NumPy raises
an error. Random numbers inside compiled programs are NumPy's Philox, with arithmetic that XLA has:
a key gives the same numbers on every backend. Outside JAX's traces the host draws them. While JAX
traces, a key has no value yet, and these kernels turn it into numbers when the program runs. XLA
refuses numbers that NumPy draws by rejection (normal, exponential, gamma).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.extend import (
    GradientTape,
    Tensor,
    decode_index,
    is_differentiable,
    kind_of,
    recording_to,
    registry,
    replay,
)
from ..ops.random import philox
from .compiling import Refused, portable, traced

# -- branches and loops ----------------------------------------------------------------------------


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


# -- indices ---------------------------------------------------------------------------------------


class Namespace:
    """``jax.numpy``, with checks of indices whose values are known.

    In a compiled program they are unknown: there, an index out of range gives nan, or the lowest
    value for integers.
    """

    def __init__(self, names: Any) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._names, name)
        setattr(self, name, found)
        return found

    def take(self, x: Any, indices: Any, axis: int = 0) -> Any:
        """Return entries along an axis."""
        _check(indices, x.shape[axis], axis)
        return jnp.take(x, indices, axis=axis, mode="fill")

    def take_along_axis(self, x: Any, indices: Any, axis: int) -> Any:
        """Return the entries that each line picks along an axis."""
        size = x.shape[axis]
        _check(indices, size, axis)
        return jnp.take_along_axis(x, indices, axis=axis, mode="fill")

    def searchsorted(self, *arrays: Any, **settings: Any) -> Any:
        """Return the positions of values among sorted ones."""
        return jnp.searchsorted(*arrays, **settings).astype(jnp.int64)

    def argpartition(self, x: Any, kth: Any, axis: int = -1) -> Any:
        """Return the order of a partition; with several pivots, the order of a sort."""
        one = not isinstance(kth, Sequence)
        found = jnp.argpartition(x, kth, axis=axis) if one else jnp.argsort(x, axis=axis)
        return found.astype(jnp.int64)


def _check(indices: Any, size: int, axis: int) -> None:
    if isinstance(indices, jax.core.Tracer) or not prod(indices.shape):
        return
    known = np.asarray(indices)  # JAX's own minimum has no value in a compilation
    low, high = int(known.min()), int(known.max())
    if low < -size or high >= size:
        wrong = low if low < -size else high
        raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {size}")


def _checked(shape: tuple[int, ...], where: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index; if its values are known and do not fit, raise as NumPy does."""
    if all(isinstance(n, int) for n in shape):  # an export has unknown sizes, already traced
        np.broadcast_to(np.zeros((), bool), shape)[tuple(map(_known, where))]
    return where


def _known(part: Any) -> Any:
    if isinstance(part, jax.core.Tracer):
        return part if kind_of(part.dtype) == "b" else np.zeros(part.shape, np.int64)
    return np.asarray(part) if isinstance(part, jax.Array) else part


def _getitem(x: Any, *arrays: Any, index: Any) -> Any:
    where = _checked(x.shape, decode_index(index, arrays))
    return x.at[where].get(mode="fill")


def _index_add_like(g: Any, like: Any, *arrays: Any, index: Any) -> Any:
    where = _checked(like.shape, decode_index(index, arrays))
    return jnp.zeros(like.shape, g.dtype).at[where].add(g)


def _index_set(x: Any, values: Any, *arrays: Any, index: Any) -> Any:
    """Assign the last of several values for one position; XLA alone would take any of them."""
    where = _checked(x.shape, decode_index(index, arrays))
    values = jnp.asarray(values).astype(x.dtype)
    if not any(kind_of(array.dtype) in "iu" for array in arrays):
        return x.at[where].set(values)
    places = jnp.full(x.shape, -1, jnp.int64)
    picked = places[where].shape
    numbers = jnp.arange(prod(picked), dtype=jnp.int64).reshape(picked)
    last = places.at[where].max(numbers)
    flat = jnp.broadcast_to(values, picked).reshape(-1)
    if not flat.size:
        return x
    return jnp.where(last < 0, x, flat[jnp.maximum(last, 0)])


def _typed(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arrays: Any, **params: Any) -> Any:
        with jax.enable_x64(True):
            return kernel(*arrays, **params)

    return run


# -- random numbers --------------------------------------------------------------------------------


def _integers(key: Any, *, shape: tuple[int, ...], low: int, high: int) -> Any:
    bound = high - low
    if not 0 < bound <= philox.MOST_INTEGERS:
        raise Refused(
            f"op 'random_integers' draws from {bound} integers: XLA draws from fewer than 2**32"
        )
    return philox.integers(jnp, key, shape, low, high)


def _traced(name: str, draw: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a kernel that draws on the host, or in XLA while JAX traces."""

    def kernel(*arrays: Any, **params: Any) -> Any:
        if not isinstance(arrays[0], jax.core.Tracer):
            return portable(name)(*arrays, **params)
        if draw is None:
            raise Refused(
                f"op {name!r} draws by rejection, which XLA cannot do; draw outside the function"
            )
        with jax.enable_x64(True):
            return draw(*arrays, **params)

    return kernel


_DRAWS: dict[str, Callable[..., Any]] = {
    **{name: partial(draw, jnp) for name, draw in philox.KERNELS.items()},
    "random_integers": _integers,
}
_REJECTING = ("exponential", "gumbel", "normal", "truncated_normal")
_NAMES = [
    *_DRAWS,
    "random_gamma",
    "random_permutation",
    *(f"random_{kind}{like}" for kind in _REJECTING for like in ("", "_like")),
]


KERNELS: dict[str, Callable[..., Any]] = {
    **{name: _traced(name, _DRAWS.get(name)) for name in _NAMES},
    "cond": _program("cond", _cond),
    "scan": _program("scan", _scan),
    "while_loop": _program("while_loop", _while_loop),
    "getitem": _typed(_getitem),
    "index_add_like": _typed(_index_add_like),
    "index_set": _typed(_index_set),
}
