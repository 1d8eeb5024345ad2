"""What TensorFlow's tape does and its guides leave unsaid; one test a fact, by number.

Jacobians (facts 14 and 15) are elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading

import numpy as np
import pytest

import gradtape as gt


def value_and_gradient(f, x):
    x = gt.constant(x)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return y, tape.gradient(y, x)


def gradient_of(f, x):
    return value_and_gradient(f, x)[1]


# -- tape ------------------------------------------------------------------------------------------


def test_fact_01_watched_variables_are_in_order_of_creation() -> None:
    a, b, c = gt.Variable(1.0), gt.Variable(2.0), gt.Variable(3.0)
    with gt.GradientTape() as tape:
        tape.watch(c)
        c + a + b
    watched = tape.watched_variables()
    assert isinstance(watched, tuple)
    assert all(x is y for x, y in zip(watched, (a, b, c), strict=True))
    with gt.GradientTape() as tape:
        tape.watch(c)
        a * 1.0
    assert [v is a for v in tape.watched_variables()] == [True]


def test_fact_02_reading_watches_creating_does_not_nor_reading_while_stopped() -> None:
    with gt.GradientTape() as tape:
        a = gt.Variable(1.0)
        assert tape.watched_variables() == ()
        b = gt.Variable(2.0)
        with tape.stop_recording():
            b * 1.0
        assert tape.watched_variables() == ()
        a * 1.0
    assert [v is a for v in tape.watched_variables()] == [True]


def test_fact_03_a_target_that_is_a_source_contributes_its_own_one() -> None:
    a = gt.constant(7.0)
    with gt.GradientTape() as tape:
        pass
    assert tape.gradient(a, a).numpy() == 1.0

    x, y = gt.constant(3.0), gt.constant(5.0)
    with gt.GradientTape() as tape:
        tape.watch([x, y])
        z = y * y
    assert [g.numpy() for g in tape.gradient([x, y, z], [x, y])] == [1.0, 11.0]


def test_fact_04_an_answer_of_none_uses_up_the_tape_inside_its_context_too() -> None:
    x, other = gt.constant(3.0), gt.constant(1.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert tape.gradient(y, other) is None
        with pytest.raises(RuntimeError, match="persistent"):
            tape.gradient(y, x)


def test_fact_05_reads_before_and_after_an_assignment_are_summed() -> None:
    v = gt.Variable(2.0)
    with gt.GradientTape() as tape:
        y = v * v
        v.assign(10.0)
        z = v**3
        total = y + z
    assert tape.gradient(total, v).numpy() == 304.0


def test_fact_06_assignment_is_not_differentiated_through() -> None:
    v, x = gt.Variable(2.0), gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = v.assign(x * 5.0) * 3.0
    assert y.numpy() == 45.0
    dx, dv = tape.gradient(y, [x, v])
    assert dx is None
    assert dv.numpy() == 3.0


def test_fact_07_tapes_may_be_closed_in_any_order() -> None:
    x = gt.constant(3.0)
    first, second = gt.GradientTape(), gt.GradientTape()
    first.__enter__()
    second.__enter__()
    first.watch(x)
    second.watch(x)
    y = x * x
    first.__exit__(None, None, None)
    z = y * x  # seen by the second alone
    second.__exit__(None, None, None)
    assert first.gradient(z, x) is None
    assert second.gradient(z, x).numpy() == 27.0


def test_fact_07_a_new_thread_starts_without_tapes() -> None:
    x = gt.constant(3.0)
    made = []
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        thread = threading.Thread(target=lambda: made.append(x * x))
        thread.start()
        thread.join()
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: made.append(context.run(lambda: x * x)))
        thread.start()
        thread.join()
    assert tape.gradient(made[0], x) is None
    assert "thread" in tape.explain(made[0], x)
    assert tape.gradient(made[1], x).numpy() == 6.0


def test_fact_07_asyncio_tasks_record_on_the_tapes_of_who_started_them() -> None:
    x = gt.constant(3.0)

    async def cube() -> gt.Tensor:
        y = x * x
        await asyncio.sleep(0)
        return y * x

    async def main() -> list[float]:
        with gt.GradientTape() as tape:
            tape.watch(x)
            parts = await asyncio.gather(cube(), cube())
            total = parts[0] + parts[1]
        return tape.gradient(total, x).item()

    assert asyncio.run(main()) == 54.0


def test_fact_08_stop_recording_pauses_its_own_tape_alone() -> None:
    x = gt.constant(3.0)
    with gt.GradientTape() as a, gt.GradientTape() as b:
        a.watch(x)
        b.watch(x)
        with a.stop_recording():
            y = x * x
    assert a.gradient(y, x) is None
    assert b.gradient(y, x).numpy() == 6.0


def test_fact_09_a_reset_forgets_watched_constants() -> None:
    x = gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        tape.reset()
        y = x * x
    assert tape.gradient(y, x) is None


def test_fact_10_empty_and_malformed_arguments() -> None:
    x = gt.constant(3.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient([], x) is None
    assert tape.gradient(y, []) == []
    with pytest.raises(TypeError, match="target"):
        tape.gradient(None, x)
    with pytest.raises(ValueError, match="output_gradients contains None"):
        tape.gradient([y, y], x, output_gradients=[gt.constant(1.0), None])


def test_fact_11_an_integer_source_gives_none_or_an_integer_zero() -> None:
    x = gt.constant(3)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * 2.0
    assert tape.gradient(y, x) is None
    zero = tape.gradient(y, x, unconnected_gradients="zero")
    assert zero.numpy() == 0
    assert zero.dtype == x.dtype


def test_fact_12_times_zero_is_connected_zeros_like_is_not() -> None:
    assert gradient_of(lambda x: x * 0.0, 2.0).numpy() == 0.0
    assert gradient_of(lambda x: x - x, 2.0).numpy() == 0.0
    assert gradient_of(gt.zeros_like, 2.0) is None
    assert gradient_of(gt.ones_like, 2.0) is None


def test_fact_13_the_third_derivative_of_a_square_is_unconnected() -> None:
    x = gt.constant(2.0)
    with gt.GradientTape() as third:
        third.watch(x)
        with gt.GradientTape() as second:
            second.watch(x)
            with gt.GradientTape() as first:
                first.watch(x)
                y = x * x
            d1 = first.gradient(y, x)
        d2 = second.gradient(d1, x)
    assert d1.numpy() == 4.0
    assert d2.numpy() == 2.0
    assert third.gradient(d2, x) is None


def test_fact_16_several_uses_run_backwards_once_with_the_summed_upstream() -> None:
    upstream = []

    @gt.custom_gradient
    def noting(x):
        def backward(g):
            upstream.append(g.item())
            return g * 2.0

        return x * 2.0, backward

    x = gt.constant(1.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = noting(x)
        z = y * 3.0 + y * 4.0 + y
    assert tape.gradient(z, x).numpy() == 16.0
    assert upstream == [8.0]


# -- dtypes, complex numbers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "at", "expected"),
    [
        (lambda z: z * z, 1 + 2j, 2 - 4j),
        (lambda z: z**2, 1 + 2j, 2 - 4j),
        (gt.real, 1 + 2j, 1),
        (gt.imag, 1 + 2j, 1j),
        (gt.abs, 3 + 4j, 0.6 + 0.8j),
        (gt.angle, 3 + 4j, -0.16 + 0.12j),
    ],
)
def test_fact_17_holomorphic_gradients_are_conjugated(f, at, expected) -> None:
    gradient = gradient_of(f, np.complex128(at))
    assert gradient.dtype == np.complex128
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_fact_18_dtypes_promote_as_in_numpy() -> None:
    assert (gt.constant(1, dtype="int32") / gt.constant(2, dtype="int32")).dtype == np.float64
    x = gt.constant([1.0], dtype="float32")
    w = gt.constant([3.0], dtype="float64")
    with gt.GradientTape() as tape:
        tape.watch([x, w])
        y = x * w
    assert y.dtype == np.float64
    dx, dw = tape.gradient(y, [x, w])
    assert (dx.dtype, dw.dtype) == (np.float32, np.float64)


# -- custom gradients ------------------------------------------------------------------------------


def test_fact_19_an_output_that_nobody_used_gets_zeros_upstream() -> None:
    seen = []

    @gt.custom_gradient
    def both(x):
        def backward(g_square, g_cube):
            seen.append((g_square.numpy(), g_cube.numpy()))
            return g_square * 2.0 * x + g_cube * 3.0 * x * x

        return (x * x, x * x * x), backward

    x = gt.constant(2.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        square, _ = both(x)
    assert tape.gradient(square, x).numpy() == 4.0
    assert seen == [(1.0, 0.0)]


def test_fact_20_returning_the_argument_yields_a_new_tensor() -> None:
    @gt.custom_gradient
    def same(x):
        return x, lambda g: g * 10.0

    x = gt.constant(2.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = same(x)
    assert y is not x
    assert tape.gradient(y, x).numpy() == 10.0
    assert tape.gradient(x, x).numpy() == 1.0


def test_fact_20_closed_over_and_keyword_tensors_get_none() -> None:
    hidden, keyword, x = gt.constant(3.0), gt.constant(5.0), gt.constant(2.0)

    @gt.custom_gradient
    def f(x, *, k):
        return x * hidden * k, lambda g: g * hidden * k

    with gt.GradientTape() as tape:
        tape.watch([hidden, keyword, x])
        y = f(x, k=keyword)
    assert y.numpy() == 30.0
    dx, dh, dk = tape.gradient(y, [x, hidden, keyword])
    assert dx.numpy() == 15.0
    assert dh is None
    assert dk is None


@pytest.mark.parametrize("taped", [False, True])
def test_fact_21_a_captured_trainable_variable_needs_the_variables_argument(taped: bool) -> None:
    v = gt.Variable(3.0, name="captured")

    @gt.custom_gradient
    def f(x):
        return x * v, lambda g: g * v

    x = gt.constant(2.0)
    tape = gt.GradientTape() if taped else contextlib.nullcontext()
    with tape, pytest.raises(TypeError, match=r"captured.*variables"):
        f(x)


def test_fact_21_a_captured_fixed_variable_is_fine() -> None:
    v = gt.Variable(3.0, trainable=False)

    @gt.custom_gradient
    def f(x):
        return x * v, lambda g: g * v

    assert gradient_of(f, 2.0).numpy() == 3.0


def test_fact_22_a_nested_override_holds_at_every_order() -> None:
    @gt.custom_gradient
    def inner(x):  # x³ is said to be the derivative of x, on purpose
        return x, lambda g: g * wrong_cube(x)

    @gt.custom_gradient
    def wrong_cube(x):
        return x * x * x, lambda g: 10.0 * g * x * x

    x = gt.constant(2.0)
    with gt.GradientTape() as t2:
        t2.watch(x)
        with gt.GradientTape() as t1:
            t1.watch(x)
            y = inner(x)
        d1 = t1.gradient(y, x)
    assert d1.numpy() == 8.0
    assert t2.gradient(d1, x).numpy() == 40.0


# -- ops -------------------------------------------------------------------------------------------


def test_fact_23_ties() -> None:
    np.testing.assert_array_equal(gradient_of(gt.max, [0.0, 1.0, 1.0]), [0.0, 0.5, 0.5])
    assert gradient_of(lambda x: gt.maximum(x, 0.0), 0.0).numpy() == 1.0
    assert gradient_of(lambda x: gt.maximum(0.0, x), 0.0).numpy() == 0.0
    assert gradient_of(lambda x: gt.minimum(x, 0.0), 0.0).numpy() == 1.0
    assert gradient_of(lambda x: gt.minimum(0.0, x), 0.0).numpy() == 0.0


def test_fact_24_corners() -> None:
    assert gradient_of(gt.nn.relu, 0.0).numpy() == 0.0
    np.testing.assert_array_equal(
        gradient_of(lambda x: gt.clip(x, -1.0, 1.0), [-2.0, -1.0, 1.0, 2.0]), [0.0, 1.0, 1.0, 0.0]
    )
    np.testing.assert_array_equal(gradient_of(gt.nn.relu6, [0.0, 6.0]), [0.0, 0.0])
    assert gradient_of(lambda x: gt.nn.leaky_relu(x, 0.25), 0.0).numpy() == 0.25


def test_fact_25_singular_points() -> None:
    np.testing.assert_array_equal(gradient_of(gt.linalg.norm, [0.0, 0.0]), [0.0, 0.0])
    np.testing.assert_array_equal(
        gradient_of(lambda x: gt.clip_by_norm(x, 0.5), [0.0, 0.0]), [1.0, 1.0]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        assert gradient_of(gt.sqrt, 0.0).numpy() == np.inf
        leak = gradient_of(lambda x: gt.where(x > 0.0, gt.log(x), 0.0), 0.0)
    assert np.isnan(leak.numpy())


def test_fact_26_steps() -> None:
    assert gradient_of(gt.sign, 2.0).numpy() == 0.0
    for step in (gt.floor, gt.ceil, gt.round, lambda x: x // 2.0):
        assert gradient_of(step, 2.5) is None
    assert gradient_of(lambda x: gt.cast(x > 1.0, "float32"), 2.5) is None


def test_fact_27_the_exponent_of_a_negative_base_gets_zero() -> None:
    base, exponent = gt.constant(-2.0), gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch([base, exponent])
        y = base**exponent
    d_base, d_exponent = tape.gradient(y, [base, exponent])
    assert d_base.numpy() == 12.0
    assert d_exponent.numpy() == 0.0


def test_fact_28_a_product_with_a_zero() -> None:
    np.testing.assert_array_equal(gradient_of(gt.prod, [0.0, 4.0, 3.0]), [12.0, 0.0, 0.0])


def test_fact_29_cross_entropy_differentiates_labels_and_logits() -> None:
    labels = gt.constant([[0.5, 0.2, 0.1]], dtype="float64")  # sums to 0.8 on purpose
    logits = gt.constant([[1.0, 2.0, 3.0]], dtype="float64")
    with gt.GradientTape() as tape:
        tape.watch([labels, logits])
        loss = gt.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    d_labels, d_logits = tape.gradient(loss, [labels, logits])
    exponentials = np.exp(logits.numpy())
    softmax = exponentials / exponentials.sum()
    np.testing.assert_allclose(d_logits, softmax - labels.numpy(), rtol=1e-12)
    np.testing.assert_allclose(d_labels, -np.log(softmax), rtol=1e-12)


def test_fact_30_the_condition_of_where_gets_no_gradient() -> None:
    x = gt.constant(2.0)
    a, b = gt.constant(5.0), gt.constant(7.0)
    with gt.GradientTape() as tape:
        tape.watch([x, a, b])
        y = gt.where(x > 0.0, a, b)
    dx, da, db = tape.gradient(y, [x, a, b])
    assert dx is None
    assert da.numpy() == 1.0
    assert db.numpy() == 0.0


# -- modules, functions, layers --------------------------------------------------------------------


def test_fact_31_variables_own_by_name_then_breadth_first_dict_keys_sorted() -> None:
    class Leaf(gt.Module):
        def __init__(self, tag: str) -> None:
            super().__init__()
            self.w = gt.Variable(0.0, name=tag)

    class Branch(gt.Module):
        def __init__(self, tag: str) -> None:
            super().__init__()
            self.leaf = Leaf(f"{tag}.leaf")
            self.z = gt.Variable(0.0, name=f"{tag}.z")

    class Root(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.z = gt.Variable(0.0, name="z")
            self.branches = {"b": Branch("b"), "a": Branch("a")}
            self.a = gt.Variable(0.0, name="a")

    names = [v.name for v in Root().variables]
    assert names == ["a", "z", "a.z", "b.z", "a.leaf", "b.leaf"]


def test_fact_32_names_are_snake_case_and_identifiers() -> None:
    class HTTPServer2(gt.Module):
        pass

    assert HTTPServer2().name == "http_server2"
    with pytest.raises(ValueError, match="identifier"):
        HTTPServer2(name="not a name")


def test_fact_33_a_function_retraces_per_python_value() -> None:
    traces = []

    @gt.function
    def f(x):
        traces.append(x)
        return gt.constant(1.0) * x

    counts = []
    for argument in (1, 1, 2, 2.0, 2, True, 1):
        f(argument)
        counts.append(len(traces))
    assert counts == [1, 1, 2, 3, 3, 4, 4]


def test_fact_34_assign_add_in_a_function_gives_none_for_the_delta() -> None:
    v, x = gt.Variable(2.0), gt.constant(3.0)

    @gt.function
    def f(x):
        v.assign_add(x)
        return v * 2.0

    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert y.numpy() == 10.0
    dx, dv = tape.gradient(y, [x, v])
    assert dx is None
    assert dv.numpy() == 2.0


def test_fact_35_batch_normalisation() -> None:
    layer = gt.layers.BatchNorm(momentum=0.5)
    x = gt.constant([[1.0], [3.0], [8.0]])
    at_rest = layer(x)  # inference by default: moving statistics 0 and 1
    np.testing.assert_allclose(at_rest, x.numpy() / np.sqrt(1.0 + 1e-3), rtol=1e-6)
    with gt.GradientTape() as tape:
        y = gt.sum(layer(x, training=True) ** 2)
    np.testing.assert_allclose(layer.moving_mean, [0.5 * 4.0], rtol=1e-6)
    np.testing.assert_allclose(layer.moving_variance, [0.5 + 0.5 * np.var([1, 3, 8])], rtol=1e-6)
    assert tape.gradient(y, [layer.moving_mean, layer.moving_variance]) == [None, None]
