"""``Group``: variables that an optimizer updates together, as flat arrays."""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, starmap
from operator import call
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.extend import (
    Pending,
    Variable,
    active_tapes,
    backend_of,
    check_same_backend,
    put_away,
    put_back,
)
from .rules import Rule

__all__ = ["Group", "do_step"]

Array = NDArray[Any]
Update = Callable[..., tuple[Any, tuple[Any, ...]]]

#: How many bytes of an array a block takes: a few such parts fit into a processor's cache.
BLOCK = 1 << 17
#: Smaller variables share blocks with their neighbours.
SMALL = 1 << 14


def do_step(
    groups: Sequence[Group], update: Update, gradients: Sequence[Any], settings: tuple[Any, ...]
) -> None:
    """Update the variables of all groups; if that fails, of none.

    The locks of the variables and their slots are held.
    """
    for group in groups:
        group.gather()
    for group in groups:
        group.begin(update, [gradients[i] for i in group.members], settings)
    in_place = _nothing_raises()
    try:
        calls = list(chain.from_iterable([group.calls(in_place) for group in groups]))
        # without Python in between: an interrupt comes before all of them or after
        deque(starmap(call, calls), 0)
        for group in groups:
            group.commit()
    finally:
        for group in groups:
            group.end()


class _Block(NamedTuple):
    """A part of the flat arrays that is updated at a time."""

    start: int
    stop: int
    members: slice
    #: Where it begins in the only member; None if it is of whole members.
    offset: int | None


class Group:
    """Variables that are updated together, as one flat array, with their slots likewise.

    The variables hold parts of the flat arrays. Each step makes new flat arrays; only where nobody
    else has one, or a part of it, is it written, and meanwhile nobody can get at its parts.
    """

    __slots__ = (
        "_away",
        "_blocks",
        "_copies",
        "_gradients",
        "_new",
        "_rules",
        "_scratch",
        "_settings",
        "bounds",
        "columns",
        "flat",
        "members",
        "parts",
        "xp",
    )

    def __init__(self, members: list[int], columns: list[list[Variable]]) -> None:
        self.members = members
        self.columns = columns
        ends = list(accumulate(variable.size for variable in columns[0]))
        shapes = [variable.shape for variable in columns[0]]
        self.bounds = list(zip([0, *ends[:-1]], ends, shapes, strict=True))
        self.xp = backend_of(columns[0][0].array).xp
        self.flat: list[Any] = [None] * len(columns)
        self.parts: list[list[Any]] = [[None] * len(members) for _ in columns]
        self._copies: list[list[Pending]] = [[] for _ in columns]
        self._rules: dict[int, Rule | None] = {}
        self._blocks = list(_blocks(self.bounds, columns[0][0].dtype.itemsize))
        self._scratch: list[Array] = []
        self._away: list[int] = []
        self.end()

    def gather(self) -> None:
        """Make flat arrays again where somebody assigned a variable or a slot."""
        self._away.clear()  # of a step that was interrupted: what it left is read as a copy
        for k, column in enumerate(self.columns):
            for variable, part in zip(column, self.parts[k], strict=True):
                if variable.array is not part:
                    self._gather(k)
                    break

    def _gather(self, k: int) -> None:
        first = self.columns[0][0].array
        for variable in chain(*self.columns):
            what = f"variable {variable.name!r} (move model and optimizer together)"
            check_same_backend(variable.array, first, what)
        self.xp = backend_of(first).xp
        self.parts[k] = [None] * len(self.members)
        self.flat[k] = self.xp.concat([variable.array for variable in self.columns[k]], axis=None)

    def begin(self, update: Update, gradients: list[Any], settings: tuple[Any, ...]) -> None:
        """Take a step's gradients and settings; do what cannot be done by blocks."""
        value, *state = self.flat
        rule = None
        if type(value) is np.ndarray and all(type(x) is float for x in settings):
            count = len(settings)
            if count not in self._rules:
                self._rules[count] = Rule.of(update, value.dtype, len(state), count)
            rule = self._rules[count]
        if rule is None:
            new, changed = update(value, self.xp.concat(gradients, axis=None), state, settings)
            self._new = [new, *changed]
        else:
            self._gradients = gradients
            self._settings = rule, [np.asarray(x, value.dtype) for x in settings]

    def calls(self, in_place: bool) -> list[tuple[Any, ...]]:
        """Return the calls that do the step, block by block."""
        if self._settings is None:
            return []
        rule, settings = self._settings
        self._new = [self._target(k, in_place) for k in range(len(self.columns))]
        old, new, dtype = self.flat, self._new, self.flat[0].dtype
        if len(self._blocks) == 1:
            gradient = np.concatenate(self._gradients, axis=None)
            scratch = self._scratch_of(rule, len(gradient), dtype)
            return rule.calls(old, (gradient, *settings), new, scratch)
        calls = []
        longest = max(block.stop - block.start for block in self._blocks)
        scratch = self._scratch_of(rule, longest, dtype)
        flattened = [g.reshape(-1) for g in self._gradients]
        for start, stop, members, offset in self._blocks:
            size = stop - start
            if offset is None:
                gradient = np.concatenate(flattened[members])
            else:
                gradient = flattened[members.start][offset : offset + size]
            calls += rule.calls(
                [x[start:stop] for x in old],
                (gradient, *settings),
                [x[start:stop] for x in new],
                [x[:size] for x in scratch],
            )
        return calls

    def _scratch_of(self, rule: Rule, size: int, dtype: np.dtype[Any]) -> list[Array]:
        if not self._scratch:
            self._scratch = [np.empty(size, dtype) for _ in range(rule.scratch)]
        return self._scratch

    def _target(self, k: int, in_place: bool) -> Array:
        """Return where a column's new flat array goes: the old one, if nobody else has it."""
        if self.parts[k][0] is None:  # it was gathered just now
            return self.flat[k]
        if in_place:
            self._away.append(k)
            put_away(self.columns[k], self._copies[k])
            if _count(self.flat, self.parts, k) == (_ALONE[0] + len(self.members), _ALONE[1]):
                return self.flat[k]
            self._put_back()
        return np.empty_like(self.flat[k])

    def _put_back(self) -> None:
        k = self._away[-1]
        put_back(self.columns[k], self.parts[k])
        self._away.pop()

    def commit(self) -> None:
        """Give variables and slots their parts of the new flat arrays."""
        for k, flat in enumerate(self._new):
            if k not in self._away:
                self._commit(k, flat)

    def _commit(self, k: int, flat: Any) -> None:
        # the method is quicker than the function, which every library has
        reshape = getattr(type(flat), "reshape", None) or self.xp.reshape
        parts = [reshape(flat[a:b], shape) for a, b, shape in self.bounds]
        if type(flat) is np.ndarray:
            self._copies[k] = [Pending(part.copy, part.shape, part.dtype) for part in parts]
        for variable, part in zip(self.columns[k], parts, strict=True):
            variable.set_array(part)
        self.flat[k], self.parts[k] = flat, parts

    def end(self) -> None:
        """Put back what is away, and let go what belonged to the step."""
        while self._away:
            self._put_back()
        self._new: list[Any] = []
        self._gradients: list[Any] = []
        self._settings: tuple[Rule, list[Array]] | None = None


