"""Several plugins that provide one thing: who wins, and what names are reserved."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from made_plugins import cube_op, gradient, plugin, specs

import gradtape as gt
from gradtape.core.extend import Op, hookimpl
from gradtape.errors import PluginError


def test_two_providers_of_one_op_are_named_with_the_way_out(register) -> None:
    register("first", ops=[cube_op()])
    with pytest.raises(PluginError) as caught:
        gt.register_plugin(plugin(ops=[cube_op()]), "second")
    for part in (
        "'first'",
        "'second'",
        "cubes::cube",
        "GRADTAPE_DISABLE_PLUGINS",
        "disable_plugin",
    ):
        assert part in str(caught.value)
    assert gt.registry().op("cubes::cube")(2.0).item() == 8.0  # the first is unharmed


@pytest.mark.parametrize("kind", ["kernels", "gradients", "lowerings", "names"])
def test_of_two_third_parties_neither_wins_unless_an_order_is_set(register, kind) -> None:
    made = [object(), object()] if kind == "names" else [lambda x: x, lambda x: x]
    key: Any = {"kernels": ("sin", "numpy"), "lowerings": ("sin", "acme")}.get(kind, "sin")

    def hooks(item):
        return {kind: {"activation": {"acme::act": item}} if kind == "names" else {key: item}}

    register("one", **hooks(made[0]))
    with pytest.raises(PluginError, match=r"'one' and plugin 'two' both provide .*ORDER=two"):
        gt.register_plugin(plugin(**hooks(made[1])), "two")
    gt.order_plugins(["one"])
    try:
        register("two", **hooks(made[1]))
        found = gt.registry()
        table = {"gradients": "rule"}.get(kind, kind.removesuffix("s"))
        name = ("activation", "acme::act") if kind == "names" else key
        assert [x.info.name for x in found.candidates(table, name)][:2] == ["one", "two"]
        assert found.owner(table, name).name == "one"
        gt.order_plugins(["two"])
        assert gt.registry().owner(table, name).name == "two"
    finally:
        gt.order_plugins([])
    with pytest.raises(PluginError, match="neither takes precedence"):
        gt.registry().refuse_clash(table, name)


def test_a_clash_of_kernels_harms_only_the_op_on_that_backend(entry_points) -> None:
    entry_points(
        one=plugin(kernels={("sin", "numpy"): np.sin}),
        two=plugin(kernels={("sin", "numpy"): np.sin, ("cos", "numpy"): lambda x: x + 7}),
    )
    with pytest.raises(PluginError, match="both provide the kernel"):
        gt.sin(1.0)
    assert gt.cos(1.0).item() == 8.0  # what does not clash wins over gradtape's own kernel
    assert gt.tan(0.0).item() == 0.0


def test_a_third_partys_kernel_and_gradient_win_over_gradtapes_own(register) -> None:
    calls = []

    def product(x, y):
        calls.append(x.shape)
        return x @ y

    register("fast", kernels={("matmul", "numpy"): product}, gradients={"sin": lambda g, x: g * 5})
    a = gt.ones((2, 2))
    assert gt.matmul(a, a).tolist() == [[2, 2], [2, 2]]
    assert gt.function(gt.matmul)(a, a).tolist() == [[2, 2], [2, 2]]
    assert len(calls) == 2
    assert gradient(gt.sin, 1.0).item() == 5.0
    gt.unregister_plugin("fast")
    gt.matmul(a, a)
    assert gradient(gt.sin, 0.0).item() == 1.0
    assert len(calls) == 2
    gt.register_plugin(plugin(), "fast")  # for the fixture to take back


@pytest.mark.parametrize("rank", ["tryfirst", "trylast"])
def test_a_hook_says_whether_it_wins(rank: str) -> None:
    def of(value, **marks):
        made = types.SimpleNamespace()
        made.gradtape_kernels = hookimpl(**marks)(
            lambda: {("sin", "numpy"): lambda x: x * 0 + value}
        )
        return made

    gt.register_plugin(of(1), "usual")
    try:
        gt.register_plugin(of(2, **{rank: True}), "wishful")
        try:
            assert gt.sin(0.5).item() == (2 if rank == "tryfirst" else 1)
        finally:
            gt.unregister_plugin("wishful")
    finally:
        gt.unregister_plugin("usual")
    with pytest.raises(PluginError, match="both tryfirst and trylast"):
        hookimpl(tryfirst=True, trylast=True)


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        ({"ops": [Op("sin", "sin", inputs=("x",), infer=specs)]}, "bare op names are gradtape's"),
        ({"ops": [cube_op("gradtape::cube")]}, "has gradtape's name in front"),
        ({"modules": {"layers.Mine": gt.Module}}, r"cannot be called 'layers.Mine'.*'clashing.Mi"),
        ({"modules": {"Mine": gt.Module}}, "cannot be called 'Mine': bare names"),
        ({"names": {"activation": {"mine": abs}}}, "activation cannot be called 'mine'"),
        ({"names": {"activatoin": {"a::mine": abs}}}, "'activatoin'; near names: activation"),
    ],
)
def test_names_of_gradtape_are_reserved(hooks, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        gt.register_plugin(plugin(**hooks), "clashing")


def test_hooks_of_another_version_are_notes(register) -> None:
    register("newer", ops=[cube_op()], future_thing=[])
    assert gt.registry().op("cubes::cube")(2.0).item() == 8.0
    info = next(info for info in gt.registry().plugins if info.name == "newer")
    assert "gradtape_future_thing, which is not a hook of this version" in info.notes[0]
    opps = hookimpl(optionalhook=True)(lambda: [])  # noqa: PIE807 - a function that takes a mark
    optional = types.SimpleNamespace(gradtape_opps=opps)
    gt.register_plugin(optional, "optional")  # a name that would otherwise count as misspelt
    gt.unregister_plugin("optional")


def test_names_of_plugins_are_unique(register) -> None:
    register("mine")
    with pytest.raises(PluginError, match="'mine' is registered already"):
        gt.register_plugin(plugin(), "mine")
    with pytest.raises(PluginError, match="no plugin called 'yours'"):
        gt.unregister_plugin("yours")


@pytest.mark.parametrize("name", ["", 3, ["mine"]])
def test_a_plugin_without_a_name_is_refused(name) -> None:
    with pytest.raises(PluginError, match="name is a non-empty string, not"):
        gt.register_plugin(plugin(ops=[]), name)


@pytest.mark.parametrize("thing", [None, "acme.gradtape_plugin", ["acme"], {"gradtape_ops": 1}, 3])
def test_a_plain_value_is_no_plugin(thing) -> None:
    with pytest.raises(PluginError, match=r"plugin 'idle': .* is a \w+; a plugin is a module or"):
        gt.register_plugin(thing, "idle")
    assert "idle" not in [info.name for info in gt.registry().plugins]
