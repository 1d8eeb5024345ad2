"""Grouping: elementwise steps over one shape become one loop, with the reductions behind them.

Who may run such loops is an :class:`Emitter`; others than NumPy implement it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from ...core.extend import Symbol
from .steps import Group, Kind, Shape, Step

__all__ = ["Emitter", "Item", "close", "grouped"]

Item = Group | Step


class Emitter:
    """Who runs groups as loops of their own; this one leaves all of them to NumPy."""

    def takes(self, step: Step) -> bool:
        """Return whether a step may be in a group: here, what is elementwise, or a reduction.

        Parameters
        ----------
        step
            The step.
        """
        return step.elementwise or step.kind is Kind.REDUCTION

    def loop(self, group: Group) -> Callable[..., Any] | None:
        """Return what runs a group, ``function(*outputs, *inputs)``, or None to leave it to NumPy.

        Parameters
        ----------
        group
            The group. Outputs are C contiguous arrays that overlap with nothing; inputs are of any
            strides, those without axes may be NumPy scalars.
        """
        return None


def grouped(
    steps: Sequence[Step], needed: Container[Symbol], takes: Callable[[Step], bool]
) -> list[Item]:
    """Return steps in an order in which each can run, as many as can be together in groups.

    A boundary is where a value goes from one group to another, or into a step of another kind, or
    out of it.
    Elementwise steps over one shape with as many boundaries before them make a group.

    Parameters
    ----------
    steps
        The steps, in order.
    needed
        The values that are read after the last step.
    takes
        Whether a step may be in a group.
    """
    depths: dict[Symbol, int] = {}
    spaces: dict[Symbol, Any] = {}  # the shape of a group, None of a step beside them
    groups: dict[tuple[int, Shape], Group] = {}
    placed: list[tuple[int, Item]] = []
    for step in steps:
        space = step.space if takes(step) else None
        depth = 0
        for x in step.inputs:
            if type(x) is Symbol and x in depths:
                depth = max(depth, depths[x] + (spaces[x] != space))
        tail = step.kind is Kind.REDUCTION
        for symbol in step.outputs:
            depths[symbol] = depth
            spaces[symbol] = "reduced" if tail and space is not None else space
        if space is None:
            placed.append((depth, step))
            continue
        group = groups.get((depth, space))
        if group is None:
            group = groups[depth, space] = Group(space)
            placed.append((depth, group))
        (group.tails if tail else group.steps).append(step)
    placed.sort(key=lambda place: place[0])
    items = [item for _, item in placed]
    close(items, needed)
    return items


def close(items: Sequence[Item], needed: Container[Symbol]) -> None:
    """Say what goes in and out of groups.

    Parameters
    ----------
    items
        All groups and the steps beside them, in order.
    needed
        The values that are read after the last of them.
    """
    homes: dict[Symbol, Any] = {}
    outside: set[Symbol] = set()
    for item in items:
        members = item.members if isinstance(item, Group) else [item]
        for step in members:
            homes.update(dict.fromkeys(step.outputs, item))
    for item in items:
        members = item.members if isinstance(item, Group) else [item]
        for step in members:
            outside.update(x for x in step.inputs if type(x) is Symbol and homes.get(x) is not item)
    for item in items:
        if isinstance(item, Group):
            item.close(lambda x: x in outside or x in needed)
