"""Threads that change one variable: each change takes effect as a whole."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import gradtape as gt

THREADS, TIMES = 8, 400


@pytest.fixture(autouse=True)
def switching_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def in_threads(change: Callable[[int], object], times: int = TIMES) -> None:
    """Let every thread make a change many times, all beginning together."""
    barrier = Barrier(THREADS)

    def work(thread: int) -> None:
        barrier.wait()
        for _ in range(times):
            change(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, i) for i in range(THREADS)]:
            done.result(timeout=120)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_no_addition_is_lost(dtype: str) -> None:
    v = gt.Variable([0, 0], dtype=dtype)
    in_threads(lambda i: v.assign_add([2, 1]).assign_sub([1, 0]))
    assert v.tolist() == [THREADS * TIMES] * 2


def test_no_addition_is_lost_in_a_traced_function_nor_under_a_tape() -> None:
    a, b, n = gt.Variable(0.0), gt.Variable(0.0), gt.Variable(0, dtype="int64")

    @gt.function
    def count(x):
        a.assign_add(x)
        b.assign(a + x)
        n.assign_add(1)
        return a * x

    def step(thread: int) -> None:
        if thread % 3 == 0:
            count(gt.constant(1.0))
        elif thread % 3 == 1:
            with gt.GradientTape():
                count(gt.constant(1.0))
        else:
            a.assign_add(1.0)
            n.assign_add(1)

    in_threads(step, 200)
    assert a.item() == n.item() == THREADS * 200


def test_no_step_of_an_optimizer_is_lost() -> None:
    x, y = gt.Variable([0.0, 0.0]), gt.Variable(0.0, dtype="float64")
    sgd = gt.training.SGD(1.0)
    orders = [
        [(gt.constant([-1.0, 0.0]), x), (-1.0, y)],
        [(-1.0, y)],
        [(-1.0, y), (-gt.ones(2), x)],
    ]

    def step(thread: int) -> None:
        sgd.apply_gradients(orders[thread % 3])
        if thread == 0:
            x.assign_sub([1.0, 0.0])

    in_threads(step, 200)
    assert sgd.iterations.item() == THREADS * 200
    assert y.item() == THREADS * 200
    firsts, both = len(range(0, THREADS, 3)), len(range(2, THREADS, 3))
    assert x.tolist() == [200.0 * (firsts + both - 1), 200.0 * both]


def test_threads_that_make_an_optimizers_slots_make_them_once() -> None:
    for _ in range(20):
        variables = [gt.Variable([0.0]) for _ in range(5)]
        adam = gt.training.Adam(0.1)
        pairs = [(gt.constant([1.0]), v) for v in variables]
        in_threads(lambda i, pairs=pairs, adam=adam: adam.apply_gradients(pairs), 1)
        assert adam.iterations.item() == THREADS
        assert len(adam.variables) == 2 + 2 * len(variables)


def test_functions_that_assign_variables_in_other_orders_do_not_wait_for_each_other() -> None:
    a, b = gt.Variable(0.0), gt.Variable(0.0)

    @gt.function
    def there():
        a.assign_add(b * 0.0 + 1.0)
        b.assign_add(1.0)

    @gt.function
    def back():
        b.assign_add(a * 0.0 + 1.0)
        a.assign_add(1.0)

    in_threads(lambda i: (there, back)[i % 2]())
    assert a.item() == b.item() == THREADS * TIMES


def test_a_function_that_raises_lets_go_of_its_variables() -> None:
    v = gt.Variable([0.0, 0.0])

    @gt.function(input_signature=[gt.TensorSpec([None])])
    def add(x):
        v.assign_add(x)

    def step(thread: int) -> None:
        if thread % 2:
            with pytest.raises(ValueError, match="shape"):
                add([1.0, 2.0, 3.0])
        else:
            add([1.0, 2.0])

    in_threads(step, 50)
    assert v.tolist() == [THREADS * 25, THREADS * 50]


def test_no_two_threads_draw_the_same_numbers() -> None:
    generator, drawn = gt.random.Generator(7), []
    in_threads(lambda i: drawn.append(tuple(generator.next_key().tolist())), 200)
    assert sorted(drawn) == [(7, i) for i in range(THREADS * 200)]


def test_no_two_threads_drop_the_same_elements() -> None:
    layer, x = gt.layers.Dropout(0.5, seed=1), gt.ones(200)
    layer(x, training=True)
    dropped: list[bytes] = []
    in_threads(lambda i: dropped.append(layer(x, training=True).numpy().tobytes()), 20)
    assert len(set(dropped)) == THREADS * 20


def test_moving_averages_of_threads_are_those_of_some_order() -> None:
    layer = gt.layers.BatchNorm(momentum=0.5, axis=-1)
    layer(gt.zeros((2, 1)), training=False)
    kernel = layer.moving_mean
    kernel.assign([1.0])
    in_threads(lambda i: layer(gt.zeros((2, 1)), training=True), 5)
    assert kernel.item() == 0.5 ** (5 * THREADS)


def test_a_copy_is_changed_apart_from_its_original() -> None:
    v = gt.Variable(np.zeros(2))
    twin = copy.deepcopy(v)
    with v.lock:
        in_threads(lambda i: twin.assign_add([1.0, 1.0]), 1)
    assert (v.tolist(), twin.tolist()) == ([0.0, 0.0], [8.0, 8.0])
