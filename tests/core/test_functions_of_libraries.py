"""Plugins that say what runs on tensors instead of another library's functions."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Op
from gradtape.errors import BrokenPathWarning, PluginError, UnknownOp

cube = np.frompyfunc(lambda x: x**3, 1, 1)
CUBE = Op(
    "shop::cube",
    lambda xp, x: x * x * x,
    gradients={"x": lambda g, x: 3 * g * x * x},
    infer=lambda x: (x.shape, x.dtype),
    batch="elementwise",
)


@pytest.fixture
def library(monkeypatch):
    """A module with a ufunc and a function, as another library has them."""
    module = ModuleType("shop.functions")
    source = "import numpy as np\ndef plus_one(x):\n    return np.asarray(x) + 1.0\n"
    exec(source, module.__dict__)
    module.cube = cube
    monkeypatch.setitem(sys.modules, "shop.functions", module)
    return module


@pytest.fixture
def register():
    """Register plugins, and remove them afterwards."""
    names = []

    def add(name, **hooks):
        marked = {f"gradtape_{hook}": gt.hookimpl(lambda x=x: x) for hook, x in hooks.items()}
        gt.register_plugin(SimpleNamespace(**marked), name)
        names.append(name)

    yield add
    for name in names:
        gt.unregister_plugin(name)


def test_a_ufunc_of_a_library_runs_a_plugins_op(library, register):
    loaded = []

    def functions():
        loaded.append("functions")
        return {"cube": CUBE, "of_another_version": CUBE}

    def ops():
        loaded.append("ops")
        return [CUBE]

    register("shop", late_ops={"shop": ops}, functions={"shop.functions": functions})
    x = gt.constant(np.array([1.0, 2.0]))
    assert not loaded
    assert gt.grad(lambda x: gt.sum(library.cube(x)))(x).tolist() == [3.0, 12.0]
    assert gt.vmap(gt.grad(library.cube))(x).tolist() == [3.0, 12.0]
    assert gt.function(lambda x: cube(x))(x).tolist() == [1.0, 8.0]
    assert loaded == ["functions", "ops"]


def test_late_ops_are_loaded_by_name(library, register):
    register("shop", late_ops={"shop": lambda: [CUBE]})
    assert "shop::cube" not in gt.registry().ops
    assert gt.registry().find("shop::other") is None
    assert gt.registry().op("shop::cube") is CUBE
    assert gt.registry().owner("op", "shop::cube").name == "shop"
    with pytest.raises(UnknownOp, match="no plugin provides the op 'shop::cub'; near names"):
        gt.registry().op("shop::cub")


def test_another_plugin_may_have_rules_and_kernels_for_late_ops(library, register):
    plain = Op("shop::cube", lambda xp, x: x * x * x, batch="elementwise")
    register(
        "shop",
        late_ops={"shop": lambda: [plain]},
        functions={"shop.functions": lambda: {"cube": plain}},
    )
    register(
        "more",
        gradients={"shop::cube": {"x": lambda g, x: g * 3 * x * x}},
        kernels={("shop::cube", "numpy"): lambda x: x**3.0},
    )
    assert gt.grad(library.cube)(2.0).item() == 12.0


def test_a_function_without_a_plugin_runs_on_values_or_is_refused(library):
    x = gt.constant(np.array([1.0, 2.0]))
    assert list(library.cube(x)) == [1.0, 8.0]
    with gt.GradientTape(), pytest.raises(TypeError, match="hook gradtape_functions"):
        library.cube(x)


def test_a_function_that_reads_values_is_told(library, register):
    register("shop", functions={"shop.functions": lambda: {"plus_one": "shop.better.plus_one"}})
    library.plus_one.__globals__["__name__"] = "shop.functions"
    x = gt.constant(np.array([1.0]))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum(x) * library.plus_one(x)
    with pytest.warns(BrokenPathWarning, match="shop.functions.plus_one .* shop.better"):
        tape.gradient(y, x)


def test_mistakes_are_told(library, register):
    register(
        "shop",
        late_ops={"shop": lambda: [CUBE]},
        functions={"shop.functions": lambda: {"cube": CUBE}},
    )
    with pytest.raises(PluginError, match="both provide the late_op 'shop'"):
        register("other", late_ops={"shop": list})
    with pytest.raises(PluginError, match="must not contain '::'"):
        register("other", late_ops={"shop::": list})
    with pytest.raises(PluginError, match=r"gradtape_functions returned .* instead of a mapping"):
        register("other", functions=[CUBE])
    register("twice", functions={"shop.functions": lambda: {"cube": CUBE}})
    message = "'twice' and plugin 'shop' both replace shop.functions.cube for tensors"
    with pytest.raises(PluginError, match=message):
        library.cube(gt.constant(1.0))


def test_loaders_that_fail_are_told(library, register):
    def fail():
        raise ValueError("no table")

    register("shop", late_ops={"shop": fail}, functions={"shop.functions": fail})
    with pytest.raises(PluginError, match=r"'shop': its ops shop::... cannot be loaded"):
        gt.registry().op("shop::cube")
    with pytest.raises(PluginError, match=r"functions for shop.functions cannot be loaded"):
        library.cube(gt.constant(1.0))
    register("wrong", late_ops={"wrong": lambda: [CUBE]})
    with pytest.raises(PluginError, match=r"is not an op called 'wrong::...'"):
        gt.registry().op("wrong::cube")
