"""Versions that plugins state: of the plugin interface, and of what files mean."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

import gradtape as gt
from gradtape.core.extend import means_the_same
from gradtape.errors import PluginError


def plugin(**stated):
    return SimpleNamespace(gradtape_executors=gt.hookimpl(lambda: {"own": len}), **stated)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"gradtape_api": (2, 0)}, r"version 2\.0 of .*, and this is 1\.0: .*version of gradtape$"),
        ({"gradtape_api": (0, 9)}, r"version 0\.9 of .*: install a newer version of plugin 'old'"),
        ({"gradtape_api": "1.0"}, r"gradtape_api is '1\.0'; it must be the two numbers"),
        ({"gradtape_api": (1, 0, 0)}, r"it must be the two numbers .*, such as \(1, 0\)"),
        ({"gradtape_compatible_since": 1.2}, r"since is 1\.2; it must be one of the plugin's"),
        ({"gradtape_compatible_since": "next"}, "since is 'next'; it must be one of"),
    ],
)
def test_statements_that_are_wrong_or_of_another_time_are_refused(stated, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        gt.register_plugin(plugin(**stated), "old")


def info_of(name: str):
    return next(info for info in gt.registry().plugins if info.name == name)


def test_a_plugin_for_a_later_minor_version_is_noted_and_its_new_hooks_are_not_called() -> None:
    def gradtape_opps():
        raise AssertionError("it is called")

    new = plugin(gradtape_api=(1, 3), gradtape_opps=gt.hookimpl(gradtape_opps))
    with gt.register_plugin(new, "new"):
        info = info_of("new")
        assert (info.api, info.problem) == ((1, 3), None)
        assert info.notes[0].startswith("it was written for version 1.3 of the plugin interface")
        assert "implements gradtape_opps, which is not a hook of this version" in info.notes[1]
    with gt.register_plugin(plugin(gradtape_api=(1, 0)), "same"):
        assert (info_of("same").api, info_of("same").notes) == ((1, 0), [])
    with gt.register_plugin(plugin(), "silent"):
        assert (info_of("silent").api, info_of("silent").notes) == (None, [])


gradtape_compatible_since = "1.2"


def test_an_object_has_what_the_module_of_its_class_states() -> None:
    class Plugin:
        pass

    with gt.register_plugin(Plugin()) as registered:
        assert registered.name == "Plugin"
        assert info_of("Plugin").compatible_since == "1.2"


@pytest.mark.parametrize(
    ("saved", "here", "since", "same"),
    [
        ("1.2", "1.2", "", True),
        ("1.2", "1.2.1", "", False),
        ("1.2", "1.10", "1.2", True),
        ("1.2.0", "1.10", "1.2", True),
        ("1.2rc1", "1.10", "1.2", False),
        ("1.10", "1.2", "1.0", False),  # the file is newer
        ("1.3+cpu", "1.3+cu12", "1.3", True),
        ("unknown", "1.3", "1.0", False),
        ("", "1.3", "1.0", False),
    ],
)
def test_which_versions_mean_the_same(saved: str, here: str, since: str, same: bool) -> None:
    assert means_the_same(saved, here, since) is same


def test_versions_are_ordered_as_packaging_orders_them() -> None:
    version = pytest.importorskip("packaging.version")
    draw = random.Random(0)

    def made() -> str:
        release = ".".join(str(draw.randint(0, 2)) for _ in range(draw.randint(1, 3)))
        parts = ["", "1!"], [release], ["", "a1", "b", "-rc.2", "alpha0", "preview3"]
        return "".join(map(draw.choice, (*parts, ["", ".post1", "-2", "r0"], ["", ".dev1", "dev"])))

    for _ in range(2000):
        saved, here = made(), made()
        first = version.Version(saved) <= version.Version(here)
        assert means_the_same(saved, here, saved) is first, (saved, here)
