"""``files``: the cases, and the processes that read them."""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections import Counter
from typing import Any, NamedTuple

from fuzz.commands import Clock
from fuzz.files import damage, documents, headers
from fuzz.files.judging import judged, without_a_new_interpreter
from fuzz.files.subjects import Subject, subjects

__all__ = ["KINDS", "Case", "add_arguments", "case", "run"]

#: Kinds of changes, with their relative frequency.
KINDS = {"metadata": 4, "json": 4, "raw": 2}
# Running all samples of a file takes longer than reading it.
_VERIFIED = 20


class Case(NamedTuple):
    """A file to read.

    Attributes
    ----------
    kind
        How it was changed.
    subject
        The name of the sound file.
    data
        Its bytes.
    expected
        The values that it must give if it is accepted; None if it may give any.
    """

    kind: str
    subject: str
    data: bytes
    expected: list[Any] | None


def case(seed: int, number: int, kinds: list[str] | None = None) -> Case:
    """Return a case, which the seed and the number determine."""
    rng = random.Random(f"{seed} {number}")
    weights = {kind: n for kind, n in KINDS.items() if kinds is None or kind in kinds}
    kind = rng.choices([*weights], [*weights.values()])[0]
    subject = rng.choice(subjects())
    if kind == "metadata":
        return Case(kind, subject.name, headers.changed(subject.data, rng), subject.behaviour)
    if kind == "raw":
        return Case(kind, subject.name, damage.changed(subject.data, rng), subject.behaviour)
    return Case(kind, subject.name, _sealed(subject, rng), None)


def _sealed(subject: Subject, rng: random.Random) -> bytes:
    compression = "gzip" if subject.name == "compressed" else None
    return documents.changed(subject.parts, rng).encoded(compression)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this fuzzer's own options to its parser."""
    parser.add_argument("--minutes", metavar="N", type=float, help="stop after N minutes")
    parser.add_argument("--files", metavar="N", type=int, help="stop after N files")
    parser.add_argument("--first", metavar="N", type=int, default=0, help="the first file (0)")
    parser.add_argument(
        "--kind", action="append", choices=[*KINDS], help="only these changes (all)"
    )
    parser.add_argument("--workers", metavar="N", type=int, default=2, help="processes (2)")
    parser.add_argument(
        "--keep", metavar="FOLDER", help="store files that are not read as required"
    )
    parser.add_argument(
        "--keep-going", action="store_true", help="do not stop at the first failure"
    )


def run(options: argparse.Namespace) -> int:
    """Read changed files until the time is up; return 1 if one is not read as it must be."""
    if not hasattr(os, "fork"):
        print("fuzz files: it reads files in forked processes, which this system does not support")
        return 2
    from fuzz.files.workers import Pool  # its limits on processes need a system that can fork

    seconds = options.seconds if options.minutes is None else 60 * options.minutes
    clock, found, failures = Clock(seconds, options.files), Counter[str](), 0
    subjects()
    with tempfile.TemporaryDirectory() as folder, without_a_new_interpreter():

        def read(number: int) -> tuple[str, str | None]:
            drawn = case(options.seed, number, options.kind)
            path = os.path.join(folder, f"{os.getpid()}.h5")
            with open(path, "wb") as stream:
                stream.write(drawn.data)
            outcome, wrong = judged(path, drawn.expected, number % _VERIFIED == 0)
            return f"{drawn.kind} {outcome}", wrong

        pool = Pool(read, options.first, options.workers, clock)
        for number, label, wrong in pool.results():
            found[label] += 1
            if wrong is None:
                continue
            failures += 1
            drawn = case(options.seed, number, options.kind)
            print(f"\n# {drawn.kind} of {drawn.subject}, {_again(options, number)}: {wrong}"[:600])
            if options.keep:
                os.makedirs(options.keep, exist_ok=True)
                with open(
                    os.path.join(options.keep, f"{options.seed}-{number}.h5"), "wb"
                ) as stream:
                    stream.write(drawn.data)
            if not options.keep_going:
                break
        pool.close()
    counts = ", ".join(f"{label} {count}" for label, count in sorted(found.items()))
    print(
        f"files: {found.total()} in {clock.elapsed:.0f} s, from seed {options.seed}; {counts}; "
        f"unexplained: {failures}"
    )
    return 1 if failures else 0


def _again(options: argparse.Namespace, number: int) -> str:
    kinds = "".join(f" --kind {kind}" for kind in options.kind or ())
    return f"--seed {options.seed} --first {number} --files 1{kinds}"
