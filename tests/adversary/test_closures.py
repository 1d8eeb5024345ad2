"""Traced functions that use tensors which are not their arguments: a tape follows those too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gradtape as gt


def test_a_loss_that_closes_over_its_weights_has_their_whole_gradient() -> None:
    w, x = gt.constant([2.0, 3.0]), gt.constant([1.0, 1.0])
    loss = gt.function(lambda x: gt.sum(x * w * w))
    for _ in range(2):  # traced, then called again
        with gt.GradientTape() as tape:
            tape.watch([w, x])
            y = loss(x) + gt.sum(w * w)
        dw, dx = tape.gradient(y, [w, x])
        np.testing.assert_allclose(dw, [8.0, 12.0])
        np.testing.assert_allclose(dx, [4.0, 9.0])


def test_a_trace_made_without_a_tape_serves_a_tape_later() -> None:
    w = gt.constant(3.0)
    f = gt.function(lambda x: x * w)
    assert f(gt.constant(2.0)).item() == 6.0
    with gt.GradientTape() as tape:
        tape.watch(w)
        y = f(gt.constant(5.0))
    assert tape.gradient(y, w).item() == 5.0


def test_what_a_trace_computed_from_outer_tensors_alone_is_differentiated() -> None:
    w = gt.constant([0.2, 0.7])
    f = gt.function(lambda x: gt.sum(x * gt.sin(w * 3.0)))
    with gt.GradientTape() as outer:
        outer.watch(w)
        with gt.GradientTape() as tape:
            tape.watch(w)
            y = f(gt.constant([1.0, 2.0]))
        dw = tape.gradient(y, w)
    np.testing.assert_allclose(dw, 3 * np.cos(3 * w.numpy()) * [1, 2], rtol=1e-6)
    np.testing.assert_allclose(
        outer.gradient(dw, w), -9 * np.sin(3 * w.numpy()) * [1, 2], rtol=1e-5
    )


def test_stopped_and_plain_uses_of_one_array_are_told_apart() -> None:
    w = gt.constant(3.0)
    f = gt.function(lambda x: x * gt.stop_gradient(w) * w)
    with gt.GradientTape() as tape:
        tape.watch(w)
        y = f(gt.constant(2.0))
    assert tape.gradient(y, w).item() == 6.0


def test_an_intermediate_result_is_a_closure_like_any_other() -> None:
    w = gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch(w)
        h = w * w
        y = gt.function(lambda: h * 2.0)()
    assert tape.gradient(y, w).item() == 12.0


def test_an_outer_tensor_that_is_returned_is_itself() -> None:
    w = gt.constant([1.0, 2.0])
    f = gt.function(lambda: {"w": w, "parts": gt.split(w, 2)})
    with gt.GradientTape() as tape:
        tape.watch(w)
        out = f()
        y = gt.sum(out["w"]) + out["parts"][1]
    np.testing.assert_allclose(tape.gradient(y, w), [1.0, 2.0])


def test_a_tape_inside_the_function_shows_outer_tensors_to_the_tape_outside() -> None:
    w, x = gt.constant(2.0), gt.constant(5.0)

    @gt.function
    def slope(x: gt.Tensor) -> gt.Tensor:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = x * x * w
        return tape.gradient(y, x)

    with gt.GradientTape() as tape:
        tape.watch([w, x])
        s = slope(x)
    assert [g.item() for g in tape.gradient(s, [w, x])] == [10.0, 4.0]


def test_custom_gradients_keep_their_rule_for_outer_tensors() -> None:
    @gt.custom_gradient
    def product(a: gt.Tensor, b: gt.Tensor) -> tuple[gt.Tensor, object]:
        return a * b, lambda g: (g * 100.0, g * 1000.0)

    w = gt.constant(3.0)
    f = gt.function(lambda x: product(x, w) + product(w, w))
    with gt.GradientTape() as tape:
        tape.watch(w)
        y = f(gt.constant(2.0))
    assert y.item() == 15.0
    assert tape.gradient(y, w).item() == 2100.0


def test_a_paused_tape_sees_nothing_of_a_closure() -> None:
    w = gt.constant(3.0)
    f = gt.function(lambda x: x * (w * w))
    with gt.GradientTape() as seen, gt.GradientTape() as paused:
        seen.watch(w)
        paused.watch(w)
        with paused.stop_recording():
            y = f(gt.constant(2.0))
    assert seen.gradient(y, w).item() == 12.0
    assert paused.gradient(y, w) is None


def test_a_persistent_tape_counts_each_call_of_a_closure() -> None:
    w = gt.constant(3.0)
    f = gt.function(lambda x: x * (w * w))
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(w)
        a = f(gt.constant(2.0))
        b = f(gt.constant(5.0))
    assert tape.gradient([a, b], w).item() == 42.0
    assert tape.gradient(a, w).item() == 12.0


def test_a_traced_gradient_rule_is_differentiated_by_what_it_closes_over() -> None:
    w, x = gt.constant(3.0), gt.constant(2.0)

    @gt.custom_gradient
    def scaled(x: gt.Tensor) -> tuple[gt.Tensor, object]:
        return x * w, lambda g: g * w

    slopes = []
    for f in (scaled, gt.function(lambda x: scaled(x))):
        with gt.GradientTape() as outer:
            outer.watch([x, w])
            with gt.GradientTape() as tape:
                tape.watch([x, w])
                y = f(x) * w
            first = tape.gradient(y, [x, w])
        second = outer.gradient(first, [x, w])
        slopes.append([g.item() for g in (*first, *second)])
    assert slopes[0] == slopes[1] == [9.0, 6.0, 3.0, 6.0]


def test_a_traced_gradient_rule_may_return_an_outer_tensor() -> None:
    w, x = gt.constant(3.0), gt.constant(2.0)

    @gt.custom_gradient
    def odd(x: gt.Tensor) -> tuple[gt.Tensor, object]:
        return x * x, lambda g: w

    f = gt.function(lambda x: odd(x))
    with gt.GradientTape() as outer:
        outer.watch(w)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        slope = tape.gradient(y, x)
    assert slope.item() == 3.0
    assert outer.gradient(slope, w).item() == 1.0


def _in_scan(f: Callable[[gt.Tensor], gt.Tensor], x: gt.Tensor) -> gt.Tensor:
    return gt.scan(lambda carry, step: (f(carry) + step, None), x, gt.zeros((1,)))[0]


SURROUNDINGS = {
    "nothing": lambda f, x: f(x),
    "cond": lambda f, x: gt.cond(x > 0, lambda: f(x), lambda: x),
    "cond in cond": lambda f, x: gt.cond(
        x > 0, lambda: gt.cond(x > 1, lambda: f(x), lambda: x), lambda: x
    ),
    "cond in vmap": lambda f, x: gt.vmap(lambda x: gt.cond(x > 0, lambda: f(x), lambda: x))(
        gt.reshape(x, (1,))
    )[0],
    "scan": _in_scan,
    "while_loop": lambda f, x: gt.while_loop(
        lambda i, x: i < 1, lambda i, x: (i + 1, f(x)), (0, x)
    )[1],
    "map": lambda f, x: gt.map(f, gt.reshape(x, (1,)))[0],
    "cond in scan": lambda f, x: _in_scan(lambda x: gt.cond(x > 0, lambda: f(x), lambda: x), x),
}


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_what_a_rule_closes_over_is_followed_out_of_branches(name: str, traced: bool) -> None:
    a, x = gt.constant(2.0), gt.constant(3.0)

    @gt.custom_gradient
    def scaled(x: gt.Tensor) -> tuple[gt.Tensor, object]:
        return x * 1.0, lambda g: g * (a * a)

    def program(x: gt.Tensor) -> gt.Tensor:
        return SURROUNDINGS[name](scaled, x) + 0.0 * a

    run = gt.function(program) if traced else program
    with gt.GradientTape() as outer:
        outer.watch(a)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        slope = tape.gradient(y, x)
    assert slope.item() == 4.0
    assert outer.gradient(slope, a).item() == 4.0


@pytest.mark.parametrize("traced", ["nothing", "the function", "its tapes"])
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_what_a_rule_reads_is_followed_out_of_branches(name: str, traced: str) -> None:
    v, x = gt.Variable(2.0), gt.constant(3.0)

    @gt.custom_gradient
    def scaled(x: gt.Tensor) -> tuple[gt.Tensor, object]:
        return x * 1.0, lambda g: g * (v * v)

    def program(x: gt.Tensor) -> gt.Tensor:
        return SURROUNDINGS[name](scaled, x)

    run = gt.function(program) if traced == "the function" else program

    def orders(x: gt.Tensor) -> list[gt.Tensor]:
        with gt.GradientTape() as outer:
            with gt.GradientTape() as tape:
                tape.watch(x)
                y = run(x)
            slope = tape.gradient(y, x)
        return [slope, outer.gradient(slope, v)]

    got = (gt.function(orders) if traced == "its tapes" else orders)(x)
    assert [g.item() for g in got] == [4.0, 4.0]


def test_a_rule_that_reads_a_variable_in_a_branch_needs_no_gradient_for_it_outside() -> None:
    v, x = gt.Variable(0.5), gt.constant(3.0)

    @gt.custom_gradient
    def inner(x: gt.Tensor) -> tuple[gt.Tensor, object]:
        return x * 1.0, lambda g: g * v

    @gt.custom_gradient
    def outer(x: gt.Tensor) -> tuple[gt.Tensor, object]:
        return gt.cond(x > 0, lambda: inner(x), lambda: x), lambda g: g * 3.0

    for run in (outer, gt.function(outer)):
        assert gt.grad(run)(x).item() == 3.0


def test_a_saved_rule_reads_the_variable_of_its_module_in_a_branch(tmp_path: Path) -> None:
    class Model(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.v = gt.Variable(0.7)

        @gt.function(input_signature=[gt.TensorSpec([])])
        def __call__(self, x: gt.Tensor) -> gt.Tensor:
            @gt.custom_gradient
            def act(x: gt.Tensor) -> tuple[gt.Tensor, object]:
                def rule(u: gt.Tensor, variables: object) -> object:
                    slope = u * (1.0 - gt.tanh(self.v * x) ** 2)
                    return slope * self.v, [slope * x]

                return gt.tanh(self.v * x), rule

            return gt.cond(x > 0, lambda: act(x), lambda: x)

    model = Model()
    gt.save(model, tmp_path / "model.h5")
    found = []
    for each in (model, gt.load(tmp_path / "model.h5")):
        each.v.assign(0.8)  # which the file's rule must read
        x = gt.constant(0.9)
        with gt.GradientTape() as outer:
            outer.watch(x)
            with gt.GradientTape() as tape:
                tape.watch(x)
                y = each(x)
            first = tape.gradient(y, [x, each.v])
        found.append([g.item() for g in (*first, *outer.gradient(first, [x, each.v]))])
    y = np.tanh(0.72)
    mixed = (1 - y * y) * (1 - 2 * 0.72 * y)
    xx, vv = -2 * y * (1 - y * y) * 0.64, -2 * y * (1 - y * y) * 0.81
    want = [(1 - y * y) * 0.8, (1 - y * y) * 0.9, xx + mixed, vv + mixed]
    np.testing.assert_allclose(found, [want, want], rtol=1e-5)


ZS, C = np.array([0.6, 1.2]), np.array(0.7)
CAPTURES = {
    "cond": lambda c: gt.vmap(
        lambda z: gt.cond(z > 1.0, lambda: z * gt.exp(c), lambda: z * gt.stop_gradient(c))
    )(ZS),
    "while_loop": lambda c: gt.vmap(
        lambda z: gt.while_loop(lambda y: y < 1.0, lambda y: y * gt.exp(c) + z, z)
    )(ZS),
    "cond in scan": lambda c: gt.vmap(
        lambda z: gt.scan(
            lambda y, s: (gt.cond(y > 1.0, lambda: y * gt.sin(c * 2.0), lambda: y + c), None),
            z,
            np.ones(2),
        )[0]
    )(ZS),
}


@pytest.mark.parametrize("f", CAPTURES.values(), ids=CAPTURES)
def test_forward_mode_computes_tangents_outside_the_branch(f: Callable[..., gt.Tensor]) -> None:
    step = 1e-6
    slope = (np.asarray(f(C + step)) - np.asarray(f(C - step))) / (2 * step)
    if f is CAPTURES["cond"]:
        slope = ZS * np.array([0.0, np.exp(0.7)])  # without what is stopped
    for run in (f, gt.function(f)):
        np.testing.assert_allclose(gt.jacfwd(run)(C), slope, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(gt.jacrev(run)(C), slope, rtol=1e-6, atol=1e-9)
        twice = gt.jacfwd(gt.jacfwd(run))(C)
        np.testing.assert_allclose(twice, gt.jacrev(gt.jacrev(run))(C), rtol=1e-9, atol=1e-12)
