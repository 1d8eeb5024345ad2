"""Threads that call one compiled function, and threads that look at what it changes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from executing import Training, differences, each_executor, same_bits

import gradtape as gt

THREADS = 8


@pytest.fixture(autouse=True)
def switching_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def in_threads(work: Callable[[int], object], name: str, threads: int = THREADS) -> None:
    """Let every thread do its work, all beginning together; raise what one of them raises."""
    barrier = threading.Barrier(threads)

    def run(thread: int) -> None:
        with gt.executor(name):
            barrier.wait()
            work(thread)

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(run, i) for i in range(threads)]:
            done.result(timeout=120)


@each_executor
def test_threads_that_call_one_function_get_their_own_results(name: str) -> None:
    w = gt.Variable(np.linspace(-1.0, 1.0, 64 * 64, dtype="float32").reshape(64, 64))

    @gt.function
    def run(x: Any) -> Any:
        y = gt.nn.relu(x @ w) * 2.0 - x
        z = gt.exp(-gt.abs(y)) + y * y
        return z, gt.sum(z * y, axis=0), z - gt.mean(z, axis=1, keepdims=True)

    xs = [gt.constant(np.full((32, 64), i + 1.0, "float32")) for i in range(THREADS)]
    with gt.executor(name):
        want = [[np.array(y.numpy()) for y in run(x)] for x in xs]

    def work(thread: int) -> None:
        kept = [run(xs[thread]) for _ in range(60)]
        for found in kept:
            assert differences([y.numpy() for y in found], want[thread]) == []

    in_threads(work, name)


@each_executor
def test_the_first_call_of_a_function_may_come_from_all_threads(name: str) -> None:
    x = gt.constant(np.arange(30.0).reshape(5, 6))
    want = None
    for number in range(10):
        run = gt.function(lambda x, k=float(number): gt.sum(gt.tanh(x * 0.1) * 2.0 + x, axis=0) - k)
        found: list[Any] = []
        in_threads(lambda i, run=run, found=found: found.append(run(x).numpy()), name)
        want = gt.sum(gt.tanh(x * 0.1) * 2.0 + x, axis=0).numpy() - number
        assert all(np.allclose(y, want, rtol=1e-13) for y in found)


def one_more(shapes: list[tuple[int, ...]], optimizer: Any) -> tuple[list[gt.Variable], Any]:
    """Return variables and a compiled step that adds one to all of their elements."""
    variables = [gt.Variable(np.zeros(shape, "float32")) for shape in shapes]

    @gt.function
    def step() -> Any:
        with gt.GradientTape() as tape:
            loss = -sum(gt.sum(v) for v in variables)
        grads = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(grads, variables, strict=True))

    return variables, step


SHAPES = [(300, 200), (200,), (1, 7), (), (40, 3, 5)]


@each_executor
def test_no_step_of_a_compiled_optimizer_is_lost(name: str) -> None:
    sgd = gt.training.SGD(1.0)
    variables, step = one_more(SHAPES, sgd)
    in_threads(lambda i: [step() for _ in range(50)], name)
    assert sgd.iterations.item() == THREADS * 50
    assert [set(np.ravel(v.numpy())) for v in variables] == [{THREADS * 50.0}] * len(SHAPES)


@each_executor
@pytest.mark.parametrize("optimizer", ["SGD", "momentum", "Adam"])
@pytest.mark.parametrize("look", ["numpy", "value", "raw array", "eager op", "compiled", "item"])
def test_readers_never_see_values_of_two_steps_in_one_variable(
    name: str, optimizer: str, look: str
) -> None:
    made = {
        "SGD": lambda: gt.training.SGD(1.0),
        "momentum": lambda: gt.training.SGD(1.0, momentum=0.5),
        "Adam": lambda: gt.training.Adam(0.5),
    }[optimizer]()
    variables, step = one_more(SHAPES, made)
    spread = gt.function(lambda: [gt.max(v) - gt.min(v) for v in variables])

    def numbers(v: gt.Variable) -> Any:
        if look == "numpy":
            return v.numpy()
        if look == "value":
            return v.value.array
        if look == "raw array":
            return v.array
        if look == "eager op":
            return (v * 1.0).numpy()
        return np.array(v.tolist())

    ended = threading.Event()

    def work(thread: int) -> None:
        if thread == 0:
            try:
                for _ in range(150):
                    step()
            finally:
                ended.set()
            return
        while not ended.is_set():
            if look == "compiled":
                assert all(float(x) == 0.0 for x in spread())
                continue
            for v in variables[:1] if look == "item" else variables:
                seen = numbers(v)
                assert np.min(seen) == np.max(seen)

    in_threads(work, name, threads=3)


@each_executor
def test_what_readers_hold_stays_while_others_train(name: str) -> None:
    variables, step = one_more(SHAPES, gt.training.Adam(0.5))
    ended = threading.Event()

    def work(thread: int) -> None:
        if thread < 2:
            try:
                for _ in range(60):
                    step()
            finally:
                ended.set()
            return
        kept = []
        while not ended.is_set() and len(kept) < 2000:
            for v in variables:
                view = v.numpy()
                kept.append((view, np.array(view)))
        for view, value in kept:
            assert np.min(view) == np.max(view)
            assert same_bits(view, value)

    in_threads(work, name, threads=4)


@each_executor
def test_an_assignment_from_another_thread_is_before_or_after_a_step(name: str) -> None:
    variables, step = one_more(SHAPES, gt.training.SGD(1.0))
    done = threading.Event()

    def work(thread: int) -> None:
        if thread == 0:
            for _ in range(200):
                step()
            done.set()
        else:
            while not done.is_set():
                for v in variables:
                    v.assign(gt.constant(np.full(v.shape, 1000.0, "float32")))

    in_threads(work, name, threads=2)
    for v in variables:
        seen = np.ravel(v.numpy())
        assert np.min(seen) == np.max(seen)
        assert 1000.0 <= seen[0] <= 1200.0


@each_executor
def test_training_while_others_predict_gives_the_weights_of_training_alone(name: str) -> None:
    with gt.executor(name):
        alone = Training()
        alone.steps(40)
        watched = Training()
        predict = gt.function(lambda x: watched.model(x, training=False))
    ended = threading.Event()

    def work(thread: int) -> None:
        if thread == 0:
            watched.steps(40)
            ended.set()
        while not ended.is_set():
            assert np.isfinite(predict(gt.constant(watched.x)).numpy()).all()

    in_threads(work, name, threads=4)
    assert differences(watched.state(), alone.state()) == []
