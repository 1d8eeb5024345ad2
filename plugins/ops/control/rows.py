"""``Rows``: the results of a loop's steps, stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Rows:
    """The results of a loop's steps, to be stacked.

    NumPy arrays are copied into their stack at once, while a step's memory is in the cache, and the
    next step reuses that memory.

    Parameters
    ----------
    length
        The number of steps.
    """

    __slots__ = ("_length", "_lists", "_wholes")

    def __init__(self, length: int) -> None:
        self._length = length
        self._wholes: list[Any] = []
        self._lists: list[list[Any]] = []

    def put(self, i: int, found: Sequence[Any]) -> None:
        """Add the results of step ``i``."""
        if not self._lists:
            self._lists = [[None] * self._length for _ in found]
            self._wholes = [
                np.empty((self._length, *x.shape), x.dtype) if type(x) is np.ndarray else None
                for x in found
            ]
        for x, whole, rows in zip(found, self._wholes, self._lists, strict=True):
            if whole is None:
                rows[i] = x
            else:
                whole[i] = x

    def stacked(self, xp: Any) -> list[Any]:
        """Return the stacks."""
        return [
            xp.stack(rows, axis=0) if whole is None else whole
            for rows, whole in zip(self._lists, self._wholes, strict=True)
        ]
