"""Timing contenders against each other in one process, round by round; tables; memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

__all__ = ["as_markdown", "measure", "resident", "table"]


def measure(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int = 15,
    seconds: float = 0.03,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the best time of each contender in microseconds.

    Rounds go through all contenders in turn, so that a machine that slows down slows them all; the
    best of the rounds is what the code takes when nothing else disturbs it. With
    ``clock=time.process_time`` other processes disturb it less.
    """
    loops = {}
    for name, run in contenders.items():
        for _ in range(3):
            run()  # compiles, fills caches
        start = clock()
        run()
        once = clock() - start
        loops[name] = max(1, int(seconds / max(once, 1e-7)))
    best = dict.fromkeys(contenders, float("inf"))
    gc.disable()
    try:
        for _ in range(rounds):
            for name, run in contenders.items():
                count = loops[name]
                start = clock()
                for _ in range(count):
                    run()
                best[name] = min(best[name], (clock() - start) / count * 1e6)
            gc.collect()
    finally:
        gc.enable()
    return best


def table(title: str, times: Mapping[str, float], against: str, unit: str = "µs") -> str:
    """Return times as a Markdown table, with each one's ratio to ``against``."""
    base = times.get(against)
    lines = [f"| {title} | {unit} | ÷ {against} |", "| --- | ---: | ---: |"]
    for name, value in times.items():
        ratio = "-" if base is None else f"{value / base:.2f}"
        lines.append(f"| {name} | {value:,.0f} | {ratio} |")
    return "\n".join(lines)


def as_markdown(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells, the first one the heads, as a Markdown table."""
    head, *rest = lines
    ruler = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ruler, *rest))


def resident(peak: bool = False, reset: bool = False) -> int:
    """Return the bytes of this process in memory, now or at their peak; 0 where Linux is not.

    ``reset`` begins a new peak.
    """
    if not Path("/proc/self/clear_refs").exists():
        return 0
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    field = "VmHWM" if peak else "VmRSS"
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
