"""Slices: parts of arrays that several groups compute independently of each other.

A softmax computes each row from that row alone, and a normalisation over a batch each column. If
one block of threads computes a slice from the first group to the last, the groups between need no
launch of their own: the block waits for its own threads only. A whole array can be one slice.

The elements of a slice are those with one index along some neighbouring axes, its *span*. So in an
array of ``outer * count * inner`` elements, the slice of an element is ``number / inner % count``.
A group may read what an earlier one made only from its own slice, which the strides show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import NamedTuple

from ....core.extend import Symbol
from ...planned import LoopGroup, Shape
from .places import Place
from .source import BLOCK, axes_of, spread

#: The maximum of elements per thread; and where many blocks add up long sums, which takes long in
#: any case.
_MOST, _MOST_OF_SUMS = 16, 64
#: From here on, blocks are many, and sums are long.
_MANY_BLOCKS, _LONG = 64, 16
#: The number of adjacent slices that are read at once if elements of a slice are far apart: of
#: 4 bytes each, they are the least that memory is read in. Fewer elements than this are in a cache.
_ADJACENT, _CACHED = 8, 2**18

#: The axes that number the slices, from the first up to another; None if each slice computes all.
Span = tuple[int, int] | None
#: Where a group finds a value in its own slice: the first element, and the strides.
Local = tuple[int, tuple[int, ...]]


class Layout(NamedTuple):
    """How a value is cut into slices; ``every`` if each slice has all of it, one number."""

    outer: int
    inner: int
    every: bool = False

    @property
    def size(self) -> int:
        """The number of elements in a slice."""
        return self.outer * self.inner


class Slices:
    """Groups, cut into slices.

    Attributes
    ----------
    groups
        The groups, in order.
    count
        The number of slices.
    spans
        By group, the axes that number the slices.
    layouts
        By value that the groups make, how it is cut.
    reads
        By group and input, where the group finds what an earlier one has made.
    threads
        The number of threads that compute a slice, a power of 2.
    turned
        Whether adjacent threads compute adjacent slices.
    """

    def __init__(self, groups: Sequence[LoopGroup], count: int) -> None:
        self.groups = list(groups)
        self.count = count
        self.spans: dict[LoopGroup, Span] = {}
        self.layouts: dict[Symbol, Layout] = {}
        self.reads: dict[tuple[LoopGroup, Symbol], Local] = {}
        self.threads, self.turned = BLOCK, False

    @property
    def at_once(self) -> int:
        """The number of slices of a block."""
        return BLOCK // self.threads

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.count // self.at_once)

    def size(self, group: LoopGroup) -> int:
        """Return the number of a group's elements in a slice."""
        return 1 if self.spans[group] is None else prod(group.shape) // self.count

    def rounds(self, group: LoopGroup) -> int:
        """Return the maximum number of a group's elements that a thread computes."""
        return -(-self.size(group) // self.threads)

    # -- finding them ----------------------------------------------------------------------------

    def add(
        self, group: LoopGroup, spans: Sequence[Span], place: Callable[[Symbol], Place]
    ) -> bool:
        """Cut one more group by the first possible of some spans; return whether there is one."""
        for span in spans:
            reads = self._reads(group, span, place)
            if reads is None:
                continue
            self.spans[group] = span
            self.reads.update(((group, x), local) for x, local in reads.items())
            self.layouts.update(self._made(group, span))
            return True
        return False

    def _reads(
        self, group: LoopGroup, span: Span, place: Callable[[Symbol], Place]
    ) -> dict[Symbol, Local] | None:
        """Return where a group finds values in its own slice; None if it needs other slices."""
        shape = group.shape
        for axis in axes_of(group.tails[0]) if group.tails else ():
            if span is not None and span[0] <= axis < span[1] and shape[axis] > 1:
                return None
        found: dict[Symbol, Local] = {}
        for x in group.inputs:
            home, offset, _ = at = place(x)
            layout = self.layouts.get(home)
            if layout is None:
                continue
            strides = spread(at, x, len(shape))
            if layout.every:
                found[x] = 0, (0,) * len(shape)
                continue
            local = None if span is None else self._local(shape, span, offset, strides, layout)
            if local is None:
                return None
            found[x] = local
        return found

    def _local(
        self, shape: Shape, span: tuple[int, int], offset: int, strides: Shape, layout: Layout
    ) -> Local | None:
        """Return where in its slice a group reads a value; None if it reads other slices."""
        count, inner = self.count, layout.inner
        if count == 1:
            return offset, strides
        around, first = divmod(offset, count * inner)
        low = high = first
        found: list[int] = []
        for axis, (n, step) in enumerate(zip(shape, strides, strict=True)):
            if n == 1:
                found.append(0)
            elif span[0] <= axis < span[1]:
                if step != inner * prod(shape[axis + 1 : span[1]]):
                    return None
                found.append(0)
            elif step % (count * inner) == 0:
                found.append(step // count)
            else:
                low, high = low + min(0, step * (n - 1)), high + max(0, step * (n - 1))
                found.append(step)
        return (around * inner + first, tuple(found)) if low >= 0 and high < inner else None

    def _made(self, group: LoopGroup, span: Span) -> Iterator[tuple[Symbol, Layout]]:
        if span is None:
            yield from ((step.out, Layout(1, 1, True)) for step in group.members)
            return
        for step in group.members:
            gone = axes_of(step) if step in group.tails else ()
            sizes = [1 if a in gone else n for a, n in enumerate(group.shape)]
            yield step.out, Layout(prod(sizes[: span[0]]), prod(sizes[span[1] :]))

    def divide(self, turned: bool) -> bool:
        """Decide which threads compute which elements; return whether they are few enough."""
        self.turned = turned
        largest = max(map(self.size, self.groups))
        width = min(BLOCK, power_from(self.count))
        self.threads = min(BLOCK, power_from(largest))
        if turned:
            self.threads = min(self.threads, BLOCK // _ADJACENT)
        self.threads = max(self.threads, BLOCK // width)
        few = largest * self.count <= _CACHED
        while turned and few and self.threads < BLOCK and -(-largest // self.threads) > _MOST:
            self.threads *= 2
        sums = max(sums_in_slice(group, self.spans[group])[1] for group in self.groups)
        many = sums > _LONG and self.blocks >= _MANY_BLOCKS
        return -(-largest // self.threads) <= (_MOST_OF_SUMS if many else _MOST)


def cut(groups: Sequence[LoopGroup], place: Callable[[Symbol], Place]) -> Slices | None:
    """Return groups cut into as many slices as possible; None if their blocks would be too slow.

    Parameters
    ----------
    groups
        The groups, in order.
    place
        A function that returns the place of an input.
    """
    largest = max(groups, key=lambda group: prod(group.shape))
    if not prod(largest.shape) or any("parts" in step.params for g in groups for step in g.tails):
        return None
    best: Slices | None = None
    for span in _all_spans(largest.shape):
        count = prod(largest.shape[slice(*span)])
        slices = Slices(groups, count)
        if not all(
            slices.add(group, [span] if group is largest else _spans(group, count), place)
            for group in groups
        ):
            continue
        inner, outer = prod(largest.shape[span[1] :]), prod(largest.shape[: span[0]])
        if not slices.divide(turned=inner == 1 < outer):
            continue
        if best is None or (slices.blocks, count) > (best.blocks, best.count):
            best = slices
    return best


def _all_spans(shape: Shape) -> Iterator[tuple[int, int]]:
    """Give the possible spans of a shape, each once; those of rows first."""
    yield 0, 0
    long = [a for a, n in enumerate(shape) if n > 1]
    for i, first in enumerate(long):
        for last in long[i:]:
            yield first, last + 1


def _spans(group: LoopGroup, count: int) -> list[Span]:
    shape = group.shape
    found: list[Span] = [s for s in _all_spans(shape) if prod(shape[slice(*s)]) == count]
    if count > 1 and prod(shape) == 1 and not group.tails:
        found.append(None)
    return found


def power_from(count: int) -> int:
    """Return the first power of 2 that is not less."""
    return 1 << (count - 1).bit_length()


def sums_in_slice(group: LoopGroup, span: Span) -> tuple[int, int]:
    """Return how many sums a group has in a slice, and the number of elements of each."""
    gone = axes_of(group.tails[0]) if group.tails else ()
    inside = [(a, n) for a, n in enumerate(group.shape) if span and not span[0] <= a < span[1]]
    return prod(n for a, n in inside if a not in gone), prod(n for a, n in inside if a in gone)


def is_whole(local: Local, shape: Shape, span: Span) -> bool:
    """Return whether a group reads a slice's elements in their order, each once."""
    offset, strides = local
    expected, found = 1, offset == 0
    for axis in reversed(range(len(shape))):
        n = shape[axis]
        if n == 1 or (span is not None and span[0] <= axis < span[1]):
            continue
        found = found and strides[axis] == expected
        expected *= n
    return found
