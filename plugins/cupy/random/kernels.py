"""Kernels of ops that draw random numbers where the key is."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....core.extend import batch_rows, numpy_dtype, registry
from ...ops.random import philox
from ...ops.random.stateless import part_of_batch
from ..writing.formulas import memory_type
from ..writing.source import BLOCK, KernelLaunch, compiled
from .samplers import SAMPLERS, SPLIT, Sampler, sampler_of, sampler_of_integers, uniform
from .sources import Kernel, blocks_of, kernels, parameters, scratch_for, sizes_for

#: The maximum number of numbers for all keys: more are drawn on the host.
MOST = 2**31 - 1

_INTEGERS = np.dtype(np.int64)


def drawn(
    xp: Any,
    sampler: Sampler,
    key: Any,
    shape: tuple[int, ...],
    dtype: Any,
    bounds: tuple[tuple[str, int], ...] = (),
) -> Any:
    """Return numbers for each key.

    Parameters
    ----------
    xp
        CuPy's namespace.
    sampler
        How they are made.
    key
        The key, or an array of keys.
    shape, dtype
        The shape and dtype of the result.
    bounds
        The further numbers that the sampler needs, by name.
    """
    out = xp.empty(shape, dtype)
    if 0 in shape:
        return out
    if not key.flags.c_contiguous:
        key = xp.ascontiguousarray(key)
    keys = prod(key.shape[:-1])
    ready = _ready(xp, sampler, dtype, key.dtype, keys, prod(shape) // keys, bounds)
    arrays = {"key": key, "out": out}
    for name, size, kind in ready.scratch:
        arrays[name] = xp.empty(size, kind)
    for run, names, blocks in ready.launches:
        run((blocks,), (BLOCK,), (*[arrays[name] for name in names], *ready.numbers))
    return out


class _Drawing(NamedTuple):
    """Kernels with their arrays and blocks, the scratch arrays, and the kernels' numbers."""

    launches: list[tuple[Any, tuple[str, ...], int]]
    scratch: list[tuple[str, int, Any]]
    numbers: list[Any]


@lru_cache(maxsize=1024)
def _ready(
    xp: Any,
    sampler: Sampler,
    dtype: Any,
    key_dtype: Any,
    keys: int,
    count: int,
    bounds: tuple[tuple[str, int], ...],
) -> _Drawing:
    sizes = sizes_for(sampler, keys, count)
    values = {**sizes.values(), **dict(bounds)}
    return _Drawing(
        [
            (_compiled(xp, kernel), kernel.arrays, blocks_of(kernel, sampler, sizes))
            for kernel in kernels(sampler, dtype, key_dtype, sizes.tile, sizes.tiles == 1)
        ],
        [(name, size, kind) for name, (size, kind) in scratch_for(sampler, sizes).items()],
        [
            (np.uint64 if kind.startswith("unsigned") else np.int64)(values[name])
            for name, kind in parameters(sampler).items()
        ],
    )


def _compiled(xp: Any, kernel: Kernel) -> Any:
    launch = KernelLaunch(kernel.label, kernel.text, (), 1)
    return compiled(xp, launch.name, launch.source)


@lru_cache(maxsize=4)
def compiles(xp: Any) -> bool:
    """Return whether CuPy can compile kernels here; without them, more is drawn on the host."""
    (kernel,) = kernels(uniform("float32"), np.dtype(np.float32), _INTEGERS, 128, True)
    try:
        _compiled(xp, kernel)
    except Exception:
        return False
    return True


def can_draw(key: Any, dtype: Any, count: int) -> bool:
    """Return whether kernels have the types of keys and numbers, and not too many to draw.

    Parameters
    ----------
    key
        The key, or a symbol of it.
    dtype
        The dtype of the numbers.
    count
        Their number for all keys.
    """
    return _has_type(key.dtype) and _has_type(dtype) and count <= MOST


@lru_cache
def _has_type(dtype: Any) -> bool:
    return memory_type(dtype) is not None


def _for_rank(
    xp: Any,
    sampler: Sampler,
    key: Any,
    shape: tuple[int, ...],
    dtype: Any,
    like: bool = False,
    bounds: tuple[tuple[str, int], ...] = (),
) -> Any:
    """Return numbers of a shape for each key; in a data-parallel step, this rank's rows."""
    part = None if batch_rows.get() is None else part_of_batch(key, shape, like)
    if part is None:
        return drawn(xp, sampler, key, (*key.shape[:-1], *shape), dtype, bounds)
    start, total = part
    return drawn(xp, sampler, key, (total, *shape[1:]), dtype, bounds)[start : start + shape[0]]


def _op(name: str) -> Callable[..., Any]:
    def kernel(xp: Any, key: Any, *, shape: tuple[int, ...], dtype: Any = "float32") -> Any:
        dtype = np.dtype(dtype)
        sampler, count = sampler_of(name, dtype), prod(key.shape[:-1]) * prod(shape)
        if sampler is None or not (can_draw(key, dtype, count) and compiles(xp)):
            return _otherwise(f"random_{name}")(xp, key, shape=shape, dtype=dtype.name)
        return _for_rank(xp, sampler, key, shape, dtype)

    return kernel


def _op_like(name: str) -> Callable[..., Any]:
    def kernel(xp: Any, key: Any, like: Any) -> Any:
        dtype = numpy_dtype(like.dtype)
        sampler = sampler_of(name, dtype)
        if sampler is None or not (can_draw(key, dtype, prod(like.shape)) and compiles(xp)):
            return _otherwise(f"random_{name}_like")(xp, key, like)
        return _for_rank(xp, sampler, key, like.shape[key.ndim - 1 :], dtype, True)

    return kernel


def _split(xp: Any, key: Any, like: Any) -> Any:
    count = like.shape[0]
    shape = (count, *key.shape)
    if not (can_draw(key, key.dtype, prod(shape)) and compiles(xp)):
        return _otherwise("random_split")(xp, key, like)
    part = None if batch_rows.get() is None else part_of_batch(key, (count, 2))
    if part is None:
        return drawn(xp, SPLIT, key, shape, key.dtype)
    start, total = part
    return drawn(xp, SPLIT, key, (total, 2), key.dtype)[start : start + count]


def _integers(xp: Any, key: Any, *, shape: tuple[int, ...], low: int, high: int) -> Any:
    sampler, bounds = sampler_of_integers(low, high)
    count = prod(key.shape[:-1]) * prod(shape)
    if sampler is None or not (can_draw(key, _INTEGERS, count) and compiles(xp)):
        return _otherwise("random_integers")(xp, key, shape=shape, low=low, high=high)
    return _for_rank(xp, sampler, key, shape, _INTEGERS, bounds=tuple(bounds.items()))


def _otherwise(name: str) -> Callable[..., Any]:
    """Return a kernel of array functions, or one that draws on the host."""
    if batch_rows.get() is None and name in philox.KERNELS:
        return philox.KERNELS[name]
    found: Callable[..., Any] = registry().op(name).kernel  # type: ignore[assignment]
    return found


KERNELS: dict[str, Callable[..., Any]] = {
    **{f"random_{name}": _op(name) for name in SAMPLERS},
    **{f"random_{name}_like": _op_like(name) for name in SAMPLERS},
    "random_integers": _integers,
    "random_split": _split,
}
