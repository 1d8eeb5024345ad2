"""``gt.plot.model``: the layers of a model as boxes, with inner models below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

from .. import layers
from ..core.extend import Module, flatten, parameters
from ..saving.reports.text import counted
from .svg import (
    LIGHT,
    LINE,
    MARGIN,
    PADDING,
    STYLE,
    BoxContent,
    Drawing,
    PlacedDrawing,
    arranged,
    document,
    short,
)

#: Units of the picture in an inch.
_INCH = 96.0
_MOST = 60


def model(model: Module, path: str | PathLike[str] | None = None) -> Picture:
    """Draw a model: its layers, from inputs to outputs.

    Parameters
    ----------
    model
        A :class:`gradtape.Model` of layers, a :class:`~gradtape.layers.Sequential`, or another
        module, whose modules are drawn, each above those that it holds.
    path
        A file to write: ``.svg``; or ``.png`` or ``.pdf``, which need Matplotlib.

    Returns
    -------
    Picture
        The picture, which notebooks show.

    Raises
    ------
    TypeError
        If ``model`` is not a module.
    ValueError
        If the path has another ending.
    ImportError
        If Matplotlib is needed and not installed.

    Notes
    -----
    Layers with parameters are green. Inner models are orange and drawn below under their names. A
    layer that is called several times has several boxes. Shapes are those of the last call. The
    layout is the same as in reports on files, and needs no other library.

    Examples
    --------
    >>> x = gt.Input((4,))
    >>> model = gt.Model(x, gt.layers.Dense(2)(gt.layers.Dense(8)(x)))
    >>> gt.plot.model(model).svg.count("<rect")
    5
    """
    if not isinstance(model, Module):
        raise TypeError(f"plot.model: expected a model, got {model!r}")
    drawings = []
    for number, (caption, part) in enumerate(_models(model)):
        if number == _MOST:
            drawings.append(("models further inside are not drawn", Drawing()))
            break
        drawings.append((caption, _drawing(part)))
    picture = Picture(drawings, f"model {model.name}")
    if path is not None:
        picture.save(path)
    return picture


class Picture:
    """A picture of boxes, made by :func:`gradtape.plot.model`.

    Parameters
    ----------
    drawings
        Captions and drawings, one below the other.
    title
        A text description of the picture.

    Attributes
    ----------
    svg : str
        The picture as an SVG document.
    """

    def __init__(self, drawings: list[tuple[str, Drawing]], title: str) -> None:
        self._drawings = drawings
        self.svg = document(drawings, title, f"<style>{STYLE}</style>")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path
            Its path, which ends in ``.svg``, or in ``.png`` or ``.pdf``, which need Matplotlib.

        Raises
        ------
        ValueError
            If it has another ending.
        ImportError
            If Matplotlib is needed and not installed.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".svg":
            Path(path).write_text(self.svg, encoding="utf-8")
        elif suffix in (".png", ".pdf"):
            self._figure().savefig(path, dpi=2 * _INCH)
        else:
            raise ValueError(f"plot.model: a picture must be .svg, .png or .pdf, got {str(path)!r}")

    savefig = save  # as Matplotlib's figures have it

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Picture of {', '.join(repr(caption) for caption, _ in self._drawings)}>"

    def _figure(self) -> Any:
        try:
            from matplotlib.figure import Figure
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != "matplotlib":
                raise
            raise ImportError(
                "plot.model: a picture that is not .svg needs Matplotlib: "
                'pip install "gradtape[plot]"'
            ) from error
        parts, wide, high = arranged(self._drawings)
        figure = Figure(figsize=(wide / _INCH, high / _INCH))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0, wide), ylim=(high, 0))
        axes.set_axis_off()
        for part in parts:
            _paint(axes, part)
        return figure


def _models(model: Module) -> Iterator[tuple[str, Module]]:
    """Yield a model, then those inside it, each once, with their captions."""
    seen: set[int] = set()
    queue = [(model.name, model)]
    while queue:
        caption, current = queue.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield caption, current
        queue += [(f"{x.name} in {caption}", x) for x in _inside(current) if _is_model(x)]


def _is_model(module: Any) -> bool:
    return isinstance(module, layers.Sequential) or "_gradtape_plan" in vars(module)


def _inside(model: Any) -> list[Any]:
    return list(model.layers) if _is_model(model) else list(model.submodules)


def _drawing(model: Any) -> Drawing:
    if "_gradtape_plan" in vars(model):
        return _of_plan(model)
    return _of_sequence(model) if isinstance(model, layers.Sequential) else _of_tree(model)


def _of_plan(model: Any) -> Drawing:
    """Return the nodes of a functional model, and the edges between them."""
    plan = model._gradtape_plan
    drawing = Drawing()
    maker: dict[Any, int] = {}
    for x in flatten(plan.inputs):
        maker[x.array] = len(drawing.items)
        lines = [("name", short(x.array.name or "input")), ("dim", _shape(x.array.shape))]
        drawing.items.append(BoxContent("input", lines))
    for node in plan.nodes:
        here = len(drawing.items)
        outputs = [x.array for x in flatten(node.outputs) if hasattr(x, "array")]
        shapes = ", ".join(_shape(x.shape) for x in outputs)
        if node.layer is None:
            label = getattr(node.run, "name", "op")
            drawing.items.append(BoxContent("op", [("name", label), ("dim", shapes)]))
        else:
            drawing.items.append(_box(node.layer, shapes))
        drawing.edges += [(i, here) for i in dict.fromkeys(maker[x] for x in node.inputs())]
        maker.update(dict.fromkeys(outputs, here))
    names = flatten({key: key for key in plan.outputs}) if isinstance(plan.outputs, dict) else []
    _end(drawing, [maker[x.array] for x in flatten(plan.outputs)], names)
    return drawing


def _of_sequence(model: Any) -> Drawing:
    """Return the layers of a sequence, one below the other."""
    drawing = Drawing()
    calls = model.call_signatures()
    spec = calls[0][0][0] if calls and calls[0][0] else None
    shape = getattr(spec, "shape", None)
    lines = [("name", "input")]
    if shape is not None:
        lines.append(("dim", _shape((None, *shape[1:]))))
    drawing.items.append(BoxContent("input", lines))
    for layer in model.layers:
        last = vars(layer).get("_gradtape_output")
        known = isinstance(last, tuple) and last
        drawing.items.append(_box(layer, _shape((None, *last[1:])) if known else ""))
        drawing.edges.append((len(drawing.items) - 2, len(drawing.items) - 1))
    _end(drawing, [len(drawing.items) - 1])
    return drawing


def _of_tree(model: Any) -> Drawing:
    """Return a module and those that it holds; how calls go between them is unknown."""
    drawing = Drawing([_box(model, "")])
    places = {id(model): 0}
    queue = [model]
    while queue:
        holder = queue.pop(0)
        for _, leaf in holder.own_leaves():
            if not isinstance(leaf, Module):
                continue
            if id(leaf) not in places:
                places[id(leaf)] = len(drawing.items)
                drawing.items.append(_box(leaf, ""))
                if not _is_model(leaf):
                    queue.append(leaf)
                drawing.edges.append((places[id(holder)], places[id(leaf)]))
    return drawing


def _end(drawing: Drawing, makers: list[int], names: Sequence[Any] = ()) -> None:
    for i, maker in enumerate(makers):
        label = "output" if len(makers) == 1 else f"output {i}"
        label = short(str(names[i])) if len(names) == len(makers) else label
        drawing.edges.append((maker, len(drawing.items)))
        drawing.items.append(BoxContent("output", [("name", label)]))


def _box(layer: Any, shapes: str) -> BoxContent:
    """Return a layer's box: its class, its name if it has one, its result and its weights."""
    kind = type(layer).__name__
    named = layer.name.replace("_", "") != kind.lower()
    lines = [("name", short(f"{kind} {layer.name!r}" if named else kind))]
    try:
        config = layer.get_config() if isinstance(layer, layers.Layer) else {}
    except TypeError:  # its class keeps an argument nowhere, which matters to files
        config = {}
    activation = config.get("activation")
    if isinstance(activation, str) and activation != "linear":
        lines.append(("dim", activation))
    if shapes:
        lines.append(("dim", shapes))
    count = sum(v.size for v in parameters(layer))
    if count:
        lines.append(("dim", counted(count, "parameter")))
    colour = "custom" if _is_model(layer) else "held" if count else "op"
    return BoxContent(colour, lines, tooltip=repr(layer))


