"""Derivatives at points where they are limits: combined from those at points nearby.

A kernel that meets such a point notes it (``core.base.context``). The function then runs again,
once at the same point to see whether it repeats itself, and at six points on a line through it,
where the rules have an answer. If there is a limit, the derivative is smooth along that line, and
the polynomial through the six values gives it. Four points with other arbitrary choices must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ..base.context import (
    Derivation,
    Setting,
    active_graph,
    deriving,
    muting,
    reducing,
    report_missing_terms,
)
from ..base.tree import flatten
from ..batches.batched import Batched
from ..ops.dispatch import to_numpy
from ..tensors.assignment import holding
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor

#: Divisors of the length of a step: the larger ones are for functions with a singularity close by.
_LENGTHS = (1, 30, 1000, 30000)
#: How many steps away the points are.
_PLACES = (-3, -2, -1, 1, 2, 3)
# weights of the values there: Lagrange's polynomials through all six, and through the inner four
_SIX = (0.05, -0.3, 0.75, 0.75, -0.3, 0.05)
_FOUR = (0.0, -1 / 6, 2 / 3, 2 / 3, -1 / 6, 0.0)

#: Errors at a point where a function is not defined.
_OUTSIDE = (ArithmeticError, ValueError)

X = TypeVar("X", bound=tuple[Any, ...])


def derive(run: Callable[[], tuple[Any, list[Any]]], strict: bool = False) -> tuple[Any, list[Any]]:
    """Return the results of ``run``; derivatives that are limits are computed as such.

    Parameters
    ----------
    run
        Returns what to pass on, whose first part is the function's result, and derivatives. If a
        kernel met a point where rules have no answer, it is called again for the derivatives.
        Variables then hold what they held at first.
    strict
        Raise ``GradientError`` if a derivative has no limit, instead of a warning.

    Returns
    -------
    object
        What the first call passed on.
    list
        The derivatives.
    """
    if not _at_the_point():
        return run()
    (kept, found), here = _noting(run)
    if not here.eps:
        return kept, found
    states = list(here.changed.values())

    def off_point(derivation: Derivation) -> tuple[Any, list[Any]]:
        with muting(), holding(states), Setting(deriving, derivation):
            return run()

    if deriving.get() is None:  # an outer derivative compares for inner ones
        again = []
        with suppress(Exception):  # what the first call did not raise is a difference too
            repeated, there = off_point(Derivation())
            again = [repeated[0], there]
        if not _repeats([kept[0], found], again, here, strict):
            return kept, found
    return kept, _limits(found, lambda point: off_point(point)[1], here, kept[0], _LENGTHS, strict)


def recorded(
    record: Callable[[], X], derive: Callable[..., list[Any]], strict: bool = False
) -> tuple[X, Callable[..., list[Any]]]:
    """Return the result of ``record``, and the function that computes derivatives from it.

    Parameters
    ----------
    record
        Runs the function to differentiate, and returns a record: a tuple that begins with the
        function's result. It is called again at once if a kernel met a point where rules have no
        answer.
    derive
        Takes a record and other arguments; returns derivatives.
    strict
        As for :func:`derive`.
    """
    if not _at_the_point():
        first = record()
        return first, partial(derive, first)
    first, here = _noting(record)
    if not here.eps:
        return first, partial(derive, first)
    states = list(here.changed.values())
    lengths = _LENGTHS[:1]
    others, again = {}, []
    if deriving.get() is None:
        with suppress(Exception), muting(), holding(states), Setting(deriving, Derivation()):
            again.append(record())
        if not _repeats([first[0]], [x[0] for x in again], here, strict):
            return first, partial(derive, first)
    for point in (*_points(here, lengths[0]), *_turned(here, lengths[0])):
        with suppress(*_OUTSIDE), muting(), holding(states), Setting(deriving, point):
            others[point.step, point.turned] = record()

    def limited(*args: Any) -> list[Any]:
        def off_point(point: Derivation) -> list[Any]:
            if (point.step, point.turned) not in others:
                raise ArithmeticError
            with Setting(deriving, point):
                return derive(others[point.step, point.turned], *args)

        with Setting(deriving, Derivation()):
            at, *there = (derive(x, *args) for x in (first, *again))
        if not all(_repeats([at], [found], here, strict) for found in there):
            return at
        return _limits(at, off_point, here, first[0], lengths, strict)

    return first, limited


def _at_the_point() -> bool:
    """Return whether kernels run, at the point of interest rather than a step away."""
    if active_graph.get() is not None or reducing.get() is not None:
        return False  # no kernels run, or each rank must run the function as often as the others
    around = deriving.get()
    return around is None or around.step is None


def _noting(run: Callable[[], X]) -> tuple[X, Derivation]:
    around, here = deriving.get(), Derivation()
    token = deriving.set(here)  # without a context manager, which would cost more than the rest
    try:
        found = run()
    finally:
        deriving.reset(token)
    if around is not None:
        around.join(here)
    return found, here


def _repeats(first: list[Any], again: list[Any], here: Derivation, strict: bool) -> bool:
    """Return whether a second call at the same point had the same results; tell if not."""
    leaves, others = flatten(first), flatten(again)
    good = here.eps**0.5
    if len(leaves) == len(others) and all(map(partial(_same, good), leaves, others)):
        return True
    report_missing_terms(
        f"{here.met}: the function computed something else when it was called again, so the "
        "derivative here cannot be computed as a limit; draw random numbers and read data outside "
        "of the function, or use gradtape.random",
        strict,
    )
    return False


def _same(within: float, leaf: Any, other: Any) -> bool:
    if leaf is None or other is None:
        return leaf is other
    a, b = _numbers(as_tensor(leaf)), _numbers(as_tensor(other))
    size = _largest(a[np.isfinite(a)])
    return a.shape == b.shape and np.allclose(a, b, within, within * size, equal_nan=True)


def _points(here: Derivation, divisor: int, places: Any = _PLACES) -> list[Derivation]:
    """Return the points to compute at: their distance balances rounding with the polynomial."""
    length = (here.eps / 36) ** (1 / 7) / divisor
    return [Derivation(place * length) for place in places]


def _turned(here: Derivation, divisor: int) -> list[Derivation]:
    """Return four points with other arbitrary choices."""
    places = _PLACES[1:-1]
    return [Derivation(point.step, turned=True) for point in _points(here, divisor, places)]


def _limits(
    at: list[Any],
    off_point: Callable[[Derivation], list[Any]],
    here: Derivation,
    result: Any,
    lengths: Sequence[int],
    strict: bool,
) -> list[Any]:
    """Return the limits of derivatives for steps that go to 0.

    Parameters
    ----------
    at
        What the rules give at the point: kept where they give a subgradient at a kink.
    off_point
        Returns the derivatives at another point.
    here, result
        The point, and the function's result there: rounding errors are relative to it.
    lengths, strict
        The divisors of steps to try, and whether it is an error if there is no limit.
    """
    found, good = list(at), here.eps**0.5
    results = [_numbers(as_tensor(leaf)) for leaf in flatten(result) if leaf is not None]
    unit = max((_largest(values) for values in results), default=0.0) / here.size
    errors = [np.inf if leaf is not None else 0.0 for leaf in at]
    # of the limits that were found: the divisor, and how far they vary at the points next to it
    smooth: dict[int, tuple[int, float]] = {}
    for divisor in lengths:
        with suppress(*_OUTSIDE), np.errstate(all="ignore"):
            points = [off_point(point) for point in _points(here, divisor)]
            for i, leaves in enumerate(zip(*points, strict=True)):
                if errors[i] <= good:
                    continue
                values = np.stack([_numbers(leaf) for leaf in leaves])
                error, is_kink = _error(values, unit, here.eps)
                peak = _largest(values)
                if error > good and peak <= _rounding(peak, unit, here):
                    errors[i], found[i], smooth[i] = 0.0, at[i], (divisor, 0.0)
                elif error < errors[i]:
                    errors[i], found[i] = error, at[i] if is_kink else _combined(leaves)
                    smooth.pop(i, None)
                    if not is_kink:
                        smooth[i] = divisor, 4 * _largest(values[2:4] - _numbers(found[i]))
        if max(errors) <= good:
            break
    for i in _arbitrary(found, smooth, off_point, here, unit):
        errors[i] = np.inf
    lacking = [error > here.eps**0.3 for error in errors]
    if any(lacking):
        report_missing_terms(
            f"{here.met}: there is no limit of the derivative, because the function depends on an "
            "arbitrary choice at this point, or is singular close to it",
            strict,
        )
    return [a if lacks else x for a, x, lacks in zip(at, found, lacking, strict=True)]


def _arbitrary(
    found: list[Any],
    smooth: dict[int, tuple[int, float]],
    off_point: Callable[[Derivation], list[Any]],
    here: Derivation,
    unit: float,
) -> Iterator[int]:
    """Give the places of limits that other choices change by more than the derivatives vary."""
    for divisor in {divisor for divisor, _ in smooth.values()}:
        with suppress(*_OUTSIDE), np.errstate(all="ignore"):
            turned = [off_point(point) for point in _turned(here, divisor)]
            for i, (used, allowed) in smooth.items():
                if used == divisor:
                    values = np.stack([_numbers(leaves[i]) for leaves in turned])
                    mine, peak = _numbers(found[i]), _largest(values)
                    size, rounding = max(_largest(mine), unit), _rounding(peak, unit, here)
                    near, far = (_largest(values[2 + k] - values[1 - k]) for k in (0, 1))
                    has_pole = near > here.eps**0.3 * size + rounding and near > 0.75 * far
                    allowed += here.eps**0.2 * size + rounding
                    if has_pole or _largest((values[1] + values[2]) / 2 - mine) > allowed:
                        yield i


def _rounding(peak: float, unit: float, here: Derivation) -> float:
    """Return the size of derivatives that are rounding errors, with their largest one.

    At a minimum of 0, the result is the square of rounding errors, so it tells no size of them.
    """
    return here.eps**0.7 * max(1.0, here.size) if unit <= here.eps**0.5 * peak else 0.0


def _error(values: Any, unit: float, eps: float) -> tuple[float, bool]:
    """Return the error of the limit of values on a line, and whether they have a kink there.

    It is relative to the largest value, or to ``unit`` if that is larger.
    """
    if not np.isfinite(values).all():
        return np.inf, False
    size = max(_largest(values), unit) or 1.0
    near, far = (_largest(values[3 + k] - values[2 - k]) / size for k in (0, 1))
    if near > eps**0.45 and near > 0.75 * far:  # half as large if smooth, twice at a pole
        return (0.0, True) if near < 1.4 * far else (np.inf, False)
    return _largest(np.tensordot(np.subtract(_SIX, _FOUR), values, 1)) / size, False


def _largest(values: Any) -> float:
    return float(np.abs(values).max(initial=0.0))


def _numbers(leaf: Tensor) -> Any:
    array = leaf.array
    while type(array) is Batched:
        array = array.array
    numbers = to_numpy(array)
    return numbers.astype(np.result_type(numbers.dtype, np.float64))


def _combined(leaves: Sequence[Any]) -> Any:
    pairs = zip(leaves[:3], leaves[:2:-1], _SIX, strict=False)
    terms = [(left + right) * weight for left, right, weight in pairs]
    return terms[0] + terms[1] + terms[2]
