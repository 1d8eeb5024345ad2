"""Triangular systems with one matrix share the inverses of its blocks in plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from executing_plans import bits_by, explained

import gradtape as gt


def triangles(count: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix with different triangles, and right sides."""
    random = np.random.default_rng(count)
    a = 0.1 * random.normal(size=(count, count)) + np.eye(count)
    return a.astype(dtype), random.normal(size=(count, 3)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [5, 48, 70])
def test_all_triangles_have_the_same_bits(count: int, dtype: str) -> None:
    @gt.function
    def run(a: Any, b: Any) -> list[Any]:
        found = []
        for matrix in (a, gt.swapaxes(a, 0, 1), gt.transpose(a) * 2.0):
            for lower in (False, True):
                for unit in (False, True):
                    with gt.GradientTape() as tape:
                        tape.watch([a, b])
                        x = gt.linalg.solve_triangular(matrix, b, lower=lower, unit_diagonal=unit)
                    found += [x, tape.gradient(x, b)]
        return found

    args = triangles(count, dtype)
    assert bits_by("planned", run, *args) == bits_by("plain", run, *args)


def test_a_likelihood_inverts_the_blocks_of_its_factor_once() -> None:
    @gt.function
    def run(a: Any, b: Any) -> list[Any]:
        with gt.GradientTape() as tape:
            tape.watch(a)
            root = gt.linalg.cholesky(a)
            x = gt.linalg.solve_triangular(root, b, lower=True)
            y = gt.sum(x * x) + gt.sum(gt.log(gt.linalg.diagonal(root)))
        return [y, tape.gradient(y, a)]

    a, b = triangles(70, "float64")
    args = a @ a.T + np.eye(70), b
    assert bits_by("planned", run, *args) == bits_by("plain", run, *args)
    text = explained(run)
    assert ", inverses_of_blocks" in text  # without a number: once
    assert "4 solve_triangular" in text


def test_a_singular_matrix_raises() -> None:
    run = gt.function(lambda a, b: gt.linalg.solve_triangular(a, b))
    a, b = triangles(70, "float32")
    a[60, 60] = 0.0
    with gt.executor("planned"), pytest.raises(np.linalg.LinAlgError):
        run(a, b)
