"""Errors of the derivatives of SciPy's functions, relative to mpmath's or to differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import scipy.special
import scipy.special._ufuncs as private
from special_references import CASES, Case

import gradtape as gt
from gradtape.plugins.scipy.plugin import building

__all__ = ["Measured", "derivatives", "measured", "of_scipy", "row_of"]

DIGITS = 60
#: Errors are relative to a value, or to the largest one where it is near a zero.
FLOOR = 1e-3


class Measured(NamedTuple):
    """The largest relative errors for an argument and a result of a function."""

    argument: str
    result: int
    #: Whether the reference is mpmath's; otherwise it is by differences of SciPy's values.
    exact: bool
    first: float
    #: None if the second derivative is refused.
    second: float | None


def of_scipy(name: str) -> Any:
    """Return SciPy's ufunc."""
    return getattr(scipy.special, name, None) if name[0] != "_" else getattr(private, name)


def row_of(name: str) -> Any:
    """Return the row of the plugin's table; ``jn`` is another name."""
    return building().FUNCTIONS["jv" if name == "jn" else name]


def differentiated(name: str) -> list[tuple[int, str]]:
    """Return the places and names of the floating arguments that have a derivative."""
    row, points = row_of(name), CASES[name].points()
    return [
        (i, argument)
        for i, argument in enumerate(row.formulas)
        if argument in row.differentiable and points[i].dtype.kind == "f"
    ]


def section(name: str, place: int, result: int, points: list[Any]) -> Callable[[Any], Any]:
    """Return one result of a function as a function of one argument."""
    function = of_scipy(name)

    def run(x: Any) -> Any:
        given = [*points[:place], x, *points[place + 1 :]]
        found = function(*given)
        return found[result] if function.nout > 1 else found

    return run


def derivatives(run: Callable[[Any], Any], x: Any) -> tuple[Any, Any | None]:
    """Return first and second derivatives by gradtape; None for one that is refused."""

    def slope(x: Any) -> Any:
        return gt.grad(lambda x: gt.sum(run(x)))(x)

    first = slope(gt.constant(x)).numpy()
    try:
        second = gt.grad(lambda x: gt.sum(slope(x)))(gt.constant(x)).numpy()
    except gt.errors.GradientError:
        second = None
    return first, second


def measured(name: str) -> Iterator[Measured]:
    """Give the errors for each argument and result of a function."""
    case = CASES[name]
    points = case.points()
    for place, argument in differentiated(name):
        for result, reference in enumerate(case.results or (case.reference,)):
            run = section(name, place, result, points)
            first, second = derivatives(run, points[place])
            if reference is None:
                right = by_differences(run, points[place])
            else:
                right = by_mpmath(reference, case, place)
            yield Measured(
                argument,
                result,
                reference is not None,
                error(first, right[1], right[0]),
                None if second is None else error(second, right[2], right[0]),
            )


def by_mpmath(reference: Any, case: Case, place: int) -> list[Any]:
    """Return values and derivatives of two orders."""
    points = case.points()
    rows = []
    with mp.workdps(DIGITS):
        for i in range(len(points[0])):
            given = [mp.mpf(x[i].item()) for x in points]

            def along(t: Any, given: list[Any] = given) -> Any:
                return reference(*given[:place], t, *given[place + 1 :])

            # central differences: truncation and rounding both leave half of the digits
            step = mp.mpf(10) ** (-(DIGITS // 4))
            low, middle, high = (along(given[place] + way * step) for way in (-1, 0, 1))
            found = (middle, (high - low) / (2 * step), (high - 2 * middle + low) / step**2)
            rows.append([float(mp.re(y)) for y in found])
    return list(np.array(rows).T)


def by_differences(run: Callable[[Any], Any], x: Any) -> list[Any]:
    """Return values and derivatives: the second one from differences of gradtape's first one."""
    step = 1e-3 * np.maximum(np.abs(x), 0.1)

    def difference(f: Callable[[Any], Any]) -> Any:
        near, far = f(x + step) - f(x - step), f(x + 2 * step) - f(x - 2 * step)
        return (8 * near - far) / (12 * step)

    first = difference(lambda x: np.asarray(run(x)))
    second = difference(lambda x: gt.grad(lambda x: gt.sum(run(x)))(gt.constant(x)).numpy())
    return [np.asarray(run(x)), first, second]


def error(found: Any, right: Any, values: Any) -> float:
    """Return the largest relative error; infinite for a wrong NaN."""
    scale = np.abs(right) + FLOOR * np.max(np.abs(right)) + 1e-14 * np.max(np.abs(values)) + 1e-300
    off = np.abs(found - right) / scale
    return float(np.max(np.where(np.isnan(off), np.inf, off)))


@cache
def all_names() -> list[str]:
    """Return the names of all functions with a derivative."""
    return [name for name, row in building().FUNCTIONS.items() if row.differentiable]
