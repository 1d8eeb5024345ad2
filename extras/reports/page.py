"""One self-contained page about a file, with small charts as inline SVG."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..saving.errors import printable
from ..saving.reports.formatting import view_of
from ..saving.reports.functions import FunctionRecord, TraceRecord
from ..saving.reports.statistics import Spread
from ..saving.reports.text import counted, markup, number_text, shown
from ..saving.reports.tree import ModuleRecord, Row, VariableRecord
from ..saving.reports.views import listing
from .style import DEPTHS, POLICY, STYLE
from .svg import figure

if TYPE_CHECKING:
    from ..saving.reports.checks import Report
    from ..saving.reports.inspection import Inspection

# -- charts ----------------------------------------------------------------------------------------

_MOST_POINTS = 400


def histogram(spread: Spread) -> str:
    """Return the bars of a histogram, and a mark where 0 is."""
    wide, high = 192.0, 56.0
    most = max(spread.counts, default=0) or 1
    step = wide / max(1, len(spread.counts))
    bars = []
    for i, n in enumerate(spread.counts):
        if n:
            tall = max(1.0, n / most * (high - 4))
            bars.append(
                f'<rect class="bin" x="{i * step + 0.4:.1f}" y="{high - tall:.1f}" '
                f'width="{step - 0.8:.1f}" height="{tall:.1f}"/>'
            )
    zero = ""
    if spread.low < 0 < spread.high:
        at = (-spread.low / 2) / (spread.high / 2 - spread.low / 2) * wide
        zero = f'<line class="zero" x1="{at:.1f}" y1="0" x2="{at:.1f}" y2="{high:g}"/>'
    return (
        f'<svg class="chart" viewBox="0 0 {wide:g} {high + 1:g}" aria-hidden="true">{"".join(bars)}'
        f'<line class="axis" x1="0" y1="{high + 0.5:g}" x2="{wide:g}" y2="{high + 0.5:g}"/>'
        f"{zero}</svg>"
    )


def curves(series: Sequence[Sequence[float]]) -> str:
    """Return one or two curves over epochs, with the smallest and largest values at the side."""
    wide, high, left = 300.0, 130.0, 46.0
    finite = [y for values in series for y in values if math.isfinite(y)]
    if not finite:
        return '<p class="small">no finite values</p>'
    low, top = min(finite), max(finite)
    count = max(len(values) for values in series)
    down = top / 2 - low / 2

    def point(i: int, y: float) -> str:
        x = left + (i / (count - 1) if count > 1 else 0.5) * (wide - left - 6)
        part = (top / 2 - y / 2) / down if down > 0 else 0.5
        return f"{x:.1f} {8 + part * (high - 30):.1f}"

    lines = []
    for number, values in enumerate(series):
        stride = max(1, -(-len(values) // _MOST_POINTS))
        path, pen = "", "M"
        for i in [*range(0, len(values) - 1, stride), len(values) - 1]:
            if math.isfinite(values[i]):
                path, pen = f"{path}{pen}{point(i, values[i])}", "L"
            else:
                pen = "M"
        lines.append(f'<path class="line{" second" if number else ""}" d="{path}"/>')
    bottom = high - 22
    return (
        f'<svg class="chart" viewBox="0 0 {wide:g} {high:g}" aria-hidden="true">'
        f'<line class="axis" x1="{left:g}" y1="8" x2="{left:g}" y2="{bottom:g}"/>'
        f'<line class="axis" x1="{left:g}" y1="{bottom:g}" x2="{wide - 6:g}" y2="{bottom:g}"/>'
        f'<text x="{left - 6:g}" y="12" text-anchor="end">{markup(number_text(top))}</text>'
        f'<text x="{left - 6:g}" y="{bottom:g}" text-anchor="end">{markup(number_text(low))}</text>'
        f'<text x="{left:g}" y="{high - 6:g}">1</text>'
        f'<text x="{wide - 6:g}" y="{high - 6:g}" text-anchor="end">epoch {count:,}</text>'
        f"{''.join(lines)}</svg>"
    )


def parts_bar(parts: Mapping[str, int]) -> str:
    """Return a bar of parts and its legend."""
    total = sum(parts.values()) or 1
    x, rects, legend = 0.0, [], []
    for i, (name, size) in enumerate(parts.items()):
        part = size / total * 1000
        wide = max(0.0, part - 1.5)
        rects.append(f'<rect class="p{i % 5}" x="{x:.2f}" width="{wide:.2f}" height="14"/>')
        x += part
        legend.append(
            f'<li><svg viewBox="0 0 10 10"><rect class="p{i % 5}" width="10" height="10" rx="2"/>'
            f"</svg>"
            f'{markup(name)} <span class="dim">{size:,} bytes, {size / total:.1%}</span></li>'
        )
    return (
        f'<svg class="bar" viewBox="0 0 1000 14" preserveAspectRatio="none" aria-hidden="true">'
        f'{"".join(rects)}</svg><ul class="legend">{"".join(legend)}</ul>'
    )


# -- the page --------------------------------------------------------------------------------------

# The limits of a page; it says how many more there are.
_ROWS, _HISTOGRAMS, _FUNCTIONS, _TRACES, _GRAPHS, _LINES = 1_500, 180, 200, 8, 60, 400


def page(found: Inspection, report: Report | None) -> str:
    """Return a page about a file and the result of its verification."""
    title = markup(os.path.basename(found.path))
    sections = [
        ("Size", parts_card(found)),
        ("Layers", _tree(found)),
        ("Weights", _weights(found)),
        ("Training", _history(found)),
        ("Functions", _functions(found)),
        ("Samples", _samples(found, report)),
        ("Plugins", _plugins(found)),
    ]
    kept = [(name, body) for name, body in sections if body]
    links = "".join(f'<a href="#{name.lower()}">{name}</a>' for name, _ in kept)
    bodies = "".join(
        f'<section id="{name.lower()}"><h2>{name}</h2>{body}</section>' for name, body in kept
    )
    ran = "its functions were run to verify them" if report else "nothing of it was run"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{STYLE}</style></head><body><main>"
        f'<header><p class="eyebrow">gradtape model file, format {markup(found.format)}</p>'
        f"<h1>{title}</h1>{_facts(found, report)}<nav>{links}</nav></header>{bodies}"
        f"<footer>Read from the file as it is; {ran}. Names in it are what its author wrote."
        "</footer></main></body></html>\n"
    )


def _facts(found: Inspection, report: Report | None) -> str:
    variables = found.tree.variables
    held = sum(variable.size for variable in variables)
    trained = sum(variable.size for variable in variables if variable.trainable)
    gradients = sum(
        len({x for trace in f.traces for x in trace.custom_gradients}) for f in found.functions
    )
    missing = sum(len(item.missing) for item in found.requires)
    facts = [
        ("Trainable numbers", f"{trained:,}", ""),
        ("Numbers in all", f"{held:,}", ""),
        ("Functions", f"{len(found.functions):,}", ""),
        ("Custom gradients", f"{gradients:,}", ""),
        ("File size", _bytes(found.bytes), ""),
        ("Samples", _verdict(found, report), "wide"),
        ("Plugins", f'<span class="bad">{missing:,} missing here</span>'
         if missing else '<span class="good">all here</span>', "wide"),
    ]  # fmt: skip
    return "".join(
        ['<dl class="facts">', *(f'<div><dt>{name}</dt><dd class="{kind}">{text}</dd></div>'
         for name, text, kind in facts), "</dl>"]
    )  # fmt: skip


def _verdict(found: Inspection, report: Report | None) -> str:
    stored = sum(trace.samples for function in found.functions for trace in function.traces)
    if report is None:
        return f"{stored:,} stored, not run" if stored else "none stored"
    passed = sum(check.ok for check in report.checks)
    kind = "good" if report.ok else "bad"
    return f'<span class="{kind}">{passed:,} of {len(report.checks):,} verified</span>'


def _bytes(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:,} bytes"


def parts_card(found: Inspection) -> str:
    """Return the card that shows the bytes of a file by purpose."""
    return f'<div class="card">{parts_bar(found.parts)}</div>'


# -- the tree --------------------------------------------------------------------------------------


def _tree(found: Inspection) -> str:
    rows = [_row(found, row) for row in found.tree.rows[:_ROWS]]
    more = len(found.tree.rows) - _ROWS
    if more > 0:
        rows.append(f'<tr><td colspan="3" class="dim">and {counted(more, "row")} more</td></tr>')
    return (
        '<div class="card scroll"><table><thead><tr><th>Name</th><th>Class or shape</th>'
        f'<th class="n">Numbers</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _breaking(name: str) -> str:
    """Return a name that may break after a slash or an underscore."""
    return markup(name).replace("/", "/<wbr>").replace("_", "_<wbr>")


def _row(found: Inspection, row: Row) -> str:
    depth = f" d{min(row.depth, DEPTHS)}" if row.depth else ""
    name = f'<td class="name{depth}">{_breaking(row.name)}</td>'
    if row.what == "variable" and row.number is not None:
        variable = found.tree.variables[row.number]
        notes = [] if variable.trainable else ["not trainable"]
        notes += [f"the same as {variable.path}"] if variable.path != row.path else []
        more = f'<span class="more">{markup(", ".join(notes))}</span>' if notes else ""
        rest = f"<td><code>{markup(variable.spec)}</code>{more}</td>"
        return f'<tr>{name}{rest}<td class="n">{variable.size:,}</td></tr>'
    if row.what in ("module", "link") and row.number is not None:
        return _module_row(found.tree.modules[row.number], row, depth)
    text = f'<td class="value" colspan="2">{markup(row.text, 400)}</td>'
    return f'<tr class="{row.what}">{name}{text}</tr>'


def _module_row(module: ModuleRecord, row: Row, depth: str) -> str:
    name = _breaking(row.name or module.name)
    kind = markup(module.known or module.class_name)
    if row.what == "link":
        place = f"the same as {markup(row.text or 'the root')}"
        return (
            f'<tr class="link"><td class="name{depth}">{name}</td>'
            f'<td colspan="2">{kind}<span class="more">{place}</span></td></tr>'
        )
    notes = ["frozen"] if module.frozen else []
    notes += [] if module.known else ["restored as a plain module"]
    more = f'<span class="more">{", ".join(notes)}</span>' if notes else ""
    given = {k: v for k, v in module.config.items() if k != "name" and v != "None"}
    config = ", ".join(f"{key}={value}" for key, value in given.items())
    below = f'<tr class="config"><td colspan="3" class="{depth}">{markup(config, 300)}</td></tr>'
    return (
        f'<tr class="module"><td class="name{depth}">{name}</td><td colspan="2">{kind}{more}</td>'
        f"</tr>{below if config else ''}"
    )


# -- values ----------------------------------------------------------------------------------------


def _weights(found: Inspection) -> str:
    if not found.spreads or not found.tree.variables:
        return ""
    pairs = list(zip(found.tree.variables, found.spreads, strict=True))
    cards = "".join(_weight(variable, spread) for variable, spread in pairs[:_HISTOGRAMS])
    more = len(pairs) - _HISTOGRAMS
    rest = f'<p class="dim">and {counted(more, "variable")} more</p>' if more > 0 else ""
    return f'<div class="grid">{cards}</div>{rest}'


def _weight(variable: VariableRecord, spread: Spread) -> str:
    flags = []
    for n, word in ((spread.nans, "NaN"), (spread.infinities, "infinite")):
        flags += [f'<span class="bad">{n:,} {word}</span>'] if n else []
    if spread.zeros and spread.low != spread.high:
        flags.append(f"{spread.zeros / variable.size:.0%} zero")
    complex_ = "absolute values; " if variable.dtype.startswith("complex") else ""
    if not spread.counts:
        body = f'<p class="small">{"empty" if not variable.size else "no finite element"}</p>'
    elif spread.low == spread.high:
        every = "all " if variable.size > 1 else ""
        body = f'<p class="small">{complex_}{every}{markup(number_text(spread.low))}</p>'
    else:
        body = (
            f'{histogram(spread)}<p class="small ends"><span>{markup(number_text(spread.low))}'
            f"</span><span>{markup(number_text(spread.high))}</span></p>"
            f'<p class="small">{complex_}mean {markup(number_text(spread.mean))}, '
            f"deviation {markup(number_text(spread.deviation))}</p>"
        )
    body += f'<p class="small">{", ".join(flags)}</p>' if flags else ""
    return (
        f'<div class="card"><h3>{_breaking(variable.path)}</h3><p class="small"><code>'
        f"{markup(variable.spec)}</code></p>{body}</div>"
    )


def _history(found: Inspection) -> str:
    history = found.tree.history
    cards = []
    names = [name for name in history if name.removeprefix("val_") == name or
             name.removeprefix("val_") not in history]  # fmt: skip
    for name in names[:24]:
        series, keys = [history[name]], ""
        if f"val_{name}" in history:
            series.append(history[f"val_{name}"])
            keys = (
                '<p class="small"><span class="key"></span>training'
                '<span class="key second"></span>validation</p>'
            )
        last = ", ".join(number_text(values[-1]) for values in series)
        cards.append(
            f'<div class="card"><h3>{markup(name)}</h3>{curves(series)}{keys}'
            f'<p class="small">last: {markup(last)}</p></div>'
        )
    return f'<div class="grid wide">{"".join(cards)}</div>' if cards else ""


# -- functions -------------------------------------------------------------------------------------


def _functions(found: Inspection) -> str:
    if not found.functions:
        return '<p class="dim">The file holds variables alone.</p>'
    cards, drawn = [], 0
    for function in [*found.functions, *found.rules][:_FUNCTIONS]:
        drawn_here = min(len(function.traces), _TRACES)
        cards.append(_function(found, function, drawn < _GRAPHS))
        drawn += drawn_here
    more = len(found.functions) + len(found.rules) - _FUNCTIONS
    if more > 0:
        cards.append(f'<p class="dim">and {counted(more, "function")} more</p>')
    return "".join(cards)


def _function(found: Inspection, function: FunctionRecord, drawn: bool) -> str:
    also = f" <span class='dim'>also {markup(', '.join(function.names[1:]))}</span>"
    sizes = '<p class="small">saved for the sizes seen</p>' if function.seen_sizes else ""
    traces = "".join(_trace(found, trace, drawn) for trace in function.traces[:_TRACES])
    more = len(function.traces) - _TRACES
    rest = f'<p class="dim">and {counted(more, "trace")} more</p>' if more > 0 else ""
    return (
        f'<div class="card"><h3 class="mono">{markup(function.names[0])}'
        f"{also if function.names[1:] else ''}</h3>{sizes}{traces}{rest}</div>"
    )


def _trace(found: Inspection, trace: TraceRecord, drawn: bool) -> str:
    samples = counted(trace.samples, "sample") if trace.samples else "no samples"
    if trace.not_sampled and not trace.samples:
        samples += f" ({trace.not_sampled})"
    gradients = "".join(
        f'<p class="small">custom gradient {markup(x)}</p>' for x in trace.custom_gradients[:12]
    )
    graph = view_of(found, trace) if drawn else None
    specs = graph.output_specs if graph else None
    results = printable(shown(trace.keys.get("results"), "results", outputs=specs), 400)
    parts = [
        f'<div class="trace"><p class="call"><code>({markup(", ".join(trace.arguments), 400)}) → '
        f'{markup(results, 400)}</code></p><p class="small">{counted(trace.nodes, "node")}, '
        f"{markup(samples, 300)}</p>{gradients}"
    ]
    if graph:
        lines = "\n".join(markup(line, 400) for line in listing(graph, _LINES))
        parts.append(
            f'<details><summary>Graph</summary><div class="figure">{figure(graph, trace.name)}'
            f"</div></details><details><summary>Steps</summary><pre>{lines}</pre></details>"
        )
    else:
        parts.append(f'<p class="small">gradtape inspect --graph {markup(trace.name)}</p>')
    return "".join([*parts, "</div>"])


# -- what it was checked against, and what it needs ------------------------------------------------


def _samples(found: Inspection, report: Report | None) -> str:
    stored = sum(trace.samples for function in found.functions for trace in function.traces)
    if report is None:
        note = (
            f"{counted(stored, 'sample')} of inputs, outputs and gradients stored, and not run: "
            "<code>gradtape verify</code> runs them, and so does <code>--verify</code> here."
            if stored
            else "No samples of inputs, outputs and gradients are stored: nothing can be verified."
        )
        return f'<p class="dim">{note}</p>'
    rows = "".join(_check_rows(report))
    skipped = "".join(
        f'<p class="small">{markup(name)}: not checked ({markup(reason)})</p>'
        for name, reason in report.skipped[:200]
    )
    return (
        '<div class="card scroll"><table><thead><tr><th>Function</th><th>Sample</th>'
        '<th class="n">Outputs</th><th class="n">Gradients</th><th class="n">2nd order</th>'
        f'<th class="n">Result</th></tr></thead><tbody>{rows}</tbody></table>{skipped}'
        f'<p class="small">Largest differences from what was stored, computed on '
        f"{markup(report.backend)}.</p></div>"
    )


def _check_rows(report: Report) -> Iterator[str]:
    for check in report.checks[:500]:
        cells = "".join(
            f'<td class="n">{markup(number_text(error)) if error is not None else "-"}</td>'
            for error in map(check.errors.get, ("output", "gradient", "second gradient"))
        )
        kind, word = ("good", "exact" if check.exact else "within tolerance")
        if not check.ok:
            kind, word = "bad", "mismatch"
        problem = f'<span class="more">{markup(check.problem, 300)}</span>' if check.problem else ""
        yield (
            f'<tr><td class="name"><code>{markup(check.function)}</code>{problem}</td>'
            f'<td class="name">{markup(check.case)}</td>{cells}'
            f'<td class="n {kind}">{word}</td></tr>'
        )
    if len(report.checks) > 500:
        yield f'<tr><td colspan="6">and {len(report.checks) - 500:,} more</td></tr>'


def _plugins(found: Inspection) -> str:
    if not found.requires:
        return '<p class="dim">None.</p>'
    rows = []
    for item in found.requires[:200]:
        used = ", ".join([*item.modules, *item.names, *item.ops])
        missing = (
            f'<span class="more bad">missing here: {markup(", ".join(item.missing), 400)}</span>'
            if item.missing
            else ""
        )
        label = f"{item.distribution} {item.version}".strip() or "no distribution"
        rows.append(
            f'<tr><td class="name"><b>{markup(item.plugin)}</b><span class="more">{markup(label)}'
            f'</span></td><td class="name">{markup(used, 2_000)}{missing}</td></tr>'
        )
    return (
        '<div class="card scroll"><table><thead><tr><th>Plugin</th><th>Used of it</th>'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
