"""Finds out whether a function of a plugin wrote into arrays that tensors hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from xxhash import xxh3_64_intdigest


class Unchanged:
    """NumPy arrays as they are now.

    Parameters
    ----------
    values
        Arrays, tensors, lists of these, and other values. Only NumPy's arrays are looked at: other
        libraries' arrays never change, or are on a device.
    """

    __slots__ = ("_arrays",)

    def __init__(self, values: Iterable[Any]) -> None:
        self._arrays = [(x, _digest(x)) for x in _arrays_in(values)]

    def holds(self) -> bool:
        """Return whether all arrays still have the same elements."""
        return all(digest == _digest(x) for x, digest in self._arrays)


def _arrays_in(values: Iterable[Any]) -> Iterable[Any]:
    for x in values:
        if isinstance(x, (list, tuple)):
            yield from _arrays_in(x)
            continue
        array = getattr(x, "array", x)  # of a tensor
        if type(array) is np.ndarray and array.flags.writeable and not array.dtype.hasobject:
            yield array


def _digest(array: Any) -> int:
    # of the bytes, since NaN is not equal to itself
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return xxh3_64_intdigest(flat)
