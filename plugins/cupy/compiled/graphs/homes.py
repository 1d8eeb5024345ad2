"""The memory of variables that CUDA graphs update in place.

A graph writes to the same addresses in every run. Variables hold parts of that memory, so that
nothing is held twice and nothing is copied. But no array that other code holds is written to:
before each run, the variables' arrays are taken away from them, and reference counts must show that
nothing else refers to the memory. CuPy has the memory in objects of its own, which are counted too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from operator import attrgetter, is_
from sys import getrefcount
from typing import Any

import numpy as np

from .....core.extend import (
    COUNTS,
    Pending,
    Variable,
    hide_arrays,
    restore_arrays,
    set_arrays,
)
from ....packing import FlatArrays, bounds_of, hold

_data_of, _memory_of = attrgetter("data"), attrgetter("data.mem")


def _counts(flats: FlatArrays) -> list[int]:
    """Return the references to parts, flat arrays, their addresses, and their memory."""
    parts, arrays = flats.parts, flats.arrays
    return [
        *map(getrefcount, parts),
        *map(getrefcount, map(_data_of, parts)),
        *map(getrefcount, arrays),
        *map(getrefcount, map(_data_of, arrays)),
        *map(getrefcount, map(_memory_of, arrays)),
    ]


@lru_cache(maxsize=8)
def shows_references(xp: Any) -> bool:
    """Return whether reference counts of a library's arrays show everything that refers to them.

    Parameters
    ----------
    xp
        CuPy.
    """
    if not COUNTS:
        return False
    flats = FlatArrays.of(bounds_of([(2,), (2, 1)]), [xp.zeros(4, np.float32)])
    alone = _counts(flats)
    holds: list[Callable[[], Any]] = [
        lambda: flats.parts[0],
        lambda: flats.parts[1][:1].view(np.int32),
        lambda: flats.parts[1].reshape(-1),
        lambda: flats.parts[0].data,
        lambda: flats.arrays[0],
        lambda: flats.arrays[0].data.mem,
    ]
    for held_by in holds:
        held = held_by()
        if _counts(flats) == alone:
            return False
        del held
    return _counts(flats) == alone


class Home:
    """Memory for variables: a flat array for each column, of which they hold parts.

    Parameters
    ----------
    columns
        The variables of each flat array.
    xp
        CuPy.
    to_numpy
        A function that copies an array to the host.

    Attributes
    ----------
    last
        The arrays with the same values that the variables received last, if they hold no parts.
    """

    def __init__(self, columns: Sequence[Sequence[Variable]], xp: Any, to_numpy: Any) -> None:
        bounds = bounds_of([v.shape for v in columns[0]])
        arrays = [xp.empty(bounds[-1][1], column[0].dtype) for column in columns]
        self.variables = [v for column in columns for v in column]
        self.flats = FlatArrays.of(bounds, arrays)
        self.last: FlatArrays | None = None
        del arrays
        # what a signal handler of this thread reads while the arrays are hidden
        self._copies = [Pending(partial(to_numpy, x), x.shape, x.dtype) for x in self.flats.parts]
        self._alone = _counts(self.flats)

    @property
    def bytes(self) -> int:
        """The size of the memory."""
        return sum(int(x.nbytes) for x in self.flats.arrays)

    def is_held(self) -> bool:
        """Return whether all variables hold their parts."""
        return hold(self.variables, self.flats.parts)

    def is_alone(self) -> bool:
        """Return whether nothing refers to the memory, while no variable holds a part."""
        return _counts(self.flats) == self._alone

    def others(self) -> list[Any]:
        """Return the variables' arrays, and None for each that is its part."""
        pairs = zip(self.variables, self.flats.parts, strict=True)
        return [None if v.array is part else v.array for v, part in pairs]

    def fill(self, others: Sequence[Any], known: FlatArrays | None = None) -> None:
        """Copy arrays to parts.

        Parameters
        ----------
        others
            The arrays; None stands for a part that has its values.
        known
            The flat arrays of which these are all parts, if there are any.
        """
        if known is not None and all(map(is_, others, known.parts)):
            for flat, array in zip(self.flats.arrays, known.arrays, strict=True):
                flat[...] = array
            return
        for part, array in zip(self.flats.parts, others, strict=True):
            if array is not None:
                part[...] = array

    def take_in(self, known: FlatArrays | None) -> bool:
        """Let the variables hold their parts, with the values they have.

        Parameters
        ----------
        known
            The flat arrays of which variables hold parts, if it is known.

        Returns
        -------
        bool
            False if other code holds a part; nothing has changed then.
        """
        if self.is_held():
            return True
        others = self.others()
        mine = [i for i, array in enumerate(others) if array is None]
        variables = [self.variables[i] for i in mine]
        try:
            hide_arrays(variables, [self._copies[i] for i in mine])
            alone = self.is_alone()
        finally:
            restore_arrays(variables, [self.flats.parts[i] for i in mine])
        if alone:
            self.fill(others, known)
            set_arrays(self.variables, self.flats.parts)
            self.last = None
        return alone

    def restore(self, known: FlatArrays | None) -> None:
        """Copy the variables' values here, unless they are those that they received last.

        Parameters
        ----------
        known
            The flat arrays of which variables hold parts, if it is known.
        """
        if self.last is None or not hold(self.variables, self.last.parts):
            self.last = None
            self.fill([v.array for v in self.variables], known)

    @staticmethod
    @contextmanager
    def hidden(homes: Sequence[Home]) -> Iterator[None]:
        """Take the parts away from variables that hold them, and give them back at the end."""
        try:
            for home in homes:
                hide_arrays(home.variables, home._copies)
            yield
        finally:
            for home in homes:
                restore_arrays(home.variables, home.flats.parts)
