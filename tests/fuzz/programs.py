"""``programs``: random programs of 3 to 25 ops, compared with differences and in every mode.

Each is run eagerly, and its gradients of first and second order are compared with finite
differences. Then every mode of ``modes.MODES`` must give the results of the eager run. A program
that differs is reduced to the smallest one that still differs, in the simplest mode, and printed.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fuzz.commands import Clock
from fuzz.drawing import drawn
from fuzz.executors import CHOSEN
from fuzz.measuring import Case, slopes_off
from fuzz.modes import MODES, off
from fuzz.program import Array, Program, literal
from fuzz.shrinking import reduced

__all__ = ["add_arguments", "run", "shown", "wrong"]

DIFFERENCES = "differences"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this fuzzer's own options to its parser."""
    parser.add_argument("--programs", metavar="N", type=int, help="stop after N programs")
    parser.add_argument(
        "--mode", action="append", choices=[DIFFERENCES, *MODES], help="only these modes (all)"
    )
    parser.add_argument(
        "--executor", action="append", default=[], help="in mode executors, only these"
    )
    parser.add_argument(
        "--refusals", metavar="N", type=int, default=0, help="print the N most frequent refusals"
    )
    parser.add_argument(
        "--keep-going", action="store_true", help="do not stop at the first failure"
    )


def run(options: argparse.Namespace) -> int:
    """Run programs until the time is up; return 1 if one of them is wrong."""
    clock, ran, failures = Clock(options.seconds, options.programs), Counter[str](), 0
    refusals = Counter[str]()
    modes = options.mode or [DIFFERENCES, *MODES]
    CHOSEN[:] = options.executor
    done = 0
    while clock.runs(done):
        program = drawn(options.seed + done)
        done += 1
        for mode, said in wrong(program, modes, ran, refusals):
            failures += 1
            print(f"\n# seed {program.seed}, {mode}: {said}"[:600])
            print(shown(_smallest(program, mode), mode), flush=True)
            if not options.keep_going:
                break
        if failures and not options.keep_going:
            break
    for text, count in refusals.most_common(options.refusals):
        print(f"refused {count} x {text}")
    print(
        f"programs: {done} in {clock.elapsed:.0f} s, from seed {options.seed}; ran: "
        + ", ".join(f"{mode} {ran[mode]}" for mode in modes)
        + f"; unexplained: {failures}"
    )
    return 1 if failures else 0


def wrong(
    program: Program,
    modes: Sequence[str],
    ran: Counter[str] | None = None,
    refusals: Counter[str] | None = None,
) -> Iterator[tuple[str, str]]:
    """Give the modes in which a program is wrong, and how; count modes that ran, and refusals."""
    ran = Counter() if ran is None else ran
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            case = Case(program)
            said, told = slopes_off(case) if DIFFERENCES in modes else (None, False)
        except Exception as error:
            yield DIFFERENCES, f"{type(error).__name__}: {error}"
            return
        ran[DIFFERENCES] += told
        if said:
            yield DIFFERENCES, said
        for mode in modes:
            if mode != DIFFERENCES:
                said, took_part = off(case, mode, refusals)
                ran[mode] += took_part
                if said:
                    yield mode, said


def _smallest(program: Program, mode: str) -> Program:
    """Return the smallest program found that is wrong in the same mode and way."""
    kind = _kind(next((said for _, said in wrong(program, [mode])), ""))
    return reduced(
        program,
        lambda other: (mode, kind) in ((m, _kind(said)) for m, said in wrong(other, [mode])),
    )


def _kind(said: str) -> str:
    """Return the part of a message that does not depend on numbers and names."""
    return re.sub(r"\d+", "", ":".join(said.split(":")[:2]).split(" is ")[0])


def shown(program: Program, mode: str) -> str:
    """Return the text of a program that shows the error."""
    names = [*program.inputs]
    tensors = f"[{', '.join(names)}]"
    lines = [*program.setup()]
    if mode == DIFFERENCES:
        lines.append(f"gt.testing.check_gradients(program, *{tensors})")
    else:
        lines.append("from fuzz.measuring import Case")
        lines.append("from fuzz.modes import off")
        lines.append("from fuzz.program import Line, Program\n")
        lines.append(f"print(program(*{tensors}))")
        lines.append(f"same = {program_text(program)}")
        lines.append(f"print(off(Case(same), {mode!r})[0])")
    return "\n".join(lines)


def program_text(program: Program) -> str:
    """Return the program as an expression, for another run."""

    def arrays(given: dict[str, Array]) -> str:
        return "{" + ", ".join(f"{n!r}: {literal(x)}" for n, x in given.items()) + "}"

    return (
        f"Program({arrays(program.inputs)}, {arrays(program.variables)}, {program.lines!r}, "
        f"{program.outputs!r}, {program.seed})"
    )
