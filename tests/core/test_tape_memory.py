"""What a tape keeps alive, and when it lets go."""

from __future__ import annotations

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import gradtape as gt


def array_of(tensor: gt.Tensor) -> weakref.ref:
    """Return a weak reference to the array behind a tensor."""
    return weakref.ref(tensor.array)


def test_records_go_as_soon_as_a_gradient_was_taken() -> None:
    x = gt.constant(np.ones(4))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sin(x * x)
        kept = array_of(y)
        z = gt.sum(y * y)
        del y
    assert kept() is not None  # y * y needs it
    tape.gradient(z, x)
    assert kept() is None


def test_a_persistent_tape_keeps_its_records_until_it_goes() -> None:
    x = gt.constant(np.ones(4))
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = gt.sin(x)
        kept = array_of(y)
        z = gt.sum(y * y)
        del y
    tape.gradient(z, x)
    assert kept() is not None
    del tape
    gc.collect()
    assert kept() is None


def test_reset_lets_go() -> None:
    x = gt.constant(np.ones(4))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sin(x)
        kept = array_of(y)
        z = gt.sum(y * y)
        del y
        assert kept() is not None
        tape.reset()
        assert kept() is None
    assert z.numpy() > 0


@pytest.mark.parametrize(
    "use",
    [
        lambda y, other: y + other,
        lambda y, other: y - 1.0,
        lambda y, other: -y,
        lambda y, other: y * 2.0,
        lambda y, other: gt.exp(y),  # needs its result alone
        lambda y, other: gt.sum(y),
        lambda y, other: gt.mean(y, axis=0),
        lambda y, other: gt.reshape(y, (2, 2)) + 0.0,
        lambda y, other: y[1:3] + 0.0,
        lambda y, other: y + np.ones((3, 1)),  # broadcasting needs the shape alone
        lambda y, other: gt.cast(y, "float32"),
        lambda y, other: gt.concatenate([y, other]),
        lambda y, other: gt.stack([y, other]),
        lambda y, other: gt.where(other > 0.0, y, other),
        lambda y, other: gt.stop_gradient(y) * 1.0,
    ],
)
def test_what_no_rule_asks_for_is_not_kept(use) -> None:
    x, other = gt.constant(np.ones(4)), gt.constant(np.ones(4))
    with gt.GradientTape() as tape:
        tape.watch([x, other])
        y = x * 3.0
        gone = array_of(y)
        z = use(y, other)
        del y
    assert gone() is None
    tape.gradient(z, x)


def test_what_a_rule_asks_for_is_kept() -> None:
    x, other = gt.constant(np.ones(4)), gt.constant(np.ones(4))
    with gt.GradientTape() as tape:
        tape.watch([x, other])
        y = x * 3.0
        kept = array_of(y)
        z = y * other
        del y
    assert kept() is not None
    np.testing.assert_array_equal(tape.gradient(z, other), np.full(4, 3.0))


def test_only_watched_operands_cost_memory() -> None:
    x, unwatched = gt.constant(np.ones(4)), gt.constant(np.ones(4))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * 3.0
        gone = array_of(y)
        z = y * unwatched  # only y's gradient is asked for, and that needs the other operand
        del y
    assert gone() is None
    np.testing.assert_array_equal(tape.gradient(z, x), np.full(4, 3.0))


def test_nothing_is_recorded_of_what_nobody_watches() -> None:
    v = gt.Variable(1.0)
    with gt.GradientTape(watch_accessed_variables=False) as tape:
        for _ in range(100):
            v * 2.0 + 1.0
        assert not tape.records


def test_gradients_are_consumed_as_the_pass_goes_back() -> None:
    size, depth = 200_000, 20
    x = gt.constant(np.ones(size))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(depth):
            y = gt.sin(y)
    tracemalloc.start()
    tape.gradient(y, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * size * 8  # a few arrays at a time, not one for each of twenty ops


def test_training_steps_do_not_grow_memory() -> None:
    v = gt.Variable(np.ones(1000))

    def step() -> None:
        with gt.GradientTape() as outer:
            with gt.GradientTape() as inner:
                loss = gt.sum(gt.sin(v) * v)
            first = inner.gradient(loss, v)
        v.assign_sub(outer.gradient(first, v) * 1e-3)

    for _ in range(50):
        step()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(200):
        step()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 30_000


def test_a_tape_is_not_part_of_a_reference_cycle() -> None:
    x = gt.constant(np.ones(4))
    gc.disable()
    try:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.sin(x)
        tape.gradient(y, x)
        gone = weakref.ref(tape)
        del tape
        assert gone() is None
    finally:
        gc.enable()


def test_a_chain_of_a_million_ops() -> None:
    x = gt.constant(1.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(1_000_000):
            y = -y
    assert tape.gradient(y, x).numpy() == 1.0
    assert "freed its records" in tape.explain(y, x)


def test_a_custom_gradient_keeps_what_its_rule_holds_and_no_more() -> None:
    @gt.custom_gradient
    def clipped(x):
        return x, lambda g: gt.clip(g, -1.0, 1.0)

    x = gt.constant(np.ones(4))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * 3.0
        gone = array_of(y)
        z = clipped(y) * 2.0
        del y
    assert gone() is None
    np.testing.assert_array_equal(tape.gradient(z, x), np.full(4, 3.0))
