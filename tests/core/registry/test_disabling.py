"""Disabled plugins, and ops that no plugin provides."""

from __future__ import annotations

import warnings

import pytest
from made_plugins import cube_op, look_again, plugin

import gradtape as gt
from gradtape.errors import PluginError, UnknownOp


def test_disabling_and_enabling(register) -> None:
    register("cubes", ops=[cube_op()])
    gt.disable_plugin("cubes")
    try:
        with pytest.raises(UnknownOp, match=r"cubes::cube.*install the package 'cubes'"):
            gt.registry().op("cubes::cube")
        gt.register_plugin(plugin(ops=[cube_op()]), "other_cubes")  # no clash any more
        gt.unregister_plugin("other_cubes")
        gt.unregister_plugin("cubes")
        with pytest.raises(PluginError, match=r"'cubes': .* disabled; .*, disabled=False\)"):
            register("cubes", ops=[cube_op()])
    finally:
        gt.disable_plugin("cubes", disabled=False)
    gt.register_plugin(plugin(ops=[cube_op()]), "cubes")
    assert gt.registry().op("cubes::cube")(2.0).item() == 8.0


@pytest.mark.needs("plugins.cupy")
def test_disabling_by_environment(register, monkeypatch) -> None:
    monkeypatch.setenv("GRADTAPE_DISABLE_PLUGINS", "cubes,,  cupy ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what was asked for is no warning
        with pytest.raises(PluginError, match=r"'cubes': .* disabled; .*PLUGINS names it"):
            gt.register_plugin(plugin(ops=[cube_op()]), "cubes")
    with pytest.warns(RuntimeWarning, match="GRADTAPE_DISABLE_PLUGINS: there is no plugin 'cubes'"):
        registry = gt.registry()
    assert "cubes::cube" not in registry.ops
    assert "cupy" not in registry.backends
    monkeypatch.undo()
    look_again()


@pytest.mark.needs("plugins.cupy")
def test_a_name_to_leave_out_that_is_no_plugin_is_warned_of_once(monkeypatch) -> None:
    asked = pytest.warns(RuntimeWarning, match="disable_plugin: .*'cupi'; near names: cupy; 'grad")
    with asked as caught:
        gt.disable_plugin("cupi")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gt.disable_plugin("cupi", disabled=False)
        gt.disable_plugin("cupi")
        gt.registry()
        gt.disable_plugin("cupi", disabled=False)
    with pytest.warns(RuntimeWarning, match="no plugin 'cupyy'; near names: cupy"):
        gt.disable_plugin("cupyy", disabled=False)  # it is still out, then
    monkeypatch.setenv("GRADTAPE_DISABLE_PLUGINS", "layer,zebras")
    look_again()
    with pytest.warns(RuntimeWarning) as caught:
        gt.registry()
    told = sorted(str(warning.message) for warning in caught)
    assert [text.partition("; 'grad")[0] for text in told] == [
        "environment variable GRADTAPE_DISABLE_PLUGINS: there is no plugin 'layer'; near names: "
        "layers",
        "environment variable GRADTAPE_DISABLE_PLUGINS: there is no plugin 'zebras'",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        look_again()
        gt.registry()


def test_unknown_ops_suggest_near_names() -> None:
    with pytest.raises(UnknownOp, match=r"'sine'; near names: .*sin"):
        gt.registry().op("sine")
    with pytest.raises(LookupError, match="install the package 'far'"):
        gt.registry().op("far::away")


def test_an_op_that_was_taken_back_says_so() -> None:
    op = cube_op("left::cube")
    gt.register_plugin(plugin(ops=[op]), "left")
    assert op(2.0).item() == 8.0
    gt.unregister_plugin("left")
    with pytest.raises(UnknownOp, match="belongs to no registered plugin"):
        op(2.0)
