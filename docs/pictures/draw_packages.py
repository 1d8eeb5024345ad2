"""Draw the figure of the packages: ``python docs/pictures/draw_packages.py [--check]``.

The rows, and which packages are extras, come from .importlinter. What a package is for is here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from configparser import ConfigParser
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[2]
FIGURE = Path(__file__).with_name("packages.svg")

#: What is written below the names of a box, by the first name in it.
OUTSIDE = {
    "cli": "the command line: inspect, verify, doctor, train",
    "sklearn": "scikit-learn's estimators",
    "compat": "TensorFlow's names",
    "testing": "checks of ops and plugins, 16-bit layers",
    "export": "",
    "saving": "model files, checkpoints, weights, pickling",
    "training": "optimizers, losses, metrics, fit",
    "layers": "layers, data pipelines, several processes",
    "autograph": "control flow in traces",
    "debug": "",
    "plugins": "ops by family, NumPy, SciPy, executors",
    "plugins.cupy": "",
    "public": "gives objects the paths at which users find them",
}
CORE = {
    "later": "the part of extend that a first op does not need",
    "extend": "what code outside core may import",
    "contract": "what gradtape.plugin offers to other distributions",
    "contract_later": "the part of contract that a first op does not need",
    "module": "objects with variables, which can be saved",
    "functions": "functions as graphs, custom gradients",
    "transforms": "vmap, forward mode, Jacobians, Hessians",
    "graphs": "symbols, graphs, and two ways to run them",
    "tape": "records, the backward pass, why a gradient is None",
    "batches": "arrays with a hidden axis for examples",
    "tensors": "Tensor and Variable, and Op, which runs on them",
    "registry": "what plugins provide, and which of several wins",
    "ops": "kernels, rules, backends, dispatch",
    "base": "shapes, dtypes, the context and the user's code",
    "errors": "exceptions; code outside core may import them too",
}
INTERFACE = ("extend", "contract", "errors")
#: The packages that only give public names.
NAMES = ("debug", "errors", "fft", "image", "linalg", "nn", "ops", "plugin", "random", "special")

WIDTH = 1040
BASE, EXTRAS, API = (118, 460), (590, 250), (858, 158)  # where columns begin, and their widths
GAP, LINE, PAD = 8, 21, 8

STYLE = """\
    text { font: 15px Verdana, "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #1f2328; }
    .name { font-weight: bold; }
    .head { font-size: 17px; }
    rect { stroke: #57606a; stroke-width: 1; }
    .page { fill: #ffffff; stroke: #d0d7de; }
    .base { fill: #eef1f4; }
    .extra { fill: #e2f4e3; stroke-dasharray: 6 3; }
    .core { fill: #fff8e6; }
    .inside { fill: #ffffff; }
    .interface { fill: #ffd98a; }
    .public { fill: #d7e8fb; }
    .arrow { fill: none; stroke: #1f2328; stroke-width: 2.5; marker-end: url(#head); }
    .service { fill: none; stroke: #8a3ffc; stroke-width: 2.5; stroke-dasharray: 7 4; \
marker-end: url(#up); }
    .services { fill: #6929c4; font-weight: bold; }"""
HEAD = """\
    <marker id="{id}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="5" markerHeight="5" \
orient="auto">
      <path d="M0 0 L10 5 L0 10 Z" fill="{color}"/>
    </marker>"""


def rows() -> tuple[list[list[str]], list[str], set[str]]:
    """Return the rows of packages, those of core, and the extras."""
    file = ConfigParser()
    file.read(ROOT / ".importlinter")

    def lines(contract: str, key: str) -> list[list[str]]:
        text = file[f"importlinter:contract:{contract}"][key].strip().replace("gradtape.", "")
        return [line.strip().split(" | ") for line in text.split("\n")]

    extras = {name for (name,) in lines("extras", "forbidden_modules")}
    return lines("package", "layers"), [name for (name,) in lines("core", "layers")], extras


def wrapped(names: Sequence[str], width: float) -> list[str]:
    """Return names, separated by commas, in lines of at most a width."""
    found = [names[0]]
    for name in names[1:]:
        longer = f"{found[-1]}, {name}"
        if len(longer) * 10.6 > width - 2 * 14:
            found[-1] += ","
            found.append(name)
        else:
            found[-1] = longer
    return found


def text(x: float, y: float, said: str, kind: str = "", more: str = "") -> str:
    """Return a line of text."""
    kind = f' class="{kind}"' if kind else ""
    return f'  <text{kind} x="{x:g}" y="{y:g}"{more}>{escape(said)}</text>'


def rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    """Return a box."""
    return (
        f'  <rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>'
    )


def box(
    kind: str, names: Sequence[str], column: tuple[int, int], y: float
) -> tuple[list[str], float]:
    """Return a box with names and what they are for, and its height."""
    x, width = column
    lines = [(line, "name") for line in wrapped(names, width)]
    if said := OUTSIDE[names[0]]:
        lines.append((said, ""))
    height = len(lines) * LINE + PAD
    drawn = [rectangle(kind, x, y, width, height)]
    drawn += [text(x + 14, y + (i + 1) * LINE - 2, *line) for i, line in enumerate(lines)]
    return drawn, height


def draw() -> str:
    """Return the figure."""
    layers, core, extras = rows()
    found = [
        text(BASE[0], 40, "base", "name head"),
        text(EXTRAS[0], 40, "extras", "name head"),
        text(EXTRAS[0] + 76, 40, "can be taken away"),
        text(BASE[0] + 58, 40, "works alone, and imports no extra"),
    ]
    top = y = 56.0
    whole = (BASE[0], EXTRAS[0] + EXTRAS[1] - BASE[0])
    lookup = 0.0
    for row in layers:
        if row == ["core"]:
            height = 40 + len(core) * 36 + 4
            found.append(rectangle("core", whole[0], y, whole[1], height))
            found.append(text(whole[0] + 14, y + 25, "core", "name"))
            for i, name in enumerate(core):
                at = y + 38 + i * 36
                kind = "interface" if name in INTERFACE else "inside"
                found.append(rectangle(kind, whole[0] + 12, at, whole[1] - 24, 30))
                found.append(text(whole[0] + 26, at + 20, name, "name"))
                found.append(text(whole[0] + 160, at + 20, CORE[name]))
                if name == "registry":
                    lookup = at + 15
            y += height + GAP
            continue
        if row == ["public"]:
            drawn, height = box("public", row, whole, y)
            found += drawn
            y += height + GAP
            continue
        tall = 0.0
        own = [name for name in row if name not in extras]
        kind = "public" if set(own) <= set(NAMES) else "base"
        others = [name for name in row if name in extras]
        others += sorted(x for x in extras if x.partition(".")[0] in row and "." in x)
        for names, boxed, column in ((own, kind, BASE), (others, "extra", EXTRAS)):
            if names:
                drawn, height = box(boxed, names, column, y)
                found += drawn
                tall = max(tall, height)
        y += tall + GAP
    bottom = y - GAP
    found.append(rectangle("public", API[0], top, API[1], bottom - top))
    middle = API[0] + API[1] / 2
    said = ["public API:", "__init__.py has a", "table of all", "public names;", "each is imported"]
    said += ["when first used"]
    start = (top + bottom) / 2 - 80
    found.append(text(middle, start, "gradtape", "name", ' text-anchor="middle"'))
    found += [
        text(middle, start + 34 + i * 24, line, "", ' text-anchor="middle"')
        for i, line in enumerate(said)
    ]
    center = (top + bottom) / 2
    found.append(f'  <path class="arrow" d="M44 {top:g} V{bottom - 8:g}"/>')
    found.append(
        text(0, 0, "may import the packages below", "name",
             f' transform="translate(32 {center:g}) rotate(-90)" text-anchor="middle"')
    )  # fmt: skip
    found.append(f'  <path class="service" d="M{BASE[0] + 12} {lookup:g} H90 V{top + 8:g}"/>')
    found.append(
        text(0, 0, "services: a package above, called by name through the registry", "services",
             f' transform="translate(78 {(top + lookup) / 2:g}) rotate(-90)" text-anchor="middle"')
    )  # fmt: skip
    height = bottom + 24
    title = (
        "The packages of gradtape and of core: the base on the left, extras on the right; each may "
        "import the packages below it, and calls those above as services"
    )
    heads = [HEAD.format(id="head", color="#1f2328"), HEAD.format(id="up", color="#8a3ffc")]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
            f'width="{WIDTH}" height="{height:g}" role="img" aria-labelledby="title">',
            f'  <title id="title">{title}</title>',
            "  <style>", STYLE, "  </style>", "  <defs>", *heads, "  </defs>",
            f'  <rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:g}" '
            'rx="8"/>',
            *found,
            "</svg>",
            "",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(FIGURE.read_text(encoding="utf-8") != draw())
    FIGURE.write_text(draw(), encoding="utf-8")
