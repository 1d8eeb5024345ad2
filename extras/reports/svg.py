"""A graph as an SVG image: boxes in layers, with inner graphs and captions below.

The layout is Sugiyama's method in its simplest form: layers by the longest path, long edges
through extra points, order in a layer by the mean of the neighbours, and finally positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ..saving.errors import printable
from ..saving.reports.text import counted, markup, width
from ..saving.reports.views import GraphStep, GraphView, count_steps

# -- the layout ------------------------------------------------------------------------------------

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


# -- pictures --------------------------------------------------------------------------------------

#: How many boxes and edges of one picture are drawn; a larger graph is described in text.
MOST_BOXES, MOST_EDGES = 160, 480
_CHARACTER, LINE, PADDING = 7.3, 16.0, 10.0
MARGIN, _CAPTION = 16.0, 30.0
_LONGEST = 34
#: How many graphs one picture has, those inside others counted.
_MOST_GRAPHS = 24

#: Colours on light and on dark paper: of the paper and edge of each kind of box, and of the rest.
LIGHT = {
    "ink": "#1f2933",
    "dim": "#6b7785",
    "line": "#a9b4c0",
    "paper": "#ffffff",
    "op": "#f3f5f8 #cbd3dc",
    "input": "#e3edf7 #7ea3c8",
    "held": "#eef3e6 #9bb27a",
    "custom": "#fbeee0 #d08a3e",
    "output": "#ece8f6 #9a8bc6",
}
_DARK = {
    "ink": "#e6eaef",
    "dim": "#94a0ad",
    "line": "#5d6976",
    "paper": "#14181d",
    "op": "#222932 #3c4754",
    "input": "#1d3044 #4d7ba8",
    "held": "#28321d #6f8a4b",
    "custom": "#3a2a18 #b5752f",
    "output": "#2b2640 #7868ad",
}


def _rules(colours: dict[str, str]) -> str:
    """Return the colour rules without variables, which viewers except browsers show as black."""
    boxes = "".join(
        ".gt-graph .{} rect{{fill:{};stroke:{}}}\n".format(kind, *colours[kind].split())
        for kind in ("op", "input", "held", "custom", "output")
    )
    return (
        f".gt-graph text{{fill:{colours['ink']}}}\n.gt-graph .dim{{fill:{colours['dim']}}}\n"
        f".gt-graph path{{stroke:{colours['line']}}}\n"
        f".gt-graph path.head{{fill:{colours['line']};stroke:none}}\n"
        f".gt-graph .paper{{fill:{colours['paper']};stroke:none}}\n{boxes}"
    )


STYLE = f"""\
.gt-graph text{{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
text-anchor:middle}}
.gt-graph .name{{font-weight:600}}
.gt-graph .caption{{text-anchor:start;font-weight:600}}
.gt-graph path{{fill:none;stroke-width:1.3}}
.gt-graph rect{{stroke-width:1.2}}
{_rules(LIGHT)}@media (prefers-color-scheme:dark){{
{_rules(_DARK)}}}
"""


@dataclass
class BoxContent:
    """One box: its class, its lines with their classes, and its tooltip."""

    kind: str
    lines: list[tuple[str, str]]
    tooltip: str = ""
    sinks: bool = False

    def box(self) -> Box:
        """Return its size."""
        wide = max((width(text) for _, text in self.lines), default=0) * _CHARACTER
        return Box(wide + 2 * PADDING, len(self.lines) * LINE + PADDING, self.sinks)


@dataclass
class Drawing:
    """Boxes, and edges between two of them by number, each to a later one."""

    items: list[BoxContent] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)


def svg(graph: GraphView, title: str) -> str:
    """Return a picture of a graph as a separate document."""
    return figure(graph, title, style=f"<style>{STYLE}</style>")


def figure(graph: GraphView, title: str, style: str = "") -> str:
    """Return a picture of a graph for a page, which supplies its :data:`STYLE`."""
    drawings: list[tuple[str, Drawing]] = []
    for number, (caption, inner) in enumerate(_graphs(graph, title)):
        if number == _MOST_GRAPHS:
            drawings.append(("graphs further inside are not drawn", Drawing()))
            break
        drawings.append((caption, _drawing(inner)))
    return document(drawings, f"graph of {title}", style)


@dataclass
class PlacedDrawing:
    """A placed drawing: its caption, its boxes and edges, and its vertical position.

    Attributes
    ----------
    first
        The distance from the top of its caption to its boxes.
    """

    caption: str
    drawing: Drawing
    placed: Placed
    top: float
    first: float = _CAPTION


def arranged(drawings: Iterable[tuple[str, Drawing]]) -> tuple[list[PlacedDrawing], float, float]:
    """Return drawings one below the other, and the width and height of the whole."""
    parts: list[PlacedDrawing] = []
    wide, y = 0.0, MARGIN
    for caption, drawing in drawings:
        placed = place([item.box() for item in drawing.items], drawing.edges)
        parts.append(PlacedDrawing(caption, drawing, placed, y))
        y += _CAPTION + placed.height + (2 * MARGIN if drawing.items else 0.0)
        wide = max(wide, placed.width, width(caption) * _CHARACTER)
    return parts, wide + 2 * MARGIN, y


def document(drawings: Iterable[tuple[str, Drawing]], title: str, style: str = "") -> str:
    """Return captions and drawings as SVG."""
    parts, wide, high = arranged(drawings)
    drawn = []
    for part in parts:
        kind = "caption" if part.drawing.items else "caption dim"
        drawn.append(
            _text(MARGIN, part.top + (12 if part.drawing.items else 16), part.caption, kind)
        )
        drawn += _drawn(part.drawing, part.placed, part.top + part.first)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gt-graph" role="img" '
        f'aria-label="{markup(title)}" width="{wide:.0f}" height="{high:.0f}" '
        f'viewBox="0 0 {wide:.0f} {high:.0f}">{style}'
        f'<rect class="paper" width="100%" height="100%"/>{"".join(drawn)}</svg>\n'
    )


def _graphs(graph: GraphView, title: str) -> Iterator[tuple[str, GraphView]]:
    """Yield a graph, then those inside it, with a caption each; none for one that is not drawn."""
    queue = [(title, graph)]
    while queue:
        caption, current = queue.pop(0)
        yield caption, current
        if _is_drawn(current):
            queue += [
                (f"{name} of %{step.first} {step.label}", inner)
                for step in current.steps
                for name, inner in step.graphs
            ]


def _is_drawn(graph: GraphView) -> bool:
    boxes = len(graph.inputs) + len(graph.constants) + len(graph.steps) + len(graph.outputs)
    edges = sum(len(step.inputs) for step in graph.steps)
    return boxes + len(graph.updates) <= MOST_BOXES and edges <= MOST_EDGES


def _drawing(graph: GraphView) -> Drawing:
    if not _is_drawn(graph):
        return _in_words(graph)
    drawing = Drawing()
    maker: list[int] = []

    def add(item: BoxContent, inputs: list[int], outputs: int) -> None:
        here = len(drawing.items)
        drawing.items.append(item)
        drawing.edges += [(i, here) for i in dict.fromkeys(maker[x] for x in inputs)]
        maker.extend([here] * outputs)

    for name, spec in graph.inputs:
        below = short(f"%{len(maker)} {spec}")
        add(BoxContent("input", [("name", short(name or "input")), ("dim", below)]), [], 1)
    for text, spec in graph.constants:
        below = short(f"%{len(maker)} {spec}")
        lines = [("name", short(text if text != "..." else "constant")), ("dim", below)]
        add(BoxContent("held", lines, text, sinks=True), [], 1)
    for step in graph.steps:
        add(_step_item(step), [x for x in step.inputs if type(x) is int], len(step.outputs))
    for i, number in enumerate(graph.outputs):
        add(BoxContent("output", [("name", f"output {i}")]), [number], 0)
    for name, number in graph.updates:
        add(BoxContent("output", [("name", short(f"update {name}"))]), [number], 0)
    return drawing


def _step_item(step: GraphStep) -> BoxContent:
    label = {"read": f"read {step.label}", "written": f"assign {step.label}"}.get(
        step.kind, step.label
    )
    lines = [("name", short(label))]
    given = step.inputs[: step.groups[0]] if step.kind == "op" else []
    scalars = any(type(x) is not int for x in given)
    settings = ["·" if type(x) is int else str(x) for x in given] if scalars else []
    settings += [f"{key}={value}" for key, value in step.params.items()]
    if settings:
        lines.append(("dim", short(", ".join(settings))))
    if step.kind == "custom gradient":
        steps = [counted(count_steps(inner), "step") for _, inner in step.graphs]
        lines.append(("dim", f"custom gradient, {steps[0]}" if steps else "gradient left out"))
    lines.append(("dim", short(f"%{step.first} {', '.join(step.outputs)}")))
    kind = {"read": "held", "written": "held", "custom gradient": "custom"}.get(step.kind, "op")
    tooltip = f"%{step.first} {label}({', '.join(settings)})"
    return BoxContent(kind, lines, tooltip, sinks=step.kind == "read")


def _in_words(graph: GraphView) -> Drawing:
    """Return a drawing in which all steps are one box that counts them."""
    steps = count_steps(graph)
    uses = Counter(step.label if step.kind == "op" else step.kind for step in graph.steps)
    lines = [("name", f"{counted(steps, 'step')}: too many to draw")]
    lines += [("dim", f"{n:,} of {short(label)}") for label, n in uses.most_common(12)]
    if len(uses) > 12:
        lines.append(("dim", f"and {counted(len(uses) - 12, 'other kind')}"))
    ends = [f"{name or 'input'} {spec}" for name, spec in graph.inputs[:6]]
    if len(graph.inputs) > 6:
        ends.append(f"and {len(graph.inputs) - 6:,} more")
    here = len(ends)
    items = [BoxContent("input", [("name", short(text))]) for text in ends]
    items.append(BoxContent("op", lines))
    items.append(BoxContent("output", [("name", counted(len(graph.outputs), "output"))]))
    return Drawing(items, [*((i, here) for i in range(here)), (here, here + 1)])


def short(text: str) -> str:
    """Return a text shortened to fit a box."""
    return printable(text, _LONGEST)


# -- elements --------------------------------------------------------------------------------------


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{markup(text)}</text>'


def _drawn(drawing: Drawing, placed: Placed, top: float) -> Iterator[str]:
    for points in placed.edges:
        yield _edge([(x + MARGIN, y + top) for x, y in points])
    for item, (x, y) in zip(drawing.items, placed.centres, strict=True):
        box = item.box()
        left, up = x + MARGIN - box.width / 2, y + top - box.height / 2
        rounded = box.height / 2 if item.kind in ("input", "output") else 5
        tooltip = f"<title>{markup(item.tooltip, 400)}</title>" if item.tooltip else ""
        yield (
            f'<g class="{item.kind}">{tooltip}<rect x="{left:.1f}" y="{up:.1f}" '
            f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{min(rounded, 14):.0f}"/>'
        )
        for i, (kind, text) in enumerate(item.lines):
            yield _text(x + MARGIN, up + PADDING / 2 + LINE * i + 12, text, kind)
        yield "</g>"


def _edge(points: list[tuple[float, float]]) -> str:
    (x, y), *rest = points
    path = f"M{x:.1f} {y:.1f}"
    for a, b in rest:
        last = (a, b) == rest[-1]
        end = b - 5 if last else b
        half = (y + end) / 2
        path += f"C{x:.1f} {half:.1f} {a:.1f} {half:.1f} {a:.1f} {end:.1f}"
        x, y = a, end
    return f'<path d="{path}"/><path class="head" d="M{x:.1f} {y + 5:.1f}l-3.5 -6h7z"/>'
