"""``training``: random models, data and settings, held to relations between ways to use them.

A relation is a function of a program's objects that yields what must be equal, under
``@relation(class, draw)``; see :mod:`.relations`. The classes are the modules: batches do not
matter, a loaded model is the model, and so on. A program that breaks a relation is reduced to the
smallest one that still does, and printed.
"""

from __future__ import annotations

import argparse
from collections import Counter

from fuzz.commands import Clock
from fuzz.training import batches, compat, identity, loaded, resumed, seeded, undisturbed, wrapped  # noqa: F401
from fuzz.training.relations import (
    RELATIONS,
    Line,
    Program,
    Relation,
    held,
    hold,
    reduced,
    relation,
    shown,
)

__all__ = [
    "RELATIONS",
    "Line",
    "Program",
    "Relation",
    "add_arguments",
    "held",
    "hold",
    "relation",
    "run",
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this fuzzer's own options to its parser."""
    parser.add_argument("--examples", metavar="N", type=int, help="stop after N programs")
    parser.add_argument(
        "--relation",
        action="append",
        metavar="NAME",
        help=f"only these relations or classes (all): {', '.join(RELATIONS)}",
    )
    parser.add_argument(
        "--refusals", metavar="N", type=int, default=0, help="print the N most frequent refusals"
    )
    parser.add_argument(
        "--keep-going", action="store_true", help="do not stop at the first failure"
    )


def run(options: argparse.Namespace) -> int:
    """Hold programs to relations until the time is up; return 1 if one of them is broken."""
    clock, counts, refusals = (
        Clock(options.seconds, options.examples),
        Counter[str](),
        Counter[str](),
    )
    chosen = _chosen(options.relation)
    done = failures = 0
    while clock.runs(done) and (options.keep_going or not failures):
        seed = options.seed + done
        kept = chosen[seed % len(chosen)]
        done += 1
        program = kept.drawn(seed)
        outcome, said = held(kept, program)
        counts[f"{kept.kind} {outcome}"] += 1
        if outcome == "refused":
            refusals[f"{kept.name}: {said}"[:160]] += 1
        if outcome == "off":
            failures += 1
            small = reduced(kept, program)
            said = held(kept, small)[1]
            print(f"\n# --relation {kept.name} --seed {seed}: {said}"[:600])
            print(shown(kept, small), flush=True)
    for text, count in refusals.most_common(options.refusals):
        print(f"refused {count} x {text}")
    ran = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(
        f"training: {done} in {clock.elapsed:.0f} s, from seed {options.seed}; {ran}; "
        f"unexplained: {failures}"
    )
    return 1 if failures else 0


def _chosen(names: list[str] | None) -> list[Relation]:
    """Return the relations of names and classes.

    Raises
    ------
    SystemExit
        If there is none of a name.
    """
    found = [x for x in RELATIONS.values() if not names or {x.name, x.kind} & set(names)]
    unknown = set(names or ()) - {name for x in found for name in (x.name, x.kind)}
    if unknown:
        raise SystemExit(f"fuzz training: no relation {', '.join(sorted(unknown))}")
    return found
