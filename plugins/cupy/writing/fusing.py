"""Fusing: which groups of a plan become one kernel.

Between two products of matrices, all groups could be one kernel, were it not that blocks of threads
cannot wait for each other. So groups are collected as long as they can be cut into independent
slices. Kernels that need nothing of each other then run side by side, as blocks of one launch.

A *stretch* is what runs between steps that are not groups. A group runs in the first stretch that
has its inputs; but if it needs only inputs of the program, in the first that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from math import prod

from ....core.extend import Symbol
from ...planned import Item, LoopGroup, PlanStep, StepKind, close_groups, count_ops
from .blocks import MOST_PARTS, Values, side_by_side
from .groups import MOST, in_parts, is_one_launch
from .joins import has_kernels
from .places import Place
from .slices import Slices, Span, cut
from .source import Written

#: The maximum of groups of a kernel, of their steps and of their arrays, of which a launch can have
#: up to 512.
_MOST_GROUPS, _MOST_STEPS, _MOST_ARRAYS = 24, 160, 400
#: The maximum of elements of groups that run next to others: larger ones fill a device.
_MOST_ELEMENTS = 2**19


class BlockKernel:
    """Several groups that are one kernel.

    Attributes
    ----------
    parts
        Groups that are cut into slices; parts run side by side.
    inputs, outputs
        The symbols that it reads, and those that it writes to arrays.
    spilled
        The outputs that it also reads.
    """

    __slots__ = ("inputs", "outputs", "parts", "spilled")

    def __init__(self, parts: Sequence[Slices]) -> None:
        self.parts = list(parts)
        self.inputs: list[Symbol] = []
        self.outputs: list[Symbol] = []
        self.spilled: set[Symbol] = set()

    @property
    def members(self) -> list[PlanStep]:
        """All steps, in order."""
        return [step for part in self.parts for group in part.groups for step in group.members]

    def launch(self, place: Callable[[Symbol], Place], stores: Mapping[Symbol, Place]) -> Written:
        """Return the kernel.

        Parameters
        ----------
        place
            A function that returns the place of an input.
        stores
            The places of outputs that are parts of other arrays.
        """
        return side_by_side(self.parts, place, set(self.outputs), stores), []

    def explain(self) -> str:
        """Return a description of one line."""
        told = []
        for part in self.parts:
            group = max(part.groups, key=lambda group: prod(group.shape))
            of = _words(part, group.shape, part.spans[group])
            ops = count_ops(step for g in part.groups for step in g.members)
            told.append(f"over {group.shape}, {of}: {ops}")
        return "kernel " + "; next to it ".join(told)


def _words(part: Slices, shape: tuple[int, ...], span: Span) -> str:
    if part.count == 1 or span is None:
        return "in one block"
    long = [a for a, n in enumerate(shape) if n > 1]
    inside = prod(n for a, n in enumerate(shape) if not span[0] <= a < span[1])
    word = (
        "element" if inside == 1
        else "row" if span[0] <= long[0] else "column" if span[1] > long[-1] else "slice"
    )  # fmt: skip
    several = part.at_once
    return f"in one block per {word}" if several == 1 else f"in one block per {several} {word}s"


Fused = Item | BlockKernel


def fused(
    items: Sequence[Item],
    needed: Container[Symbol],
    wanted: Container[Symbol],
    place: Callable[[Symbol], Place],
) -> list[Fused]:
    """Return the items of a plan in a possible order, with groups in one kernel where possible.

    Parameters
    ----------
    items
        The groups and the other steps, in order.
    needed
        The values that are read after the last of them.
    wanted
        The views that must be arrays; kernels read through all others.
    place
        A function that returns the place of an input of a group.
    """
    items = [part for item in items for part in _in_parts(item, place)]
    close_groups(items, needed)
    apart = [
        item
        for item in items
        if isinstance(item, PlanStep) and item.kind is StepKind.VIEW and item.out not in wanted
    ]
    skipped = set(map(id, apart))
    nodes = [item for item in items if id(item) not in skipped]
    before = _dependencies(nodes, place)
    stretches = _stretches(nodes, before)
    found: list[Fused] = []
    for stretch in range(max(stretches, default=0) + 1):
        mine = [i for i, at in enumerate(stretches) if at == stretch]
        found += [nodes[i] for i in mine if not isinstance(nodes[i], LoopGroup)]
        groups = [i for i in mine if isinstance(nodes[i], LoopGroup)]
        found += _Stretch(nodes, groups, before, place).kernels()
    found = _with_views(found, apart)
    _close(found, needed, place)
    return found


def _in_parts(item: Item, place: Callable[[Symbol], Place], least: int | None = None) -> list[Item]:
    """Return a group whose sums are too long for one launch as several."""
    if not isinstance(item, LoopGroup) or is_one_launch(item) or cut([item], place) is not None:
        return [item]
    first, *rest = in_parts(item) if least is None else in_parts(item, least)
    return [first, *(part for group in rest for part in _in_parts(group, place, MOST))]


def _read(item: Fused, place: Callable[[Symbol], Place]) -> set[Symbol]:
    """Return the values that an item reads; if kernels run it, what those are views of."""
    symbols = {x for step in item.members for x in step.symbols}
    by_kernels = not isinstance(item, PlanStep) or has_kernels(item)
    return {place(x)[0] for x in symbols} if by_kernels else symbols


def _dependencies(nodes: Sequence[Item], place: Callable[[Symbol], Place]) -> list[set[int]]:
    """Return, by item, the items that make what it reads."""
    made = {x: i for i, item in enumerate(nodes) for step in item.members for x in step.outputs}
    return [
        {made[x] for x in _read(item, place) if x in made} - {i} for i, item in enumerate(nodes)
    ]


def _stretches(nodes: Sequence[Item], before: Sequence[set[int]]) -> list[int]:
    """Return the stretch of each item; a step that is no group runs before its stretch."""
    found: list[int] = []
    for item, of in zip(nodes, before, strict=True):
        more = not isinstance(item, LoopGroup)
        found.append(
            max((found[i] + (more and isinstance(nodes[i], LoopGroup)) for i in of), default=0)
        )
    last = max(found, default=0)
    until = [last] * len(nodes)
    for i in reversed(range(len(nodes))):
        item, of = nodes[i], before[i]
        free = isinstance(item, LoopGroup) and all(found[k] == 0 for k in of)
        if free and found[i] == 0 and all(isinstance(nodes[k], LoopGroup) for k in of):
            found[i] = until[i]
        latest = found[i] - (not isinstance(item, LoopGroup))
        for k in of:
            until[k] = min(until[k], latest)
    return found


def _with_views(items: Sequence[Fused], views: Sequence[PlanStep]) -> list[Fused]:
    """Return the items with each view after what it is a view of."""
    of: dict[Symbol, list[PlanStep]] = {}
    for view in views:
        of.setdefault(view.inputs[0], []).append(view)
    made = {x for item in items for step in item.members for x in step.outputs}
    made.update(view.out for view in views)
    found: list[Fused] = []
    waiting = [x for x in of if x not in made]

    def add() -> None:
        while waiting:
            for view in of.get(waiting.pop(), ()):
                found.append(view)
                waiting.append(view.out)

    add()
    for item in items:
        found.append(item)
        waiting += [x for step in item.members for x in step.outputs]
        add()
    return found


def _close(
    items: Sequence[Fused],
    needed: Container[Symbol],
    place: Callable[[Symbol], Place],
) -> None:
    """Set the inputs and outputs of kernels."""
    readers: dict[Symbol, set[int]] = {}
    for number, item in enumerate(items):
        for x in _read(item, place):
            readers.setdefault(x, set()).add(number)
    for number, item in enumerate(items):
        if isinstance(item, BlockKernel):
            made = dict.fromkeys(x for step in item.members for x in step.outputs)
            item.spilled = {x for part in item.parts for x in Values(part, place).spilled}
            groups = [group for part in item.parts for group in part.groups]
            read = dict.fromkeys(x for group in groups for x in group.inputs)
            item.inputs = [x for x in read if x not in made]
            item.outputs = [
                x for x in made
                if x in needed or x in item.spilled or readers.get(x, set()) - {number}
            ]  # fmt: skip


def _arrays(groups: Sequence[LoopGroup]) -> int:
    """Return the maximum of arrays that groups read and write."""
    return sum(len(group.inputs) + len(group.outputs) for group in groups)


class _Cluster:
    """Groups of a stretch in one kernel, or one group that is not cut."""

    def __init__(self, members: Sequence[int], slices: Slices | None) -> None:
        self.members = sorted(members)
        self.slices = slices


class _Stretch:
    """The groups between steps of other kinds.

    Parameters
    ----------
    nodes
        All items.
    groups
        The positions of the groups.
    before
        By item, the items that make what it reads.
    place
        A function that returns the place of an input.
    """

    def __init__(
        self,
        nodes: Sequence[Item],
        groups: Sequence[int],
        before: Sequence[set[int]],
        place: Callable[[Symbol], Place],
    ) -> None:
        self._groups = {i: nodes[i] for i in groups}
        self._before = {i: before[i] & self._groups.keys() for i in groups}
        self._place = place
        self._of: dict[int, _Cluster] = {}

    def kernels(self) -> list[Fused]:
        """Return the groups as kernels, in order."""
        for i in self._groups:
            self._add(i)
        clusters = list(dict.fromkeys(self._of.values()))
        return [self._kernel(row) for row in self._side_by_side(clusters)]

    def _add(self, i: int) -> None:
        """Add a group to the clusters that it reads from, or make one of it alone."""
        own = cut([self._group(i)], self._place)
        before = list(dict.fromkeys(self._of[k] for k in sorted(self._before[i], reverse=True)))
        cut_before = [c for c in before if c.slices is not None] if own else []
        rows = [cut_before, *([c] for c in cut_before)] if len(cut_before) > 1 else [cut_before]
        for row in rows:
            if not row or not self._may_join(row, i):
                continue
            members = sorted([i, *(k for c in row for k in c.members)])
            slices = self._cut(members)
            if slices is not None:
                self._put(_Cluster(members, slices))
                return
        self._put(_Cluster([i], own))

    def _put(self, cluster: _Cluster) -> None:
        self._of.update(dict.fromkeys(cluster.members, cluster))

    def _group(self, i: int) -> LoopGroup:
        group = self._groups[i]
        assert isinstance(group, LoopGroup)
        return group

    def _cut(self, members: Sequence[int]) -> Slices | None:
        groups = [self._group(k) for k in members]
        steps = sum(len(group.members) for group in groups)
        if len(groups) > _MOST_GROUPS or steps > _MOST_STEPS or _arrays(groups) > _MOST_ARRAYS:
            return None
        return cut(groups, self._place)

    def _may_join(self, row: Sequence[_Cluster], i: int) -> bool:
        """Return whether nothing else must run between some clusters and a group."""
        apart: set[_Cluster] = set()
        waiting = [self._of[k] for k in self._before[i]]
        waiting += [self._of[k] for c in row for m in c.members for k in self._before[m]]
        while waiting:
            cluster = waiting.pop()
            if cluster in apart or cluster in row:
                continue
            apart.add(cluster)
            waiting += [self._of[k] for m in cluster.members for k in self._before[m]]
        return not any(
            self._of[k] in row for c in apart for m in c.members for k in self._before[m]
        )

    def _side_by_side(self, clusters: Sequence[_Cluster]) -> list[list[_Cluster]]:
        """Return clusters in order, those in one row that run side by side."""
        rows: list[list[_Cluster]] = []
        at: dict[_Cluster, list[_Cluster]] = {}
        for cluster in self._in_order([[c] for c in clusters]):
            (one,) = cluster
            above = self._above(one, at)
            row = next(
                (r for r in reversed(rows) if self._may_run_with(r, one) and r not in above), None
            )
            if row is None:
                rows.append(row := [])
            row.append(one)
            at[one] = row
        return self._in_order(rows)

    def _may_run_with(self, row: Sequence[_Cluster], cluster: _Cluster) -> bool:
        """Return whether a cluster may run next to others: all are small."""
        parts = [c.slices for c in (*row, cluster)]
        groups = [group for part in parts if part is not None for group in part.groups]
        return (
            None not in parts
            and len(parts) <= MOST_PARTS
            and _arrays(groups) <= _MOST_ARRAYS
            and max(prod(group.shape) for group in groups) <= _MOST_ELEMENTS
        )

    def _above(
        self, cluster: _Cluster, at: Mapping[_Cluster, list[_Cluster]]
    ) -> list[list[_Cluster]]:
        """Return the rows that run before a cluster."""
        found: list[list[_Cluster]] = []
        waiting = [cluster]
        while waiting:
            here = waiting.pop()
            for k in {k for m in here.members for k in self._before[m]}:
                c = self._of[k]
                if c is not here and c in at and not any(at[c] is row for row in found):
                    found.append(at[c])
                    waiting += at[c]
        return found

    def _in_order(self, rows: Sequence[list[_Cluster]]) -> list[list[_Cluster]]:
        """Return rows so that each is after those that make what it reads."""
        left = sorted(rows, key=lambda row: min(c.members[0] for c in row))
        done: set[int] = set()
        found = []
        while left:
            for row in left:
                mine = {m for c in row for m in c.members}
                if all(self._before[m] <= done | mine for m in mine):
                    break
            left.remove(row)
            done |= mine
            found.append(row)
        return found

    def _kernel(self, row: Sequence[_Cluster]) -> Fused:
        """Return a row as a kernel; a group that is one kernel by itself stays as it is."""
        parts = [c.slices for c in row if c.slices is not None]
        (first, *_) = row[0].members
        group = self._group(first)
        alone = len(row) == len(row[0].members) == 1
        if not parts or (alone and is_one_launch(group)):
            return group
        return BlockKernel(parts)
