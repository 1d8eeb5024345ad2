"""How costs grow: memory and time in proportion to the elements, not to their square."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

import gradtape as gt


def peak(work):
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def random(count):
    return gt.constant(np.random.default_rng(count).normal(size=count))


@pytest.mark.parametrize("name", ["isin", "intersect1d", "setxor1d", "setdiff1d", "union1d"])
def test_functions_of_sets_need_memory_for_their_elements_not_for_all_pairs(name):
    x, y = random(4000), random(4001)
    assert peak(lambda: getattr(gt, name)(x, y)) < 4000 * 500


def test_isin_of_many_sorts_on_other_libraries_too():
    portable = gt.registry().ops["isin"].kernel
    x, y = random(4000).numpy(), random(4001).numpy()
    assert peak(lambda: portable(np, x, y)) < 4000 * 500


def seconds(work):
    """Return the least processor time of a few runs."""
    found = []
    for _ in range(5):
        start = time.thread_time()
        work()
        found.append(time.thread_time() - start)
    return min(found)


def rows_one_by_one(count):
    x = gt.constant(np.ones((count, 50)))
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        rows = gt.stack([x[i] for i in range(count)])
    return lambda: tape.gradient(rows, x)


def test_eight_times_the_rows_take_about_eight_times_as_long_to_differentiate():
    # by squares it would be 64 times
    assert seconds(rows_one_by_one(4000)) < 24 * seconds(rows_one_by_one(500))


def test_the_gradient_of_many_small_determinants_costs_about_as_much_as_they_do():
    x = gt.constant(np.random.default_rng(0).normal(size=(5000, 3, 3)))
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = gt.linalg.det(x)
    assert seconds(lambda: tape.gradient(y, x)) < 10 * seconds(lambda: gt.linalg.det(x))


def depthwise(channels, times):
    x = gt.constant(np.ones((16, 28, 28, channels), "float32"))
    w = gt.constant(np.ones((3, 3, channels, times), "float32"))

    def work():
        with gt.GradientTape() as tape:
            tape.watch((x, w))
            y = gt.nn.depthwise_conv(x, w, padding="same")
        tape.gradient(y, (x, w))

    return work


def test_two_filters_of_each_channel_take_no_longer_than_as_many_channels():
    # sums over axes of two took five times as long
    assert seconds(depthwise(16, 2)) < 2.5 * seconds(depthwise(32, 1))
