"""Pooling and convolutions on CuPy that have kernels of their own: values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from comparing import Case, check, with_slopes

import gradtape as gt

Draw = np.random.Generator


def _settings(draw: Draw, rank: int, pads: bool = True) -> dict[str, Any]:
    """Return random settings of windows that may overlap, leave gaps, or reach out."""
    ways: list[Any] = ["valid", "same"]
    ways += [tuple((int(a), int(b)) for a, b in draw.integers(0, 3, (rank, 2)))] * pads
    return {
        "strides": tuple(draw.integers(1, 4, rank).tolist()),
        "padding": ways[draw.integers(len(ways))],
    }


def _images(draw: Draw, rank: int, channels: int, dtype: str, hard: bool = False) -> np.ndarray:
    x = draw.normal(size=(2, *draw.integers(4, 8, rank), channels))
    if hard:  # ties, nan and infinity
        x = np.round(x)
        flat = x.reshape(-1)
        places = draw.permutation(flat.size)[:6]
        flat[places] = [np.nan, np.nan, np.inf, -np.inf, -np.inf, -0.0]
    return x.astype(dtype)


@pytest.mark.parametrize("pool", [gt.nn.max_pool, gt.nn.avg_pool])
@pytest.mark.parametrize("hard", [False, True], ids=["plain", "hard"])
def test_pooling(either: Any, pool: Callable[..., Any], hard: bool) -> None:
    draw = np.random.default_rng(1)
    cases = []
    for number in range(12):
        rank = 1 + number % 3
        dtype = ("float64", "float32", "float16")[number % 5 % 3]
        given = {"window": tuple(draw.integers(1, 4, rank).tolist()), **_settings(draw, rank)}
        x = _images(draw, rank, 3, dtype, hard)
        cases.append(Case(f"{given} {x.shape} {dtype}", partial(pool, **given), (x,)))
    check(either, cases)


@pytest.mark.parametrize("pool", [gt.nn.max_pool, gt.nn.avg_pool])
def test_pooling_of_views_and_second_gradients(either: Any, pool: Callable[..., Any]) -> None:
    x = np.random.default_rng(2).normal(size=(3, 6, 5, 2))
    check(either, [
        Case("views", lambda x: pool(gt.transpose(x)[::-1], 2, 1, "same"), (x,)),
        Case("second", with_slopes(lambda x: pool(gt.tanh(x), 3, 2, "same")), (x,)),
        Case("all", lambda x: pool(x, (6, 5)), (x,)),
    ])  # fmt: skip


def test_the_largest_integers_of_windows(either: Any) -> None:
    x = np.random.default_rng(3).integers(-128, 128, (2, 5, 4, 3)).astype("int8")
    pool = partial(gt.nn.max_pool, window=3, strides=2, padding="same")
    check(either, [Case("int8", pool, (x,)), Case("uint8", pool, (x.view("uint8"),))])


def test_adjacent_windows(either: Any) -> None:
    draw = np.random.default_rng(4)
    check(either, [
        Case(f"{window}", partial(gt.nn.max_pool, window=window),
             (_images(draw, 2, 3, "float64", True),))
        for window in ((2, 2), (1, 3), (4, 4), (2, 1))
    ])  # fmt: skip


#: Groups, their channels and their filters; the last ones are many enough for products.
GROUPS = [(2, 2, 1), (4, 1, 1), (3, 1, 2), (2, 3, 4), (2, 16, 17)]


@pytest.mark.parametrize(("groups", "each", "filters"), GROUPS)
def test_convolutions_of_groups(either: Any, groups: int, each: int, filters: int) -> None:
    draw = np.random.default_rng(5)
    cases = []
    for number in range(6):
        rank = 1 + number % 3
        dtype = "float32" if number == 4 else "float64"
        settings = _settings(draw, rank)
        if max(settings["strides"]) == 1 or number > 3:
            settings["dilations"] = tuple(draw.integers(1, 3, rank).tolist())
        window = draw.integers(1, 4, rank).tolist()
        x = _images(draw, rank, groups * each, dtype)
        w = draw.normal(size=(*window, each, groups * filters)).astype(dtype)
        run = partial(gt.nn.conv, groups=groups, **settings)
        cases.append(Case(f"{settings} {x.shape} {w.shape}", run, (x, w)))
    check(either, cases)


def test_convolutions_of_groups_in_other_ways(either: Any) -> None:
    draw = np.random.default_rng(6)
    x, w = draw.normal(size=(3, 9, 8, 4)), draw.normal(size=(3, 2, 4, 2))
    depth = partial(gt.nn.depthwise_conv, strides=2, padding="same")
    halves = x.astype("float16"), w.astype("float16")
    check(either, [
        Case("depthwise", depth, (x, w)),
        Case("second", with_slopes(depth), (x, w)),
        Case("half", depth, halves),
        Case("views", lambda x, w: depth(x[:, ::-1, ::2], w[::-1]), (x, w)),
        Case("vmap", gt.vmap(lambda x, w: gt.nn.conv(x[None], w)),
             (x, draw.normal(size=(3, 2, 2, 4, 2)))),
    ])  # fmt: skip


def test_convolutions_of_integers(either: Any) -> None:
    draw = np.random.default_rng(7)
    x, w = (draw.integers(-9, 9, shape) for shape in ((2, 6, 5, 4), (3, 2, 2, 6)))
    check(either, [
        Case(dtype, partial(gt.nn.conv, groups=2, strides=2, padding="same"),
             (x.astype(dtype), w.astype(dtype)))
        for dtype in ("int32", "int8", "uint16")
    ])  # fmt: skip


def test_transposed_convolutions(either: Any) -> None:
    draw = np.random.default_rng(8)
    cases = []
    for number in range(8):
        rank, settings = 1 + number % 3, _settings(draw, 1 + number % 3, pads=False)
        if number > 3:
            settings["dilations"] = tuple(draw.integers(1, 3, rank).tolist())
        x, window = _images(draw, rank, 2, "float64"), draw.integers(1, 4, rank).tolist()
        w = draw.normal(size=(*window, 3, 2))
        run = partial(gt.nn.conv_transpose, **settings)
        cases.append(Case(f"{settings} {x.shape} {w.shape}", run, (x, w)))
    check(either, cases)


def test_many_windows_share_the_gradient_of_filters(either: Any) -> None:
    draw = np.random.default_rng(9)
    x, w = draw.normal(size=(8, 20, 20, 3)), draw.normal(size=(3, 3, 3, 1))
    check(either, [Case("depthwise", partial(gt.nn.depthwise_conv, padding="same"), (x, w))])
