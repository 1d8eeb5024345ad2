"""A read of a variable belongs to the tapes that were active at that moment, and to no others."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf

READS = {
    "value": lambda v: v.value,
    "read_value": lambda v: v.read_value(),
    "as_tensor": gt.as_tensor,
    "constant": gt.constant,
    "identity": gt.copy,
    "an op": lambda v: v * 1.0,
    "an index": lambda v: v[...],
    "iteration": lambda v: next(iter(gt.Variable(v[None]))),
}
BEGIN = {
    "gradient": lambda f, v: by_tape(f, v),
    "persistent": lambda f, v: by_tape(f, v, persistent=True),
    "watched by hand": lambda f, v: by_tape(f, v, watch_accessed_variables=False, watch=True),
    "jacobian": lambda f, v: by_tape(f, v, ask="jacobian"),
    "grad": lambda f, v: gt.grad(lambda v: f())(v),
    "jacfwd": lambda f, v: gt.jacfwd(lambda v: f())(v),
    "jvp": lambda f, v: gt.jvp(lambda v: f(), v, 1.0)[1],
    "vjp": lambda f, v: gt.vjp(lambda v: f(), v)[1](1.0)[0],
    "hessian of the square": lambda f, v: gt.hessian(lambda v: f() ** 2 / 18.0)(v) * 3.0,
}


def by_tape(f, v, ask="gradient", watch=False, **settings):
    with gt.GradientTape(**settings) as tape:
        if watch:
            tape.watch(v)
        y = f()
    return getattr(tape, ask)(y, v)


@pytest.mark.parametrize("begin", BEGIN)
@pytest.mark.parametrize("read", READS)
def test_a_read_before_is_a_constant(read, begin) -> None:
    v = gt.Variable(3.0)
    before = READS[read](v)
    assert BEGIN[begin](lambda: before * v, v).item() == pytest.approx(3.0)


@pytest.mark.parametrize("wrap", [gt.function, gt.recompute_grad, lambda f: f])
@pytest.mark.parametrize("read", READS)
def test_a_read_before_is_a_constant_in_what_wraps_the_function(read, wrap) -> None:
    v = gt.Variable(3.0)
    before = READS[read](v)
    f = wrap(lambda: before * v)
    for _ in range(2):  # traced, then replayed
        assert by_tape(f, v).item() == 3.0
    assert gt.vmap(lambda x: by_tape(lambda: x * f(), v))(gt.constant([1.0, 2.0])).tolist() == [
        3,
        6,
    ]


@pytest.mark.parametrize("traced", [False, True])
def test_a_read_before_is_a_constant_in_branches_and_loops(traced) -> None:
    v = gt.Variable(3.0)
    before = v.value
    one = gt.constant(1.0)

    def slopes(x):
        found = []
        for f in (
            lambda: gt.cond(x > 0, lambda: before * v, lambda: x),
            lambda: gt.scan(lambda carry, _: (carry * before * v, carry), x, None, length=1)[0],
            lambda: gt.while_loop(
                lambda c: c < 2, lambda c: c * before * v, (x,), maximum_iterations=1
            )[0],
        ):
            with gt.GradientTape() as tape:
                y = f()
            found.append(tape.gradient(y, v))
        return found

    found = (gt.function(slopes) if traced else slopes)(one)
    assert [g.item() for g in found] == [3.0, 3.0, 3.0]


def test_a_read_belongs_to_each_tape_that_was_active() -> None:
    v = gt.Variable(3.0)
    with gt.GradientTape() as outer:
        early = v.value
        with gt.GradientTape(persistent=True) as inner:
            late = v.value
            y = early * late * v
            assert inner.gradient(y, v).item() == 2 * 9.0
            with gt.GradientTape() as innermost:
                z = early * late * v
            assert innermost.gradient(z, v).item() == 9.0
    assert outer.gradient(y, v).item() == 3 * 9.0


def test_a_read_while_recording_is_stopped_is_a_constant() -> None:
    v = gt.Variable(3.0)
    with gt.GradientTape() as other, gt.GradientTape() as tape:
        first = v.value
        with tape.stop_recording():
            stopped = v.value
        y = first * stopped * v
    assert tape.gradient(y, v).item() == 2 * 9.0
    assert other.gradient(y, v).item() == 3 * 9.0


def test_a_read_between_two_blocks_of_a_tape_is_a_constant() -> None:
    v = gt.Variable(3.0)
    tape = gt.GradientTape(persistent=True)
    with tape:
        inside = v.value
    between = v.value
    with tape:
        y = inside * between * v
    assert tape.gradient(y, v).item() == 2 * 9.0


def test_a_reset_forgets_what_was_read() -> None:
    v = gt.Variable(3.0)
    with gt.GradientTape() as tape:
        before = v.value
        tape.reset()
        y = before * v
    assert tape.gradient(y, v).item() == 3.0


@pytest.mark.parametrize("trainable", [True, False])
def test_a_read_before_it_is_watched_is_a_constant(trainable) -> None:
    v = gt.Variable(3.0, trainable=trainable)
    with gt.GradientTape(watch_accessed_variables=False) as tape:
        before = v.value
        tape.watch(v)
        y = before * v
    assert tape.gradient(y, v).item() == 3.0


def test_a_read_that_is_itself_watched_is_a_source_of_its_own() -> None:
    v = gt.Variable(3.0)
    before = v.value
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(before)
        y = before * before * v
    assert [g.item() for g in tape.gradient(y, [before, v])] == [18.0, 9.0]


def test_reads_before_and_after_an_assignment_both_count() -> None:
    v = gt.Variable(2.0)
    outside = v.value
    with gt.GradientTape(persistent=True) as tape:
        old = v.value
        y = old * v
        v.assign(10.0)
        new = v.value
        z = new * new * v * outside
    assert tape.gradient([y, z], v).item() == 4.0 + 300.0 * 2.0
    assert [g.item() for g in tape.gradient(y, [old, v])] == [2.0, 4.0]
    assert tape.gradient(z, old) is None
    assert tape.gradient(z, new).item() == 400.0


def test_what_a_gradient_rule_closes_over_was_read_when_it_was_read() -> None:
    v = gt.Variable(3.0)
    before = v.value

    @gt.custom_gradient
    def scaled(x):
        return x * before, lambda g: g * before

    with gt.GradientTape() as outer:
        with gt.GradientTape() as tape:
            y = scaled(v) * before
        slope = tape.gradient(y, v)
        z = slope * v
    assert slope.item() == 9.0
    assert outer.gradient(z, v).item() == 9.0


def test_a_variable_is_an_argument_of_a_custom_gradient_that_it_reads_as_well() -> None:
    v = gt.Variable(3.0)

    @gt.custom_gradient
    def square(x):
        return x * v.value, lambda g: g * 2.0 * x

    assert by_tape(lambda: square(v), v).item() == 6.0


def test_a_read_before_an_accumulator_has_no_tangent() -> None:
    v = gt.Variable(3.0)
    before = v.value
    with gt.ForwardAccumulator(v, gt.constant(1.0)) as outer:
        early = v.value
        with gt.ForwardAccumulator(v, gt.constant(1.0)) as inner:
            y = before * early * v
            assert inner.jvp(v).item() == 1.0
    assert (outer.jvp(y).item(), inner.jvp(y).item()) == (18.0, 9.0)


def test_what_a_tape_has_read_is_let_go_with_its_block() -> None:
    v = gt.Variable(np.zeros(4, np.float32))
    gc.disable()
    try:
        with gt.GradientTape() as tape:
            assert v.value is not None
            held = weakref.ref(v.array)
        v.assign(gt.ones(4))
        assert held() is None
        gone = weakref.ref(tape)
        del tape
        assert gone() is None
    finally:
        gc.enable()


def test_the_reads_of_many_ops_under_one_tape_take_one_record() -> None:
    v = gt.Variable(1.0)
    with gt.GradientTape() as tape:
        y = sum(v * 1.0 for _ in range(5))
        assert len(tape._all) == 2 + 10
    assert "10 records" in repr(tape)
    assert tape.gradient(y, v).item() == 5.0


def test_explain_tells_of_a_read_before_the_tape() -> None:
    v = gt.Variable(3.0)
    before = v.value
    with gt.GradientTape() as tape:
        y = before * 2.0
        assert v.value.item() == 3.0
    assert "read from a variable before the tape began" in tape.explain(y, v)


def test_explain_names_the_op_whose_gradients_of_two_reads_cancel() -> None:
    v = gt.Variable(3.0)
    with gt.GradientTape(persistent=True) as outer, gt.GradientTape(persistent=True) as tape:
        y = v.value - v.value
    assert "op 'subtract' cancel" in tape.explain(y, v)
    assert outer.gradient(y, v).item() == 0.0


@pytest.mark.parametrize(
    "read",
    [lambda v: v.value, lambda v: v.read_value(), tf.convert_to_tensor, tf.identity],
    ids=["value", "read_value", "convert_to_tensor", "identity"],
)
def test_each_read_is_a_source_of_its_own(read) -> None:
    v = gt.Variable(3.0)
    with gt.GradientTape(persistent=True) as tape:
        a, b = read(v), read(v)
        y = a * a * b
    assert [g.item() for g in tape.gradient(y, [a, b, v])] == [18.0, 9.0, 27.0]
    assert tape.gradient(b, a) is None
