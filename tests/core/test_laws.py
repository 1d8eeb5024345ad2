"""Laws that hold whatever is computed: linearity, sums, persistence, tracing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as gt

settings.register_profile("quick", max_examples=40, deadline=None)
settings.load_profile("quick")

UNARY = [
    gt.sin,
    gt.tanh,
    lambda x: x * x,
    lambda x: -x,
    lambda x: gt.exp(gt.sin(x)),
    gt.stop_gradient,
]
BINARY = [gt.add, gt.multiply, gt.subtract, lambda a, b: a / (b * b + 1.0), gt.maximum]


@st.composite
def programs(draw):
    """Draw a random program of two tensors: a list of steps, each on earlier values."""
    steps = []
    for n in range(2, 2 + draw(st.integers(1, 8))):
        if draw(st.booleans()):
            steps.append((draw(st.sampled_from(UNARY)), (draw(st.integers(0, n - 1)),)))
        else:
            pair = (draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1)))
            steps.append((draw(st.sampled_from(BINARY)), pair))
    return steps


@st.composite
def arrays(draw, shape=(3,)):
    values = draw(st.lists(st.floats(-2, 2, width=32), min_size=3, max_size=3))
    return np.array(values, dtype=np.float64).reshape(shape)


def run(program, x, y):
    values = [x, y]
    for f, inputs in program:
        values.append(f(*(values[i] for i in inputs)))
    return values


def gradients(f, x, y, seed=None, unconnected="zero", persistent=False):
    with gt.GradientTape(persistent=persistent) as tape:
        tape.watch([x, y])
        target = f(x, y)
    return tape.gradient(target, [x, y], seed, unconnected)


@given(programs(), arrays(), arrays(), arrays(), arrays())
def test_gradients_are_linear_in_the_output_gradients(program, a, b, s, t) -> None:
    x, y = gt.constant(a), gt.constant(b)

    def f(x, y):
        return run(program, x, y)[-1]

    both = gradients(f, x, y, gt.constant(2.0 * s - 3.0 * t))
    parts = zip(gradients(f, x, y, s), gradients(f, x, y, t), strict=True)
    for whole, (left, right) in zip(both, parts, strict=True):
        np.testing.assert_allclose(whole, 2.0 * left - 3.0 * right, rtol=1e-9, atol=1e-9)


@given(programs(), arrays(), arrays())
def test_the_gradient_of_several_targets_is_the_sum(program, a, b) -> None:
    x, y = gt.constant(a), gt.constant(b)
    together = gradients(lambda x, y: run(program, x, y), x, y)
    summed = gradients(lambda x, y: sum(run(program, x, y)), x, y)
    for left, right in zip(together, summed, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


@given(programs(), arrays(), arrays())
def test_a_persistent_tape_answers_as_another_does(program, a, b) -> None:
    x, y = gt.constant(a), gt.constant(b)

    def f(x, y):
        return run(program, x, y)[-1]

    once = gradients(f, x, y, unconnected="none")
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        target = f(x, y)
    for _ in range(2):
        for left, right in zip(once, tape.gradient(target, [x, y]), strict=True):
            assert (left is None) is (right is None)
            assert left is None or np.asarray(left).tobytes() == np.asarray(right).tobytes()


@settings(max_examples=25, deadline=None)
@given(programs(), arrays(), arrays())
@pytest.mark.parametrize("shape", [(3,), None, (None,)], ids=str)
def test_a_traced_program_is_the_eager_one(shape, program, a, b) -> None:
    x, y = gt.constant(a), gt.constant(b)

    def f(x, y):
        return run(program, x, y)[-1]

    def with_gradients(x, y):
        return [f(x, y), *gradients(f, x, y)]

    signature = [gt.TensorSpec(shape, "float64")] * 2
    eager = with_gradients(x, y)
    inside = gt.function(with_gradients, input_signature=signature)(x, y)
    traced = gt.function(f, input_signature=signature)
    outside = [traced(x, y), *gradients(traced, x, y)]
    for one, two, three in zip(eager, inside, outside, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(two).tobytes()
        assert np.asarray(one).tobytes() == np.asarray(three).tobytes()


@given(programs(), arrays(), arrays())
def test_explain_agrees_with_gradient(program, a, b) -> None:
    x, y = gt.constant(a), gt.constant(b)
    with gt.GradientTape() as tape:
        tape.watch([x, y])
        target = run(program, x, y)[-1]
    said = [tape.explain(target, source) for source in (x, y)]
    for text, gradient in zip(said, tape.gradient(target, [x, y]), strict=True):
        assert text.startswith("None" if gradient is None else "Connected")


@given(programs(), arrays(), arrays())
def test_gradients_agree_with_differences(program, a, b) -> None:
    smooth = [step for step in program if step[0] not in (gt.maximum, gt.stop_gradient)]
    if len(smooth) != len(program):
        return
    x, y = gt.constant(a), gt.constant(b)

    def f(x, y):
        return gt.sum(gt.tanh(run(program, x, y)[-1]))  # bounded, so that differences are accurate

    step = 1e-6
    for gradient, first in zip(gradients(f, x, y), (True, False), strict=True):
        moved = [
            f(a + d, y).item() if first else f(x, b + d).item()
            for d in (step * np.ones(3), -step * np.ones(3))
        ]
        numeric = (moved[0] - moved[1]) / (2 * step)
        np.testing.assert_allclose(np.sum(np.asarray(gradient)), numeric, rtol=1e-4, atol=1e-4)
