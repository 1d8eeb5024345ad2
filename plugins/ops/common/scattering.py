"""Kernels that write into arrays, and that add gradients where elements were selected."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from .kernels import in_float32
from .picking import picked


def complete(where: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index with an entry for every axis, as the array API requires."""
    return where if any(part is Ellipsis for part in where) else (*where, Ellipsis)


def put(out: Any, where: Any, values: Any, add: bool = False) -> Any:
    """Return ``out`` with ``values`` in, or added to, ``out[where]``, in place if possible.

    ``where`` selects no element twice. Immutable arrays use JAX's ``out.at[where].set``.

    Parameters
    ----------
    out
        An array that the kernel made and that no other code uses.
    where
        An index of slices, integers, or one mask.
    values
        Values that broadcast to ``out[where]``.
    add
        Whether to add the values to the elements instead of replacing them.
    """
    places = getattr(out, "at", None)
    if places is not None:
        return places[where].add(values) if add else places[where].set(values)
    if add:
        out[where] += values
    else:
        out[where] = values
    return out


def scatter_add(
    xp: Any, out: Any, where: Any, values: Any, pick: Callable[[Any], Any] | None = None
) -> Any:
    """Return ``out`` with ``values`` added at ``where``, in place if possible.

    Values at repeated positions add up, those in ``float16`` in ``float32``. ``pick(x)`` is
    ``x[where]``, where there is a shorter way than :func:`picked`.
    """
    return _scatter_add(xp, out, values, where=where, pick=pick)


@in_float32
def _scatter_add(xp: Any, out: Any, values: Any, *, where: Any, pick: Any) -> Any:
    places = getattr(out, "at", None)
    if places is not None:
        return places[where].add(values)
    add_at = getattr(getattr(xp, "add", None), "at", None)
    if add_at is not None:
        add_at(out, where, values)
        return out
    # The array API has no such function: a matrix product adds every value at its position.
    size = prod(out.shape)
    numbers = xp.reshape(xp.arange(size), out.shape)
    places = picked(xp, numbers, where) if pick is None else pick(numbers)
    hits = xp.reshape(places, (1, -1)) == xp.reshape(xp.arange(size), (-1, 1))
    added = xp.astype(hits, values.dtype) @ xp.reshape(values, (-1,))
    return out + xp.reshape(added, out.shape)
