"""Services: what a package provides to those below it, and how a plugin replaces it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from types import SimpleNamespace

import pytest

import gradtape as gt
from gradtape import hookimpl
from gradtape.errors import PluginError


def providing(**services: object) -> SimpleNamespace:
    found = {name.replace("__", "."): item for name, item in services.items()}
    return SimpleNamespace(gradtape_services=hookimpl(lambda: found))


def test_a_plugin_replaces_a_service() -> None:
    x = gt.constant(1.25)
    plugin = providing(saving__pickle_tensor=lambda x, protocol: (gt.constant, (7.0,)))
    with gt.register_plugin(plugin, "acme"):
        assert pickle.loads(pickle.dumps(x)).item() == 7
    assert pickle.loads(pickle.dumps(x)).item() == 1.25


def test_a_text_is_imported_when_the_service_is_used() -> None:
    with gt.register_plugin(providing(acme__join="os.path:join"), "acme"):
        assert gt.registry().service("acme.join")("a", "b")


@pytest.mark.parametrize("place", ["acme_nothing:y", "json:no_such_name"])
def test_a_text_that_leads_nowhere_is_an_error_of_its_plugin(place: str) -> None:
    with (
        gt.register_plugin(providing(acme__x=place), "acme"),
        pytest.raises(PluginError, match=rf"plugin 'acme'.*'acme.x' is '{place}'"),
    ):
        gt.registry().service("acme.x")


def test_a_missing_service_says_how_to_get_it() -> None:
    with pytest.raises(PluginError, match=r"'acme.x', which no plugin provides.*pip install"):
        gt.registry().service("acme.x")


def test_every_service_of_gradtape_is_there() -> None:
    registry = gt.registry()
    assert len(registry.services) > 300
    for name in registry.services:
        assert registry.service(name) is not None


def test_pickling_says_what_is_missing() -> None:
    code = (
        "import os; os.environ['GRADTAPE_DISABLE_PLUGINS'] = 'saving'\n"
        "import pickle, gradtape as gt\n"
        "try: pickle.dumps(gt.ones(2))\n"
        "except gt.errors.PluginError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'saving.pickle_tensor', which no plugin provides" in done.stdout
