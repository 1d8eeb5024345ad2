"""Programs on CuPy compared with those on NumPy: values, gradients, and how they run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt

__all__ = ["Case", "check", "with_slopes"]


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
    right_ones = [y.numpy() for y in with_slopes(case.program)(*map(gt.constant, case.xs))]
    for _ in range(4):  # of graphs, the second or third one is the first
        found = [y.numpy() for y in f(*[gt.constant(x).to("cupy") for x in case.xs])]
        for mine, right in zip(found, right_ones, strict=True):
            near = {np.dtype("float16"): 2e-2, np.dtype("float32"): 1e-3}.get(right.dtype, 1e-10)
            if (mine.shape, mine.dtype) != (right.shape, right.dtype) or not np.allclose(
                mine, right, rtol=near, atol=near / 100, equal_nan=True
            ):
                return f"{mine} for {right}"[:2000]
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
            # another function: constants of plans are computed by kernels, which do not run now
            gt.function(f.python_function)(*[gt.constant(x).to("cupy") for x in case.xs])
        either.seen.dry = False
        for case, f in made:
            found = differs(case, f, how)
            wrong += [f"{case.label}: {found}"] if found else []
    assert not wrong, "\n".join(wrong)
