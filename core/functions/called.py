"""What was in the modules that a trace called: the trace is outdated once this changes.

Modules note that an attribute was set or deleted. Lists and dicts in them do not, so these are
compared before each call.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from ..base.context import CALLED
from ..base.lifetimes import REPLACED

__all__ = ["Called", "answers"]


class Called:
    """The modules that a trace called, and the variables and modules that were in them.

    Parameters
    ----------
    modules
        The modules, without those inside others.
    """

    __slots__ = ("_containers", "_count", "_held", "_modules")
    _containers: list[Any]

    def __init__(self, modules: Sequence[Any]) -> None:
        self._modules, count = modules, REPLACED.count
        self._held = self._now()
        self._look(count)

    @property
    def unchanged(self) -> bool:
        """Whether the modules hold the same variables and modules in the same places."""
        count = REPLACED.count  # before looking: another thread may replace something meanwhile
        if self._count != count:
            now = self._now()
            if len(now) != len(self._held) or not all(map(_is_same, now, self._held)):
                return False
            self._look(count)  # plain values may have come, or other lists with the same items
        for seen in self._containers:
            if not seen.is_same():
                if not seen.holds_same():
                    return False
                # plain values came to it: others are no longer expected
                self._containers = [x for x in self._containers if x is not seen or x.may_hold]
        return True

    def _now(self) -> list[tuple[str, Any]]:
        return [pair for module in self._modules for pair in module._gradtape_leaves()]

    def _look(self, count: int) -> None:
        self._count = count
        self._containers = [x for y in self._modules for x in y._gradtape_containers()]

    def __deepcopy__(self, memo: dict[int, Any]) -> Called:
        twin = memo[id(self)] = type(self).__new__(type(self))
        twin._modules, twin._held = copy.deepcopy((self._modules, self._held), memo)
        twin._count, twin._containers = -1, []  # the copies of the modules may not be complete yet
        return twin


def _is_same(a: tuple[str, Any], b: tuple[str, Any]) -> bool:
    return a[1] is b[1] and a[0] == b[0]


def answers(asked: Iterable[tuple[Any, str, Any]], function: Any) -> tuple[Any, ...]:
    """Return what a trace compares before each call: objects, attributes and their values.

    Parameters
    ----------
    asked
        What the trace noted.
    function
        The traced function; a method may use other modules in its object than it calls.
    """
    found, owner = list(asked), getattr(function, "__self__", None)
    modules = {id(x): x for x, name, _ in found if name == CALLED}
    if hasattr(type(owner), "own_leaves"):
        modules[id(owner)] = owner
    outer: list[Any] = []
    inside: set[int] = set()
    for key, x in modules.items():
        if key not in inside:  # of two modules that hold each other, one is outside
            parts = {id(part) for part in x.submodules}
            outer = [*(y for y in outer if id(y) not in parts), x]
            inside |= parts
    kept = [x for x in found if x[1] != CALLED]
    return (*kept, (Called(outer), "unchanged", True)) if outer else tuple(kept)
