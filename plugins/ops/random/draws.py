"""Random numbers as pure functions of a key, so that they can be traced, saved and repeated.

A key is an integer array ``[seed, counter]``. An op turns a key into numbers by the counter-based
generator Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), always on the
host, so that every backend gives the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Shared, backend_of, row_of, to_numpy
from ..common.batching import keyed
from ..common.op_builders import op

__all__: list[str] = []

Draw = Callable[[np.random.Generator, tuple[int, ...], np.dtype[Any]], Any]


def stream(key: Any) -> np.random.Generator:
    """Return NumPy's generator at the start of a key's own stream."""
    seed, counter = to_numpy(key).astype(np.uint64)
    # the key selects the stream; NumPy would spend longer on mixing a seed than we on drawing
    return np.random.Generator(np.random.Philox(key=[seed, counter]))


def for_each(key: Any, draw: Callable[[np.random.Generator], Any]) -> Any:
    """Return what is drawn for a key; for an array of keys, one draw for each, stacked."""
    keys = to_numpy(key)
    if keys.ndim == 1:
        return draw(stream(keys))
    rows = keys.reshape(-1, 2)
    some = rows if len(rows) else np.zeros((1, 2), keys.dtype)  # the shape of none is that of one
    drawn = np.stack([draw(stream(row)) for row in some])[: len(rows)]
    return drawn.reshape(*keys.shape[:-1], *drawn.shape[1:])


def many(key: Any, shape: tuple[int, ...]) -> Any:
    """Return the shape of draws of ``shape``, one for each key."""
    return None if key.shape is None else (*key.shape[:-1], *shape)


def _drawn(draw: Draw, key: Any, shape: tuple[int, ...], dtype: Any, below: float | None) -> Any:
    """Return numbers on the backend and device of ``key``, ``below`` a bound if one is given."""
    dtype = np.dtype(dtype)
    wide = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float32)
    numbers = for_each(key, lambda rng: draw(rng, shape, wide))
    if below is not None and dtype is not wide:  # rounding to half precision reaches the bound
        numbers = np.minimum(numbers, np.nextafter(dtype.type(below), dtype.type(0)))
    if isinstance(key, np.ndarray):
        return np.asarray(numbers, dtype)
    owner = backend_of(key)
    return owner.asarray(np.asarray(numbers), dtype=dtype, device=owner.device(key))


def random_op(name: str, draw: Draw, doc: str, below: float | None = None) -> None:
    """Make an op that draws numbers, and its variant that takes shape and dtype from a tensor."""

    def kernel(xp: Any, key: Any, *, shape: tuple[int, ...], dtype: str = "float32") -> Any:
        return _drawn(draw, key, shape, dtype, below)

    def like_kernel(xp: Any, key: Any, like: Any) -> Any:
        return _drawn(draw, key, like.shape[key.ndim - 1 :], like.dtype, below)

    op(
        name,
        kernel,
        gradients={"key": NONDIFF},
        infer=lambda key, shape, dtype: (many(key, shape), np.dtype(dtype)),
        batch=keyed,
        doc=f"Return {doc}, determined by ``key``.",
    )
    op(
        f"{name}_like",
        like_kernel,
        gradients={"key": NONDIFF, "like": NONDIFF},
        infer=lambda key, like: (like.shape, like.dtype),
        batch=keyed,
        doc=f"Return {doc}, determined by ``key``, of the shape and dtype of ``like``.",
    )


random_op(
    "random_normal",
    lambda rng, shape, dtype: rng.standard_normal(shape, dtype),
    "standard normal numbers",
)
random_op(
    "random_uniform",
    lambda rng, shape, dtype: rng.random(shape, dtype),
    "numbers spread evenly over [0, 1)",
    below=1.0,
)
op(
    "random_permutation",
    lambda xp, key, *, n: backend_of(key).asarray(
        for_each(key, lambda rng: rng.permutation(n)), dtype=np.int64
    ),
    gradients={"key": NONDIFF},
    infer=lambda key, n: (many(key, (n,)), np.dtype(np.int64)),
    batch=keyed,
    doc="Return the integers below ``n`` in an order determined by ``key``.",
)


def _split_kernel(xp: Any, key: Any, like: Any) -> Any:
    count = like.shape[0]
    keys = for_each(key, lambda rng: rng.integers(0, 2**63 - 1, (count, 2), np.int64))
    keys = np.moveaxis(keys, -2, 0)
    owner = backend_of(key)
    return owner.asarray(keys, dtype=key.dtype, device=owner.device(key))


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
    doc="Return keys that one key determines, as many as the first axis of ``like`` is long.",
)
