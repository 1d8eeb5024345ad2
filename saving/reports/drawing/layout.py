"""The layout of a small graph: in layers, with every edge leading down.

Sugiyama's method in its simplest form: layers by the longest path, long edges through extra points,
order in a layer by the mean of the neighbours, and finally positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_SWEEPS = 8
_GAP, _DOWN = 18.0, 30.0
# Beyond so many points, edges run straight from box to box.
_MOST_POINTS = 3_000


@dataclass(frozen=True)
class Box:
    """A box to place: its size, and whether it goes directly above the box that uses it."""

    width: float
    height: float
    sinks: bool = False


@dataclass(frozen=True)
class Placed:
    """The centre of each box, the points of each edge in the given order, and the total size."""

    centres: list[tuple[float, float]]
    edges: list[list[tuple[float, float]]]
    width: float
    height: float


def place(boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> Placed:
    """Place boxes; every edge leads from a box to a later one in the list."""
    layer = _layers(boxes, edges)
    widths = [box.width for box in boxes]
    heights = [box.height for box in boxes]
    chains: list[list[int]] = []
    led = sum(layer[end] - layer[start] for start, end in edges) <= _MOST_POINTS
    for start, end in edges:
        chain = [start]
        for between in range(layer[start] + 1, layer[end] if led else 0):
            chain.append(len(layer))
            layer.append(between)
            widths.append(8.0)
            heights.append(0.0)
        chains.append([*chain, end])
    rows: list[list[int]] = [[] for _ in range(max(layer, default=0) + 1)]
    for i, n in enumerate(layer):
        rows[n].append(i)
    above: list[list[int]] = [[] for _ in layer]
    below: list[list[int]] = [[] for _ in layer]
    for chain in chains:
        for a, b in pairwise(chain):
            below[a].append(b)
            above[b].append(a)
    _order(rows, above, below)
    xs = _columns(rows, above, below, widths)
    tops, y = [], 0.0
    for row in rows:
        tops.append(y)
        y += max((heights[i] for i in row), default=0.0) + _DOWN
    ys, halves = [0.0] * len(layer), [0.0] * len(layer)
    for top, row in zip(tops, rows, strict=True):
        tall = max((heights[i] for i in row), default=0.0)
        for i in row:
            ys[i] = top + tall / 2
            halves[i] = tall / 2
    left = min((xs[i] - widths[i] / 2 for i in range(len(layer))), default=0.0)
    right = max((xs[i] + widths[i] / 2 for i in range(len(layer))), default=0.0)
    at = [(x - left, y) for x, y in zip(xs, ys, strict=True)]
    lines = []
    for chain in chains:
        (x, y0), (x1, y1) = at[chain[0]], at[chain[-1]]
        points = [(x, y0 + heights[chain[0]] / 2)]
        for i in chain[1:-1]:  # straight down next to the boxes of a row, so as not to cross them
            x, middle = at[i]
            points += [(x, middle - halves[i]), (x, middle + halves[i])]
        lines.append([*points, (x1, y1 - heights[chain[-1]] / 2)])
    return Placed(at[: len(boxes)], lines, right - left, max(0.0, y - _DOWN))


def _layers(boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> list[int]:
    layer = [0] * len(boxes)
    for start, end in sorted(edges):
        layer[end] = max(layer[end], layer[start] + 1)
    for i, box in enumerate(boxes):
        users = [layer[end] for start, end in edges if start == i]
        if box.sinks and users:
            layer[i] = min(users) - 1
    return layer


def _order(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Order each row by the mean position of neighbours: down, then up, and so on."""
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        for row, fixed in _pairs(rows, down):
            at = {i: place for place, i in enumerate(fixed)}
            means = {}
            for place, i in enumerate(row):
                known = [at[j] for j in near[i] if j in at]
                means[i] = sum(known) / len(known) if known else float(place)
            row.sort(key=means.__getitem__)


def _pairs(rows: list[list[int]], down: bool) -> list[tuple[list[int], list[int]]]:
    if down:
        return list(zip(rows[1:], rows, strict=False))
    return list(zip(rows[-2::-1], rows[:0:-1], strict=False))


def _columns(
    rows: list[list[int]], above: list[list[int]], below: list[list[int]], widths: list[float]
) -> list[float]:
    """Return the position of each box in its row: near its neighbours, without overlap."""
    xs = [0.0] * len(widths)
    for row in rows:
        _spread(row, xs, widths)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        for row in rows if down else reversed(rows):
            for i in row:
                if near[i]:
                    xs[i] = sum(xs[j] for j in near[i]) / len(near[i])
            _spread(row, xs, widths)
    return xs


def _spread(row: list[int], xs: list[float], widths: list[float]) -> None:
    """Separate boxes: the mean of moving them only to the right and only to the left."""
    right, left = [xs[i] for i in row], [xs[i] for i in row]
    for k in range(1, len(row)):
        apart = (widths[row[k - 1]] + widths[row[k]]) / 2 + _GAP
        right[k] = max(right[k], right[k - 1] + apart)
    for k in range(len(row) - 2, -1, -1):
        apart = (widths[row[k]] + widths[row[k + 1]]) / 2 + _GAP
        left[k] = min(left[k], left[k + 1] - apart)
    for k, i in enumerate(row):
        xs[i] = (right[k] + left[k]) / 2
