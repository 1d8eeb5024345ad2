"""Kernels of adjoints that add gradients where elements were picked."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

__all__ = ["complete", "scatter_add"]


def complete(where: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index that leaves no axis unsaid, as the array API wants it."""
    return where if any(part is Ellipsis for part in where) else (*where, Ellipsis)


def scatter_add(
    xp: Any, out: Any, where: Any, values: Any, pick: Callable[[Any], Any] | None = None
) -> Any:
    """Add ``values`` to ``out[where]``, in place where possible; repeated places add up.

    ``pick(x)`` is ``x[where]``, for libraries that do not index by ``where``.
    """
    add_at = getattr(getattr(xp, "add", None), "at", None)
    if add_at is not None:
        add_at(out, where, values)
        return out
    # The array API has no such function: send every value to its place by a matrix product.
    size = prod(out.shape)
    numbers = xp.reshape(xp.arange(size), out.shape)
    picked = numbers[where] if pick is None else pick(numbers)
    places = xp.reshape(picked, (1, -1)) == xp.reshape(xp.arange(size), (-1, 1))
    added = xp.astype(places, values.dtype) @ xp.reshape(values, (-1,))
    return out + xp.reshape(added, out.shape)
