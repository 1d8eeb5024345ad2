"""Indices on JAX, where those out of range are clamped or dropped; NumPy raises an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core.extend import decode_index, kind_of


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


KERNELS: dict[str, Callable[..., Any]] = {
    "getitem": _typed(_getitem),
    "index_add_like": _typed(_index_add_like),
    "index_set": _typed(_index_set),
}
