"""A run: calls one after another, its findings, and the report."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from fuzz.commands import Clock
from fuzz.numpy_calls.compare import answers, difference, quietly
from fuzz.numpy_calls.draw import DTYPES, Draw
from fuzz.numpy_calls.kept import explained
from fuzz.numpy_calls.shrink import reduced
from fuzz.numpy_calls.targets import Call, Target, find_targets, package

__all__ = ["Finding", "Report", "add_arguments", "fuzz", "run", "snippet"]

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


@dataclass(frozen=True)
class Finding:
    """An unexplained difference, with the smallest call that shows it."""

    index: int
    call: Call
    what: str


@dataclass
class Report:
    """The findings of a run."""

    calls: int = 0
    errors: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def unexplained(self) -> int:
        """The number of calls that differ for no known reason."""
        return sum(self.found.values())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this fuzzer's own options to its parser."""
    parser.add_argument("--calls", metavar="N", type=int, help="stop after N calls")
    parser.add_argument("--only", metavar="TEXT", help="only functions whose name contains TEXT")
    parser.add_argument("--at", metavar="I", type=int, help="only the call with index I")
    parser.add_argument("--exact", action="store_true", help="TEXT is the whole name")


def run(options: argparse.Namespace) -> int:
    """Run the fuzzer, print its findings, and return 1 if a difference is unexplained."""
    clock = Clock(options.seconds, options.calls if options.seconds or options.calls else 20_000)
    only = options.only
    report = fuzz(options.seed, clock, only=only, exact=options.exact, at=options.at)
    for finding in report.findings:
        print(f"\n# --seed {options.seed} --at {finding.index}\n{snippet(finding)}")
    print(
        f"\n{report.calls} calls in {clock.elapsed:.0f} s, {report.errors} of them errors in NumPy"
    )
    for reason, count in report.kept.most_common():
        print(f"  {count} kept: {reason}")
    for name, reason in report.missing.items():
        print(f"  no generator for {name}: {reason}")
    for (name, what), count in report.found.most_common():
        print(f"  {count} unexplained: {name}: {what}")
    print(f"{report.unexplained} unexplained differences")
    return 1 if report.findings or report.missing else 0


def fuzz(
    seed: int,
    clock: Clock,
    *,
    only: str | None = None,
    exact: bool = False,
    at: int | None = None,
    most: int = 200,
) -> Report:
    """Run calls until the time is up; keep one finding per function and kind of difference."""
    xp = package()
    before = xp.default_dtype()
    xp.set_default_dtype("float64")  # NumPy's dtype for Python numbers
    try:
        targets, missing = find_targets()
        report = Report(missing=missing)
        if only is not None:
            targets = [t for t in targets if (t.name == only if exact else only in t.name)]
        index = -1
        with quietly():
            while clock.runs(report.calls) and (at is None or report.calls == 0):
                index = index + 1 if at is None else at
                _step(seed, index, targets, report, most)
        return report
    finally:
        xp.set_default_dtype(before)


def draw_call(seed: int, index: int, targets: Sequence[Target]) -> Call:
    """Return the call of an index: targets take turns, and so do dtypes."""
    rng = random.Random(f"{seed}:{index}")
    turn, place = divmod(index, len(targets))
    target = targets[place]
    draw = Draw(rng, DTYPES[(turn + place) % len(DTYPES)])
    return Call(target, tuple(target.draw(draw)))


def _ends_python(call: Call) -> bool:
    """Return whether NumPy 2.4 would crash: it compares with a number out of the dtype's range."""
    numbers = [a.value for a in call.arguments if type(a.value) is int]
    masked = any(a.name == "where" and a.value is not None for a in call.arguments)
    return masked and bool(numbers) and call.target.function in COMPARISONS


def _step(seed: int, index: int, targets: Sequence[Target], report: Report, most: int) -> None:
    """Make one call and record its outcome."""
    call = draw_call(seed, index, targets)
    report.calls += 1  # also for a call that is not made, so that a run of it alone ends
    if _ends_python(call):
        return
    theirs, ours = answers(call)
    report.errors += theirs.error is not None
    what = difference(call, theirs, ours)
    if what is None:
        return
    known = explained(call, theirs, ours)
    if known is not None:
        report.kept[known.what] += 1
        return
    key = call.target.function, what
    report.found[key] += 1
    if report.found[key] > 1 or len(report.findings) >= most:
        return

    def fails(smaller: Call) -> bool:
        theirs, ours = answers(smaller)
        same = difference(smaller, theirs, ours) == what
        return same and explained(smaller, theirs, ours) is None

    report.findings.append(Finding(index, reduced(call, fails), what))


def snippet(finding: Finding) -> str:
    """Return a finding as a program, with both answers."""
    call = finding.call
    with quietly():
        theirs, ours = answers(call)
    lines = [
        f"# {call.target.name}: {finding.what}",
        "import numpy as np, gradtape as gt",
        "from numpy import array, inf, nan, zeros",
        'gt.set_default_dtype("float64")',
        f"print({call.text('np')})",
        f"# NumPy: {theirs.text()}",
        f"print({call.text('gt')})",
        f"# gradtape: {ours.text()}",
    ]
    return "\n".join(lines)
