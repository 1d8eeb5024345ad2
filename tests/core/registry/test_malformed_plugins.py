"""Plugins that are wrong: messages say which part, and nothing of them remains."""

from __future__ import annotations

import types

import numpy as np
import pytest
from made_plugins import cube_op, plugin

import gradtape as gt
from gradtape.core.extend import NONDIFF, Backend, Engine, Op, hookimpl
from gradtape.errors import PluginError, UnknownOp


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cube_op(gradients={"y": NONDIFF}), r"unknown: \['y'\], missing: \['x'\]"),
        (lambda: cube_op(gradients={"x": lambda g, z: g}), "has a parameter 'z'"),
        (lambda: Op("m::a", "sin"), "pass their names as inputs="),
        (lambda: Op("m::a", lambda xp, x, **kw: x), r"\*\*kw"),
        (lambda: Op("m::a", lambda xp, x, n=2: x), "'n' has a default but is positional"),
    ],
)
def test_ops_that_cannot_be(make, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        make()


def test_things_that_are_no_ops_or_for_no_op() -> None:
    for hooks, message in [
        ({"ops": ["text"]}, "gradtape_ops returned 'text' in the list instead of ops"),
        ({"ops": None}, r"gradtape_ops returned None \(is a return missing\?\) instead of a list"),
        ({"ops": cube_op()}, r"returned <op cubes::cube\(x\)> instead of a list of ops"),
        ({"ops": {"cube": cube_op()}}, "returned {'cube': .* instead of a list of ops"),
        ({"backends": [Backend]}, "<class .*Backend'> in the list instead of backends"),
        ({"backends": Backend()}, "returned .*Backend object .* instead of a list of backends"),
        ({"backends": [Backend()]}, "needs an attribute 'name'"),
        (
            {"backends": [type("B", (Backend,), {"name": "b"})()]},
            "'b' needs .* 'array_module'",
        ),
        ({"kernels": {"sin": len}}, r"'sin' as a key instead of \(op name, backend name\)"),
        ({"kernels": {("sin", "numpy"): 3}}, r"3 for \('sin', 'numpy'\) instead of a function"),
        ({"kernels": [len]}, r"instead of a mapping from \(op name, backend name\)"),
        ({"gradients": [len]}, "gradtape_gradients returned .* instead of a mapping from names"),
        ({"gradients": {"sin": None}}, "None for 'sin' instead of a rule"),
        ({"modules": [gt.Module]}, "gradtape_modules returned .* instead of a mapping from names"),
        ({"modules": {"m.Mine": gt.Module()}}, "for 'm.Mine' instead of a class"),
        ({"modules": {3: gt.Module}}, "3 as a key instead of a name"),
        (
            {"names": {"activation": {"m.act": 3}}},
            r"3 for the activation 'm\.act' instead of an object",
        ),
        ({"launchers": {"m": 3}}, "3 for 'm' instead of a launcher"),
        ({"storages": {".m": 3}}, "3 for '.m' instead of a storage, which has 'write' and 'read'"),
        ({"executors": {"mine": "plain"}}, "'plain' for 'mine' instead of a function of a graph"),
        (
            {"collectives": Engine()},
            "gradtape_collectives returned .* instead of a list of engines",
        ),
        ({"collectives": [Engine]}, "class .*Engine'> in the list instead of engines"),
        ({"collectives": [Engine()]}, "needs an attribute 'name'"),
        ({"collectives": [type("E", (Engine,), {"name": "auto"})()]}, "cannot be called 'auto'"),
        ({"kernels": {("sinn", "numpy"): len}}, "which is unknown; near names: .*sin"),
        ({"kernels": {("no_such_op", "numpy"): len}}, "kernel for the op 'no_such_op'"),
        ({"gradients": {"no_such_op": len}}, "rule for the op 'no_such_op'"),
        ({"ops": ZeroDivisionError("oh")}, "ZeroDivisionError: oh"),
    ]:
        with pytest.raises(PluginError, match=message):
            gt.register_plugin(plugin(**hooks), "malformed")
    gt.registry()  # nothing of it stayed


def test_a_plugin_is_merged_whole_or_not_at_all() -> None:
    hooks = {"ops": [cube_op("half::cube")], "kernels": {("no_such_op", "numpy"): len}}
    with pytest.raises(PluginError):
        gt.register_plugin(plugin(**hooks), "half")
    with pytest.raises(UnknownOp):
        gt.registry().op("half::cube")


def test_what_is_not_in_use_left_nothing_behind(entry_points) -> None:
    entry_points(half=plugin(ops=[cube_op("half::cube")], gradients={"floor": lambda g, z: g}))
    with pytest.warns(RuntimeWarning, match=r"plugin 'half'.*has a parameter 'z'"):
        registry = gt.registry()
    assert "half::cube" not in registry.ops
    info = next(info for info in registry.plugins if info.name == "half")
    assert not info.ops


def test_a_plugin_provides_each_thing_once() -> None:
    with pytest.raises(PluginError, match="plugin 'double' provides the op 'cubes::cube' twice"):
        gt.register_plugin(plugin(ops=[cube_op(), cube_op()]), "double")


def test_a_plugin_that_computes_in_a_hook_is_told_so() -> None:
    class Early:
        @hookimpl
        def gradtape_ops(self):
            return [gt.constant(1.0)]

    with pytest.raises(
        PluginError, match=r"plugin 'early'.*test_malformed_plugins\.py.*still being found"
    ):
        gt.register_plugin(Early(), "early")
    assert gt.sin(0.0).item() == 0.0


def test_a_problem_is_told_of_the_plugin_registered_by_hand() -> None:
    with pytest.raises(PluginError, match="'text' in the list"):
        gt.register_plugin(plugin(ops=["text"]), "layers")  # an installed one is called so too
    with pytest.raises(PluginError, match="no plugin called 'layers'"):
        gt.unregister_plugin("layers")


def hook(name: str = "gradtape_ops", mark: bool = True):
    """Return a function of a name, which is a hook if it is marked."""

    def ops():
        return []

    ops.__name__ = ops.__qualname__ = name
    return hookimpl(ops) if mark else ops


def of_form(form: str, name: str, function):
    """Return a plugin with a function: a module, an object, a class, or a function itself."""
    if form == "module":
        made = types.ModuleType("hooks_of_ours")
        setattr(made, name, function)
        return made
    made = type("Plugin", (), {name: staticmethod(function)})
    return made if form == "class" else made()


@pytest.mark.parametrize("form", ["module", "object", "class"])
@pytest.mark.parametrize(
    ("name", "marked", "message"),
    [
        ("gradtape_ops", False, r"gradtape_ops .*test_malformed_plugins\.py:\d+\) is not marked"),
        ("gradtape_executors", False, "gradtape_executors .* is not marked as a hook: write @"),
        ("gradtape_op", False, "neither a hook nor marked as one; near names: gradtape_ops"),
        ("gradtape_kernal", False, "near names: gradtape_kernels"),
        ("gradetape_backends", False, "near names: gradtape_backends"),
        ("GradTape_Modules", False, "near names: gradtape_modules"),
        ("gradtape_opps", True, "gradtape_opps .* is marked .*; near names: gradtape_ops"),
        (
            "gradients",
            True,
            "gradients .* is marked .*, but is not a hook; near names",
        ),
        (
            "my_very_own",
            True,
            "my_very_own .* is marked .*, but is not a hook; there are",
        ),
    ],
)
def test_a_hook_without_its_mark_or_misspelt_is_told(form, name, marked, message: str) -> None:
    with pytest.raises(PluginError, match=rf"^plugin 'wrong': .*{message}"):
        gt.register_plugin(of_form(form, name, hook(name, marked)), "wrong")


def test_a_hook_that_could_not_be_called_is_told() -> None:
    class Wrong:
        @hookimpl
        def gradtape_ops(self):
            return []

    with pytest.raises(PluginError, match=r"Wrong\.gradtape_ops .* register an instance"):
        gt.register_plugin(Wrong, "wrong")
    gt.register_plugin(Wrong(), "right")
    gt.unregister_plugin("right")
    with pytest.raises(PluginError, match=r"takes arguments \(config\)"):
        gt.register_plugin(types.SimpleNamespace(gradtape_ops=hookimpl(lambda config: [])), "wrong")
    with pytest.raises(PluginError, match="gradtape_ops is a list; make it a function that"):
        gt.register_plugin(types.SimpleNamespace(gradtape_ops=[cube_op()]), "wrong")
    with pytest.raises(PluginError, match="is a function; a plugin is a module or an object"):
        gt.register_plugin(hook(), "wrong")


@pytest.mark.parametrize("form", ["module", "object", "class"])
def test_other_functions_of_a_plugin_are_its_own(form) -> None:
    for name in ("helper", "graduate", "gradtape_version", "gradient"):
        gt.register_plugin(of_form(form, name, lambda: 1), "right")
        gt.unregister_plugin("right")


def test_a_hook_of_an_installed_plugin_that_lacks_its_mark_is_warned_of(entry_points) -> None:
    entry_points(unmarked=types.SimpleNamespace(gradtape_ops=lambda: [cube_op()]))
    with pytest.warns(RuntimeWarning, match=r"not in use: plugin 'unmarked': .* is not marked"):
        assert "cubes::cube" not in gt.registry().ops


def test_kernels_for_a_backend_that_is_misspelt_are_told(entry_points) -> None:
    entry_points(
        quick=plugin(kernels={("sin", "nunpy"): np.sin}),
        elsewhere=plugin(kernels={("sin", "of_a_plugin_left_out"): np.sin}),
    )
    with pytest.warns(RuntimeWarning, match="'quick' has kernels .*'nunpy'.*names: numpy") as told:
        gt.registry()
    assert len(told) == 1


def test_a_class_has_the_name_in_files_that_it_says() -> None:
    class Layer(gt.layers.Layer, saved_as="acme.Layer"):
        pass

    with pytest.raises(PluginError, match=r"Layer for 'acme.Old'.*saved_as='acme.Layer'"):
        gt.register_plugin(plugin(modules={"acme.Old": Layer}), "acme")
    both = plugin(modules={"acme.Old": Layer, "acme.Layer": Layer})  # an old name, for old files
    with gt.register_plugin(both, "acme"):
        assert gt.registry().modules["acme.Old"] is Layer


def test_files_have_the_name_that_a_class_says_of_several(tmp_path) -> None:
    class Layer(gt.layers.Layer, saved_as="acme.Layer"):
        def call(self, x):
            return x * 2.0

    layer = Layer()
    layer(gt.ones(2))
    names = ["acme.Older", "acme.Layer", "acme.Old"]
    with gt.register_plugin(plugin(modules=dict.fromkeys(names, Layer)), "acme"):
        gt.save(layer, tmp_path / "layer.h5")
    with gt.register_plugin(plugin(modules={"acme.Layer": Layer}), "acme"):
        assert type(gt.load(tmp_path / "layer.h5")) is Layer
