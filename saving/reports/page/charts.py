"""Small charts as inline SVG: histograms, curves, a bar of parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..statistics import Spread
from ..words import markup, number_text

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
