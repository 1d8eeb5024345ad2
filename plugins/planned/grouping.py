"""Grouping: elementwise steps over one shape become one loop, with the reductions after them.

An :class:`Emitter` may run such loops; subclasses do so without NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from ...core.extend import Symbol
from .steps import Group, Kind, Shape, Step

Item = Group | Step


class Emitter:
    """Runs groups as loops; this one leaves all of them to NumPy."""

    def takes(self, step: Step) -> bool:
        """Return whether a step may be in a group; here, if it is elementwise or a reduction.

        Parameters
        ----------
        step
            The step.
        """
        return step.elementwise or step.kind is Kind.REDUCTION

    def loop(self, group: Group) -> Callable[..., Any] | None:
        """Return a function that runs a group, ``function(*outputs, *inputs)``; None for NumPy.

        Parameters
        ----------
        group
            The group. Outputs are C contiguous arrays that overlap with nothing. Inputs may have
            any strides; those without axes may be NumPy scalars.
        """
        return None


def grouped(
    steps: Sequence[Step], needed: Container[Symbol], takes: Callable[[Step], bool]
) -> list[Item]:
    """Return steps in a possible order, with as many as possible in groups.

    A value crosses a boundary if it goes from one group to another, or into or out of a step of
    another kind. Elementwise steps over one shape with the same number of boundaries before them
    make a group.

    Parameters
    ----------
    steps
        The steps, in order.
    needed
        The values that are read after the last step.
    takes
        A function that returns whether a step may be in a group.
    """
    depths: dict[Symbol, int] = {}
    spaces: dict[Symbol, Any] = {}  # the shape of a group, None for a step outside groups
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
    """Set the inputs and outputs of groups.

    Parameters
    ----------
    items
        All groups and the other steps, in order.
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
