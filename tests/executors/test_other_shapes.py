"""Graphs on other arrays than they were traced for, as batches of branches and loops run them."""

from __future__ import annotations

import numpy as np
import pytest
from executing import each_executor

import gradtape as gt


@each_executor
def test_a_body_runs_on_rows_that_vmap_makes_larger(name: str) -> None:
    rows = np.random.default_rng(0).random((4, 2, 3)).astype("float32")

    def total(row):
        return gt.scan(lambda c, x: (c * 0.5 + x, gt.sin(c + x)), gt.zeros(3), row)

    with gt.executor(name):
        found, shown = gt.vmap(total)(gt.constant(rows))
    for i, row in enumerate(rows):
        carry, ys = total(gt.constant(row))
        np.testing.assert_allclose(found[i].numpy(), carry.numpy(), rtol=1e-6)
        np.testing.assert_allclose(shown[i].numpy(), ys.numpy(), rtol=1e-6)


@each_executor
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
def test_an_executor_runs_arrays_of_other_dtypes_as_the_kernels_do(name: str, dtype: str) -> None:
    concrete = gt.function(lambda x: x * x + x).get_concrete_function(gt.TensorSpec([3], "float32"))
    run = gt.registry().executor(name)(concrete.graph)
    x = np.array([1, 2, 3], dtype)
    (found,) = run([x])
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, x * x + x)
