"""Planned programs and memory: what was handed out stays, failures change nothing, threads."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

SHAPES = [(6, 16), (16,), (16, 3), (3,)]


class Model:
    """Two layers, trained by Adam in one traced function."""

    def __init__(self, executor: str = "planned") -> None:
        random = np.random.default_rng(0)
        self.weights = [
            gt.Variable(random.standard_normal(shape).astype("float32")) for shape in SHAPES
        ]
        self.optimizer = gt.training.Adam(1e-2)
        self.x = gt.constant(random.standard_normal((8, 6)).astype("float32"))
        self.labels = gt.constant(random.integers(0, 3, 8))
        self.step = gt.function(self._step, executor=executor)

    def _step(self, x: Any, labels: Any) -> Any:
        w, b, v, c = self.weights
        with gt.GradientTape() as tape:
            logits = gt.tanh(x @ w + b) @ v + c
            loss = gt.mean(
                gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        grads = tape.gradient(loss, self.weights)
        self.optimizer.apply_gradients(zip(grads, self.weights))
        return loss

    def run(self, times: int = 1) -> Any:
        loss = None
        for _ in range(times):
            loss = self.step(self.x, self.labels)
        return loss

    def values(self) -> list[np.ndarray]:
        return [w.numpy().copy() for w in self.weights]


def test_training_is_bitwise_that_of_the_plain_executor() -> None:
    mine, right = Model("planned"), Model("plain")
    for _ in range(20):
        np.testing.assert_array_equal(mine.run(), right.run())
        for x, y in zip(mine.values(), right.values()):
            np.testing.assert_array_equal(x, y)
    assert "pack of 4 updates" in mine.step.concrete_functions[0].explain()


HOLDS: dict[str, Callable[[gt.Variable], Any]] = {
    "tensor": lambda w: w.value,
    "array": lambda w: w.numpy(),
    "slice": lambda w: w.numpy()[1:],
    "element view": lambda w: w.numpy()[:1].reshape(-1)[:1],
    "memoryview": lambda w: memoryview(w.numpy()),
    "dlpack": lambda w: np.from_dlpack(w.value),
    "torch": lambda w: __import__("torch").from_dlpack(w.value).numpy(),
    "converted": lambda w: np.asarray(w),
    "transposed": lambda w: w.numpy().T,
}


@pytest.mark.parametrize("hold", HOLDS)
def test_what_was_handed_out_is_never_written(hold: str) -> None:
    if hold == "torch":
        pytest.importorskip("torch")
    model = Model()
    model.run(3)
    held = []
    for _ in range(6):
        for w in model.weights:
            taken = HOLDS[hold](w)
            held.append((taken, np.array(taken)))
        model.run()
    model.run(100)
    for taken, before in held:
        np.testing.assert_array_equal(np.array(taken), before)


def test_outputs_of_earlier_calls_are_never_written() -> None:
    w = gt.Variable(np.ones((50, 4), "float32"))

    @gt.function(executor="planned")
    def f(x: Any) -> Any:
        y = gt.exp(x) * 2.0
        z = gt.reshape(y + 1.0, (-1,))
        old = w.value
        w.assign(w * 0.5 + x)
        return y, z, y[1:], gt.transpose(y + 2.0), old, gt.broadcast_to(gt.sum(y), (3, 3))

    kept = []
    for i in range(5):
        outputs = f(gt.full((50, 4), float(i) / 10))
        kept += [(x, x.numpy().copy()) for x in outputs]
    for tensor, before in kept:
        np.testing.assert_array_equal(tensor.numpy(), before)


def test_memory_is_used_again_when_nobody_holds_it() -> None:
    model = Model()
    model.run(4)
    places = set()
    for _ in range(10):
        model.run()
        places.add(model.weights[0].array.__array_interface__["data"][0])
    assert len(places) == 2


def test_a_variable_that_somebody_assigned_is_gathered_again() -> None:
    mine, right = Model("planned"), Model("plain")
    for model in (mine, right):
        model.run(3)
        model.weights[1].assign(np.full(16, 0.25, "float32"))
        model.run(2)
        model.optimizer.first_moments[0].assign(np.zeros(SHAPES[0], "float32"))
        model.run(2)
    for x, y in zip(mine.values(), right.values()):
        np.testing.assert_array_equal(x, y)


def test_executors_may_take_turns_with_one_model() -> None:
    mine, right = Model("planned"), Model("plain")
    other = gt.function(mine._step, executor="plain")
    for _ in range(4):
        mine.run()
        other(mine.x, mine.labels)
        right.run(2)
    for x, y in zip(mine.values(), right.values()):
        np.testing.assert_array_equal(x, y)


def test_batches_of_several_sizes_share_packed_memory() -> None:
    mine, right = Model("planned"), Model("plain")
    for model, executor in ((mine, "planned"), (right, "plain")):
        spec = [gt.TensorSpec([None, 6]), gt.TensorSpec([None], "int64")]
        model.step = gt.function(model._step, input_signature=spec, executor=executor)
        for rows in (8, 5, 8, 5, 3):
            model.step(model.x[:rows], model.labels[:rows])
    for x, y in zip(mine.values(), right.values()):
        np.testing.assert_allclose(x, y, rtol=1e-6)


@pytest.mark.parametrize("times", [0, 3])
def test_a_step_that_fails_changes_nothing(times: int) -> None:
    model = Model()
    model.run(times)
    if not times:
        model.optimizer.build(model.weights)
    variables = [*model.weights, *model.optimizer.first_moments, model.optimizer.iterations]
    before = [v.numpy().copy() for v in variables]
    with pytest.raises(ValueError, match="labels must be from 0 to 2"):
        model.step(model.x, model.labels + 3)
    with (
        np.errstate(all="raise"),
        pytest.raises(FloatingPointError),
    ):
        model.step(model.x * 1e38 * 1e5, model.labels)
    for variable, value in zip(variables, before):
        np.testing.assert_array_equal(variable.numpy(), value)
    assert np.isfinite(model.run().item())


def test_a_packed_update_that_overflows_changes_nothing() -> None:
    ws = [gt.Variable(np.full(5, 1e38, "float32")) for _ in range(3)]

    @gt.function(executor="planned")
    def f(rate: Any) -> None:
        for w in ws:
            w.assign(w * 2.0 * rate)

    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        f(gt.constant(10.0))
    assert all((w.numpy() == np.float32(1e38)).all() for w in ws)
    f(gt.constant(0.25))
    assert all((w.numpy() == np.float32(0.5e38)).all() for w in ws)


def test_threads_call_one_function_at_once() -> None:
    w = gt.constant(np.random.default_rng(1).standard_normal((40, 40)).astype("float32"))

    @gt.function(executor="planned")
    def f(x: Any) -> Any:
        y = gt.exp(x @ w * 0.01) * x
        return gt.sum(y * y - x, axis=0), y

    inputs = [gt.full((200, 40), 0.1 * i) for i in range(8)]
    right = [[y.numpy().copy() for y in f(x)] for x in inputs]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(40):
            for mine, want in zip(f(inputs[i]), right[i]):
                if not np.array_equal(mine.numpy(), want):
                    wrong.append(i)

    _together([lambda i=i: work(i) for i in range(8)])
    assert not wrong


def test_readers_never_see_a_half_written_variable() -> None:
    ws = [gt.Variable(np.zeros(30000, "float32")) for _ in range(3)]

    @gt.function(executor="planned")
    def step(change: Any) -> None:
        for w in ws:
            w.assign(w + change)

    wrong: list[Any] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            for w in ws:
                value = w.numpy()
                if value.min() != value.max():
                    wrong.append((value.min(), value.max()))

    def write() -> None:
        try:
            for _ in range(300):
                step(gt.constant(1.0))
        finally:
            done.set()

    _together([write, read, read])
    assert not wrong
    assert ws[0].numpy()[0] == 300.0


def test_steps_of_many_threads_all_count() -> None:
    ws = [gt.Variable(np.zeros(10, "float32")) for _ in range(3)]

    @gt.function(executor="planned")
    def step(change: Any) -> None:
        for w in ws:
            w.assign(w + change)

    def work() -> None:
        for _ in range(50):
            step(gt.constant(1.0))

    _together([work] * 8)
    assert all((w.numpy() == 400.0).all() for w in ws)


def test_large_results_are_not_kept_by_a_plan() -> None:
    f = gt.function(lambda x: gt.exp(x) + 1.0, executor="planned")
    y = f(gt.zeros((1000, 100)))
    array = y.array
    del y
    gc.collect()
    assert sys.getrefcount(array) <= 2  # the name, and the call's argument before Python 3.14


def test_more_memory_than_the_bound_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradtape.plugins.planned import memory

    monkeypatch.setattr(memory, "_KEPT_BYTES", 1000)
    made = []
    make = memory.Arena.make
    monkeypatch.setattr(memory.Arena, "make", lambda self: made.append(1) or make(self))
    f = gt.function(lambda x: gt.sum(gt.exp(x) * 2.0, axis=0), executor="planned")
    for x in (gt.ones((5, 2)), gt.ones((50, 20))):
        f(x)
        made.clear()
        for _ in range(3):
            f(x)
        assert len(made) == (0 if x.shape == (5, 2) else 3)


def _together(jobs: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
