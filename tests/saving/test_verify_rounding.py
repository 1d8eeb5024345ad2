"""A file verifies on a machine that rounds differently, cancelling gradients included."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gradtape as gt

# In this process: with the kernel that a test has put there.
HERE = {"max_memory": math.inf, "max_seconds": math.inf}


@pytest.fixture
def other_rounding():
    """Give matmul a kernel that rounds once, as another machine's might."""

    def matmul(x, y):
        return np.matmul(x.astype("float64"), y.astype("float64")).astype(x.dtype)

    kernels = gt.hookimpl(lambda: {("matmul", "numpy"): matmul})
    plugin = SimpleNamespace(gradtape_kernels=kernels)
    yield lambda: gt.register_plugin(plugin, "other-rounding")
    gt.unregister_plugin("other-rounding")


def test_a_gradient_that_cancels_is_measured_by_the_others(tmp_path: Path, other_rounding) -> None:
    # BatchNorm takes the mean away, so the gradient of the bias before it is rounding alone
    model = gt.layers.Sequential([gt.layers.Dense(16), gt.layers.BatchNorm(), gt.layers.Dense(3)])
    model(np.ones((2, 8), "float32"))
    gt.save(model, tmp_path / "a.h5")
    assert all(check.exact for check in gt.saving.verify(tmp_path / "a.h5", **HERE).checks)
    other_rounding()
    report = gt.saving.verify(tmp_path / "a.h5", **HERE)
    assert report.ok, report.table()
    assert not all(check.exact for check in report.checks)
    assert "close" in report.table()
