"""First and second derivatives of elementwise ops are exact to 16 units of the last place."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

pytest.importorskip("mpmath")

from accuracy.points import points
from accuracy.references import ROWS
from accuracy.row import Row
from accuracy.ulps import LIMIT, errors_of, exact, gradients_alone, measured
from mpmath import mp, mpf

DOCS = Path(__file__).parents[2] / "docs"
#: Enough that each rule which loses digits fails; ``docs/make_accuracy_page.py`` takes more.
FEW = 300
#: Elementwise ops with a gradient that the table does not need.
OTHERS = {
    **dict.fromkeys(
        ("conj", "real", "imag", "angle", "identity", "cast", "stop_gradient", "where"),
        "it moves numbers or takes parts of complex ones",
    ),
    **dict.fromkeys(
        ("complex_expm1",), "it has complex numbers alone: tests/standard compares it with cmath"
    ),
    **dict.fromkeys(
        ("remainder", "fmod", "heaviside", "ldexp", "nextafter", "round", "round_to_bfloat16"),
        "its slope is a constant or a whole number, up to rounding of the quotient",
    ),
    **dict.fromkeys(
        ("zeros_like", "ones_like", "numbered_like", "trunc"), "its slope is 0 everywhere"
    ),
    **dict.fromkeys(
        ("kept_on_rank", "share_of_ranks", "sum_over_ranks", "value_of_rank"), "it moves numbers"
    ),
    "polygamma": "it is digamma's slope, which the table has",
}


@pytest.mark.parametrize("row", ROWS, ids=[row.call for row in ROWS])
def test_derivatives_are_exact_to_the_limit(row: Row) -> None:
    for _, dtype, worst in measured(row, FEW, ["gradtape"]):
        for order, (error, at) in enumerate(worst):
            assert error <= LIMIT, f"{row.call}, {dtype}, derivative {order}: {error:.3g} at {at}"


@pytest.mark.parametrize("row", ROWS, ids=[row.call for row in ROWS])
def test_first_derivatives_of_single_numbers_are_exact(row: Row) -> None:
    # among many numbers some need the general formulas, and an outer tape needs them always
    for dtype in (np.float32, np.float64):
        at = points(row, FEW, dtype)
        found = [gradients_alone(row, point) for point in zip(*at, strict=True)]
        for parts, computed in zip(exact(row, at), zip(*found, strict=True), strict=False):
            units = errors_of(*parts, np.array(computed))
            place = int(np.argmax(units))
            assert units[place] <= LIMIT, (row.call, np.dtype(dtype), [x[place] for x in at])


@pytest.mark.parametrize("row", ROWS, ids=[row.call for row in ROWS])
def test_references_are_derivatives_of_the_function(row: Row) -> None:
    at = [x[:3].tolist() for x in points(row, 400, np.float32) if (np.abs(x) < 30).any()]
    with mp.workdps(120):
        for place in zip(*at, strict=True):
            point = [mpf(x) for x in place]
            if any(abs(x) < 1e-3 or abs(x) > 30 for x in point):
                continue  # differences would cancel, or the function is constant there
            for forms, order in ((row.first, 1), (row.second, 2)):
                for number, form in enumerate(forms):
                    orders = _orders(len(point), order)[number]
                    step = mp.mpf(10) ** -30
                    expected = mp.diff(row.value, tuple(point), orders, h=step)
                    scale = max(abs(expected), mpf(10) ** -25)
                    assert abs(form(*point) - expected) < 1e-12 * scale, (place, orders)


def _orders(arguments: int, order: int) -> list[tuple[int, ...]]:
    if arguments == 1:
        return [(order,)]
    return [(1, 0), (0, 1)] if order == 1 else [(2, 0), (1, 1), (0, 2)]


def test_the_table_holds_all_elementwise_ops_with_gradients() -> None:
    found = {
        name
        for name, op in gt.registry().ops.items()
        if op.batch == "elementwise" and op.differentiable and "::" not in name
    }
    slopes = {name for name in found if name.endswith("_slope")}
    rows = {row.op for row in ROWS}
    parts = {"one_minus_square", "exp_minus_square"}  # factors of other slopes
    assert found - slopes - rows - parts == set(OTHERS) & found


def test_the_page_is_up_to_date() -> None:
    page: dict[str, Any] = runpy.run_path(str(DOCS / "make_accuracy_page.py"))
    assert page["PAGE"].read_text("utf-8") == page["page"](), "run docs/make_accuracy_page.py"


def test_stored_measurements_meet_the_limit() -> None:
    stored = json.loads((DOCS / "accuracy.json").read_text("utf-8"))["gradtape"]["rows"]
    assert list(stored) == [row.call for row in ROWS]
    for call, errors in stored.items():
        for dtype in ("float64", "float32"):
            assert max(map(float, errors[dtype])) <= LIMIT, (call, dtype)


def test_logarithms_of_small_slopes_are_finite() -> None:
    slope = gt.grad(gt.tanh)(gt.constant(20.0, "float64"))
    np.testing.assert_allclose(slope.numpy(), 1 / np.cosh(20.0) ** 2, rtol=1e-15)
    steep = gt.grad(lambda x: gt.log(gt.grad(gt.nn.sigmoid)(x)))(gt.constant(40.0, "float64"))
    np.testing.assert_allclose(steep.numpy(), -1.0, rtol=1e-15)