def _shape(shape: Any) -> str:
    if shape is None:
        return "(...)"
    sizes = ", ".join("?" if n is None else str(n) for n in shape)
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"


# -- with Matplotlib -------------------------------------------------------------------------------


def _paint(axes: Any, part: PlacedDrawing) -> None:
    """Draw a part on axes in the units of the SVG picture."""
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    text = {"family": "monospace", "size": 12 * 72 / _INCH, "va": "baseline"}
    axes.text(MARGIN, part.top + 12, part.caption, color=LIGHT["ink"], weight="bold", **text)
    down = part.top + part.first
    for points in part.placed.edges:
        moved = [(x + MARGIN, y + down) for x, y in points]
        style: dict[str, Any] = {"shrinkA": 0, "shrinkB": 0, "color": LIGHT["line"], "linewidth": 1}
        for a, b in pairwise(moved[:-1]):
            axes.add_patch(FancyArrowPatch(a, b, arrowstyle="-", **style))
        axes.add_patch(FancyArrowPatch(*moved[-2:], arrowstyle="-|>", mutation_scale=8, **style))
    for item, (x, y) in zip(part.drawing.items, part.placed.centres, strict=True):
        box, (paper, edge) = item.box(), LIGHT[item.kind].split()
        left, up = x + MARGIN - box.width / 2, y + down - box.height / 2
        shape = "round,pad=0,rounding_size=5"
        corner = FancyBboxPatch(
            (left, up), box.width, box.height, boxstyle=shape, facecolor=paper, edgecolor=edge
        )
        axes.add_patch(corner)
        for i, (kind, line) in enumerate(item.lines):
            settings = (
                {"weight": "bold", "color": LIGHT["ink"]}
                if kind == "name"
                else {"color": LIGHT["dim"]}
            )
            place = (x + MARGIN, up + PADDING / 2 + LINE * i + 12)
            axes.text(*place, line, ha="center", **settings, **text)
