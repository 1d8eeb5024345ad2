"""``traps``: differentiable calls at the points where rules break without a word.

Zeros, infinities, ties, extreme scales, low rank, no elements: the gradient must have its source's
dtype and shape, be the slope of the value wherever there is one, in every mode and precision.
What is so by convention stands in ``kinks.KINKS``.
"""

from __future__ import annotations

import argparse
import itertools
import random
import warnings
from collections.abc import Iterator

import numpy as np

from .commands import Clock
from .hard_points import MATRICES, PAIRS, SINGLES, VECTORS, elementwise, hard
from .kinks import KINKS
from .program import Array, literal
from .trap_checks import trapped

__all__ = ["add_arguments", "points", "run"]

#: Calls that are not the slope of their value on purpose, and why.
EXPLAINED: dict[str, str] = {
    "ops['stop_gradient'](x)": "it says so",
    "gt.clip_by_norm(x, 1.0)": "its factor is below the range where the norm's square is beyond it",
    **dict.fromkeys(
        ("ops['fmod'](x, y)", "ops['remainder'](x, y)", "gt.unwrap(x)"),
        "it jumps within any step at a large number",
    ),
    **{kink.call: kink.reason for kink in KINKS if kink.on_purpose},
}
#: Calls that take singular values for 0 that the precision cannot tell from it.
BY_PRECISION = ("lstsq", "pinv", "cond")
ROUNDED = "normalization"  # the mean of large equal numbers is not quite that number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this fuzzer's own options to its parser."""
    parser.add_argument("--points", metavar="N", type=int, help="stop after so many points")
    parser.add_argument("--keep-going", action="store_true", help="look on after a failure")


def points(seed: int) -> Iterator[tuple[str, list[Array]]]:
    """Give calls with arrays: each elementwise op at each point, then others, without end."""
    rng = random.Random(seed)
    singles = [(call, [np.array(x)]) for call in elementwise(1) for x in SINGLES]
    pairs = [
        (call, [np.array(x), np.array(y)])
        for call in elementwise(2)
        for x, y in itertools.product(PAIRS, repeat=2)
    ]
    listed = singles + pairs
    rng.shuffle(listed)
    for case in listed:
        yield case
        for _ in range(2):
            yield rng.choice(VECTORS), [hard(rng, (rng.choice([0, 1, 2, 2, 3, 4]),))]
        n = rng.choice([0, 1, 2, 2, 3])
        yield rng.choice(MATRICES), [hard(rng, (n, n))]
    while True:
        yield rng.choice(VECTORS), [hard(rng, (rng.choice([1, 2, 3, 4]),))]
        yield rng.choice(MATRICES), [hard(rng, (2, 2))]


def run(options: argparse.Namespace) -> int:
    """Try points until the time is over; return 1 if something does not hold."""
    clock, failures, done = Clock(options.seconds, options.points), 0, 0
    seen: set[tuple[str, str]] = set()
    for call, xs in points(options.seed):
        if not clock.runs(done) or (failures and not options.keep_going):
            break
        done += 1
        said = found(call, xs)
        if said and (call, said[:12]) not in seen:
            seen.add((call, said[:12]))
            failures += 1
            arrays = ", ".join(map(literal, xs))
            print(f"\n# {call}: {said}"[:500])
            print(
                f"list(gradtape.testing.fuzz.trap_checks.trapped({call!r}, [{arrays}]))", flush=True
            )
    print(
        f"traps: {done} points in {clock.elapsed:.0f} s, from seed {options.seed}; "
        f"unexplained: {failures}"
    )
    return 1 if failures else 0


def found(call: str, xs: list[Array]) -> str:
    """Return the first thing that does not hold of a call at a point, if it is not explained."""
    if call in EXPLAINED or (ROUNDED in call and np.abs(xs[0]).max(initial=0.0) > 1e6):
        return ""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            said = next(trapped(call, xs), "")
            ranks = any(name in call for name in BY_PRECISION)
            return "" if ranks and said.startswith("in float32") else said
        except np.linalg.LinAlgError:
            return ""  # refused in words
        except Exception as error:
            return f"{type(error).__name__}: {error}"
