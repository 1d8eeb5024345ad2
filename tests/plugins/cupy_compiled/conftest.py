"""A pretend CuPy whose kernels run on the processor, and what tests of other folders share."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cuda_on_cpu
import pretend_gpu
import pytest
from real_gpu import PLACES, placed

import gradtape as gt

sys.path[:0] = [str(Path(__file__).parents[2] / name) for name in ("executors", "ops")]


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a pretend CuPy, with ``seen``: what was launched and captured."""
    if cuda_on_cpu.MISSING:
        pytest.skip(cuda_on_cpu.MISSING)
    gt.random.set_seed(0)  # the generator that all share is on NumPy, if it was not made yet
    kept = vars(gt.registry().backends["cupy"])
    module: Any = pretend_gpu.make("cupy")
    module.seen = cuda_on_cpu.add_to(module)
    for name in ("_cupy", "_namespace"):
        kept.pop(name, None)
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr("gradtape.plugins.cupy.compiled.products.CublasHandle", module.seen.Handle)
    yield module
    for name in ("_cupy", "_namespace"):
        kept.pop(name, None)


@pytest.fixture(params=PLACES)
def either(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return the same, or a real GPU's CuPy, of which ``seen`` has counted nothing."""
    if request.param == "pretend":
        yield request.getfixturevalue("cupy")
        return
    with placed("real"):
        seen = types.SimpleNamespace(captures=None, graphs=None, products=None)
        yield types.SimpleNamespace(seen=seen)
