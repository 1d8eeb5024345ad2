"""The script for machines with a GPU runs: on the processor, over a pretend GPU, and with none."""

from __future__ import annotations

import os
import subprocess
import sys
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
    ours = ("gradtape eager", "gradtape default", "PyTorch CUDA graph")
    found = run(*told.split(), "--contenders", *ours, "--out", str(report))
    assert found.returncode == 0, found.stderr
    text = report.read_text()
    assert text == found.stdout
    assert "3 ops and functions" in text
    assert "left out: PyTorch CUDA graph: " in text
    for title in ("MLP 16-32-10", "convolutions 4-8", "LSTM of 8", "VAE 64", "attention", "normal"):
        assert text.count(title) == 2  # its table, and the last one
    assert text.count("\n| gradtape default |") == 8


def test_rows_run_with_all_kinds_of_numbers() -> None:
    told = "--device cpu --rows mlp32 attention draws --rounds 1 --slice 0.01 --settle 0.01"
    ours = ("gradtape eager", "gradtape default")
    told += " --dtypes tf32 float16 bfloat16 --checks"
    found = run(*told.split(), "--contenders", *ours)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("normal numbers") == 0  # they have no products
    for dtype in ("float16", "bfloat16"):
        assert found.stdout.count(f"batch 32, {dtype} | µs") == 1
        assert found.stdout.count(f"batch 4, {dtype} | µs") == 1
    assert "its losses are" not in found.stdout


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


class Pool:
    """A pool of memory, as CuPy's."""

    def __init__(self, size: int) -> None:
        self.size, self.cycle = size, [self]

    def total_bytes(self) -> int:
        return self.size

    def free_all_blocks(self) -> None:
        pass


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script as a module, and a pretend CuPy."""
    pretend_gpu.forget_cupy()
    module = pretend_gpu.make("cupy")
    pool = Pool(2**20)
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


class Pretend:
    """A contender's process: what it answers, or that it does not."""

    begun: list[str]

    def __init__(self, name: str, *rest: Any) -> None:
        self.name, self.told = name, None
        type(self).begun.append(name)

    def tell(self, what: Any) -> None:
        self.told = what

    def answer(self, seconds: float | None = None) -> Any:
        told, self.told = self.told, None
        if self.name == "slow" and told is not None:
            from contest import Missing

            raise Missing("no answer came")
        return 1e-5 if told == "asking" else {"losses": [1.0], "first": 1.0, "peak": 1.0}

    def slice(self, seconds: float) -> float:
        return 1e-3

    def end(self) -> None:
        pass


def options(gpu: Any, monkeypatch: pytest.MonkeyPatch, told: str) -> Any:
    monkeypatch.setattr(sys, "argv", ["gpu.py", *told.split()])
    return gpu.arguments()


def test_a_contender_that_does_not_answer_is_started_again(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Pretend.begun, said = [], []
    monkeypatch.setattr(benchmark, "Process", Pretend)
    chosen = options(benchmark, monkeypatch, "--rounds 2 --device cpu")
    chosen.contenders = ["quick", "slow"]
    contest = benchmark.Contest(chosen, "", said.append)
    assert Pretend.begun == ["quick", "slow"]
    outcome = contest.row("mlp32", "float32", 60.0)
    assert list(outcome.seconds) == ["quick"]
    assert "slow: no answer came" in said[0]
    assert Pretend.begun == ["quick", "slow", "slow"]
    assert [process.name for process in contest.running] == ["quick", "slow"]


def test_checks_leave_time_for_the_steps(benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lefts: list[float] = []

    def checked(name: str, device: str, left: float) -> tuple[str, str]:
        lefts.append(left)
        return "passed", ""

    monkeypatch.setattr(benchmark, "checked", checked)
    monkeypatch.setattr(benchmark, "contest", lambda *rest: None)
    told = "--device cpu --minutes 10 --for-steps 4 --checks doctor"
    benchmark.main(options(benchmark, monkeypatch, told))
    benchmark.main(options(benchmark, monkeypatch, told + " --rows"))
    assert 350 < lefts[0] <= 360
    assert 590 < lefts[1] <= 600


def test_memory_is_that_of_all_pools(benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class OwnPool(Pool):
        pass

    shared = OwnPool(3)
    monkeypatch.setitem(vars(sys.modules["cupy"]), "get_default_memory_pool", lambda: shared)
    memory, graph = benchmark.Memory("gradtape", "gpu"), OwnPool(40)
    assert memory.peak() == shared.size + graph.size
