"""``ForwardAccumulator``: TensorFlow's semantics, in every nesting with tapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import GradientError


def test_a_product_with_the_jacobian() -> None:
    x = gt.constant([[2.0, 3.0], [1.0, 4.0]])
    targets = gt.constant([[1.0], [-1.0]])
    layer = gt.layers.Dense(1, use_bias=False)
    layer(x)
    layer.kernel.assign([[0.5], [0.25]])
    direction = gt.constant([[1.0], [0.0]])
    with gt.ForwardAccumulator(layer.kernel, direction) as acc:
        loss = gt.sum((layer(x) - targets) ** 2)
    with gt.GradientTape() as tape:
        again = gt.sum((layer(x) - targets) ** 2)
    g = tape.gradient(again, layer.kernel)
    assert acc.jvp(loss).item() == pytest.approx(float(g.numpy()[0, 0]))


def test_it_answers_inside_and_after_the_block_any_number_of_times() -> None:
    x = gt.constant(3.0)
    with gt.ForwardAccumulator(x, gt.constant(1.0)) as acc:
        y = x * x
        assert acc.jvp(y).item() == 6.0
    z = y * y
    assert acc.jvp(y).item() == 6.0
    assert acc.jvp(z) is None
    assert acc.jvp(z, unconnected_gradients=gt.UnconnectedGradients.ZERO).item() == 0.0


def test_containers_of_primals_and_results() -> None:
    x, v = gt.constant([1.0, 2.0]), gt.Variable(3.0)
    with gt.ForwardAccumulator([x, {"v": v}], [gt.ones(2), {"v": 10.0}]) as acc:
        y = {"a": x * v, "b": (gt.sum(x), gt.constant(1.0))}
    found = acc.jvp(y)
    assert found["a"].tolist() == [13.0, 23.0]
    assert found["b"][0].item() == 2.0
    assert found["b"][1] is None


def test_a_primal_is_its_own_result() -> None:
    x = gt.constant(2.0)
    with gt.ForwardAccumulator(x, gt.constant(5.0)) as acc:
        pass
    assert acc.jvp(x).item() == 5.0


def test_forward_over_reverse_is_a_hessian_product() -> None:
    x, v = gt.constant([1.0, 2.0]), gt.constant([1.0, -1.0])
    with gt.ForwardAccumulator(x, v) as acc:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.sum(x**3) + x[0] * x[1]
        g = tape.gradient(y, x)
    np.testing.assert_allclose(acc.jvp(g), [6.0 - 1.0, 1.0 - 12.0])


def test_reverse_over_forward() -> None:
    x, v = gt.constant([1.0, 2.0]), gt.constant([1.0, -1.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        with gt.ForwardAccumulator(x, v) as acc:
            y = gt.sum(x**3)
        slope = acc.jvp(y)
    np.testing.assert_allclose(tape.gradient(slope, x), [6.0, -12.0])


def test_forward_over_forward_over_forward() -> None:
    x, one = gt.constant(2.0), gt.constant(1.0)
    with (
        gt.ForwardAccumulator(x, one) as a,
        gt.ForwardAccumulator(x, one) as b,
        gt.ForwardAccumulator(x, one) as c,
    ):
        y = x**4
    assert c.jvp(y).item() == 32.0
    assert b.jvp(c.jvp(y)).item() == 48.0
    assert a.jvp(b.jvp(c.jvp(y))).item() == 48.0


def test_nested_accumulators_do_not_confuse_their_tangents() -> None:
    # d/dx (x * d/dy (x + y)) = 1, not 2
    x = gt.constant(1.0)
    with gt.ForwardAccumulator(x, gt.constant(1.0)) as outer:
        y = gt.constant(1.0)
        with gt.ForwardAccumulator(y, gt.constant(1.0)) as inner:
            z = x + y
        w = x * inner.jvp(z)
    assert outer.jvp(w).item() == 1.0


def test_through_traced_functions_custom_gradients_and_vmap() -> None:
    x, v = gt.constant([0.5, 1.5]), gt.constant([1.0, 2.0])
    traced = gt.function(lambda x: gt.sin(x) * x)

    @gt.custom_gradient
    def tenfold(x: gt.Tensor) -> Any:
        return x * 1.0, lambda dy: dy * 10.0

    with gt.ForwardAccumulator(x, v) as acc:
        a, b, c = traced(x), tenfold(x), gt.vmap(lambda e: e * e)(x)
    np.testing.assert_allclose(
        acc.jvp(a), (np.cos(x) * x.numpy() + np.sin(x)) * v.numpy(), rtol=1e-6
    )
    np.testing.assert_allclose(acc.jvp(b), [10.0, 20.0])
    np.testing.assert_allclose(acc.jvp(c), [1.0, 6.0])

    @gt.function
    def inside(x: gt.Tensor, v: gt.Tensor) -> gt.Tensor:
        with gt.ForwardAccumulator(x, v) as acc:
            y = gt.sin(x) * x
        return acc.jvp(y)

    np.testing.assert_allclose(inside(x, v), acc.jvp(a), rtol=1e-6)


def test_a_gradient_function_that_no_tape_follows_is_refused() -> None:
    @gt.custom_gradient
    def opaque(x: gt.Tensor) -> Any:
        return x * 1.0, lambda dy: gt.constant(dy.numpy() * 2.0)

    with (
        pytest.raises(GradientError, match=r"opaque: forward mode.*must consist of.*ops"),
        gt.ForwardAccumulator(x := gt.constant([1.0]), gt.constant([1.0])),
    ):
        opaque(x)


def test_stop_gradient_and_integers_pass_no_tangent() -> None:
    x = gt.constant([1.0, 2.0])
    with gt.ForwardAccumulator(x, gt.ones(2)) as acc:
        y, z = gt.stop_gradient(x), gt.argmax(x)
        w = y * x
    assert acc.jvp(y) is None
    assert acc.jvp(z) is None
    assert acc.jvp(w).tolist() == [1.0, 2.0]


def test_an_assigned_variable_keeps_its_tangent_as_it_keeps_its_gradient() -> None:
    v, x = gt.Variable(2.0), gt.constant(3.0)
    with (
        gt.GradientTape() as tape,
        gt.ForwardAccumulator([v, x], [gt.constant(1.0), gt.constant(1.0)]) as acc,
    ):
        tape.watch(x)
        y = v * v
        v.assign(x * 5.0)
        z = v * x
    assert acc.jvp(y).item() == 4.0
    assert acc.jvp(z).item() == 18.0
    assert sum(g.item() for g in tape.gradient(z, [v, x])) == 18.0


def test_tangents_of_results_that_are_gone_are_gone() -> None:
    x = gt.constant(np.ones(3))
    with gt.ForwardAccumulator(x, gt.ones(3)) as acc:
        y = x
        for _ in range(100):
            y = gt.sin(y)
    assert len(acc.records) == 2  # of x and of the last y


def test_complex_tangents_are_true_directional_derivatives() -> None:
    z = gt.constant(np.array([1 + 2j, 3 - 1j]))
    t = gt.constant(np.array([1j, 2 + 0.5j]))
    with gt.ForwardAccumulator(z, t) as acc:
        square, size, part = z * z, gt.abs(z), gt.real(gt.exp(z))
    np.testing.assert_allclose(acc.jvp(square), 2 * z.numpy() * t.numpy())
    np.testing.assert_allclose(
        acc.jvp(size), (np.conj(z.numpy()) * t.numpy()).real / np.abs(z.numpy())
    )
    np.testing.assert_allclose(acc.jvp(part), (np.exp(z.numpy()) * t.numpy()).real)


def test_a_registered_rule_is_used() -> None:
    op = gt.registry().op("sinh")
    known, seen = op.jvp, []
    try:

        @gt.register_jvp("sinh")
        def rule(tangents: Any, inputs: Any, outputs: Any) -> Any:
            seen.append(tangents[0].shape)
            return tangents[0] * gt.cosh(inputs[0])

        np.testing.assert_allclose(
            gt.jvp(gt.sinh, np.array([0.5]), np.array([2.0]))[1], [2 * np.cosh(0.5)]
        )
    finally:
        op.jvp = known
    assert seen == [(1,)]
    with pytest.raises(LookupError, match="no_such_op"):
        gt.register_jvp("no_such_op")


@pytest.mark.parametrize(
    ("primals", "tangents", "error", "message"),
    [
        (gt.ones(2), [gt.ones(2)], ValueError, "do not have the same structure"),
        (
            gt.ones(2),
            gt.ones(3),
            ValueError,
            r"a tangent has shape \(3,\), but its primal has \(2,\)",
        ),
        (gt.constant([1]), gt.constant([1]), TypeError, "a primal of dtype int64 has no tangent"),
        (gt.ones(2), gt.constant([1j, 1j]), TypeError, "does not fit a real primal"),
        (np.ones(2), np.ones(2), TypeError, "must be a Tensor or Variable, got ndarray"),
    ],
)
def test_bad_primals_and_tangents(primals: Any, tangents: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        gt.ForwardAccumulator(primals, tangents)


def test_the_same_primal_twice_and_reentry() -> None:
    x = gt.ones(2)
    with pytest.raises(ValueError, match="the same primal is given twice"):
        gt.ForwardAccumulator([x, x], [gt.ones(2), gt.ones(2)])
    with (
        gt.ForwardAccumulator(x, gt.ones(2)) as acc,
        pytest.raises(RuntimeError, match="already recording"),
        acc,
    ):
        pass
    with pytest.raises(TypeError, match="expected a Tensor or Variable, got str"):
        acc.jvp("y")
