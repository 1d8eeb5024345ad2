"""``autograph``: random Python statements, run as they are and as a trace, with the same results.

A program makes its own state, changes it in branches and loops on traced conditions, and returns
it. A trace must give the same values and two derivatives, or an error that names the line.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from importlib.util import find_spec

from fuzz.autograph.checking import compared
from fuzz.autograph.contexts import PLACES, each
from fuzz.autograph.shrinking import reduced
from fuzz.autograph.writer import Line, Program, written
from fuzz.commands import Clock

__all__ = ["BAD", "Line", "Program", "add_arguments", "compared", "reduced", "run", "written"]

#: Outcomes that are defects.
BAD = ("different", "no error", "raw error", "wrong error")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this fuzzer's own options to its parser."""
    parser.add_argument("--examples", metavar="N", type=int, help="stop after N programs")
    parser.add_argument(
        "--refusals", metavar="N", type=int, default=0, help="print the N most frequent refusals"
    )
    parser.add_argument(
        "--shrink", metavar="N", type=int, default=10**9, help="reduce and print N failures (all)"
    )
    parser.add_argument(
        "--only", metavar="OUTCOME", help=f"only print failures of this outcome: {', '.join(BAD)}"
    )
    parser.add_argument(
        "--avoid",
        action="append",
        metavar="REGEX",
        default=[],
        help="leave out programs whose text this pattern matches; may be given more than once",
    )
    parser.add_argument(
        "--each",
        action="append",
        metavar="PLACE",
        help="instead of random programs, every change and read of a state alone at a place, such "
        f"as 'if' or 'all': {', '.join(PLACES)}",
    )
    parser.add_argument(
        "--keep-going", action="store_true", help="do not stop at the first failure"
    )


def run(options: argparse.Namespace) -> int:
    """Compare programs until the time is up; return 1 if one of them differs."""
    if find_spec("malt") is None:
        print('fuzz autograph: needs pip install "gradtape[autograph]"')
        return 2
    if options.each:
        return _each(options)
    clock, counts, refusals = (
        Clock(options.seconds, options.examples),
        Counter[str](),
        Counter[str](),
    )
    done = failures = shown = 0
    while clock.runs(done) and (options.keep_going or not failures):
        program = written(options.seed + done)
        done += 1
        if any(re.search(pattern, program.text, re.MULTILINE) for pattern in options.avoid):
            counts["avoided"] += 1
            continue
        outcome, said, _ = compared(program)
        counts[outcome] += 1
        if outcome == "refused":
            refusals[said[:160]] += 1
        if outcome in BAD:
            failures += 1
            if shown < options.shrink and options.only in (None, outcome):
                shown += 1
                small = reduced(program)
                said = compared(small)[1] or said
                print(f"\n# --seed {program.seed} {outcome}: {said}"[:400])
                print(f"# {'; '.join(small.tags)}\n{small.text}", flush=True)
    for text, count in refusals.most_common(options.refusals):
        print(f"refused {count} x {text}")
    ran = ", ".join(f"{name} {count}" for name, count in counts.most_common())
    print(
        f"autograph: {done} in {clock.elapsed:.0f} s, from seed {options.seed}; {ran}; "
        f"unexplained: {failures}"
    )
    return 1 if failures else 0


def _each(options: argparse.Namespace) -> int:
    """Compare the programs of each state at each place; print a line for each defect."""
    counts = Counter[str]()
    for place in PLACES if "all" in options.each else options.each:
        for state, text, program in each(place):
            if any(re.search(pattern, program.text, re.MULTILINE) for pattern in options.avoid):
                continue
            outcome, said, _ = compared(program)
            counts[outcome] += 1
            if outcome in (*BAD, "invalid") and options.only in (None, outcome):
                print(f"{outcome} | {place} | {state} | {text!r} | {said[:120]}", flush=True)
    ran = ", ".join(f"{name} {count}" for name, count in counts.most_common())
    print(f"autograph: {counts.total()} at {', '.join(options.each)}; {ran}")
    return 1 if any(counts[name] for name in BAD) else 0
