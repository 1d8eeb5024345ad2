"""What arranges elements, and windows, in steps: on CuPy as node by node, and as on NumPy."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(4, 6, 3))
IMAGES, FILTERS = DRAW.normal(size=(2, 7, 6, 3)), DRAW.normal(size=(3, 2, 3, 4))

ARRANGED: dict[str, Callable[[Any], Any]] = {
    "split": lambda x: [y * 2.0 for y in gt.split(x, 3, axis=1)],
    "split at places": lambda x: [gt.sum(y, axis=0) for y in gt.split(x, [1, 4], axis=-2)],
    "unstack": lambda x: sum(gt.unstack(x, axis=1)[::2]),
    "parts as they are": lambda x: [*gt.unstack(x, axis=2), *gt.split(x, 2)],
    "getitem": lambda x: [x[1] * 1.0, x[:, ::-2], x[..., None, 1] + 1.0, x[-1, 2:5, 0] * 3.0],
    "one element": lambda x: x[1, 2, 0] * 2.0,
    "concatenate": lambda x: gt.concatenate([x, x * 2.0, x[:, :1]], axis=1),
    "of views": lambda x: (
        gt.concatenate([gt.transpose(x), x.mT[::-1], x.mT] * 2, axis=-1)
        if x.shape[0] == x.shape[2]
        else gt.concatenate([x[::-1, 1:], x[:, ::2]], axis=1)
    ),
    "in a sum": lambda x: gt.sum(gt.concatenate([gt.exp(x), x], axis=0), axis=0),
    "in a product": lambda x: gt.concatenate([x[0], x[1] * 2.0], axis=0) @ gt.transpose(x[2]),
    "stack": lambda x: [gt.stack([x, x * 2.0, x], axis=a) for a in (0, 1, -1)],
    "stack of numbers": lambda x: gt.stack([x[0, 0, 0], x[1, 1, 1] * 2.0]),
    "truths": lambda x: gt.concatenate([x > 0, x < 1.0], axis=2),
    "half": lambda x: gt.concatenate([gt.cast(x, "float16")] * 2, axis=0) * 2.0,
    "again": lambda x: gt.concatenate(gt.split(gt.stack(gt.unstack(x)), 2, axis=1)[::-1], axis=1),
}


def of_cupy(program: Any, *xs: Any, how: str, times: int = 3) -> Any:
    with gt.backend("cupy"), gt.executor(how):
        f = gt.function(program)
        for _ in range(times):
            found = f(*map(gt.constant, xs))
        text = f.concrete_functions[0].explain()
    return [y.numpy() for y in found], text


def check(program: Callable[..., Any], *xs: Any, how: str, calls: str = "") -> None:
    """Check values and gradients against those of NumPy, and that no kernel of an op is called."""

    def both(*xs: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(xs)
            results = program(*xs)
            results = list(results) if isinstance(results, (list, tuple)) else [results]
            loss = sum(gt.sum(y * y * 0.5) for y in results if y.dtype == xs[0].dtype)
        slopes = [] if isinstance(loss, int) else tape.gradient(loss, list(xs))
        return [*results, *[g for g in slopes if g is not None]]

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found, text = of_cupy(both, *xs, how=how)
        wanted = [y.numpy() for y in both(*map(gt.constant, xs))]
    for mine, right in zip(found, wanted, strict=True):
        assert (mine.shape, mine.dtype) == (right.shape, right.dtype)
        near = 2e-2 if mine.dtype == np.float16 else 1e-10
        np.testing.assert_allclose(mine, right, rtol=near, atol=near / 100)
    assert "kernels made for these shapes" in text
    assert [line for line in text.splitlines() if "a call of" in line and calls not in line] == []
    if how == "cuda_graphs" and not calls:
        assert "a CUDA graph for each of 1 streams" in text


@pytest.mark.parametrize("how", ["default", "cuda_graphs"])
@pytest.mark.parametrize("name", ARRANGED)
def test_arranged(either: Any, name: str, how: str) -> None:
    # adding to a part of an array is a kernel of its op
    check(ARRANGED[name], X, how=how, calls="index_add")


SETTINGS = [
    {"strides": s, "padding": p, "dilations": d}
    for s, p, d in itertools.product((1, 2, (3, 1)), ("valid", "same", ((2, 3), (0, 1))), (1, 2))
    if s == 1 or d == 1
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_convolutions(either: Any, settings: dict[str, Any]) -> None:
    check(lambda x, w: gt.nn.conv(x, w, **settings), IMAGES, FILTERS, how="cuda_graphs")


def test_convolutions_in_one_and_three_dimensions(either: Any) -> None:
    x, w = DRAW.normal(size=(2, 9, 3)), DRAW.normal(size=(4, 3, 2))
    check(lambda x, w: gt.nn.conv(x, w, strides=2, padding="same"), x, w, how="default")
    x, w = DRAW.normal(size=(2, 4, 5, 3, 2)), DRAW.normal(size=(2, 3, 1, 2, 2))
    check(lambda x, w: gt.nn.conv(x, w, padding="same"), x, w, how="default")


def test_convolutions_and_pooling_in_half_precision(either: Any) -> None:
    def pooled(x: Any, w: Any) -> Any:
        return gt.nn.max_pool(gt.nn.conv(x, w, padding="same"), 2)

    x, w = IMAGES[:, :6].astype("float16"), FILTERS.astype("float16")
    check(pooled, x, w, how="cuda_graphs")


def test_gradients_of_gradients_of_convolutions(either: Any) -> None:
    def slopes(x: Any, w: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch([x, w])
            y = gt.sum(gt.tanh(gt.nn.conv(x, w, strides=2, padding="same")))
        return tape.gradient(y, [x, w])

    check(slopes, IMAGES, FILTERS, how="default")


def test_of_groups_the_kernel_is_called(either: Any) -> None:
    x, w = DRAW.normal(size=(2, 5, 5, 4)), DRAW.normal(size=(2, 2, 2, 4))
    check(lambda x, w: gt.nn.conv(x, w, groups=2), x, w, how="default", calls="conv")


@pytest.mark.parametrize("window", [(2, 2), (1, 3), (7, 6), (2, 1)])
@pytest.mark.parametrize("hard", [False, True], ids=["plain", "ties and nan"])
def test_largest_elements_of_windows(either: Any, window: tuple[int, int], hard: bool) -> None:
    sizes = [n * k for n, k in zip((2, 3), window, strict=True)]
    x = DRAW.normal(size=(2, *sizes, 3))
    if hard:
        x = np.round(x)
        x[0, 0, 0, 0], x[1, -1, -1, :] = np.nan, -np.inf
    check(lambda x: gt.nn.max_pool(x, window), x, how="cuda_graphs")


@pytest.mark.parametrize("settings", [{"strides": 1}, {"padding": "same"}])
def test_of_windows_that_overlap_or_reach_out_the_kernel_adds(
    either: Any, settings: dict[str, Any]
) -> None:
    def pooled(x: Any) -> Any:
        return gt.nn.max_pool(x, 2, **settings)

    check(pooled, DRAW.normal(size=(2, 5, 5, 3)), how="default", calls="max_pool_scatter")
