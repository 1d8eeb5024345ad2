"""A pretend CuPy whose kernels run on the processor, with one device or two."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cuda_on_cpu
import pretend_gpu
import pytest

import gradtape as gt

sys.path.insert(0, str(Path(__file__).parents[2] / "ops"))


@pytest.fixture(params=[1, 2])
def cupy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a pretend CuPy, with ``seen``: what was launched."""
    if cuda_on_cpu.MISSING:
        pytest.skip(cuda_on_cpu.MISSING)
    gt.random.set_seed(0)  # the generator that all share is on NumPy, if it was not made yet
    module: Any = pretend_gpu.make("cupy", devices=request.param)
    module.seen = cuda_on_cpu.add_to(module)
    pretend_gpu.forget_cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr("gradtape.plugins.cupy.compiled.products.CublasHandle", module.seen.Handle)
    yield module
    pretend_gpu.forget_cupy()
