"""What is planned: sizes, packs, plugins' kernels, other backends; and what a plan says."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Op, hookimpl
from gradtape.plugins.planned import combining, plan


def explained(function: Any) -> str:
    with gt.executor("planned"):
        text: str = function.concrete_functions[0].explain()
        return text


def planned(**options: Any) -> Any:
    return lambda function: gt.function(function, executor="planned", **options)


def test_a_plan_says_what_it_does() -> None:
    ws = [gt.Variable(np.ones(n, "float32"), name=f"w{n}") for n in (2, 3)]

    @planned()
    def f(x: Any) -> Any:
        for w in ws:
            w.assign(w * 0.5 + 1.0)
        return gt.sum(gt.exp(x) * 2.0, axis=0), gt.sort(x)

    f(gt.ones((4, 3)))
    text = explained(f)
    assert "group over (4, 3), ufuncs: exp, multiply, add" in text
    assert "pack of 2 updates, 5 elements: multiply, add; writes w2, w3" in text
    assert (
        "a call of the kernel of sort, 1 times: its kernel cannot be divided into simpler ops"
        in text
    )
    assert "bytes" in text


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_relu_is_grouped_with_its_gradients_mask(dtype: str) -> None:
    slope = gt.function(gt.grad(lambda x: gt.sum(gt.nn.relu(x * 2.0) * x)), executor="planned")
    x = gt.constant(np.array([[-1.0, 0.5, -0.0, np.nan]] * 3, dtype))
    found = slope(x)
    assert found.numpy()[0, :3].tolist() == [0.0, 2.0, 0.0]
    assert np.isnan(found.numpy()[0, 3])
    text = slope.explain(x)
    assert "maximum" in text
    assert "relu" not in text


def test_open_sizes_are_planned_for_each_shape_up_to_a_bound() -> None:
    @planned(input_signature=[gt.TensorSpec([None, 3])])
    def f(x: Any) -> Any:
        return gt.nn.softmax(gt.tanh(x) * 2.0 + x.shape[0], axis=1)

    for n in range(plan._SHAPES + 3):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype("float32")
        with gt.executor("plain"):
            right = gt.function(f.python_function)(x).numpy()
        np.testing.assert_array_equal(f(gt.constant(x)).numpy(), right)
    text = explained(f)
    assert text.count("for inputs of shapes") == plan._SHAPES
    assert f"node by node: more than {plan._SHAPES} shapes" in text


def test_a_shape_that_does_not_fit_a_variable_is_refused_before_anything_changes() -> None:
    ws = [gt.Variable(np.zeros(3, "float32")) for _ in range(2)]

    @planned(input_signature=[gt.TensorSpec([None])])
    def f(x: Any) -> None:
        for w in ws:
            w.assign(x * 2.0 + 1.0)
        ws[0].assign(ws[0] * 2.0)

    with pytest.raises(ValueError, match="has shape"):
        f(gt.ones(2))
    assert [w.tolist() for w in ws] == [[0.0] * 3] * 2
    f(gt.ones(3))
    assert [w.tolist() for w in ws] == [[6.0] * 3, [3.0] * 3]


def test_unknown_ranks_and_sizes_of_values_run() -> None:
    @planned(input_signature=[gt.TensorSpec(None, "float32")])
    def f(x: Any) -> Any:
        positive = x[x > 0.0]
        return gt.exp(positive) * 2.0, gt.sum(positive)

    for x in (np.array([1.0, -1.0, 2.0]), np.array([[1.0], [-3.0]])):
        x = x.astype("float32")
        y, total = f(gt.constant(x))
        np.testing.assert_allclose(y.numpy(), np.exp(x[x > 0]) * 2, rtol=1e-6)
        assert total.item() == x[x > 0].sum()


def test_graphs_inside_fall_back_and_say_so() -> None:
    @planned()
    def f(x: Any) -> Any:
        y = gt.cond(gt.sum(x) > 0, lambda: x * 2.0, lambda: -x)
        return gt.exp(y) + 1.0

    x = np.array([1.0, 2.0], "float32")
    np.testing.assert_allclose(f(gt.constant(x)).numpy(), np.exp(2 * x) + 1, rtol=1e-6)
    assert "cond, 1 times: it runs graphs" in explained(f)


def test_custom_gradients_are_planned_through() -> None:
    @gt.custom_gradient
    def clipped(x: Any) -> Any:
        return x * 2.0, lambda g: gt.clip(g, -0.5, 0.5)

    @planned()
    def f(x: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.sum(clipped(x) * 3.0)
        return tape.gradient(y, x)

    assert f(gt.ones(4)).tolist() == [0.5] * 4


def test_a_kernel_that_a_plugin_brings_is_called() -> None:
    double = Op(
        "planned_test::double",
        lambda xp, x: x * 2,
        infer=lambda x: (x.shape, x.dtype),
    )

    class Plugin:
        @hookimpl
        def gradtape_ops(self) -> list[Op]:
            return [double]

        @hookimpl
        def gradtape_kernels(self) -> dict[Any, Any]:
            return {("planned_test::double", "numpy"): lambda x: x + x + 1}

    gt.register_plugin(Plugin(), "planned_test")
    try:
        f = planned()(lambda x: gt.exp(double(x)) + 0.0)
        assert f(gt.zeros(3)).tolist() == pytest.approx([np.e] * 3)
        assert "the backend has its own kernel for it" in explained(f)
    finally:
        gt.unregister_plugin("planned_test")


def test_a_kernel_of_a_plugin_may_write_to_a_buffer() -> None:
    double = Op("planned_test::double", lambda xp, x: x * 2, infer=lambda x: (x.shape, x.dtype))
    given: list[Any] = []

    def doubled(x: Any, *, out: Any = None) -> Any:
        given.append(out)
        return np.add(x, x, out=out)

    class Plugin:
        @hookimpl
        def gradtape_ops(self) -> list[Op]:
            return [double]

        @hookimpl
        def gradtape_kernels(self) -> dict[Any, Any]:
            return {("planned_test::double", "numpy"): doubled}

    gt.register_plugin(Plugin(), "planned_test")
    try:
        f = planned()(lambda x: (gt.exp(double(x)), double(x + 1)))
        for _ in range(3):
            inner, returned = f(gt.ones(3))
            assert inner.tolist() == pytest.approx([np.exp(2)] * 3)
            assert returned.tolist() == [4.0] * 3
    finally:
        gt.unregister_plugin("planned_test")
    assert given[0] is None  # the first results are checked
    tried, *buffers = [out for out in given if out is not None]  # also by a buffer of its own
    assert len(buffers) == 2  # a result that is returned is new
    assert buffers[0] is buffers[1]
    assert buffers[0] is not tried


def test_variables_with_other_updates_are_packed_apart() -> None:
    ws = [gt.Variable(np.full(n, 2.0, "float32")) for n in (3, 4, 5, 6, 7)]

    @planned()
    def f(x: Any) -> Any:
        for w in ws[:2]:
            w.assign(w * x)
        for w in ws[2:4]:
            w.assign(w - x)
        ws[4].assign(gt.ones(7) + x)

    right = [np.full(w.shape, 2.0, "float32") for w in ws]
    for x in (0.5, 3.0):
        f(gt.constant(x))
        right = [*[r * x for r in right[:2]], *[r - x for r in right[2:4]], np.full(7, 1 + x)]
        for w, r in zip(ws, right):
            np.testing.assert_array_equal(w.numpy(), r)
    assert explained(f).count("pack of 2 updates") == 2


def test_updates_are_packed_if_that_saves_enough_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combining, "_CALLS", 12)
    for count, times in ((6, 0), (7, 1)):
        ws = [gt.Variable(np.ones(n + 2, "float32")) for n in range(count)]

        @planned()
        def f(ws: Any = ws) -> None:
            for w in ws:
                w.assign(w * 0.5 + 1.0)

        f()
        assert explained(f).count("pack of") == times
        assert all(w.numpy().tolist() == [1.5] * w.shape[0] for w in ws)


def test_updates_that_read_each_other_are_right() -> None:
    a, b, c = (gt.Variable(np.full(4, k, "float32")) for k in (1.0, 2.0, 3.0))

    @planned()
    def f() -> Any:
        old = a.value + 0.0
        a.assign(b * 2.0)
        b.assign(old * 2.0)
        c.assign(a + b)
        return c.value

    assert f().tolist() == [6.0] * 4
    assert [v.numpy()[0] for v in (a, b, c)] == [4.0, 2.0, 6.0]
    assert f().tolist() == [12.0] * 4


def test_one_value_for_two_variables_is_right() -> None:
    a, b = gt.Variable(np.zeros(3, "float32")), gt.Variable(np.zeros(3, "float32"))

    @planned()
    def f(x: Any) -> Any:
        y = a * 0.5 + x
        a.assign(y)
        b.assign(y)
        return y

    first = f(gt.ones(3))
    f(gt.ones(3))
    assert (first.tolist(), a.tolist(), b.tolist()) == ([1.0] * 3, [1.5] * 3, [1.5] * 3)


def test_planning_takes_some_times_what_tracing_takes() -> None:
    random = np.random.default_rng(0)
    ws = [gt.Variable(random.standard_normal(s).astype("float32")) for s in ((64, 128), (128, 10))]
    norm = gt.layers.BatchNorm()
    optimizer = gt.training.Adam()
    x = gt.constant(random.standard_normal((32, 64)).astype("float32"))

    def step() -> Any:
        with gt.GradientTape() as tape:
            loss = gt.mean(gt.nn.relu(norm(x @ ws[0], training=True)) @ ws[1])
        optimizer.apply_gradients(zip(tape.gradient(loss, ws), ws))
        return loss

    step()
    traces, plans = [], []
    for _ in range(3):
        start = time.thread_time()
        graph = gt.function(step).get_concrete_function().graph
        traces.append(time.thread_time() - start)
        run = gt.registry().executor("planned")(graph)
        start = time.thread_time()
        run([])
        plans.append(time.thread_time() - start)
    assert min(plans) < 15 * min(traces)
