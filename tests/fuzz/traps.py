"""``traps``: differentiable calls at the points where rules silently fail.

At zeros, infinities, ties, extreme scales, low rank and without elements, a gradient must have its
source's dtype and shape, and be the slope of the value if there is one, in every mode and
precision. Conventions are listed in ``kinks.KINKS``.
"""

from __future__ import annotations

import argparse
import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fuzz.commands import Clock
from fuzz.hard_points import MATRICES, PAIRS, SINGLES, TWO_VECTORS, VECTORS, elementwise, hard
from fuzz.kinks import KINKS, Kink
from fuzz.program import Array, literal
from fuzz.trap_checks import trapped

__all__ = ["add_arguments", "points", "run"]


class Explained(NamedTuple):
    """An intended deviation of a gradient from the slope of the value, or between precisions."""

    call: str  # a part of the call
    said: str  # the beginning of the description
    at: Callable[[list[Array]], bool]
    reason: str


def _anywhere(xs: list[Array]) -> bool:
    return True


def _beyond(size: float) -> Callable[[list[Array]], bool]:
    return lambda xs: max(float(np.abs(x).max(initial=0.0)) for x in xs) > size


def _dense(xs: list[Array]) -> bool:
    """Return whether what repeats with period 1, or the second array, repeats within a step."""
    period = float(np.abs(xs[1]).min(initial=1.0)) if len(xs) > 1 else 1.0
    return (float(np.abs(xs[0]).max(initial=0.0)) or 1.0) > 1e3 * period


def _flat(xs: list[Array]) -> bool:
    """Return whether matrices have singular values that equal 0 up to rounding."""
    values = [np.linalg.svd(x, compute_uv=False) for x in xs if np.all(np.isfinite(x))]
    return any(v.size and v.min() <= 1e-12 * v.max() for v in values)


def _crossing(xs: list[Array]) -> bool:
    """Return whether singular values are equal up to rounding, or 0."""
    values = np.linalg.svd(xs[0], compute_uv=False)
    return _flat(xs) or bool(np.any(np.abs(np.diff(values)) <= 1e-4 * values.max(initial=0.0)))


_RANK = "singular values that the precision cannot distinguish from 0 count as 0"
#: Intended deviations, besides the rows of the table of kinks, and their reasons.
EXPLAINED = (
    Explained("stop_gradient", "", _anywhere, "it is meant to stop gradients"),
    *(
        Explained(f"ops['{name}_slope']", "", _anywhere, "y is not free: it is a function of x")
        for name in ("tanh", "cbrt", "sigmoid", "squareplus")
    ),
    *(
        Explained(name, said, _dense, "it jumps within any step at a large number")
        for name in ("ops['fmod']", "ops['remainder']", "unwrap", "floor", "rint", "'int64'")
        for said in ("the gradient", "at second order")
    ),
    *(
        Explained(f"linalg.{name}(", "in float32", _anywhere, _RANK)
        for name in ("lstsq", "pinv", "cond")
    ),
    Explained("norm(x, 'nuc')", "in float32", _anywhere, _RANK),
    *(
        Explained(f"linalg.{name}(", "the gradient", _flat, "an inverse is all rounding there")
        for name in ("slogdet", "inv", "solve")
    ),
    Explained(
        "intersect1d",
        "the gradient",
        lambda xs: np.unique(xs[0]).size < xs[0].size,
        "elements of both arguments belong to the first",
    ),
    Explained(
        "sigmoid_cross_entropy",
        "forward mode",
        lambda xs: not np.all(np.isfinite(xs[-1])),
        "the gradient with respect to a label is the logit, and meets a tangent of 0: 0 · inf",
    ),
    Explained(
        "tanh_shrink",
        "the gradient",
        lambda xs: not _beyond(1e-4)(xs),
        "the value is a difference that is lost to rounding",
    ),
    Explained("norm(x, -2)", "the gradient", _flat, _RANK),
    Explained(
        "normalization",
        "",
        _beyond(1e6),
        "the mean of large equal numbers is not exactly that number",
    ),
    Explained("kl_divergence", "in float32", _anywhere, "two nearly equal softmaxes are rounded"),
    Explained(
        "ops['power']", "in float32", _beyond(2.0**24), "y - 1 is rounded, so the sign is, too"
    ),
    Explained(
        "cosine_similarity",
        "",
        lambda xs: not all(np.any(x) for x in xs),
        "a vector of length 0 has no direction",
    ),
    Explained("linalg.qr", "at second order", _flat, "R has a kink at a matrix of low rank"),
    Explained("labels=x / gt.sum(x)", "", _beyond(1e100), "parts of the product are out of range"),
    Explained(
        "svdvals(x) ** 2",
        "at second order",
        _crossing,
        "a rule sees one op at a time: write gt.sum(gt.square(x))",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this fuzzer's own options to its parser."""
    parser.add_argument("--points", metavar="N", type=int, help="stop after N points")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a failure")


def points(seed: int) -> Iterator[tuple[str, list[Array]]]:
    """Give calls with arrays: each elementwise op at each point, then others, endlessly."""
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
        yield rng.choice(TWO_VECTORS), [hard(rng, (2,)), hard(rng, (2,))]
    while True:
        yield rng.choice(VECTORS), [hard(rng, (rng.choice([1, 2, 3, 4]),))]
        yield rng.choice(MATRICES), [hard(rng, (2, 2))]
        yield rng.choice(TWO_VECTORS), [hard(rng, (2,)), hard(rng, (2,))]


def run(options: argparse.Namespace) -> int:
    """Try points until the time is up; return 1 if something is wrong."""
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
            print(f"list(fuzz.trap_checks.trapped({call!r}, [{arrays}]))", flush=True)
    print(
        f"traps: {done} points in {clock.elapsed:.0f} s, from seed {options.seed}; "
        f"unexplained: {failures}"
    )
    return 1 if failures else 0


def found(call: str, xs: list[Array]) -> str:
    """Return the first thing that is wrong with a call at a point, unless it is explained."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return next((said for said in trapped(call, xs) if not _on_purpose(call, xs, said)), "")
        except np.linalg.LinAlgError:
            return ""  # refused with an error
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def _meets(kink: Kink, call: str, xs: list[Array]) -> bool:
    """Return whether a call is that of a row, at a point with what makes the row's a kink."""
    where = np.ravel(kink.at)
    where = where if np.all(np.isfinite(where)) else where[~np.isfinite(where)]
    return call == kink.call and any(bool(np.isin(x, where).any()) for x in xs)


def _on_purpose(call: str, xs: list[Array], said: str) -> bool:
    listed = any(one.call in call and said.startswith(one.said) and one.at(xs) for one in EXPLAINED)
    return listed or any(_meets(kink, call, xs) for kink in KINKS if kink.on_purpose)
