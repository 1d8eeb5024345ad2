"""Gradient rules, kernels and streams of numbers that differ where a module is saved or loaded."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
from fresh_process import assert_same_bits, run_isolated
from odd_modules import CASES, with_rules

import gradtape as gt
from gradtape.core.extend import NONDIFF, Op

X = np.array([[0.3, -0.7, 1.1], [0.2, 0.9, -0.4]], "float32")


def triple_exp(g: Any, out: Any) -> Any:
    return 3.0 * g * out


def slope(f: Any, x: Any = X) -> np.ndarray[Any, Any]:
    """Return a gradient without an op of its own."""
    x = gt.constant(x)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    found = tape.gradient(y, x)
    return np.zeros(0) if found is None else found.numpy()


def module_of(f: Callable[..., Any], shape: Any = (None, 3)) -> gt.Module:
    module = gt.Module("rules")
    module.f = gt.function(f, input_signature=[gt.TensorSpec(shape)])
    return module


@pytest.fixture(autouse=True)
def rules_as_before() -> Iterator[None]:
    """Fail a test that leaves a rule in the place of another: all saving would look at rules."""
    yield
    known = gt.registry()
    assert not [name for name, op in known.ops.items() if known.rules.replacer_of_rules(op)]


@pytest.fixture
def register(rules_as_before: None) -> Iterator[Callable[..., None]]:
    """Register plugins by hand, and take them back."""
    names: list[str] = []

    def add(name: str, **hooks: Any) -> None:
        plugin = SimpleNamespace(
            **{f"gradtape_{k}": gt.hookimpl(lambda v=v: v) for k, v in hooks.items()}
        )
        gt.register_plugin(plugin, name)
        names.append(name)

    yield add
    for name in reversed(names):
        gt.unregister_plugin(name)


# -- whose rule it is ------------------------------------------------------------------------------


def test_a_rule_given_by_a_plugin_to_an_op_of_another_is_kept(
    register: Any, tmp_path: Path
) -> None:
    register("through", gradients={"round": {"x": lambda g: 2.0 * g}})
    module = module_of(lambda x: gt.round(x) * x)
    here = slope(module.f)
    gt.save(module, tmp_path / "round.h5")
    printed = run_isolated(
        "f = gt.load(sys.argv[1]).f\n"
        "x = gt.constant(np.array(eval(sys.argv[2]), 'float32'))\n"
        "with gt.GradientTape() as tape:\n"
        "    tape.watch(x)\n"
        "    y = f(x)\n"
        "print(tape.gradient(y, x).tolist())\n",
        tmp_path / "round.h5",
        X.tolist(),
    )
    assert np.array_equal(np.float32(eval(printed)), here)
    assert not np.array_equal(here, np.round(X))


def test_a_rule_of_the_ops_own_plugin_is_not_in_the_file(register: Any, tmp_path: Path) -> None:
    op = Op("mine::cube", lambda xp, x: x**3, infer=lambda x: (x.shape, x.dtype))
    register("mine", ops=[op], gradients={"mine::cube": {"x": lambda g, x: g * x * x}})
    gt.save(module_of(lambda x: op(x)), tmp_path / "cube.h5")
    with h5py.File(tmp_path / "cube.h5") as file:
        assert "rules" not in file
    assert np.array_equal(slope(gt.load(tmp_path / "cube.h5").f), X * X)


def test_no_override_leaves_files_as_they_are(tmp_path: Path) -> None:
    module = module_of(lambda x: gt.exp(x) * x)
    gt.save(module, tmp_path / "a.h5")
    with with_rules({"exp": triple_exp}):
        pass
    gt.save(module, tmp_path / "b.h5")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_a_rule_outlives_plugins_that_come_and_go(register: Any, tmp_path: Path) -> None:
    with with_rules({"exp": triple_exp}):
        register("comes")  # the registry is made anew
        module = module_of(gt.exp)
        gt.save(module, tmp_path / "exp.h5")
        here = slope(module.f)
    assert np.array_equal(slope(gt.load(tmp_path / "exp.h5").f), here)
    assert not np.array_equal(here, np.exp(X))


def test_a_rule_over_that_of_a_plugin_stays_when_another_plugin_comes() -> None:
    hook = gt.hookimpl(lambda: {"round": {"x": lambda g: 2.0 * g}})
    round_ = gt.registry().op("round")
    kept = round_.rules, round_.vjp, round_.rules_provider
    gt.register_plugin(SimpleNamespace(gradtape_gradients=hook), "through")
    try:
        assert slope(gt.round).tolist() == [[2.0] * 3] * 2
        gt.register_gradient("round", override=True)(lambda g: 5.0 * g)
        gt.register_plugin(SimpleNamespace(), "comes")
        assert slope(gt.round).tolist() == [[5.0] * 3] * 2
        assert not any(info.problem for info in gt.registry().plugins)
        gt.unregister_plugin("comes")
    finally:
        gt.unregister_plugin("through")
        round_.rules, round_.vjp, round_.rules_provider = kept


def test_a_rule_assigned_to_an_op_is_kept_too(tmp_path: Path) -> None:
    op = gt.registry().op("exp")
    kept = op.rules
    try:
        op.set_gradients({"x": NONDIFF})
        module = module_of(lambda x: gt.exp(x) * x)
        here = slope(module.f)
        gt.save(module, tmp_path / "exp.h5")
    finally:
        op.rules = kept
    assert np.array_equal(slope(gt.load(tmp_path / "exp.h5").f), here)
    assert np.allclose(here, np.exp(X))


def test_a_forward_rule_is_refused_by_name(tmp_path: Path) -> None:
    op = gt.registry().op("exp")
    kept = op.jvp
    module = module_of(gt.exp)
    try:
        gt.register_jvp("exp")(lambda tangents, inputs, outputs: tangents[0] * 9.0)
        with pytest.raises(gt.saving.SaveError, match=r"'exp'.*register_jvp"):
            gt.save(module, tmp_path / "exp.h5")
        gt.save(module, tmp_path / "exp.h5", custom_gradients=False)
    finally:
        op.jvp = kept
    with pytest.raises(gt.errors.GradientError, match="'exp'"):
        gt.jvp(gt.load(tmp_path / "exp.h5").f, X, X)


@pytest.mark.parametrize(("factor", "kept"), [(1.0, True), (2.0, False)])
def test_a_kernel_of_another_plugin_must_give_what_the_ops_own_gives(
    factor: float, kept: bool, register: Any, tmp_path: Path
) -> None:
    op = Op("mine::cube", lambda xp, x: x**3, infer=lambda x: (x.shape, x.dtype))
    register("mine", ops=[op])
    register("fast", kernels={("mine::cube", "numpy"): lambda x: x * x * x * factor})
    module = module_of(lambda x: op(x))
    if kept:
        gt.save(module, tmp_path / "cube.h5")
        assert gt.saving.verify(tmp_path / "cube.h5").ok
    else:
        with pytest.raises(gt.saving.SaveError, match=r"'mine::cube'.*'fast'"):
            gt.save(module, tmp_path / "cube.h5")


# -- what a loaded function has --------------------------------------------------------------------


def test_the_rule_in_a_file_stays_whatever_this_process_registers(tmp_path: Path) -> None:
    with with_rules({"exp": triple_exp}):
        module = module_of(gt.exp)
        gt.save(module, tmp_path / "exp.h5")
        here = slope(module.f)
    with with_rules({"exp": lambda g: g * 100.0}), warnings.catch_warnings(action="error"):
        assert np.array_equal(slope(gt.load(tmp_path / "exp.h5").f), here)


def test_an_op_without_a_rule_in_the_file_has_that_of_this_process_and_loading_says_so(
    tmp_path: Path,
) -> None:
    gt.save(module_of(gt.exp), tmp_path / "exp.h5")
    with with_rules({"exp": lambda g: g * 100.0}):
        with pytest.warns(UserWarning, match=r"this process replaced gradient rules.*'exp' by"):
            loaded = gt.load(tmp_path / "exp.h5")
        assert slope(loaded.f).tolist() == [[100.0] * 3] * 2
        with pytest.warns(UserWarning, match="replaced"):
            report = gt.saving.verify(tmp_path / "exp.h5")
        assert not report.ok
        gt.save(loaded, tmp_path / "again.h5")
    assert slope(loaded.f).tolist() == np.exp(X).tolist()
    assert slope(gt.load(tmp_path / "again.h5").f).tolist() == [[100.0] * 3] * 2


def test_a_file_of_a_loaded_module_is_the_same(tmp_path: Path) -> None:
    with with_rules({"multiply": lambda g, x, y: (2.0 * g * y, g * x)}):
        gt.save(module_of(lambda x: gt.sin(x) * x), tmp_path / "a.h5")
    gt.save(gt.load(tmp_path / "a.h5"), tmp_path / "b.h5")
    gt.save(gt.load(tmp_path / "b.h5"), tmp_path / "c.h5")
    assert (tmp_path / "b.h5").read_bytes() == (tmp_path / "c.h5").read_bytes()
    found = [slope(gt.load(tmp_path / f"{name}.h5").f) for name in "abc"]
    assert_same_bits(found[1:], [found[0]] * 2)


def test_a_copy_of_a_loaded_module_has_the_rule(tmp_path: Path) -> None:
    with with_rules({"exp": triple_exp}):
        gt.save(module_of(gt.exp), tmp_path / "exp.h5")
    loaded = gt.load(tmp_path / "exp.h5")
    assert np.array_equal(slope(copy.deepcopy(loaded).f), slope(loaded.f))
    with with_rules(CASES["a_rule_with_a_trained_variable"].rules):
        gt.save(CASES["a_rule_with_a_trained_variable"].make(), tmp_path / "rate.h5")
    first = gt.load(tmp_path / "rate.h5")
    second = copy.deepcopy(first)
    before = slope(second.f)
    first.rate.assign(10.0)
    assert np.array_equal(slope(second.f), before)
    assert not np.array_equal(slope(first.f), before)
    op = loaded.f.concrete_functions[0].graph.nodes[0].op
    with pytest.raises(TypeError, match="save the module"):
        pickle.dumps(op)


def test_orders_beyond_those_kept_are_refused(tmp_path: Path) -> None:
    with with_rules({"multiply": lambda g, x, y: (2.0 * g * y, g * x)}):
        gt.save(module_of(lambda x: (x * 1.0) ** 9.5, ()), tmp_path / "power.h5")
    f = gt.load(tmp_path / "power.h5").f
    x = gt.constant(1.5)
    for _ in range(4):
        f = gt.grad(f)
        assert np.isfinite(f(x).item())
    with pytest.raises(gt.errors.GradientError, match="does not keep it"):
        gt.grad(f)(x)


WAYS: dict[str, Callable[..., Any]] = {
    "vmap": lambda f, x, v: gt.vmap(f, randomness="same")(x),
    "vmap of the gradient": lambda f, x, v: gt.vmap(lambda a: gt.constant(slope_of(f, a)))(x),
    "gradient of vmap": lambda f, x, v: slope_of(lambda a: gt.vmap(f)(a), x),
    "forward": lambda f, x, v: gt.jvp(f, x[0], v[0])[1],
    "forward twice": lambda f, x, v: gt.jvp(lambda a: gt.jvp(f, a, v[1])[1], x[0], v[0])[1],
    "forward over reverse": lambda f, x, v: gt.jvp(lambda a: slope_of(f, a), x[0], v[0])[1],
    "reverse over forward": lambda f, x, v: slope_of(lambda a: gt.jvp(f, a, v[0])[1], x[0]),
    "vmap of forward": lambda f, x, v: gt.vmap(lambda a, b: gt.jvp(f, a, b)[1])(x, v),
    "jacrev": lambda f, x, v: gt.jacrev(f)(x[0]),
    "jacfwd": lambda f, x, v: gt.jacfwd(f)(x[0]),
    "twice jacrev": lambda f, x, v: gt.jacrev(gt.jacrev(f))(x[0]),
    "traced": lambda f, x, v: gt.function(lambda a: slope_of(f, a))(x[0]),
    "traced vmap": lambda f, x, v: gt.function(gt.vmap(lambda a: slope_of(f, a)))(x),
}


def slope_of(f: Any, x: Any) -> Any:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "name",
    [
        "exp_by_itself",
        "exp_by_its_result",
        "a_rule_of_a_rule",
        "multiply_that_broadcasts",
        "a_rule_that_sees_all_elements",
        "matmul_of_a_weight",
        "in_a_branch",
        "in_a_scan",
    ],
)
def test_a_kept_rule_is_right_in_every_transformation(name: str, way: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x, v = (gt.constant(random.standard_normal((4, 2, 3)).astype("float32")) for _ in "xv")
    case = CASES[name]
    with with_rules(case.rules):
        module = case.make()
        gt.save(module, tmp_path / "odd.h5")
        here = WAYS[way](module.f, x, v).numpy()
    there = WAYS[way](gt.load(tmp_path / "odd.h5").f, x, v).numpy()
    assert_same_bits([there], [here])


def test_a_rule_of_one_example_is_not_run_on_a_traced_batch(tmp_path: Path) -> None:
    case = CASES["a_rule_that_sees_all_elements"]
    with with_rules(case.rules):
        gt.save(case.make(), tmp_path / "odd.h5")
    loaded = gt.load(tmp_path / "odd.h5")
    spec = gt.TensorSpec([None, None, 3])
    traced = gt.function(lambda x: gt.vmap(loaded.f)(x), input_signature=[spec])
    x = np.stack([X, X])
    assert np.array_equal(traced(x).numpy()[0], loaded.f(X).numpy())
    with pytest.raises(gt.errors.GradientError, match="inside vmap"):
        slope(traced, x)


# -- streams of random numbers ---------------------------------------------------------------------


class Noisy(gt.Module):
    """Draws from the shared generator, from one of its own and from one that it does not hold."""

    def __init__(self) -> None:
        super().__init__("noisy")
        self.own = gt.random.Generator(5)
        self.drop = gt.layers.Dropout(0.5)
        self.drop(gt.ones((1, 2)))
        other = gt.random.Generator(6)
        self.captured = gt.function(lambda: other.normal((2,)), input_signature=[])

    @gt.function(input_signature=[])
    def shared(self) -> Any:
        return gt.random.normal((2,))

    @gt.function(input_signature=[])
    def held(self) -> Any:
        return self.own.normal((2,))


def test_set_seed_reaches_a_loaded_module(tmp_path: Path) -> None:
    module = Noisy()
    gt.save(module, tmp_path / "noisy.h5")
    loaded = gt.load(tmp_path / "noisy.h5")
    for method in ("shared", "held", "captured"):
        drawn = []
        for it in (module, loaded):
            gt.random.set_seed(3)
            drawn.append(getattr(it, method)().numpy())
            drawn.append(getattr(it, method)().numpy())
        assert_same_bits(drawn[:2], drawn[2:])
        assert not np.array_equal(drawn[0], drawn[1])


def test_a_loaded_module_and_plain_functions_draw_from_one_generator(tmp_path: Path) -> None:
    gt.save(Noisy(), tmp_path / "noisy.h5")
    loaded = gt.load(tmp_path / "noisy.h5")
    gt.random.set_seed(3)
    expected = [gt.random.normal((2,)).numpy() for _ in range(2)]
    gt.random.set_seed(3)
    assert_same_bits([loaded.shared().numpy(), gt.random.normal((2,)).numpy()], expected)
    gt.random.set_seed(3)
    twin = copy.deepcopy(loaded)
    assert_same_bits([loaded.shared().numpy(), twin.shared().numpy()], expected)


def test_loading_and_verifying_leave_the_shared_generator_where_it_is(tmp_path: Path) -> None:
    gt.random.set_seed(11)
    gt.save(Noisy(), tmp_path / "noisy.h5")
    gt.random.set_seed(3)
    expected = gt.random.normal((2,)).numpy()
    gt.random.set_seed(3)
    gt.load(tmp_path / "noisy.h5")
    report = gt.saving.verify(tmp_path / "noisy.h5")
    assert report.ok, report.table()
    assert np.array_equal(gt.random.normal((2,)).numpy(), expected)


def test_a_loaded_generator_is_one(tmp_path: Path) -> None:
    gt.save(Noisy(), tmp_path / "noisy.h5")
    loaded = gt.load(tmp_path / "noisy.h5")
    assert loaded.own.get_config() == {"seed": 5, "name": "generator"}
    gt.save(loaded, tmp_path / "again.h5")
    again = gt.load(tmp_path / "again.h5")
    assert again.held().tolist() == loaded.held().tolist()
    assert again.captured().tolist() == loaded.captured().tolist()


def test_processes_forked_after_loading_draw_different_numbers(tmp_path: Path) -> None:
    printed = run_isolated(
        "import os\n"
        "made = gt.Module('noisy')\n"
        "made.own, made.drop = gt.random.Generator(5), gt.layers.Dropout(0.5)\n"
        "x = gt.ones((1, 64))\n"
        "made.drop(x, training=True)\n"
        "gt.save(made, sys.argv[1])\n"
        "m = gt.load(sys.argv[1])\n"
        "for i in range(2):\n"
        "    if os.fork() == 0:\n"
        "        drawn = m.drop(x, training=True).tolist(), ';', m.own.normal(2).tolist()\n"
        "        print(*drawn, flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n",
        tmp_path / "noisy.h5",
    )
    first, second = (line.split(";") for line in printed.splitlines())
    assert first[0] != second[0]  # nobody asked for a seed
    assert first[1] == second[1]  # the generator has one


def test_modules_that_run_ops_with_other_rules_are_told_in_one_warning(tmp_path: Path) -> None:
    model = gt.layers.Sequential([gt.layers.Dense(2, "tanh") for _ in range(4)])
    model(np.ones((1, 2), "float32"))
    told = pytest.warns(UserWarning, match="and 2 more: .*of op 'tanh'")
    with with_rules({"tanh": lambda g, x: g * gt.cos(x)}), told as caught:
        gt.save(model, tmp_path / "m.h5")
    assert len(caught) == 1
