"""Threads that share the work on large arrays change no bit of the results."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.base import pool
from gradtape.plugins.planned.writing import groups
from gradtape.training.optimizers import updates

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let three threads share even small arrays, and blocks of them."""
    monkeypatch.setattr(pool._Numbers, "default", 3)
    monkeypatch.setattr(pool, "GRAIN", 2**12)
    sizes = {"_LARGE": 2**11, "_BLOCK": 2**9, "_SHARED_LEAST": 2**10, "_SHARED_MOST": 2**11}
    for name, size in sizes.items():
        monkeypatch.setattr(groups, name, size)
    monkeypatch.setattr(updates, "SHARED_BLOCK", 2**15)
    before = pool.limit_pool(None)
    yield
    pool.limit_pool(before)


def with_one_thread(function: Callable[[], Any]) -> Any:
    before = pool.limit_pool(1)
    try:
        return function()
    finally:
        pool.limit_pool(before)


# -- the pool --------------------------------------------------------------------------------------


def wait_for_the_pool() -> None:
    """Wait until all threads of the pool are asleep: one that is not yet would not be used."""
    end = time.monotonic() + 30
    while len(pool._now.pool._idle) < len(pool._now.pool._all):
        assert time.monotonic() < end, "a thread was lost"
        time.sleep(0.001)


