"""Running sums, positions and sorting on CuPy, in compiled programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparing import Case, check, with_slopes

import gradtape as gt

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(3, 7, 4))
TIES = np.round(X * 1.5)
HARD = TIES.copy()
HARD.reshape(-1)[[0, 9, 13, 40, 41, 70]] = [np.nan, np.nan, np.inf, -np.inf, np.nan, -0.0]

ALONG: dict[str, Callable[[Any, int], Any]] = {
    "cumsum": gt.cumsum,
    "cumprod": gt.cumprod,
    "cumulative_max": gt.cumulative_max,
    "cumulative_min": gt.cumulative_min,
    "argmax": gt.argmax,
    "argmin": gt.argmin,
    "argsort": gt.argsort,
    "sort": gt.sort,
    "prod": gt.prod,
    "flip": gt.flip,
}


@pytest.mark.parametrize("name", ALONG)
def test_all_axes_of_arrays_and_views(either: Any, name: str) -> None:
    f, cases = ALONG[name], []
    for axis in range(3):
        for label, x in (("plain", X), ("ties", TIES), ("hard", HARD)):
            cases.append(Case(f"{axis} {label}", lambda x, a=axis: f(x, a), (x,)))
        cases.append(Case(f"{axis} view", lambda x, a=axis: f(gt.transpose(x)[::-1], a), (X,)))
    cases.append(Case("half", lambda x: f(x, 1), (X.astype("float16"),)))
    cases.append(Case("all", lambda x: f(gt.reshape(x, (-1,)), 0), (X,)))
    check(either, cases)


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool"])
def test_integers(either: Any, name: str, dtype: str) -> None:
    x = (DRAW.integers(0, 2, (3, 5)) if dtype == "bool" else DRAW.integers(0, 100, (3, 5)) - 50
         if dtype[0] == "i" else DRAW.integers(0, 255, (3, 5))).astype(dtype)  # fmt: skip
    check(either, [Case(dtype, lambda x: ALONG[name](x, 1), (x,))])


def test_gradients_of_gradients(either: Any) -> None:
    check(either, [
        Case(name, with_slopes(lambda x, f=ALONG[name]: f(gt.tanh(x), 1)), (X,))
        for name in ("cumsum", "cumprod", "cumulative_max", "sort", "prod")
    ])  # fmt: skip


def test_long_lines_remain_calls(either: Any) -> None:
    x = DRAW.normal(size=(2, 5000))
    check(either, [Case("sort", gt.sort, (x,), "sort"), Case("sum", gt.cumsum, (x,), "cumsum")])
