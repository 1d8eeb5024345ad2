"""What arranges elements, and windows, in steps: on CuPy as node by node, and as on NumPy."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

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
#: Those that pick with an index: the gradient adds to a part of an array, by a kernel of its op.
INDEXED = {
    *("getitem", "one element", "concatenate", "of views", "in a product", "stack of numbers"),
}


class Case(NamedTuple):
    """A program with its inputs, and the ops of which it may call the kernels."""

    label: str
    program: Callable[..., Any]
    xs: tuple[np.ndarray, ...]
    calls: str = ""


def with_slopes(program: Callable[..., Any]) -> Callable[..., Any]:
    """Return a program that gives its gradients too."""

    def both(*xs: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(xs)
            results = program(*xs)
            results = list(results) if isinstance(results, (list, tuple)) else [results]
            loss = sum(gt.sum(y * y * 0.5) for y in results if y.dtype == xs[0].dtype)
        slopes = [] if isinstance(loss, int) else tape.gradient(loss, list(xs))
        return [*results, *[g for g in slopes if g is not None]]

    return both


def differs(case: Case, f: Any, how: str) -> str:
    """Return what is not as on NumPy, or runs as it should not."""
    wanted = [y.numpy() for y in with_slopes(case.program)(*map(gt.constant, case.xs))]
    for _ in range(4):  # of graphs, the second or third one is the first
        found = [y.numpy() for y in f(*[gt.constant(x).to("cupy") for x in case.xs])]
        for mine, right in zip(found, wanted, strict=True):
            near = 2e-2 if right.dtype == np.float16 else 1e-10
            if (mine.shape, mine.dtype) != (right.shape, right.dtype) or not np.allclose(
                mine, right, rtol=near, atol=near / 100, equal_nan=True
            ):
                return f"{mine} for {right}"
    text = f.concrete_functions[0].explain()
    called = [line for line in text.splitlines() if "a call of" in line]
    as_planned = all(case.calls and case.calls in line for line in called)
    as_planned = as_planned and "kernels made for these shapes" in text
    graphed = "a CUDA graph for each of 1" in text
    wanted = how == "cuda_graphs" and not called and "launches no kernels" not in text
    return (
        "" if as_planned and (graphed or "no CUDA graph: " in text) and graphed >= wanted else text
    )


def check(either: Any, cases: Iterable[Case], how: str = "cuda_graphs") -> None:
    """Check values and gradients against those of NumPy, and how programs run."""
    wrong = []
    with gt.executor(how), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = [(case, gt.function(with_slopes(case.program))) for case in cases]
        either.seen.dry = True  # so that all kernels are compiled at once
        for case, f in made:
            f(*[gt.constant(x).to("cupy") for x in case.xs])
        either.seen.dry = False
        for case, f in made:
            found = differs(case, f, how)
            wrong += [f"{case.label}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("how", ["default", "cuda_graphs"])
def test_arranged(either: Any, how: str) -> None:
    check(either, (Case(name, f, (X,), "index_add" if name in INDEXED else "")
                   for name, f in ARRANGED.items()), how)  # fmt: skip


def test_convolutions(either: Any) -> None:
    settings = itertools.product((1, 2, (3, 1)), ("valid", "same", ((2, 3), (0, 1))), (1, 2))
    check(either, [
        Case(f"{s} {p} {d}", partial(gt.nn.conv, strides=s, padding=p, dilations=d),
             (IMAGES, FILTERS))
        for s, p, d in settings if s == 1 or d == 1
    ])  # fmt: skip


def test_convolutions_in_one_and_three_dimensions(either: Any) -> None:
    line = DRAW.normal(size=(2, 9, 3)), DRAW.normal(size=(4, 3, 2))
    volume = DRAW.normal(size=(2, 4, 5, 3, 2)), DRAW.normal(size=(2, 3, 1, 2, 2))
    check(either, [
        Case("1", partial(gt.nn.conv, strides=2, padding="same"), line),
        Case("3", partial(gt.nn.conv, padding="same"), volume),
    ])  # fmt: skip


def test_convolutions_in_other_ways(either: Any) -> None:
    def slopes(x: Any, w: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch([x, w])
            y = gt.sum(gt.tanh(gt.nn.conv(x, w, strides=2, padding="same")))
        return tape.gradient(y, [x, w])

    def pooled(x: Any, w: Any) -> Any:
        return gt.nn.max_pool(gt.nn.conv(x, w, padding="same"), 2)

    halves = IMAGES[:, :6].astype("float16"), FILTERS.astype("float16")
    grouped = DRAW.normal(size=(2, 5, 5, 4)), DRAW.normal(size=(2, 2, 2, 4))
    check(either, [
        Case("gradients of gradients", slopes, (IMAGES, FILTERS)),
        Case("half precision", pooled, halves),
        Case("groups", partial(gt.nn.conv, groups=2), grouped, "conv"),
    ])  # fmt: skip


def test_largest_elements_of_windows(either: Any) -> None:
    cases = []
    for window in ((2, 2), (1, 3), (7, 6), (2, 1)):
        x = DRAW.normal(size=(2, 2 * window[0], 3 * window[1], 3))
        hard = np.round(x)  # ties
        hard[0, 0, 0, 0], hard[1, -1, -1, :] = np.nan, -np.inf
        for label, given in (("plain", x), ("hard", hard)):
            cases.append(
                Case(f"{window} {label}", partial(gt.nn.max_pool, window=window), (given,))
            )
    for settings in ({"strides": 1}, {"padding": "same"}):  # windows overlap, or reach out
        pool = partial(gt.nn.max_pool, window=2, **settings)
        cases.append(
            Case(str(settings), pool, (DRAW.normal(size=(2, 5, 5, 3)),), "max_pool_scatter")
        )
    check(either, cases)