@pytest.mark.parametrize("length", [1, 2, 3, 63, 64, 65, 128, 1000])
@pytest.mark.parametrize("multiple", [1, 2, 64])
def test_parts_cover_all_positions_once(length: int, multiple: int) -> None:
    found = pool.parts(length, 10**9, multiple)
    assert [x for a, z in found for x in range(a, z)] == list(range(length))
    assert len(found) == max(1, min(3, length // multiple))
    assert all(a % multiple == 0 for a, _ in found)
    if len(found) > 1:
        assert all(z - a >= multiple for a, z in found)


def test_little_work_is_one_part() -> None:
    assert pool.parts(1000, 2**13 - 1) == [(0, 1000)]
    assert len(pool.parts(1000, 2**13)) == 2
    assert len(pool.parts(1000, 10**9, most=2)) == 2


def test_parts_run_in_several_threads_and_the_first_in_the_callers() -> None:
    seen = {}
    started = threading.Barrier(3, timeout=30)

    def run(a: int, z: int) -> None:
        started.wait()
        seen[a] = threading.get_ident()

    wait_for_the_pool()
    pool.in_parallel(run, pool.parts(30, 10**9))
    assert sorted(seen) == [0, 10, 20]
    assert len(set(seen.values())) == 3
    assert seen[0] == threading.get_ident()


def test_the_error_of_the_first_part_is_raised() -> None:
    started = threading.Barrier(3, timeout=30)

    def run(a: int, z: int) -> None:
        started.wait()
        if a:
            raise KeyError(a)

    wait_for_the_pool()
    with pytest.raises(KeyError, match="10"):
        pool.in_parallel(run, pool.parts(30, 10**9))


def test_parts_see_the_callers_context() -> None:
    variable: ContextVar[int] = ContextVar("variable", default=0)
    variable.set(7)
    seen = []
    zero = np.zeros(4)

    def run(a: int, z: int) -> None:
        seen.append(variable.get())
        np.divide(zero, zero)

    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        pool.in_parallel(run, pool.parts(30, 10**9))
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("error")
        pool.in_parallel(run, pool.parts(30, 10**9))
    assert set(seen) == {7}


def test_parts_of_parts_run_in_their_thread() -> None:
    seen = []

    def inner(a: int, z: int) -> None:
        seen.append(threading.get_ident())

    def outer(a: int, z: int) -> None:
        assert pool.parts(30, 10**9) == [(0, 30)]
        seen.clear()
        pool.in_parallel(inner, [(0, 1), (1, 2)])

    pool.in_parallel(outer, pool.parts(30, 10**9))
    assert len(set(seen)) == 1
    assert len(pool.parts(30, 10**9)) == 3


def test_several_callers_at_once_all_finish() -> None:
    x = np.arange(30_000.0)
    wrong = []

    def caller() -> None:
        out = np.empty_like(x)
        for _ in range(50):
            out[:] = 0
            pool.in_parallel(lambda a, z: np.exp(-x[a:z], out[a:z]), pool.parts(len(x), 10**9))
            if not np.array_equal(out, np.exp(-x)):
                wrong.append(1)

    callers = [threading.Thread(target=caller) for _ in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(60)
    assert not wrong
    assert not any(thread.is_alive() for thread in callers)


def test_without_new_threads_the_caller_computes_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*given: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(pool._now, "pool", pool._Pool())
    monkeypatch.setattr(pool, "_Worker", refuse)
    seen: list[int] = []
    pool.in_parallel(lambda a, z: seen.append(a), pool.parts(30, 10**9))
    assert seen == [0, 10, 20]


class Stopped(BaseException):
    """What a signal's handler raises, as KeyboardInterrupt."""


def test_an_interrupt_anywhere_leaves_no_part_running() -> None:
    begun: list[int] = []
    ended: list[int] = []
    zeros = np.zeros(20_000)

    def run(a: int, z: int) -> None:
        begun.append(a)
        np.exp(zeros)
        ended.append(a)

    def stopped_at(number: int) -> bool:
        passed = 0

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal passed
            frame.f_trace_opcodes = True
            if event == "opcode" and frame.f_code.co_filename == pool.__file__:
                passed += 1
                if passed == number:
                    sys.settrace(None)
                    raise Stopped
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            pool.in_parallel(run, [(0, 1), (1, 2), (2, 3)])
        except Stopped:
            return True
        finally:
            sys.settrace(before)
        return False

    number = 1
    while stopped_at(number):
        now = len(begun)
        assert len(ended) == now
        assert not pool._here.inside
        number += 1
    assert number > 100
    assert len(begun) == len(ended) >= 3
    together = threading.Barrier(3, timeout=30)
    wait_for_the_pool()
    pool.in_parallel(lambda a, z: together.wait() and None, [(0, 1), (1, 2), (2, 3)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    code = """
import os
from gradtape.core.base import pool
from gradtape.plugins.planned.writing import groups
from gradtape.training.optimizers import updates
pool._Numbers.default = 2
def count():
    import threading
    seen, both = set(), threading.Barrier(2, timeout=30)
    def run(a, z):
        both.wait()
        seen.add(threading.get_ident())
    pool.in_parallel(run, [(0, 1), (1, 2)])
    return len(seen)
assert count() == 2
child = os.fork()
if not child:
    assert pool._Numbers.default is None  # counted anew
    pool._Numbers.default = 2
    os._exit(0 if count() == 2 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60, cwd="/")


@pytest.mark.parametrize(
    ("told", "count"),
    [("2", 2), ("4,2", 4), (" 3 ", 3), ("", 8), ("0", 8), ("-1", 8), ("many", 8), ("64", 8)],
)
def test_the_number_of_threads_follows_the_environment(
    told: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool._Numbers, "default", None)
    monkeypatch.setattr(pool, "cores", lambda: list(range(8)))
    monkeypatch.setattr(pool, "quota", lambda: None)
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert pool.threads() == count
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert pool.threads() == count  # read once


@pytest.mark.parametrize(("share", "count"), [(None, 8), (2.5, 2), (0.5, 1), (20.0, 8)])
def test_the_number_of_threads_follows_the_quota(
    share: float | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool._Numbers, "default", None)
    monkeypatch.setattr(pool, "cores", lambda: list(range(8)))
    monkeypatch.setattr(pool, "quota", lambda: share)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert pool.threads() == count


def test_a_quota_of_either_version_is_read(tmp_path: Path) -> None:
    assert pool.quota(str(tmp_path)) is None
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("150000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert pool.quota(str(tmp_path)) == 1.5
    (tmp_path / "cpu.max").write_text("300000 100000\n")
    assert pool.quota(str(tmp_path)) == 3.0
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert pool.quota(str(tmp_path)) is None


# -- programs --------------------------------------------------------------------------------------


STEPS: list[Callable[..., Any]] = [
    lambda x, y: x * y,
    lambda x, y: gt.exp(-gt.abs(x)) + y,
    lambda x, y: gt.tanh(x) - y,
    lambda x, y: gt.where(x > y, x, 0.5 * y),
    lambda x, y: x - gt.mean(x, axis=0),
    lambda x, y: y - gt.max(y, axis=-1, keepdims=True),
    lambda x, y: x / (1.0 + gt.sum(y * y, axis=-1, keepdims=True)),
    lambda x, y: gt.cast(gt.cast(x, "float32"), x.dtype) * y,
    lambda x, y: gt.nn.softmax(x + y),
    lambda x, y: gt.concat([x, y], 0)[::2],
    lambda x, y: x + gt.sum(gt.nn.sigmoid(y), axis=(0,)),
    lambda x, y: gt.minimum(x, y) ** 2,
    lambda x, y: x - y / gt.sum(gt.abs(y)),
    lambda x, y: x * gt.sum(y, keepdims=True) - y,
]
SHAPES = [(700,), (64, 40), (7, 600), (300, 5), (16, 6, 30), (1, 3000), (512, 16)]


def program(seed: int) -> tuple[Callable[..., Any], list[Any]]:
    """Return a random function of two arrays and its arguments."""
    rng = np.random.default_rng(seed)
    shape = SHAPES[rng.integers(len(SHAPES))]
    steps = [STEPS[i] for i in rng.integers(len(STEPS), size=6)]
    dtype = ["float32", "float64"][rng.integers(2)]
    arrays = [gt.constant(rng.standard_normal(shape).astype(dtype)) for _ in range(2)]

    def function(x: Any, y: Any) -> Any:
        values = [x, y]
        for step in steps:
            z = step(values[-1], values[-2])
            values.append(z if z.shape == x.shape else values[-2])
        return values[2:]

    def with_gradients(x: Any, y: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch([x, y])
            values = function(x, y)
            loss = sum(gt.sum(v * v, axis=-1) for v in values)
        return [*values, *tape.gradient(loss, [x, y])]

    return with_gradients, arrays


def bits(values: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in values]


@pytest.mark.parametrize("executor", [None, "plain", "planned", "fused"])
@pytest.mark.parametrize("seed", range(12))
def test_programs_give_the_same_bits_with_any_number_of_threads(
    executor: str | None, seed: int
) -> None:
    if executor == "fused":
        pytest.importorskip("llvmlite")
    function, arrays = program(seed)

    def run(first: int) -> list[bytes]:
        """Plan with a number of threads, and run with others."""
        pool.limit_pool(first)
        f = function if executor is None else gt.function(function, executor=executor)
        found = [bits(f(*arrays))]
        for count in (1, 2, 3):
            pool.limit_pool(count)
            found.append(bits(f(*arrays)))
        assert all(x == found[0] for x in found)
        return found[0]

    results = [run(count) for count in (1, 2, 3)]
    assert results[0] == results[1] == results[2]
    if executor is not None:
        plain = gt.function(function, executor="plain")
        assert results[0] == with_one_thread(lambda: bits(plain(*arrays)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_sums_of_all_elements_are_those_of_numpy(dtype: str) -> None:
    f = gt.function(lambda x: gt.sum(x), executor="planned")
    rng = np.random.default_rng(3)
    for size in (255, 256, 1023, 1024, 1025, 5_000, 30_011, 100_000):
        x = gt.constant(rng.standard_normal(size).astype(dtype))
        expected = with_one_thread(lambda x=x: bits([f(x)]))
        assert bits([f(x)]) == expected
        if dtype != "float16":
            assert bits([np.add.reduce(x.numpy())]) == expected


def test_plans_of_large_arrays_use_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    real = pool._Job.work
    monkeypatch.setattr(pool._Job, "work", lambda self: (used.append(1), real(self))[1])
    x = gt.constant(np.random.default_rng(0).standard_normal((2048, 256)).astype("float32"))
    f = gt.function(lambda x: gt.exp(x) * x + gt.tanh(x), executor="planned")
    f(x)
    assert used


def test_a_result_that_overlaps_with_its_input_is_computed_at_once() -> None:
    @gt.function(executor="planned")
    def f(x: Any) -> Any:
        y = gt.sqrt(x)
        z = y + gt.transpose(y)
        return gt.sum(z @ z, axis=0)

    x = gt.constant(np.random.default_rng(0).random((128, 128)))
    expected = with_one_thread(lambda: bits([f(x)]))
    for _ in range(20):
        assert bits([f(x)]) == expected


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(100,), (100, 7), (100, 3, 5), (0, 7)])
def test_many_rows_are_taken_as_few_are(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    low = 0 if dtype == "uint8" else -len(x)
    indices = np.random.default_rng(1).integers(low, max(1, len(x)), (40, 60)).astype(dtype)
    if not len(x):
        with pytest.raises(IndexError):
            gt.take(x, indices, axis=0)
        return
    assert np.array_equal(gt.take(x, indices, axis=0).numpy(), np.take(x, indices, 0))
    with pytest.raises(IndexError):
        gt.take(x, indices.astype("int64") + len(x), axis=0)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
@pytest.mark.parametrize("executor", [None, "planned"])
def test_optimizers_give_the_same_bits(name: str, executor: str | None) -> None:
    shapes = [(300, 200), (200,), (200, 50), (7,)]

    def train() -> list[bytes]:
        rng = np.random.default_rng(0)
        variables = [gt.Variable(rng.standard_normal(s).astype("float32")) for s in shapes]
        optimizer = getattr(gt.training, name)(0.01)

        def step() -> None:
            grads = [gt.sin(v) for v in variables]
            optimizer.apply_gradients(zip(grads, variables, strict=True))

        run = step if executor is None else gt.function(step, executor=executor)
        for _ in range(4):
            run()
        return bits(variables)

    assert train() == with_one_thread(train)
