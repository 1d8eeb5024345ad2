"""``Graph``: its text, what pruning and merging leave, and that runs of it agree bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Op, hookimpl


def graph_of(f, *specs):
    return gt.function(f).get_concrete_function(*specs).graph


def op_names(graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def test_the_text_of_a_graph() -> None:
    v = gt.Variable([1.0, 2.0], name="w")

    def model(x, n):
        y = gt.sum(x * v, axis=0) + 2.0
        v.assign(v * 0.5)
        return y * gt.constant([3.0]), n

    graph = graph_of(model, gt.TensorSpec([None, 2], name="batch"), 7)
    text = str(graph)
    assert text.splitlines()[0] == "graph model(%batch: float32[n, 2]):"
    for line in (
        "read 'w'",
        "multiply(%batch, ",
        "sum(%",
        "axis=0",
        ", 2.0)",
        "assign 'w', %",
        "constant [3.]",
        "float32[2] = add(",
    ):
        assert line in text
    assert text.splitlines()[-1].strip().startswith("return %")
    assert repr(graph) == f"<Graph 'model': 1 inputs, {len(graph.nodes)} nodes>"


def test_the_text_of_long_constants_and_custom_gradients() -> None:
    @gt.custom_gradient
    def clipped(x):
        e = gt.exp(x)
        return e, lambda g: gt.minimum(g, 1.0) * e

    def model(x):
        return clipped(x) + np.zeros(100, np.float32)

    text = str(graph_of(model, gt.TensorSpec([100])))
    assert "constant ..." in text
    assert "custom_gradient clipped(%" in text
    assert "; of %x" in text
    assert "; saved %" in text
    assert "    graph clipped_gradient(" in text


def test_variables_and_custom_gradients_of_a_graph_are_found_in_nested_ones() -> None:
    a, b = gt.Variable(1.0, name="a"), gt.Variable(2.0, name="b", trainable=False)

    @gt.custom_gradient
    def inner(x):
        return x * 1.0, lambda g: g * b

    @gt.custom_gradient
    def outer(x):
        return inner(x), lambda g: inner(g)

    graph = graph_of(lambda x: outer(x) * a, gt.TensorSpec([]))
    assert [v.name for v in graph.variables] == ["b", "a"]
    assert [kind.label for kind in graph.custom_gradients] == ["inner", "outer", "inner"]


def test_dead_code_goes() -> None:
    v = gt.Variable(1.0)

    def f(x):
        gt.sin(x) * v + gt.constant([5.0])
        return x * 2.0

    graph = graph_of(f, gt.TensorSpec([]))
    assert op_names(graph) == ["multiply"]
    assert graph.variables == []
    assert not graph.constants


def test_code_that_assigns_stays() -> None:
    v = gt.Variable(1.0)
    graph = graph_of(lambda x: [v.assign(gt.sin(x)), x][1], gt.TensorSpec([]))
    assert op_names(graph) == ["sin", "written"]


def test_constants_are_shared() -> None:
    c = gt.constant([1.0, 2.0])
    graph = graph_of(lambda x: x * c + c, gt.TensorSpec([2]))
    assert len(graph.constants) == 1


def test_equal_subexpressions_run_once() -> None:
    calls = []

    class Plugin:
        @hookimpl
        def gradtape_ops(self):
            return [
                Op(
                    "counting::id",
                    lambda xp, x, *, tag=0: calls.append(tag) or x,
                    gradients={"x": lambda g: g},
                    infer=lambda x, tag: (x.shape, x.dtype),
                )
            ]

    gt.register_plugin(Plugin(), "counting")
    try:
        op = gt.registry().op("counting::id")
        f = gt.function(lambda x: op(x) + op(x) + op(x, tag=1) + op(x, tag=True))
        f(gt.constant(1.0))
        assert sorted(map(repr, calls)) == ["0", "1", "True"]
    finally:
        gt.unregister_plugin("counting")


def bits(tensor) -> bytes:
    return np.asarray(tensor).tobytes()


def network(x, w, b):
    h = gt.tanh(x @ w + b)
    again = gt.tanh(x @ w + b)  # merged where nobody differentiates
    return gt.sum(h * again * gt.exp(-again), axis=1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_merging_changes_no_bit_of_values_or_gradients(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, w, b = (gt.constant(rng.normal(size=s), dtype=dtype) for s in [(5, 4), (4, 3), (3,)])
    traced = gt.function(network)

    def all_gradients(f):
        with gt.GradientTape() as outer:
            outer.watch([x, w, b])
            with gt.GradientTape() as tape:
                tape.watch([x, w, b])
                y = f(x, w, b)
            first = tape.gradient(y, [x, w, b])
            total = sum(gt.sum(gt.abs(g) ** 2) for g in first)
        return [y, *first, *outer.gradient(total, [x, w, b])]

    for eager, graph in zip(all_gradients(network), all_gradients(traced), strict=True):
        assert bits(eager) == bits(graph)
    assert bits(traced(x, w, b)) == bits(network(x, w, b))


def test_a_traced_gradient_is_the_eager_one_bit_for_bit() -> None:
    rng = np.random.default_rng(1)
    x, w, b = (gt.constant(rng.normal(size=s)) for s in [(5, 4), (4, 3), (3,)])

    def gradients(x, w, b):
        with gt.GradientTape() as tape:
            tape.watch([w, b])
            y = network(x, w, b)
        return tape.gradient(y, [w, b])

    for eager, graph in zip(gradients(x, w, b), gt.function(gradients)(x, w, b), strict=True):
        assert bits(eager) == bits(graph)


def test_running_and_replaying_agree_also_on_variables() -> None:
    def make():
        v = gt.Variable([1.0, 2.0])
        w = gt.Variable([3.0, 4.0])

        @gt.function
        def swap(x):
            old = v.value
            v.assign(w * x)
            w.assign(old + v)
            return v * w, old

        return v, w, swap

    x = gt.constant([0.3, 0.7])
    v1, w1, run = make()
    v2, w2, replayed = make()
    for _ in range(3):
        got = run(x)
        with gt.GradientTape():
            expected = replayed(x)
        assert [bits(t) for t in got] == [bits(t) for t in expected]
        assert bits(v1) == bits(v2)
        assert bits(w1) == bits(w2)


def test_an_op_without_a_shape_rule_says_so() -> None:
    class Plugin:
        @hookimpl
        def gradtape_ops(self):
            return [Op("shapeless::id", lambda xp, x: x, gradients={"x": lambda g: g})]

    gt.register_plugin(Plugin(), "shapeless")
    try:
        op = gt.registry().op("shapeless::id")
        assert op(gt.constant(1.0)).item() == 1.0
        with pytest.raises(TypeError, match=r"shapeless::id.*infer="):
            gt.function(op)(gt.constant(1.0))
    finally:
        gt.unregister_plugin("shapeless")
