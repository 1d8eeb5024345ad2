"""``recompute_grad``: the gradients of the function, without what it computed on the way."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt

w = gt.Variable(2.0)


def block(x):
    return gt.sin(x * w) * gt.exp(x)


recomputed = gt.recompute_grad(block)


def test_gradients_of_every_order_are_those_of_the_function() -> None:
    found = []
    x = gt.constant(0.7)
    for f in (block, recomputed):
        with gt.GradientTape() as outer:
            outer.watch(x)
            with gt.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            first = inner.gradient(y, [x, w])
        second = outer.gradient(first, [x, w])
        found.append([g.item() for g in (y, *first, *second)])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_the_tape_keeps_one_record_and_watches_the_variables_read() -> None:
    x = gt.constant(0.7)
    with gt.GradientTape() as tape:
        tape.watch(x)
        recomputed(x)
    assert "1 records" in repr(tape)
    assert tape.watched_variables() == (w,)


def test_the_function_runs_again_in_the_backward_pass_alone() -> None:
    runs = []

    @gt.recompute_grad
    def noted(x):
        runs.append(x)
        return x * x

    x = gt.constant(3.0)
    assert noted(x).item() == 9.0
    assert len(runs) == 1  # no tape, nothing to go back through
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = noted(x)
    assert len(runs) == 2
    assert tape.gradient(y, x).item() == 6.0
    assert len(runs) == 3


def test_containers_keywords_and_several_results() -> None:
    @gt.recompute_grad
    def pair(p, scale=1.0):
        return {"a": p["x"] * scale, "b": p["y"] ** 2}

    p = {"x": gt.constant(2.0), "y": gt.constant(3.0)}
    with gt.GradientTape() as tape:
        tape.watch(p)
        out = pair(p, scale=4.0)
        total = out["a"] + out["b"]
    assert {k: g.item() for k, g in tape.gradient(total, p).items()} == {"x": 4.0, "y": 6.0}


@pytest.mark.parametrize("make", [gt.grad, lambda f: gt.vmap(gt.grad(f)), gt.jacfwd])
def test_in_other_transforms(make) -> None:
    x = gt.constant([0.3, 0.7]) if make not in (gt.grad,) else gt.constant(0.3)
    np.testing.assert_allclose(make(recomputed)(x), make(block)(x), rtol=1e-5)


def test_in_a_traced_function_and_in_a_saved_one(tmp_path) -> None:
    class Model(gt.Module):
        def __init__(self):
            super().__init__()
            self.w = gt.Variable(2.0)

        @gt.function(input_signature=[gt.TensorSpec([])])
        def __call__(self, x):
            return gt.recompute_grad(lambda x: gt.sin(x * self.w))(x)

    model = Model()
    gt.save(model, tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    for module in (model, loaded):
        x = gt.constant(0.7)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = module(x)
        grads = tape.gradient(y, [x, module.w])
        expected = [2.0 * np.cos(1.4), 0.7 * np.cos(1.4)]
        np.testing.assert_allclose([g.item() for g in grads], expected, rtol=1e-6)


def test_a_result_may_hold_none_as_a_scans_step_does() -> None:
    step = gt.recompute_grad(lambda carry, x: (gt.tanh(carry * x), None))

    def f(xs: gt.Tensor) -> gt.Tensor:
        return gt.scan(step, 0.5, xs)[0]

    xs = np.array([0.5, 1.5, -1.0])
    want = gt.grad(lambda xs: gt.scan(lambda c, x: (gt.tanh(c * x), None), 0.5, xs)[0])(xs)
    for run in (f, gt.function(f)):
        np.testing.assert_allclose(gt.grad(run)(xs), want, rtol=1e-6)
