"""The script for machines with a GPU runs: on the processor, over a pretend GPU, and with none."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pretend_gpu
import pytest

import gradtape as gt

FOLDER = Path(__file__).parents[2] / "docs" / "benchmarks"


def run(*told: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(FOLDER / "gpu.py"), *told],
        capture_output=True,
        text=True,
        timeout=240,
        cwd="/",
        env={k: x for k, x in os.environ.items() if k != "PYTHONSAFEPATH"},
    )


def test_a_quick_run_on_the_processor_compares_and_tells(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    told = "--device cpu --dtypes float32 --rounds 2 --slice 0.01 --settle 0.01 --checks backend"
    ours = ("gradtape eager", "gradtape compiled", "gradtape CUDA graph")
    found = run(*told.split(), "--contenders", *ours, "--out", str(report))
    assert found.returncode == 0, found.stderr
    text = report.read_text()
    assert text == found.stdout
    assert "3 ops and functions" in text
    assert "left out: gradtape CUDA graph: a CUDA graph needs a GPU" in text
    for title in ("MLP 16-32-10", "convolutions 4-8", "LSTM of 8"):
        assert text.count(title) == 2  # its table, and the last one
    assert text.count("\n| gradtape compiled |") == 5


@pytest.mark.skipif(
    gt.registry().backends["cupy"].unavailable() is None, reason="there is a GPU here"
)
def test_without_a_gpu_it_says_so_and_what_is_missing() -> None:
    found = run("--checks", "demo")
    assert found.returncode == 1
    assert "Nothing was run on a GPU: backend 'cupy'" in found.stdout
    assert "`gradtape doctor`: passed" in found.stdout
    assert "µs" not in found.stdout


def test_it_runs_all_files_that_have_tests_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import gpu_checks

    run = {f for part in gpu_checks.WITH_GPU for f in gpu_checks.TESTS.glob(part)}
    marked = ("from " + "real_gpu", "mark." + "gpu")
    for path in gpu_checks.TESTS.rglob("test_*.py"):
        if any(word in path.read_text(encoding="utf-8") for word in marked):
            assert path in run or path.parent in run, path


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script as a module, and a pretend CuPy."""
    pretend_gpu.forget_cupy()
    module = pretend_gpu.make("cupy")
    pool = types.SimpleNamespace(free_all_blocks=lambda: None, total_bytes=lambda: 2**20)
    vars(module)["get_default_memory_pool"] = lambda: pool
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.syspath_prepend(str(FOLDER))
    import gpu

    yield gpu
    pretend_gpu.forget_cupy()


def test_a_contender_runs_on_a_pretend_gpu(benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    device = sys.modules["cupy"].cuda.Device
    waits: list[int] = []
    monkeypatch.setattr(device, "synchronize", lambda self: waits.append(1), raising=False)
    monkeypatch.setattr(device.__init__, "__defaults__", (0,))
    timer, told = benchmark.begin("gradtape eager", "gpu", "mlp32", "float32", 0.01)
    assert told["peak"] == 1.0
    assert len(told["losses"]) == 4
    assert told["losses"] == sorted(told["losses"], reverse=True)
    before = len(waits)
    timer.slice(0.01)
    assert len(waits) > before
