"""Write docs/benchmarks/history.md from the results in docs/benchmarks/asv/results.

python docs/make_history_page.py            # write the page
python docs/make_history_page.py --check    # exit with 1 if it is not up to date
"""

from __future__ import annotations

import datetime
import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "history.md"
SUITE = ROOT / "docs" / "benchmarks" / "asv"
sys.path[:0] = [str(SUITE), str(ROOT / "docs")]

from generated_pages import write_or_check  # noqa: E402
from suite import comparison  # noqa: E402

HEAD = """# Benchmarks over commits

This page compares the speed of gradtape between commits, to find changes that made it slower. The
programs are those of [the other benchmarks](README.md).

* **A figure is a ratio**: the time of a gradtape program divided by that of the NumPy program in
  the second column. Both take turns in one process, so a slower machine changes the ratio little.
  It is the median of {processes} processes, each with the best of at most {rounds} rounds.
* `NumPy by hand` computes the same. A `step` is a training step in NumPy of a network of these
  sizes, with a batch of 32 or 128. It is the unit for programs without a counterpart in NumPy.
* Times are processor times, those of child processes included. Waiting for a disk does not count.
* Freed memory stays in the process (glibc's `MALLOC_TRIM_THRESHOLD_`, `MALLOC_MMAP_THRESHOLD_`).
  Without these settings, the larger step in NumPy takes up to twice as long.
* Two runs of `437d97cb`, at loads of 15 and 8, differed by 5 % in the median and by 32 % at most
  (saving 500 tensors); Jacobians and gradients of examples by about 20 %. Less is noise.
* A dash marks what a commit does not have.

Two large changes are intended. Since 2026-11-22, `verify` opens a file in its own process, and
`import gradtape` imports NumPy only when a name is used first.

`make bench-history` writes this page. It builds each commit in its own environment and runs the
programs with it. Without arguments it measures the commits of the table again.
`make bench-history COMMITS="v0.2.0 HEAD"` measures other commits and adds them.

"""


def results() -> list[dict[str, Any]]:
    """Return what was measured, oldest commit first."""
    paths = (SUITE / "results").glob("*/*-*.json")
    found = [json.loads(path.read_text("utf-8")) for path in paths]
    return sorted(found, key=lambda result: (result["date"], result["commit_hash"]))


def value(result: dict[str, Any], name: str, title: str) -> float | None:
    """Return one measured value, or None if the commit lacks what it needs."""
    columns = result["result_columns"]
    row = dict(zip(columns, result["results"][name], strict=False))
    if row["result"] is None:
        raise ValueError(f"{name} failed at {result['commit_hash']}: measure it again")
    (titles,) = row["params"] or [[repr(title)]]
    found = row["result"][titles.index(repr(title))]
    return None if found is None or math.isnan(found) else found


def date(result: dict[str, Any]) -> str:
    """Return the day of a commit."""
    day = datetime.datetime.fromtimestamp(result["date"] / 1000, datetime.UTC)
    return f"{day:%Y-%m-%d}"


def cells(ratios: Sequence[float | None], seconds: float | None) -> list[str]:
    """Return the ratios, the last one's changes against the others, and the time."""
    last = ratios[-1]
    shown = [_figure(ratio) for ratio in ratios]
    for before in ratios[:-1]:
        known = before is not None and last is not None
        shown.append(f"{round(100 * (last / before - 1)):+,} %" if known else "-")  # type: ignore
    return [*shown, "-" if seconds is None else f"{seconds * 1e6:,.0f}"]


def _figure(ratio: float | None) -> str:
    """Return a ratio with three digits."""
    if ratio is None:
        return "-"
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def page() -> str:
    """Return the text of the page."""
    measured = results()
    if not measured:
        raise ValueError(f"there are no results in {SUITE}: make bench-history COMMITS=HEAD")
    rounds = comparison.Comparison.rounds
    lines = [HEAD.format(processes=comparison.PROCESSES, rounds=rounds).rstrip(), ""]
    for machine in sorted({result["params"]["machine"] for result in measured}):
        here = [result for result in measured if result["params"]["machine"] == machine]
        lines += [*conditions(here), "", *table(here), ""]
    return "\n".join(lines).rstrip() + "\n"


def conditions(here: Sequence[dict[str, Any]]) -> list[str]:
    """Return the machine, the libraries, and the load with each commit."""
    known = here[-1]["params"]
    libraries = ", ".join(f"{name} {version}" for name, version in here[-1]["requirements"].items())
    loads = ", ".join(
        f"{value(result, 'conditions.track_load', '') or math.nan:.1f} with "
        f"`{result['commit_hash'][:8]}`"
        for result in here
    )
    began = min(row[3] for row in here[-1]["results"].values() if len(row) > 3)
    day = datetime.datetime.fromtimestamp(began / 1000, datetime.UTC)
    return [
        f"Measured on {day:%Y-%m-%d} with one thread on {known['num_cpu']} cores of {known['cpu']} "
        f"({known['os']}, {known['arch']}), Python {known['python']}: {libraries}. The load of the "
        f"machine, an average of five minutes, was {loads}.",
    ]


def table(here: Sequence[dict[str, Any]]) -> list[str]:
    """Return a table: a row for each program, a column for each commit."""
    heads = [f"`{result['commit_hash'][:8]}`, {date(result)}" for result in here]
    changes = [f"since `{result['commit_hash'][:8]}`" for result in here[:-1]]
    columns = ["program", "÷ NumPy's", *heads, *changes, "now, µs"]
    lines = [f"| {' | '.join(columns)} |", f"| --- | --- |{' ---: |' * (len(columns) - 2)}"]
    for one in comparison.every():
        name = f"{one.__module__.partition('.')[2]}.{one.__name__}"
        for title, _, base in one.rows:
            ratios = [value(result, f"{name}.track_ratio", title) for result in here]
            seconds = value(here[-1], f"{name}.track_time", title)
            shown = re.sub("(.*[.]| ?import ).*", r"`\g<0>`", base.removeprefix("NumPy, "))
            lines.append(f"| {' | '.join([title, shown, *cells(ratios, seconds)])} |")
    return lines


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: page()}, sys.argv[1:]))
