"""What TensorFlow's tape does and its guides leave unsaid; one test a fact, by number.

Each holds in gradtape's names and in TensorFlow's: `lib` is one, then the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading

import numpy as np
import pytest


def gradients_of(lib, f, *values):
    xs = [lib.constant(value) for value in values]
    with lib.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return tape.gradient(y, xs)


def gradient_of(lib, f, value):
    return gradients_of(lib, f, value)[0]


def derivatives(lib, f, at, orders):
    """The first derivatives of a function of one number, by tapes inside tapes."""
    x = lib.constant(at)
    tapes = [lib.GradientTape() for _ in range(orders)]
    for tape in tapes:
        tape.__enter__()
        tape.watch(x)
    value, found = f(x), []
    for tape in reversed(tapes):
        tape.__exit__(None, None, None)
        value = tape.gradient(value, x)
        found.append(value.numpy())
    return found


# -- tape ------------------------------------------------------------------------------------------


def test_fact_01_watched_variables_are_in_order_of_creation(lib) -> None:
    a, b, c = (lib.Variable(x) for x in (1.0, 2.0, 3.0))
    with lib.GradientTape() as tape:
        tape.watch(c)
        c + a + b
    watched = tape.watched_variables()
    assert isinstance(watched, tuple)
    assert all(x is y for x, y in zip(watched, (a, b, c), strict=True))
    fixed = lib.Variable(4.0, trainable=False)
    for read, given, want in (
        (lambda: b + a, c, (a, b, c)),
        (lambda: a * fixed, [fixed, a], (a, fixed)),
        (lambda: a * fixed, [], (a,)),
    ):
        with lib.GradientTape() as tape:
            tape.watch(given)
            read()
        assert [v is w for v, w in zip(tape.watched_variables(), want, strict=True)] == (
            [True] * len(want)
        )


def test_fact_02_reading_watches_creating_does_not_nor_reading_while_stopped(lib) -> None:
    with lib.GradientTape() as tape:
        a = lib.Variable(1.0)
        assert tape.watched_variables() == ()
        b = lib.Variable(2.0)
        with tape.stop_recording():
            b * 1.0
        assert tape.watched_variables() == ()
        a * 1.0
    assert [v is a for v in tape.watched_variables()] == [True]


def test_fact_03_a_target_that_is_a_source_contributes_its_own_one(lib) -> None:
    a = lib.constant(7.0)
    with lib.GradientTape() as tape:
        pass
    assert tape.gradient(a, a).numpy() == 1.0

    x, y = lib.constant(3.0), lib.constant(5.0)
    with lib.GradientTape() as tape:
        tape.watch([x, y])
        z = y**2
    assert [g.numpy() for g in tape.gradient([x, y, z], [x, y])] == [1.0, 11.0]


@pytest.mark.parametrize("ask", ["gradient", "jacobian"])
def test_fact_04_an_answer_of_none_uses_up_the_tape_inside_its_context_too(lib, ask) -> None:
    x, other = lib.constant([3.0]), lib.constant(1.0)
    with lib.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert getattr(tape, ask)(y, other) is None
        with pytest.raises(RuntimeError, match="persistent"):
            tape.gradient(y, x)


def test_fact_05_reads_before_and_after_an_assignment_are_summed(lib) -> None:
    v = lib.Variable(2.0)
    with lib.GradientTape() as tape:
        y = v**2
        v.assign(10.0)
        z = v**3
        total = y + z
    assert tape.gradient(total, v).numpy() == 304.0


def test_fact_06_assignment_is_not_differentiated_through(lib) -> None:
    v, x = lib.Variable(2.0), lib.constant(3.0)
    with lib.GradientTape() as tape:
        tape.watch(x)
        y = v.assign(x * 5.0) * 3.0
    assert y.numpy() == 45.0
    dx, dv = tape.gradient(y, [x, v])
    assert dx is None
    assert dv.numpy() == 3.0


def test_fact_07_tapes_may_be_closed_in_any_order(lib) -> None:
    x = lib.constant(3.0)
    first, second = lib.GradientTape(), lib.GradientTape()
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


def test_fact_07_a_new_thread_starts_without_tapes(lib) -> None:
    x = lib.constant(3.0)
    made = []
    with lib.GradientTape(persistent=True) as tape:
        tape.watch(x)
        context = contextvars.copy_context()
        for run in (lambda: x * x, lambda: context.run(lambda: x * x)):
            thread = threading.Thread(target=lambda run=run: made.append(run()))
            thread.start()
            thread.join()
    assert tape.gradient(made[0], x) is None
    assert "thread" in tape.explain(made[0], x)
    assert tape.gradient(made[1], x).numpy() == 6.0  # ours: with the context, it records


def test_fact_07_asyncio_tasks_record_on_the_tapes_of_who_started_them(lib) -> None:
    x = lib.constant(3.0)

    async def cube():
        y = x * x
        await asyncio.sleep(0)
        return y * x

    async def main():
        with lib.GradientTape() as tape:
            tape.watch(x)
            parts = await asyncio.gather(cube(), cube())
            total = parts[0] + parts[1]
        return tape.gradient(total, x).numpy()

    assert asyncio.run(main()) == 54.0


def test_fact_08_stop_recording_pauses_its_own_tape_alone(lib) -> None:
    x = lib.constant(3.0)
    with lib.GradientTape() as a, lib.GradientTape() as b:
        a.watch(x)
        b.watch(x)
        with a.stop_recording():
            y = x * x
    assert a.gradient(y, x) is None
    assert b.gradient(y, x).numpy() == 6.0


def test_fact_09_a_reset_forgets_watched_constants(lib) -> None:
    x = lib.constant(3.0)
    with lib.GradientTape() as tape:
        tape.watch(x)
        tape.reset()
        y = x * x
    assert tape.gradient(y, x) is None


def test_fact_10_empty_and_malformed_arguments(lib) -> None:
    x = lib.constant(3.0)
    with lib.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient([], x) is None
    assert tape.gradient(y, []) == []
    with pytest.raises(TypeError, match="target"):
        tape.gradient(None, x)
    for targets, upstream in (([y], [None]), ([y, y], [lib.constant(1.0), None])):
        with pytest.raises(ValueError, match="output_gradients contains None"):
            tape.gradient(targets, x, output_gradients=upstream)


def test_fact_11_an_integer_source_gives_none_or_an_integer_zero(lib) -> None:
    x = lib.constant(3, dtype="int32")
    with lib.GradientTape(persistent=True) as tape:
        tape.watch(x)
        targets = [x * 2.0, lib.cast(x, "float32") * 2.0]
    for y in targets:
        assert tape.gradient(y, x) is None
        for asked in ("zero", lib.UnconnectedGradients.ZERO):
            zero = tape.gradient(y, x, unconnected_gradients=asked)
            assert (zero.numpy(), zero.dtype) == (0, x.dtype)


def test_fact_12_times_zero_is_connected_zeros_like_is_not(lib) -> None:
    assert gradient_of(lib, lambda x: x * 0.0, 2.0).numpy() == 0.0
    assert gradient_of(lib, lambda x: x - x, 2.0).numpy() == 0.0
    assert gradient_of(lib, lib.zeros_like, 2.0) is None
    assert gradient_of(lib, lib.ones_like, 2.0) is None


@pytest.mark.parametrize("source", ["constant", "Variable"])
def test_fact_13_the_third_derivative_of_a_square_is_unconnected(lib, source) -> None:
    x = getattr(lib, source)(2.0)
    with lib.GradientTape() as third:
        third.watch(x)
        with lib.GradientTape() as second:
            second.watch(x)
            with lib.GradientTape() as first:
                first.watch(x)
                y = x * x
            d1 = first.gradient(y, x)
        d2 = second.gradient(d1, x)
    assert d1.numpy() == 4.0
    assert d2.numpy() == 2.0
    assert third.gradient(d2, x) is None


def test_fact_14_jacobians_of_unconnected_and_of_empty_sources(lib) -> None:
    x, other = lib.ones([2, 3]), lib.ones([2, 4])
    with lib.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = x * x
    assert tape.jacobian(y, other) is None
    found = tape.batch_jacobian(y, other)
    assert found.shape == (2, 3, 4)
    assert not found.numpy().any()
    empty = lib.ones([1, 0])
    with lib.GradientTape() as tape:
        tape.watch(empty)
        y = empty * 2.0
    assert tape.batch_jacobian(y, empty).shape == (1, 0, 0)


def test_fact_15_batch_jacobian_through_batch_normalisation_is_a_sum(lib) -> None:
    x = lib.random.normal([4, 2])
    layer = lib.BatchNorm()
    with lib.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = layer(x, training=True) ** 3
    summed = lib.sum(tape.jacobian(y, x), axis=0)
    found = tape.batch_jacobian(y, x)
    assert np.abs(found.numpy()).max() > 1e-3
    np.testing.assert_allclose(found, lib.transpose(summed, [1, 0, 2]), atol=1e-5)
    with pytest.raises(ValueError, match="independent"):
        tape.batch_jacobian(y, x, check=True)  # ours


def test_fact_16_several_uses_run_backwards_once_with_the_summed_upstream(lib) -> None:
    upstream = []

    @lib.custom_gradient
    def noting(x):
        def backward(g):
            upstream.append(g.numpy())
            return g * 2.0

        return x * 2.0, backward

    def f(x):
        y = noting(x)
        return y * 3.0 + y * 4.0 + y

    assert gradient_of(lib, f, 1.0).numpy() == 16.0
    assert upstream == [8.0]


# -- dtypes, complex numbers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "at", "expected"),
    [
        (lambda lib, z: z * z, 1 + 2j, 2 - 4j),
        (lambda lib, z: z**2, 1 + 2j, 2 - 4j),
        (lambda lib, z: lib.real(z), 1 + 2j, 1),
        (lambda lib, z: lib.imag(z), 1 + 2j, 1j),
        (lambda lib, z: lib.abs(z), 3 + 4j, 0.6 + 0.8j),
        (lambda lib, z: lib.angle(z), 3 + 4j, -0.16 + 0.12j),
    ],
    ids=["product", "square", "real", "imag", "abs", "angle"],
)
def test_fact_17_holomorphic_gradients_are_conjugated(lib, f, at, expected) -> None:
    gradient = gradient_of(lib, lambda z: f(lib, z), np.complex128(at))
    assert gradient.dtype == np.complex128
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_fact_18_dtypes_promote_as_in_numpy(lib) -> None:
    for dtype in ({}, {"dtype": "int32"}):
        assert (lib.constant(1, **dtype) / lib.constant(2, **dtype)).dtype == np.float64
    x = lib.constant([1.0], dtype="float32")
    w = lib.constant([3.0], dtype="float64")
    with lib.GradientTape() as tape:
        tape.watch([x, w])
        y = x * w
    assert y.dtype == np.float64
    dx, dw = tape.gradient(y, [x, w])
    assert (dx.dtype, dw.dtype) == (np.float32, np.float64)


# -- custom gradients ------------------------------------------------------------------------------


def test_fact_19_an_output_that_nobody_used_gets_zeros_upstream(lib) -> None:
    seen = []

    @lib.custom_gradient
    def both(x):
        def backward(g_square, g_cube):
            seen.append((g_square.numpy(), g_cube.numpy()))
            return g_square * 2.0 * x + g_cube * 3.0 * x * x

        return (x * x, x * x * x), backward

    assert gradient_of(lib, lambda x: both(x)[0], 2.0).numpy() == 4.0
    assert seen == [(1.0, 0.0)]


def test_fact_20_returning_the_argument_yields_a_new_tensor(lib) -> None:
    @lib.custom_gradient
    def same(x):
        return x, lambda g: g * 10.0

    x = lib.constant(2.0)
    with lib.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = same(x)
    assert y is not x
    assert tape.gradient(y, x).numpy() == 10.0
    assert tape.gradient(x, x).numpy() == 1.0


@pytest.mark.parametrize("returned", ["a product", "the argument"])
def test_fact_20_closed_over_and_keyword_tensors_get_none(lib, returned) -> None:
    hidden, keyword, x = lib.constant(3.0), lib.constant(5.0), lib.constant(2.0)

    def product(x, *, k):
        return x * hidden * k, lambda g: g * hidden * k

    def argument(x, k=None):
        return x, lambda g: g * hidden * k

    f, value = (product, 30.0) if returned == "a product" else (argument, 2.0)
    with lib.GradientTape() as tape:
        tape.watch([hidden, keyword, x])
        y = lib.custom_gradient(f)(x, k=keyword)
    assert y is not x
    assert y.numpy() == value
    dx, dh, dk = tape.gradient(y, [x, hidden, keyword])
    assert dx.numpy() == 15.0
    assert dh is None
    assert dk is None


@pytest.mark.parametrize("taped", [False, True])
def test_fact_21_a_captured_trainable_variable_needs_the_variables_argument(lib, taped) -> None:
    v = lib.Variable(3.0, name="captured")

    @lib.custom_gradient
    def f(x):
        return x * v, lambda g: g * v

    x = lib.constant(2.0)
    tape = lib.GradientTape() if taped else contextlib.nullcontext()
    with tape, pytest.raises(TypeError, match=r"captured.*variables"):
        f(x)


def test_fact_21_the_variables_argument_takes_what_was_captured(lib) -> None:
    v = lib.Variable(3.0)

    @lib.custom_gradient
    def f(x):
        def backward(g, variables=None):
            assert variables[0] is v
            return g * v, [g * x]

        return x * v, backward

    x = lib.constant(2.0)
    with lib.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert [g.numpy() for g in tape.gradient(y, [x, v])] == [3.0, 2.0]


def test_fact_21_a_captured_fixed_variable_is_fine(lib) -> None:
    v = lib.Variable(3.0, trainable=False)

    @lib.custom_gradient
    def f(x):
        return x * v, lambda g: g * v

    assert gradient_of(lib, f, 2.0).numpy() == 3.0


def test_fact_22_wrong_rules_hold_at_every_order_also_when_nested_and_saved(lib, tmp_path) -> None:
    @lib.custom_gradient
    def wrong_cube(x):
        return x * x * x, lambda g: 10.0 * g * x * x

    @lib.custom_gradient
    def nested(x):  # x³ is said to be the derivative of x, on purpose
        return x, lambda g: g * wrong_cube(x)

    class Wrong(lib.Module):
        @lib.function(input_signature=[lib.TensorSpec([])])
        def plain(self, x):
            return wrong_cube(x)

        @lib.function(input_signature=[lib.TensorSpec([])])
        def deep(self, x):
            return nested(x)

    model = Wrong()
    lib.save(model, tmp_path / "wrong.h5")
    for module in (model, lib.load(tmp_path / "wrong.h5")):
        assert derivatives(lib, module.plain, 2.0, 3) == [40.0, 40.0, 20.0]
        assert derivatives(lib, module.deep, 2.0, 2) == [8.0, 40.0]
    assert derivatives(lib, wrong_cube, 2.0, 3) == [40.0, 40.0, 20.0]
    assert derivatives(lib, nested, 2.0, 2) == [8.0, 40.0]


# -- ops -------------------------------------------------------------------------------------------


def test_fact_23_ties(lib) -> None:
    np.testing.assert_array_equal(gradient_of(lib, lib.max, [0.0, 1.0, 1.0]), [0.0, 0.5, 0.5])
    assert gradient_of(lib, lambda x: lib.maximum(x, 0.0), 0.0).numpy() == 1.0
    assert gradient_of(lib, lambda x: lib.maximum(0.0, x), 0.0).numpy() == 0.0
    assert gradient_of(lib, lambda x: lib.minimum(x, 0.0), 0.0).numpy() == 1.0
    assert gradient_of(lib, lambda x: lib.minimum(0.0, x), 0.0).numpy() == 0.0


def test_fact_24_corners(lib) -> None:
    assert gradient_of(lib, lib.nn.relu, 0.0).numpy() == 0.0
    np.testing.assert_array_equal(
        gradient_of(lib, lambda x: lib.clip(x, -1.0, 1.0), [-2.0, -1.0, 1.0, 2.0]),
        [0.0, 1.0, 1.0, 0.0],
    )
    np.testing.assert_array_equal(gradient_of(lib, lib.nn.relu6, [0.0, 6.0]), [0.0, 0.0])
    for leaky in (
        lambda x: lib.nn.leaky_relu(x, 0.25),
        lambda x: lib.nn.leaky_relu(x, alpha=0.25),
    ):
        assert gradient_of(lib, leaky, 0.0).numpy() == 0.25


def test_fact_25_singular_points(lib) -> None:
    np.testing.assert_array_equal(
        gradient_of(lib, lib.norm, [0.0, 0.0]),
        [0.0, 0.0],  # ours: a subgradient
    )
    np.testing.assert_array_equal(
        gradient_of(lib, lambda x: lib.clip_by_norm(x, 0.5), [0.0, 0.0]), [1.0, 1.0]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        assert gradient_of(lib, lib.sqrt, 0.0).numpy() == np.inf
        leak = gradient_of(lib, lambda x: lib.where(x > 0.0, lib.log(x), 0.0), 0.0)
    assert np.isnan(leak.numpy())


def test_fact_26_steps(lib) -> None:
    assert gradient_of(lib, lib.sign, 2.0).numpy() == 0.0
    steps = (lib.floor, lib.ceil, lib.round, lambda x: x // 2.0, lambda x: x > 1.0)
    for step in (*steps, lambda x: lib.cast(x > 1.0, "float32")):
        assert gradient_of(lib, step, 2.5) is None


def test_fact_27_the_exponent_of_a_negative_base_gets_zero(lib) -> None:
    for power in (lib.pow, lambda x, y: x**y):
        d_base, d_exponent = gradients_of(lib, power, -2.0, 3.0)
        assert d_base.numpy() == 12.0
        assert d_exponent.numpy() == 0.0


def test_fact_28_a_product_with_a_zero(lib) -> None:
    np.testing.assert_array_equal(gradient_of(lib, lib.prod, [0.0, 4.0, 3.0]), [12.0, 0.0, 0.0])


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-6), ("float64", 1e-12)])
def test_fact_29_cross_entropy_differentiates_labels_and_logits(lib, dtype, rtol) -> None:
    labels = np.array([[0.5, 0.2, 0.1]], dtype)  # sums to 0.8 on purpose; TensorFlow takes it for 1
    logits = np.array([[1.0, 2.0, 3.0]], dtype)
    d_labels, d_logits = gradients_of(
        lib,
        lambda p, x: lib.nn.softmax_cross_entropy_with_logits(labels=p, logits=x),
        labels,
        logits,
    )
    exponentials = np.exp(np.float64(logits))
    softmax = exponentials / exponentials.sum()
    np.testing.assert_allclose(d_logits, labels.sum() * softmax - labels, rtol=4 * rtol)
    np.testing.assert_allclose(d_labels, -np.log(softmax), rtol=rtol)


def test_fact_30_the_condition_of_where_gets_no_gradient(lib) -> None:
    x, a, b = gradients_of(lib, lambda x, a, b: lib.where(x > 0.0, a, b), 2.0, 5.0, 7.0)
    assert x is None
    assert a.numpy() == 1.0
    assert b.numpy() == 0.0


# -- modules, functions, layers --------------------------------------------------------------------


def test_fact_31_variables_own_by_name_then_breadth_first_dict_keys_sorted(lib) -> None:
    class Leaf(lib.Module):
        def __init__(self, tag: str) -> None:
            super().__init__()
            self.w = lib.Variable(0.0, name=tag)

    class Branch(lib.Module):
        def __init__(self, tag: str) -> None:
            super().__init__()
            self.leaf = Leaf(f"{tag}.leaf")
            self.z = lib.Variable(0.0, name=f"{tag}.z")

    class Root(lib.Module):
        def __init__(self) -> None:
            super().__init__()
            self.z = lib.Variable(0.0, name="z")
            self.branches = {"b": Branch("b"), "a": Branch("a")}
            self.a = lib.Variable(0.0, name="own")

    names = [v.name for v in Root().variables]
    assert names == ["own", "z", "a.z", "b.z", "a.leaf", "b.leaf"]


def test_fact_32_names_are_snake_case_and_identifiers(lib) -> None:
    class HTTPServer2(lib.Module):
        pass

    assert HTTPServer2().name == "http_server2"
    with pytest.raises(ValueError, match="identifier"):
        HTTPServer2(name="not a name")


def test_fact_33_a_function_retraces_per_python_value(lib) -> None:
    traces = []

    @lib.function
    def f(x):
        traces.append(x)
        return lib.constant(1.0) * x

    counts = []
    for argument in (1, 1, 2, 2.0, 2, True, 1):
        f(argument)
        counts.append(len(traces))
    assert counts == [1, 1, 2, 3, 3, 4, 4]


def test_fact_34_assign_add_in_a_function_gives_none_for_the_delta(lib) -> None:
    v, x = lib.Variable(2.0), lib.constant(3.0)

    @lib.function
    def f(x):
        v.assign_add(x)
        return v * 2.0

    with lib.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert y.numpy() == 10.0
    dx, dv = tape.gradient(y, [x, v])
    assert dx is None
    assert dv.numpy() == 2.0


def test_fact_35_batch_normalisation(lib) -> None:
    layer = lib.BatchNorm(momentum=0.5)
    x = lib.constant([[1.0], [3.0], [8.0]])
    at_rest = layer(x)  # inference by default: moving statistics 0 and 1
    np.testing.assert_allclose(at_rest, x.numpy() / np.sqrt(1.0 + 1e-3), rtol=1e-6)
    with lib.GradientTape() as tape:
        y = lib.sum(layer(x, training=True) ** 2)
    np.testing.assert_allclose(layer.moving_mean, [0.5 * 4.0], rtol=1e-6)
    np.testing.assert_allclose(layer.moving_variance, [0.5 + 0.5 * np.var([1, 3, 8])], rtol=1e-6)
    assert tape.gradient(y, [layer.moving_mean, layer.moving_variance]) == [None, None]
