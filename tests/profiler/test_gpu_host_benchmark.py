"""The script that measures a GPU path's cost on the host counts calls, and leaves theirs out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cuda_on_cpu
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "benchmarks"
needs_gcc = pytest.mark.skipif(bool(cuda_on_cpu.MISSING), reason=str(cuda_on_cpu.MISSING))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    import gpu_host

    return gpu_host


@needs_gcc
def test_it_tells_what_steps_and_ops_ask_of_cupy(host: Any) -> None:
    told = "--small --rows mlp32 --seconds 0.02"
    found = subprocess.run(
        [sys.executable, str(FOLDER / "gpu_host.py"), *told.split()],
        capture_output=True,
        text=True,
        timeout=240,
        cwd="/",
        env={k: x for k, x in os.environ.items() if k != "PYTHONSAFEPATH"},
    )
    assert found.returncode == 0, found.stderr
    tables = found.stdout.split("\n\n")[1:]
    lines = [[row.strip("| ").split(" | ") for row in x.strip().splitlines()[2:]] for x in tables]
    steps, ops = ({title: cells for title, *cells in table} for table in lines if table)
    assert [title.rpartition(": ")[2] for title in steps][:2] == ["eager", "default"]
    asked = {title: dict(zip(host.COLUMNS, cells, strict=False)) for title, cells in ops.items()}
    assert asked["`x @ x`"]["products"] == "1"
    assert asked["`gt.reshape(x, (64,))`"]["products"] == "0"
    for cells in (*steps.values(), *ops.values()):
        assert len(cells) == 7
        float(cells[-1].replace(",", ""))


def test_the_time_of_calls_is_left_out(host: Any) -> None:
    recorder = host.Recorder()

    def slow(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    def busy() -> None:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass

    sleeping, spinning = recorder.wrap("slow", slow), recorder.wrap("busy", busy)

    def run() -> float:
        spinning()
        return sleeping(0.001)

    calls = recorder.record(run)
    assert calls == [("busy", None), ("slow", 0.001)]
    start = time.process_time()
    run()
    with_calls = time.process_time() - start
    with recorder.replaying(calls):
        assert run() == 0.001
        assert host._own(run, 0.01) < with_calls * 1e6 / 10


def test_calls_within_calls_are_not_counted_and_others_are_refused(host: Any) -> None:
    recorder = host.Recorder()
    inner = recorder.wrap("inner", lambda: 1)
    outer = recorder.wrap("outer", lambda: inner() + 1)
    calls = recorder.record(outer)
    assert calls == [("outer", 2)]
    with recorder.replaying(calls), pytest.raises(host.Differs, match="inner was called"):
        inner()
    assert inner() == 1


@needs_gcc
def test_a_graph_asks_for_less_than_its_kernels(host: Any) -> None:
    import networks

    found = {}
    for how in ("eager", "cuda_graphs"):
        with host.pretending() as (recorder, library):
            made = networks.gradtape(networks.TASKS["mlp32"][1], networks.Numbers(), "gpu", how)
            found[how] = host.cost(recorder, library, made.step, 0)
    assert found["eager"].asked["products"] == 5
    assert found["eager"].asked["graphs"] == found["cuda_graphs"].asked["products"] == 0
    assert found["cuda_graphs"].asked["graphs"] > 0
    assert found["cuda_graphs"].own < found["eager"].own


@needs_gcc
def test_every_call_of_the_library_is_seen(host: Any) -> None:
    with host.pretending() as (recorder, library):
        cupy = library.module
        x = cupy.array([[1.0, 2.0]])

        def run() -> None:
            y = cupy.exp(x + x * 2.0).reshape(-1)
            y[0] = cupy.linalg.norm(x.T @ x)
            cupy.add.at(y, cupy.array([0]), 1.0)
            float(y[1])

        names = [name for name, _ in recorder.record(run)]
    expected = "mul add exp reshape T matmul norm setitem array at getitem float".split()
    assert [name.rpartition(".")[2] for name in names] == expected


@needs_gcc
def test_a_step_that_asks_for_others_each_time_has_no_time(host: Any) -> None:
    with host.pretending() as (recorder, library):
        cupy, number = library.module, iter(range(100))
        x = cupy.array([1.0])
        calls = (cupy.exp, cupy.log, cupy.sin)
        found = host.cost(recorder, library, lambda: calls[next(number) % 3](x), 0)
    assert found.own is None
    assert host.line("step", found)[-1] == "calls differ"
