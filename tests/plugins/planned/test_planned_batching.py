"""Loops: products that run as one change the last digits of sums at most."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.plugins.planned import batching

# a plan that fails is replaced by the plain executor, with a warning
pytestmark = pytest.mark.filterwarnings("error")
EXECUTORS = ["planned", *(["fused"] if importlib.util.find_spec("llvmlite") else [])]

#: Cells: the next state from the last one, the rows of a step, and weights.
CELLS: dict[str, Callable[..., Any]] = {
    "simple": lambda h, x, w, u, b: gt.tanh(x @ w[:, : h.shape[1]] + h @ u[:, : h.shape[1]]),
    "gates": lambda h, x, w, u, b: _gated(h, x @ w + h @ u + b),
    "residual": lambda h, x, w, u, b: h + gt.tanh(h @ u + b)[:, : h.shape[1]],
    "tied": lambda h, x, w, u, b: gt.tanh(gt.tanh(h @ u + b) @ u.T),
    "rows": lambda h, x, w, u, b: gt.tanh(h + gt.concatenate([x, x], axis=1)[:, : h.shape[1]]),
}


def _gated(h: Any, z: Any) -> Any:
    i, f, g = gt.split(z, 3, axis=1)
    return gt.nn.sigmoid(f) * h + gt.nn.sigmoid(i) * gt.tanh(g)


def _program(cells: list[str], order: int, by_scan: bool = False) -> Callable[..., Any]:
    """Return a program of several steps, with its gradients of first or second order."""

    def first(x: Any, w: Any, u: Any, b: Any) -> tuple[Any, list[Any]]:
        with gt.GradientTape() as tape:
            tape.watch((x, w, u, b))
            h = gt.tanh(gt.concatenate([x[:, 0], x[:, 1]], axis=1))
            if by_scan:
                rows = gt.stack([x[:, t % x.shape[1]] for t in range(len(cells))])
                h, sums = gt.scan(lambda h, row: _steps(cells[:2], h, row, w, u, b), h, rows)
            for t, name in enumerate(() if by_scan else cells):
                h = CELLS[name](h, x[:, t % x.shape[1]], w, u, b)
            loss = gt.sum(gt.square(h)) + (gt.sum(sums) if by_scan else 0.0)
        return loss, tape.gradient(loss, (x, w, u, b), unconnected_gradients="zero")

    def second(x: Any, w: Any, u: Any, b: Any) -> tuple[Any, list[Any]]:
        with gt.GradientTape() as tape:
            tape.watch((x, w, u, b))
            loss, found = first(x, w, u, b)
            again = sum(gt.sum(gt.square(g)) for g in found)
        return loss, [*found, *tape.gradient(again, (x, w, u, b), unconnected_gradients="zero")]

    return first if order == 1 else second


def _steps(cells: list[str], h: Any, row: Any, *weights: Any) -> tuple[Any, Any]:
    """Return the carry after a step of a scan that runs several cells."""
    for name in cells:
        h = CELLS[name](h, row, *weights)
    return h, gt.sum(h)


def _arrays(random: Any, batch: int, width: int, dtype: str) -> list[Any]:
    shapes = [(batch, 4, width), (width, 6 * width), (2 * width, 6 * width), (6 * width,)]
    return [gt.constant((random.normal(size=s) / width).astype(dtype)) for s in shapes]


def _agree(found: Any, right: Any, digits: float) -> None:
    pairs = zip([found[0], *found[1]], [right[0], *right[1]], strict=True)
    for mine, theirs in pairs:
        size = np.abs(theirs.numpy()).max() + 1e-30
        np.testing.assert_allclose(mine.numpy() / size, theirs.numpy() / size, rtol=0, atol=digits)


@pytest.mark.parametrize("by_scan", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_agree_with_the_plain_executor(seed: int, by_scan: bool) -> None:
    random = np.random.default_rng(seed)
    cells = [str(random.choice([*CELLS])) for _ in range(random.integers(3, 9))]
    if seed % 2:
        cells = [cells[0]] * len(cells)
    batch, width = int(random.choice([1, 3, 16, 20])), int(random.choice([1, 2, 5]))
    if seed % 4 == 3:  # large enough for the quick functions of sums
        batch = width = 32
    dtype, digits = (("float64", 1e-13), ("float32", 2e-6))[seed % 3 == 0]
    given = _arrays(random, batch, width, dtype)
    for order in (1, 2):
        program = gt.function(_program(cells, order, by_scan))
        with gt.executor("plain"):
            right = program(*given)
        for name in EXECUTORS:
            with gt.executor(name):
                for _ in range(3):
                    found = program(*given)
                _agree(found, right, digits)
                again = program(*given)
                assert all(map(_same, (found[0], *found[1]), (again[0], *again[1])))


def _same(a: Any, b: Any) -> bool:
    return a.numpy().tobytes() == b.numpy().tobytes()


def _explained(order: int = 1) -> str:
    given = _arrays(np.random.default_rng(0), 16, 4, "float32")
    program = gt.function(_program(["gates"] * 6, order), executor="planned")
    program(*given)
    return str(program.explain(*given))


def test_each_weight_has_one_product_for_all_steps() -> None:
    # 10 to run 6 steps on 4 inputs, 12 for the gradients of both, and one for each weight
    assert " 24 matmul" in _explained()
    assert "2 transposed_copy" in _explained()


def test_few_rows_are_kept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "_BYTES", 3 * 16 * 24 * 4)
    assert " 26 matmul" in _explained()


def test_a_term_that_is_returned_remains() -> None:
    def terms(x: Any, w: Any) -> list[Any]:
        with gt.GradientTape(persistent=True) as tape:
            tape.watch(w)
            parts = [gt.sum(gt.tanh(x[i] @ w)) for i in range(4)]
        found = [tape.gradient(part, w) for part in parts]
        return [found[0] + found[1] + found[2] + found[3], found[2]]

    given = [gt.constant(np.random.default_rng(1).normal(size=s)) for s in ((4, 20, 3), (3, 5))]
    right, kept = gt.function(terms, executor="plain")(*given)
    total, term = gt.function(terms, executor="planned")(*given)
    np.testing.assert_allclose(total.numpy(), right.numpy(), rtol=1e-12)
    assert _same(term, kept)
