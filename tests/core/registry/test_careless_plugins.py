"""Plugins that are lazy, change what they returned, ask while they are imported, or share names."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Mapping

import pytest
from made_plugins import look_again

import gradtape as gt
from gradtape.core.extend import hookimpl
from gradtape.errors import PluginError, UnknownOp


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install distributions: their entry points, and the code of their modules."""
    made = []

    def install(name: str, entry_points: str, code: str) -> None:
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        (tmp_path / f"{name}.py").write_text(code)
        made.append(name)
        look_again()

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    monkeypatch.undo()
    for name in made:
        sys.modules.pop(name, None)
    look_again()


#: A plugin with a class for files.
MODULES = """
import gradtape as gt
class Part(gt.Module, saved_as="{0}.Part"): pass
@gt.hookimpl
def gradtape_modules(): return {{"{0}.Part": Part}}
"""


class Lazy(Mapping):
    """A mapping that computes, each time, something else."""

    def __init__(self, *values) -> None:
        self.left = iter(values)

    def __iter__(self):
        return iter(["acme.x"])

    def __len__(self) -> int:
        return 1

    def __getitem__(self, name):
        return next(self.left)


def test_what_a_hook_returned_is_read_once(register) -> None:
    register("acme", modules=Lazy(gt.Module, "a text that is no class"))
    assert gt.registry().modules["acme.x"] is gt.Module


def test_what_a_plugin_changes_later_changes_nothing(register) -> None:
    kernels = {("expm1", "numpy"): lambda x: x * 0 + 7}
    names = {"activation": {"acme::act": gt.tanh}}
    register("acme", kernels=kernels, names=names)
    kernels["sin", "numpy"] = lambda x: x * 0 + 9
    names["activation"]["acme::more"] = gt.sin
    look_again()
    assert (gt.expm1(0.0).item(), gt.sin(0.0).item()) == (7.0, 0.0)
    assert gt.registry().find_named("activation", "acme::more") is None


@pytest.mark.parametrize("hook", ["modules", "commands", "names"])
def test_a_lazy_mapping_that_fails_costs_only_its_plugin(installed, hook: str) -> None:
    code = f"""
import gradtape as gt
from collections.abc import Mapping
class Failing(Mapping):
    __len__ = lambda self: 1
    __iter__ = lambda self: iter(["acme.x"])
    def __getitem__(self, name): raise OSError("lazy")
gradtape_{hook} = gt.hookimpl(lambda: Failing())
"""
    installed("acme", f"[gradtape.{hook}]\nacme = acme\n", code)
    with pytest.warns(RuntimeWarning, match=r"plugin 'acme' \(acme 1\.0\): OSError: lazy"):
        assert getattr(gt.registry(), hook)


def test_a_late_plugin_with_a_mistake_is_an_error_if_the_user_wants_so(
    installed, monkeypatch
) -> None:
    code = "import gradtape as gt\ngradtape_modules = gt.hookimpl(lambda: {'acme.x': 5})"
    installed("acme", "[gradtape.modules]\nacme = acme\n", code)
    monkeypatch.setenv("GRADTAPE_PLUGINS_STRICT", "1")
    with pytest.raises(PluginError, match=r"gradtape_modules returned 5 for 'acme\.x'"):
        gt.registry().modules  # noqa: B018


def test_a_plugin_may_ask_for_others_while_it_is_imported(installed) -> None:
    asking = "import gradtape as gt\nknown = set(gt.registry().modules)\n"
    for name, more in (("acme", asking), ("bcme", ""), ("ccme", "")):
        installed(name, f"[gradtape.modules]\n{name} = {name}\n", more + MODULES.format(name))
    found = set(gt.registry().modules)
    assert {"acme.Part", "bcme.Part", "ccme.Part"} <= found
    assert found - sys.modules["acme"].known == {"acme.Part"}
    assert not [info for info in gt.registry().plugins if info.problem not in (None, "disabled")]


def test_a_module_may_be_declared_for_all_hooks_and_for_one(installed) -> None:
    groups = "[gradtape]\nacme = acme\n[gradtape.modules]\nacme = acme\n"
    installed("acme", groups, MODULES.format("acme"))
    assert gt.registry().modules["acme.Part"] is sys.modules["acme"].Part
    assert next(x for x in gt.registry().plugins if x.name == "acme").modules == ["acme.Part"]


def test_a_plugin_of_its_distributions_name_is_not_blamed(installed) -> None:
    installed("acme", "[gradtape]\nacme = acme\n", MODULES.format("acme"))
    with pytest.raises(UnknownOp) as told:
        gt.registry().op("nothing_like_it")
    assert "None" not in str(told.value)


def test_a_plugin_named_as_one_of_ours_is_disabled_without_ours(installed) -> None:
    installed("acme", "[gradtape]\nnumpy = acme\n", "1 / 0")
    with pytest.warns(RuntimeWarning, match="GRADTAPE_DISABLE_PLUGINS=acme:numpy$"):
        assert gt.sin(0.0).item() == 0.0
    gt.disable_plugin("acme:numpy")
    try:
        assert gt.sin(0.0).item() == 0.0
    finally:
        gt.disable_plugin("acme:numpy", disabled=False)


def test_plugins_of_one_name_may_serve_one_module(installed, monkeypatch) -> None:
    module = types.ModuleType("sums_of_others")
    module.one, module.two = (lambda x: x), (lambda x: x)
    monkeypatch.setitem(sys.modules, "sums_of_others", module)
    for name, function in (("acme", "one"), ("bcme", "two")):
        code = f"""
import gradtape as gt
gradtape_functions = gt.hookimpl(lambda: {{"sums_of_others": lambda: {{"{function}": gt.sin}}}})
"""
        installed(name, f"[gradtape]\nsums = {name}\n", code)
    for function in (module.one, module.two):
        assert gt.registry().replacements.of(function)[1] is gt.sin


def test_threads_may_register_plugins_at_once() -> None:
    failed = []

    def work(number: int) -> None:
        made = types.SimpleNamespace(gradtape_hints=hookimpl(lambda: {"": {}}))
        try:
            for i in range(10):
                with gt.register_plugin(made.__class__(**vars(made)), f"thread_{number}_{i}"):
                    assert gt.sin(0.0).item() == 0.0
        except Exception as error:
            failed.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert failed == []
