"""Plugins that come, go and change places: traced, compiled and saved functions follow."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import KERNEL_CACHES, Op

EXECUTORS = ["plain", "default", "planned", "fused"]


def alike(x):
    return x.shape, x.dtype


def kernels_of(by: float, at: str = "sin"):
    """Return a plugin whose kernel returns the input times a number."""

    def times(x):
        return x * np.asarray(by, x.dtype)

    return SimpleNamespace(gradtape_kernels=gt.hookimpl(lambda: {(at, "numpy"): times}))


def rule_of(by: float, at: str = "sin"):
    """Return a plugin whose gradient rule returns the upstream gradient times a number."""

    def times(g):
        return g * by

    return SimpleNamespace(gradtape_gradients=gt.hookimpl(lambda: {at: {"x": times}}))


def executor_of(by: float):
    """Return a plugin whose executor adds a number to each result."""

    def adding(graph):
        run = gt.registry().executor("plain")(graph)
        return lambda arrays: [x + np.asarray(by, x.dtype) for x in run(arrays)]

    return SimpleNamespace(gradtape_executors=gt.hookimpl(lambda: {"adding": adding}))


def slope(x):
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum(gt.sin(x) * x)
    return tape.gradient(y, x)


def looped(x):
    total, _ = gt.scan(lambda carry, row: (carry + gt.sin(row), carry), gt.sin(x[0]), x)
    return total


def model(x):
    """Return values, gradients, constants and examples, all of which the plugins change."""
    return (
        gt.sin(x) + gt.sin(gt.constant(1.0)),
        slope(x),
        gt.vmap(gt.grad(lambda row: gt.sin(row) * row))(x),
        gt.cond(gt.sum(x) > 0, lambda: gt.sin(x), lambda: x),
        gt.recompute_grad(gt.sin)(x),
        looped(x),
    )


def values(found):
    return [np.asarray(y) for y in found]


def close(a, b) -> None:
    for x, y in zip(values(a), values(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:order_plugins")  # it is set before the plugin is here
@pytest.mark.parametrize("seed", range(4))
def test_eager_traced_and_compiled_agree_after_every_change(seed: int) -> None:
    draw = random.Random(seed)
    plugins = {
        "double": kernels_of(2.0),
        "triple": kernels_of(3.0),
        "products": kernels_of(5.0, at="cos"),
        "steep": rule_of(7.0),
        "steeper": rule_of(11.0),
        "slow": rule_of(13.0, at="cos"),
    }
    here: list[str] = []
    x = gt.constant([0.5, 1.5, 2.5])
    traced = {name: gt.function(model, executor=name) for name in EXECUTORS}
    selected = gt.function(model)
    outer = gt.function(lambda x: [gt.sin(y) for y in selected(x)])
    inner = gt.function(lambda x: gt.sin(x) * x)

    def check() -> None:
        eager = model(x)
        for function in traced.values():
            close(function(x), eager)
        close(selected(x), eager)
        close(outer(x), [gt.sin(y) for y in eager])
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.sum(inner(x))
        close([tape.gradient(y, x)], [slope(x)])
        close([gt.vmap(inner)(x)], [gt.sin(x) * x])

    order: list[str] = []
    try:
        check()
        for _ in range(10):
            name = draw.choice(list(plugins))
            match draw.choice(["here", "here", "order", "disable"]):
                case "here" if name in here:
                    gt.unregister_plugin(name)
                    here.remove(name)
                case "here":
                    order = [name, *(x for x in order if x != name)]
                    gt.order_plugins([x for x in order if x in here])
                    register(plugins[name], name, here, order)
                case "order":
                    draw.shuffle(order)
                    gt.order_plugins([x for x in order if x in here])
                case "disable" if name in here:
                    gt.disable_plugin(name)
                    check()
                    gt.disable_plugin(name, disabled=False)
            check()
    finally:
        for name in here:
            gt.unregister_plugin(name)
        gt.order_plugins([])
    check()
    close([selected(x)[0]], [np.sin(np.float32([0.5, 1.5, 2.5])) + np.sin(np.float32(1.0))])


def register(plugin, name: str, here: list[str], order: list[str]) -> None:
    """Register a plugin after those that are here, in an order in which each has a place."""
    gt.order_plugins([x for x in order if x in here or x == name])
    gt.register_plugin(plugin, name)
    here.append(name)


@pytest.fixture
def use():
    """Return a function that registers a plugin until the test ends, or until it is called."""
    names = []

    def add(plugin, name: str = "changing"):
        gt.register_plugin(plugin, name)
        names.append(name)

        def end() -> None:
            names.remove(name)
            gt.unregister_plugin(name)

        return end

    yield add
    for name in reversed(names):
        gt.unregister_plugin(name)


def test_an_executor_that_is_replaced_runs_graphs_anew(use) -> None:
    end = use(executor_of(1.0))
    three = gt.constant(3.0)
    square = gt.function(lambda x: x * x, executor="adding")
    concrete = square.get_concrete_function(three)
    assert (square(three).item(), concrete(three).item()) == (10.0, 10.0)
    end()
    with pytest.raises(LookupError, match="no plugin provides the executor 'adding'"):
        square(three)
    use(executor_of(2.0))
    assert (square(three).item(), concrete(three).item()) == (11.0, 11.0)


def test_a_function_that_was_saved_follows_kernels_and_rules(use, tmp_path) -> None:
    module = gt.Module()
    module.f = gt.function(gt.sin, input_signature=[gt.TensorSpec([2])])
    gt.save(module, tmp_path / "m.h5")
    f = gt.load(tmp_path / "m.h5").f
    x = gt.constant([1.0, 2.0])

    def told():
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return f(x).tolist(), tape.gradient(y, x).tolist()

    before = told()
    end = use(kernels_of(2.0)), use(rule_of(7.0), "rule")
    assert told() == ([2.0, 4.0], [7.0, 7.0])
    for undo in end:
        undo()
    assert told() == before


def test_a_compiled_training_step_follows(use) -> None:
    data = gt.ones((8, 1)), gt.zeros((8, 1))
    model = gt.layers.Sequential([gt.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
    model.build((8, 1))

    class Late:
        def on_train_batch_end(self, batch, logs):
            weights.append(model.weights[0].item())
            if batch == 2:
                ends.append(use(rule_of(10.0)))
            if batch == 4:
                ends.pop()()

    ends: list = []
    weights: list[float] = []
    gt.training.fit(
        model,
        data,
        optimizer=gt.training.SGD(0.01),
        loss=lambda y, p: gt.mean(gt.sin(p - y)),
        batch_size=1,
        shuffle=False,
        compile=True,
        verbose=False,
        callbacks=[Late()],
    )
    usual = [0.01 * np.cos(w) for w in [1.0, *weights]]
    moved = -np.diff([1.0, *weights])
    np.testing.assert_allclose(moved[[0, 1, 2, 5, 6]], np.take(usual, [0, 1, 2, 5, 6]), rtol=1e-3)
    np.testing.assert_allclose(moved[3:5], 0.1, rtol=1e-3)


def test_a_plugin_that_changes_nothing_in_use_causes_no_new_trace(use) -> None:
    runs = []

    @gt.function
    def f(x):
        runs.append(1)
        return slope(x) + gt.erf(x)

    x, meanings = gt.constant([1.0]), KERNEL_CACHES.meanings
    f(x)
    op = Op("other::op", lambda xp, x: x, infer=alike, gradients={"x": lambda g: g})
    use(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [op])), "other")
    use(executor_of(1.0))
    f(x)
    assert (runs, KERNEL_CACHES.meanings) == ([1], meanings)
    use(kernels_of(3.0, at="cos"), "kernels")
    f(x)
    f(x)
    assert runs == [1, 1]


def test_an_op_that_is_replaced_by_another_of_its_name_is_traced_anew(use) -> None:
    def provider(by: float):
        op = Op("acme::op", lambda xp, x: x * by, infer=alike, gradients={"x": lambda g: g * by})
        return SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [op]))

    f = gt.function(lambda x: gt.registry().op("acme::op")(x))
    end = use(provider(2.0), "acme")
    assert f(gt.constant(1.0)).item() == 2.0
    end()
    with pytest.raises(LookupError, match="acme::op"):
        f(gt.constant(1.0))
    use(provider(3.0), "acme")
    assert f(gt.constant(1.0)).item() == 3.0


def test_a_rule_that_is_registered_by_hand_is_traced_anew(use) -> None:
    op = Op("hand::op", lambda xp, x: x, infer=alike, gradients={"x": lambda g: g})
    use(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [op])), "hand")
    f = gt.function(gt.grad(op))
    assert f(gt.constant(1.0)).item() == 1.0
    gt.register_gradient("hand::op", override=True)(lambda g: g * 2.0)
    assert f(gt.constant(1.0)).item() == 2.0


def test_explain_says_which_plugin_won(use) -> None:
    use(kernels_of(2.0), "fast")
    use(rule_of(7.0), "steep")
    f = gt.function(lambda x: gt.cond(gt.sum(x) > 0, lambda: gt.sin(x), lambda: x))
    told = f.explain(gt.ones(2))
    assert "\nkernel sin on numpy: plugin 'fast' wins over plugin 'ops' (gradtape " in told
    assert "\nrule sin: plugin 'steep' wins over plugin 'ops' (gradtape " in told
    assert "wins" not in gt.function(gt.cos).explain(gt.ones(2))


@pytest.mark.parametrize("name", ["plain", "default"])
def test_what_jax_compiled_is_compiled_again(use, name: str) -> None:
    jnp = pytest.importorskip("jax.numpy")

    def doubled(x):
        return x * jnp.asarray(2, x.dtype)

    x = gt.constant([0.5, 1.0]).to("jax")
    f = gt.function(lambda x: gt.sin(x) + 1.0, executor=name)
    step = gt.function(slope, executor=name)
    before = f(x).tolist(), step(x).tolist()
    kernel = SimpleNamespace(gradtape_kernels=gt.hookimpl(lambda: {("sin", "jax"): doubled}))
    end = use(kernel, "doubled"), use(rule_of(7.0), "steep")
    assert f(x).tolist() == [2.0, 3.0]
    close([step(x).to("numpy")], [slope(x).to("numpy")])
    for undo in end:
        undo()
    assert (f(x).tolist(), step(x).tolist()) == before


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_constant_does_not_outlive_the_op_that_computed_it(executor) -> None:
    op = Op("gone::double", lambda xp, x: 2 * x, infer=alike)
    f = gt.function(lambda x: gt.ops.gone.double(x), executor=executor)
    with gt.register_plugin(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [op])), "gone"):
        assert f(1.0).item() == 2.0  # a number is a constant of the trace
    with pytest.raises(AttributeError, match="gone"):
        f(1.0)