def _blocks(bounds: Sequence[tuple[int, int, Any]], itemsize: int) -> Iterator[_Block]:
    """Yield the blocks of a flat array that has its parts between these bounds."""
    block, small = BLOCK // itemsize, SMALL // itemsize
    if bounds[-1][1] <= block:
        small = block + 1
    first = start = stop = 0  # of the members that wait for their neighbours
    for i, (a, b, _) in enumerate(bounds):
        if stop > start and (b - start > block or b - a >= small):
            yield _Block(start, stop, slice(first, i), None)
            start = stop
        if b - a >= small:
            for at in range(a, b, block):
                yield _Block(at, min(at + block, b), slice(i, i + 1), at - a)
            start, first = b, i + 1
        elif start == stop:
            start, first = a, i
        stop = b
    if stop > start:
        yield _Block(start, stop, slice(first, len(bounds)), None)


# -- who else has an array -------------------------------------------------------------------------


def _count(flats: list[Any], parts: list[list[Any]], k: int) -> tuple[int, int]:
    """Return how many have a flat array, its parts among them, and how many have each part."""
    return sys.getrefcount(flats[k]), max(map(sys.getrefcount, parts[k]))


def _alone() -> tuple[int, int]:
    """Return what is counted if nobody else has them, less the parts; never seen if none can say."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or not hasattr(sys, "getrefcount"):
        return -1, -1
    flats: list[Any] = [np.zeros(1)]
    parts = [[flats[0][:1]]]
    copies = [Pending(part.copy, part.shape, part.dtype) for part in parts[0]]
    flat, part = _count(flats, parts, 0)
    others = flats[0], parts[0][0]
    counts = _count(flats, parts, 0) == (flat + 1, part + 1)
    del copies, others
    return (flat - 1, part) if counts else (-1, -1)


_ALONE = _alone()


def _nothing_raises() -> bool:
    """Return whether arithmetic raises no error, after which arrays would be half written."""
    if active_tapes.get() or not {"ignore", "warn", "print"}.issuperset(np.geterr().values()):
        return False
    for action, _, category, *_ in warnings.filters:
        if action == "error" and issubclass(RuntimeWarning, category):
            return False
    return True
