"""Installed plugins, found by their entry points."""

from __future__ import annotations

import importlib.metadata
import sys
import types

import pytest
from made_plugins import cube_op, look_again, plugin

import gradtape as gt
from gradtape.core.extend import hookimpl
from gradtape.errors import PluginError, UnknownOp


def test_an_installed_plugin_is_found(entry_points) -> None:
    entry_points(cubes=plugin(ops=[cube_op()]))
    assert gt.registry().op("cubes::cube")(2.0).item() == 8.0
    assert "cubes" in [info.name for info in gt.registry().plugins]


def test_a_broken_plugin_is_reported_and_not_fatal(entry_points) -> None:
    entry_points(broken=ImportError("no"), cubes=plugin(ops=[cube_op()]))
    with pytest.warns(RuntimeWarning, match=r"plugin 'broken'.*ModuleNotFoundError"):
        registry = gt.registry()
    assert registry.op("cubes::cube")(2.0).item() == 8.0
    assert gt.sin(0.0).item() == 0.0
    info = next(info for info in registry.plugins if info.name == "broken")
    assert "pretend_broken_that_fails" in info.problem
    with pytest.raises(UnknownOp, match=r"not in use: plugin 'broken'.*gradtape plugins"):
        registry.op("nothing_like_it")


def test_a_plugin_whose_hook_fails_is_reported_and_not_fatal(entry_points) -> None:
    entry_points(failing=plugin(ops=ZeroDivisionError("in a hook")))
    with pytest.warns(RuntimeWarning, match=r"plugin 'failing'.*in a hook.*made_plugins\.py"):
        assert gt.registry().op("sin")(0.0).item() == 0.0


def test_installed_plugins_that_clash_lose_only_that_item(entry_points) -> None:
    entry_points(one=plugin(ops=[cube_op()]), two=plugin(ops=[cube_op(), cube_op("cubes::other")]))
    assert gt.sin(0.0).item() == 0.0
    with pytest.raises(PluginError, match=r"GRADTAPE_PLUGINS_ORDER=two.*disable_plugin"):
        gt.registry().op("cubes::cube")
    assert gt.registry().op("cubes::other")(2.0).item() == 8.0
    assert [bool(x.clashes) for x in gt.registry().plugins if x.name in ("one", "two")] == [
        True
    ] * 2
    gt.disable_plugin("two")
    try:
        assert gt.registry().op("cubes::cube")(2.0).item() == 8.0
    finally:
        gt.disable_plugin("two", disabled=False)


def test_a_misspelt_entry_point_group_is_noted(entry_points, monkeypatch) -> None:
    entry_points()
    real = importlib.metadata.entry_points
    points = [importlib.metadata.EntryPoint("acme", "acme", "gradtape.module")]
    points += [x for group in real().groups for x in real().select(group=group)]
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda **kw: importlib.metadata.EntryPoints(points)
    )
    look_again()
    (note,) = gt.registry().notes
    assert "group 'gradtape.module' is none of gradtape's; near names: gradtape.modules" in note


def test_a_hook_may_wait_until_what_it_provides_is_needed(entry_points, monkeypatch) -> None:
    imported = []

    class Late(types.ModuleType):
        def __getattr__(self, name):
            imported.append(name)
            raise AttributeError(name)

    module = Late("pretend_late")
    module.gradtape_modules = hookimpl(lambda: {"late.Module": gt.Module})
    monkeypatch.setitem(sys.modules, "pretend_late", module)
    entry_points()
    real = importlib.metadata.entry_points
    points = [importlib.metadata.EntryPoint("late", "pretend_late", "gradtape.modules")]
    points += [x for group in real().groups for x in real().select(group=group)]
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda **kw: importlib.metadata.EntryPoints(points).select(**kw),
    )
    look_again()
    info = next(info for info in gt.registry().infos if info.name == "late")
    assert info.waiting == {"modules"}
    assert gt.registry().modules["late.Module"] is gt.Module
    assert (info.waiting, info.modules) == (set(), ["late.Module"])


def test_an_unknown_op_does_not_blame_a_plugin_called_like_its_distribution(entry_points) -> None:
    entry_points(cubes=plugin(ops=[cube_op()]))
    registry = gt.registry()
    info = next(info for info in registry.plugins if info.name == "cubes")
    info.distribution = "cubes"
    with pytest.raises(UnknownOp) as raised:
        registry.op("nothing_like_it")
    assert "None" not in str(raised.value)
