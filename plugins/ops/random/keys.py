"""Random numbers as pure functions of a key, so that they can be traced, saved and repeated.

A key is an integer array ``[seed, counter]``. An op turns a key into numbers by the counter-based
generator Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), always on the
host, so that every backend gives the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Shared,
    backend_of,
    batch_rows,
    numpy_dtype,
    row_of,
    to_numpy,
)
from ..common.batching import together
from ..common.op_builders import op

__all__: list[str] = []

#: Draws numbers of a shape.
Draw = Callable[[np.random.Generator, tuple[int, ...]], Any]


def stream(key: Any) -> np.random.Generator:
    """Return NumPy's generator at the start of a key's own stream."""
    seed, counter = to_numpy(key).astype(np.uint64)
    # the key selects the stream: mixing a seed in NumPy takes longer than drawing
    return np.random.Generator(np.random.Philox(key=[seed, counter]))


def rows_drawn(
    key: Any, shape: tuple[int, ...], draw: Draw, like: bool = False, each: int = 0
) -> Any:
    """Return numbers drawn with a key; in a data-parallel step, this rank's rows of the batch's.

    An array is part of the batch's if it has as many rows as this rank has examples. Numbers for a
    tensor (``like``) are part of it too if they have several rows for each example.

    Parameters
    ----------
    key
        A key, or an array of keys, which already give each example its own numbers.
    shape
        The shape of the numbers for each key.
    draw
        A function that draws numbers of a shape.
    like
        Whether the numbers are for a tensor of that shape.
    each
        How many numbers Philox makes at once if draws can start at any position, otherwise 0.
    """
    rows = batch_rows.get()
    if rows is None or len(key.shape) > 1:
        return for_each(key, lambda rng: draw(rng, shape))
    first, total = rows.place()  # on all ranks, whatever they draw: none may wait for another
    times, rest = divmod(shape[0], rows.count) if shape and rows.count else (0, 0)
    if rest or not times or (times > 1 and not like):
        return for_each(key, lambda rng: draw(rng, shape))
    start, total = first * times, total * times
    rng = stream(key)
    if not each:
        return draw(rng, (total, *shape[1:]))[start : start + shape[0]]
    size, blocks = prod(shape[1:]), divmod(start * prod(shape[1:]), each)
    rng.bit_generator.advance(blocks[0])  # type: ignore[attr-defined]
    numbers = draw(rng, (blocks[1] + shape[0] * size,))
    return numbers[blocks[1] :].reshape(shape)


def for_each(key: Any, draw: Callable[[np.random.Generator], Any]) -> Any:
    """Return the draws for a key; for an array of keys, one draw for each, stacked."""
    keys = to_numpy(key)
    if keys.ndim == 1:
        return draw(stream(keys))
    rows = keys.reshape(-1, 2)
    some = rows if len(rows) else np.zeros((1, 2), keys.dtype)  # one draw gives the empty shape
    drawn = np.stack([draw(stream(row)) for row in some])[: len(rows)]
    return drawn.reshape(*keys.shape[:-1], *drawn.shape[1:])


def shape_for_each(key: Any, shape: tuple[int, ...]) -> Any:
    """Return the shape of draws of ``shape``, one for each key."""
    return None if key.shape is None else (*key.shape[:-1], *shape)


def on_backend(numbers: Any, like: Any, dtype: Any = None) -> Any:
    """Return numbers drawn on the host on the device of the array ``like``."""
    owner = backend_of(like)
    return owner.asarray(numbers, dtype=dtype, device=owner.device(like))


def keyed(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of random numbers: a batch of keys gives each example its own."""
    if batched[0]:
        return op.raw(*together(xs, batched), **params)
    rows = [row_of(x) if b else x for x, b in zip(xs, batched, strict=True)]
    return Shared(op.raw(*rows, **params))


# -- keys from a key -------------------------------------------------------------------------------


def _split_kernel(xp: Any, key: Any, like: Any) -> Any:
    shape = like.shape[0], 2
    keys = rows_drawn(key, shape, lambda rng, size: rng.integers(0, 2**63 - 1, size, np.int64))
    return on_backend(np.moveaxis(keys, -2, 0), key, numpy_dtype(key.dtype))


def _split_rule(op: Any, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    key, like = xs[0], row_of(xs[1]) if batched[1] else xs[1]
    keys = op.raw(key, like)
    return F.swapaxes(keys, axis1=0, axis2=1) if batched[0] else Shared(keys)


op(
    "random_split",
    _split_kernel,
    gradients={"key": NONDIFF, "like": NONDIFF},
    infer=lambda key, like: (
        None if None in (key.shape, like.shape) else (like.shape[0], *key.shape),
        key.dtype,
    ),
    batch=_split_rule,
    random=True,
    doc="Return keys derived from one key, as many as the first axis of ``like`` is long.",
)
