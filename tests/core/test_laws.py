"""Laws that hold whatever is computed: linearity, sums, persistence, tracing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gradtape as gt

settings.register_profile("quick", max_examples=40, deadline=None)
settings.load_profile("quick")


@gt.custom_gradient
def tripled_slope(x):
    return x * 1.0, lambda g: g * 3.0


@gt.custom_gradient
def swapped(a, b):
    return (b * 1.0, a * 1.0), lambda g, h: (h, g)


def joined(a, b):
    first, second = swapped(a, b)
    return first * second + second


def reversed_parts(x):
    return gt.concatenate(gt.split(x, 3)[::-1])


UNARY = [
    gt.sin,
    gt.tanh,
    lambda x: x * x,
    lambda x: -x,
    lambda x: gt.exp(gt.sin(x)),
    gt.stop_gradient,
    tripled_slope,
    reversed_parts,
    lambda x: x[::-1] + gt.sum(x),
]
BINARY = [
    gt.add,
    gt.multiply,
    gt.subtract,
    lambda a, b: a / (b * b + 1.0),
    gt.maximum,
    joined,
    lambda a, b: gt.stack([a, b])[1] * a,
]
UNSMOOTH = [gt.maximum, gt.stop_gradient, tripled_slope]


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


def run(program, x, y, note=lambda value: None):
    values = [x, y]
    for f, inputs in program:
        values.append(f(*(values[i] for i in inputs)))
        note(values[-1])
    return values


def gradients(f, x, y, seed=None, unconnected="zero"):
    with gt.GradientTape() as tape:
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


@given(programs(), arrays(), arrays(), st.data())
def test_an_intermediate_is_a_source_like_any_other(program, a, b, data) -> None:
    x, y = gt.constant(a), gt.constant(b)
    with gt.GradientTape() as tape:
        tape.watch([x, y])
        values = run(program, x, y, tape.watch)  # one behind a stop_gradient is on no path else
    k = data.draw(st.integers(2, len(values) - 1))
    got = tape.gradient(values[-1], [x, values[k], y], unconnected_gradients="zero")

    with gt.GradientTape() as tape:  # the same program with that value put in by hand
        source = gt.constant(values[k].numpy())
        tape.watch(source)
        cut = [x, y]
        for n, (f, inputs) in enumerate(program, 2):
            cut.append(source if n == k else f(*(cut[i] for i in inputs)))
    expected = tape.gradient(cut[-1], source, unconnected_gradients="zero")
    np.testing.assert_allclose(got[1], expected, rtol=1e-9, atol=1e-9)
    whole = gradients(lambda x, y: run(program, x, y)[-1], x, y)
    for left, right in zip([got[0], got[2]], whole, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)


@given(programs(), arrays(), arrays())
def test_second_order_is_the_gradient_of_the_first(program, a, b) -> None:
    assume(not any(f in UNSMOOTH for f, _ in program))
    direction = np.array([0.3, -0.5, 0.8])

    def first(at):
        x, y = gt.constant(at), gt.constant(b)
        return gradients(lambda x, y: gt.sum(gt.tanh(run(program, x, y)[-1])), x, y)[0]

    x, y = gt.constant(a), gt.constant(b)
    with gt.GradientTape() as outer:
        outer.watch(x)
        g = gradients(lambda x, y: gt.sum(gt.tanh(run(program, x, y)[-1])), x, y)[0]
    second = outer.gradient(g, x, direction, "zero")
    step = 1e-6
    moved = (first(a + step * direction) - first(a - step * direction)) / (2 * step)
    # the Hessian is symmetric: its product with a direction is the slope of the gradient along it
    np.testing.assert_allclose(second, moved, rtol=1e-3, atol=1e-3)


@given(programs(), arrays(), arrays())
def test_explain_agrees_with_gradient(program, a, b) -> None:
    x, y = gt.constant(a), gt.constant(b)
    with gt.GradientTape() as tape:
        tape.watch([x, y])
        target = run(program, x, y)[-1]
    said = [tape.explain(target, source) for source in (x, y)]
    for text, gradient in zip(said, tape.gradient(target, [x, y]), strict=True):
        kind = "None" if gradient is None else "Connected" if np.any(gradient) else "Zero"
        assert text.startswith(kind)


@given(programs(), arrays(), arrays())
def test_gradients_agree_with_differences(program, a, b) -> None:
    assume(not any(f in UNSMOOTH for f, _ in program))
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
