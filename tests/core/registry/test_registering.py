"""Plugins registered by hand, for a block or in place of another; blocked and allowed plugins."""

from __future__ import annotations

import importlib
import sys
import threading
import warnings
from types import SimpleNamespace

import pytest

import gradtape as gt
from gradtape.core.extend import Op
from gradtape.errors import PluginError

MODULE = """
import warnings
import gradtape as gt
from gradtape.core.extend import Op, warn_user

act = Op(
    "reloaded::act",
    lambda xp, x: x * {by},
    gradients={{"x": lambda g: g * {by}}},
    infer=lambda x: (x.shape, x.dtype),
)


@gt.hookimpl
def gradtape_ops():
    return [act]


def tell():
    warn_user("look here", UserWarning)
"""


def provider(name: str = "one::op", by: float = 2.0):
    op = Op(name, lambda xp, x: x * by, gradients={"x": lambda g: g * by})
    return SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [op]))


def known(name: str = "one::op") -> bool:
    return name in gt.registry().ops


def test_a_plugin_is_registered_for_a_block() -> None:
    with gt.register_plugin(provider(), "one") as registered:
        assert (registered.name, known()) == ("one", True)
        assert repr(registered) == "<plugin 'one', registered by hand>"
        with gt.register_plugin(provider("two::op"), "two"):
            assert known("two::op")
        assert not known("two::op")
    assert not known()
    with pytest.raises(ZeroDivisionError), gt.register_plugin(provider(), "one"):
        raise ZeroDivisionError
    assert not known()
    with gt.register_plugin(provider(), "one") as registered:
        gt.unregister_plugin("one")
        registered.unregister()  # it was removed already
    with gt.register_plugin(provider(), "one"):
        gt.register_plugin(provider("two::op"), "one", replace=True)
    assert known("two::op")  # the block ends only what it registered
    gt.unregister_plugin("one")


def test_a_block_registers_for_all_threads() -> None:
    seen = []
    with gt.register_plugin(provider(), "one"):
        thread = threading.Thread(target=lambda: seen.append(known()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_one_plugin_replaces_another_of_its_name_or_leaves_it() -> None:
    gt.register_plugin(provider(), "one")
    with pytest.raises(PluginError, match=r"'one' is registered already; .* pass replace=True, as"):
        gt.register_plugin(provider(), "one")
    gt.register_plugin(provider(by=3.0), "one", replace=True)
    assert gt.registry().op("one::op")(1.0).item() == 3.0
    with pytest.raises(PluginError, match="bare op names are gradtape's own"):
        gt.register_plugin(provider("bare"), "one", replace=True)
    assert gt.registry().op("one::op")(1.0).item() == 3.0
    gt.unregister_plugin("one")


@pytest.fixture
def reloaded(tmp_path, monkeypatch):
    """Return a module that is a plugin, and a function that changes and reloads it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "reloaded_plugin.py"
    path.write_text(MODULE.format(by=2), "utf-8")
    module = importlib.import_module("reloaded_plugin")

    def reload():
        path.write_text(MODULE.format(by=3), "utf-8")
        importlib.invalidate_caches()
        return importlib.reload(module)

    yield module, reload
    sys.modules.pop("reloaded_plugin")


def test_a_module_is_registered_again_after_a_reload(reloaded) -> None:
    module, reload = reloaded
    with gt.register_plugin(module) as registered:
        assert registered.name == "reloaded_plugin"
        f = gt.function(lambda x: module.act(x))
        assert f(gt.constant(1.0)).item() == 2.0
        reload()
        with pytest.raises(PluginError, match=r"pass replace=True, as after importlib\.reload"):
            gt.register_plugin(module)
        gt.register_plugin(module, replace=True)
        assert f(gt.constant(1.0)).item() == 3.0


@pytest.fixture
def installed(tmp_path, reloaded):
    """Install the module as a distribution, whose plugin has another name than the module."""
    folder = tmp_path / "Acme_Ops-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: Acme-Ops\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[gradtape]\nacts = reloaded_plugin\n")
    importlib.invalidate_caches()
    look_again()
    yield reloaded
    (folder / "entry_points.txt").unlink()
    (folder / "METADATA").unlink()
    folder.rmdir()
    importlib.invalidate_caches()
    look_again()


def look_again() -> None:
    gt.disable_plugin("cupy", disabled=False)


def test_an_installed_module_is_registered_again_after_a_reload(installed) -> None:
    module, reload = installed
    assert gt.registry().op("reloaded::act")(1.0).item() == 2.0
    reload()
    with pytest.raises(PluginError, match=r"same object as plugin 'acts'.* replace=True"):
        gt.register_plugin(module)
    with gt.register_plugin(module, replace=True):
        assert gt.registry().op("reloaded::act")(1.0).item() == 3.0
        (info,) = [x for x in gt.registry().plugins if x.name == "acts"]
        assert info.notes == ["plugin 'reloaded_plugin' was registered in its place"]


@pytest.mark.parametrize(
    ("name", "hit"),
    [
        ("acts", True),
        ("acme-ops:acts", True),
        ("acme_ops:*", True),
        ("ACME.OPS:act?", True),
        ("other:acts", False),
    ],
)
def test_a_plugin_is_disabled_by_name_and_by_distribution(installed, name: str, hit: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if not hit else "error")
        gt.disable_plugin(name)
        try:
            assert known("reloaded::act") is not hit
        finally:
            gt.disable_plugin(name, disabled=False)
    assert known("reloaded::act")


@pytest.mark.parametrize(
    ("only", "here"), [("acts", True), ("acme-ops:*", True), ("other", False), ("", True)]
)
def test_an_allow_list_leaves_gradtapes_own_and_what_it_names(
    installed, monkeypatch, only: str, here: bool
) -> None:
    monkeypatch.setenv("GRADTAPE_PLUGINS", only)
    look_again()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert known("reloaded::act") is here
    assert [str(x.message)[:60] for x in told] == (
        ["environment variable GRADTAPE_PLUGINS: there is no plugin 'ot"[:60]]
        if only == "other"
        else []
    )
    with gt.register_plugin(provider(), "by_hand"):  # the program's own
        assert known()
    assert gt.sin(0.0).item() == 0.0
    if not here:
        (info,) = [x for x in gt.registry().plugins if x.name == "acts"]
        assert (info.problem, info.notes) == ("disabled", ["GRADTAPE_PLUGINS does not name it"])


@pytest.mark.filterwarnings("ignore:order_plugins")
def test_an_order_names_distributions(installed) -> None:
    op = installed[0].act
    other = SimpleNamespace(
        gradtape_kernels=gt.hookimpl(lambda: {("reloaded::act", "numpy"): lambda x: x * 7})
    )
    third = SimpleNamespace(
        gradtape_kernels=gt.hookimpl(lambda: {("reloaded::act", "numpy"): lambda x: x * 9})
    )
    gt.order_plugins(["nothing:x", "seven", "acme-ops:*"])
    try:
        with gt.register_plugin(other, "seven"), gt.register_plugin(third, "nine"):
            assert op(1.0).item() == 7.0
    finally:
        gt.order_plugins([])


def test_a_warning_of_a_plugin_points_at_the_line_that_calls_it(installed) -> None:
    module, _ = installed
    gt.registry()
    with pytest.warns(UserWarning, match="look here") as caught:
        module.tell()
    assert caught[0].filename == __file__
    with gt.register_plugin(provider(), "one"), pytest.warns(UserWarning, match="here") as caught:
        exec("tell()", {"tell": module.tell, "__name__": "reloaded_plugin"})
    assert caught[0].filename == __file__


def test_problems_are_errors_if_the_user_wants_so(monkeypatch) -> None:
    monkeypatch.setenv("GRADTAPE_PLUGINS_STRICT", "1")
    kernel = SimpleNamespace(gradtape_kernels=gt.hookimpl(lambda: {("sin", "nunpy"): abs}))
    with pytest.raises(PluginError, match=r"kernels for the backend 'nunpy', .*near names: numpy"):
        gt.register_plugin(kernel, "misspelt")
    assert "misspelt" not in [info.name for info in gt.registry().plugins]
    monkeypatch.setenv("GRADTAPE_PLUGINS_STRICT", "0")
    with pytest.warns(RuntimeWarning, match="nunpy"), gt.register_plugin(kernel, "misspelt"):
        pass
