"""Commands come through the hook ``gradtape_commands``: a plugin adds one, or replaces one."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import gradtape as gt
from gradtape.cli import main

Register = Callable[..., None]


@pytest.fixture
def register() -> Iterator[Register]:
    names: list[str] = []

    def given(name: str, commands: Any) -> None:
        plugin = SimpleNamespace(gradtape_commands=gt.hookimpl(lambda: commands))
        gt.register_plugin(plugin, name)
        names.append(name)

    yield given
    for name in names:
        gt.unregister_plugin(name)


def greet(parser: argparse.ArgumentParser) -> None:
    """Greet somebody."""
    parser.add_argument("name")
    parser.set_defaults(run=lambda options: print(f"hello {options.name}"))


def failing(parser: argparse.ArgumentParser) -> None:
    """Fail at once."""
    parser.add_argument("name")
    raise KeyError("acme")


def test_a_plugin_adds_a_command(register: Register, capsys: pytest.CaptureFixture[str]) -> None:
    register("acme", {"acme": greet})
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "acme       greet somebody\n" in capsys.readouterr().out
    assert main(["acme", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"


def test_a_plugin_replaces_a_command(
    register: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    register("acme", {"verify": greet})
    assert main(["verify", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"


def test_our_commands_come_from_a_plugin() -> None:
    known = gt.registry()
    assert {str(known.owner("command", name)).split()[1] for name in known.commands} == {
        "'cli'",
        "'profiler'",
    }


@pytest.mark.parametrize(
    ("add", "said"),
    [
        (failing, "plugin 'acme': the command 'acme' cannot be used: .* KeyError: 'acme'"),
        (lambda parser: None, r"plugin 'acme': .* call parser\.set_defaults\(run=function\)"),
    ],
)
def test_a_command_that_fails_leaves_the_others(
    add: Any, said: str, register: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    register("acme", {"acme": add})
    assert main(["plugins"]) == 0
    assert "acme" in capsys.readouterr().out
    assert main(["acme"]) == 1
    assert re.search(said, capsys.readouterr().err)


def test_two_plugins_with_one_command_lose_it_alone(
    register: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    register("acme", {"acme": greet})
    with pytest.raises(gt.errors.PluginError, match="both provide the command 'acme'"):
        register("other", {"acme": greet})
    assert main(["acme", "Ada"]) == 0


def test_without_our_commands_two_are_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gt.disable_plugin("cli")
    try:
        assert main(["plugins"]) == 0
        assert "disabled" in capsys.readouterr().out
        with pytest.raises(SystemExit):
            main(["demo"])
        assert "choose from 'plugins', 'doctor'" in capsys.readouterr().err
    finally:
        gt.disable_plugin("cli", disabled=False)


def test_help_imports_no_command() -> None:
    code = (
        "import sys\nfrom gradtape.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = 'saving training plot cli.doctor cli.demo h5py jax'.split()\n"
        "print([x for x in heavy if x in sys.modules or f'gradtape.{x}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_unknown_command_is_answered_with_near_names(
    register: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    register("acme", {"greet": greet})
    for given, near in [("gret", "near names: greet."), ("new-plugin", "near names: plugin")]:
        with pytest.raises(SystemExit):
            main([given])
        assert near in capsys.readouterr().err


def test_an_unknown_command_is_answered_with_the_plugins_that_are_not_in_use(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["greet"])
    assert "not in use" not in capsys.readouterr().err
    gt.disable_plugin("plot")
    try:
        with pytest.raises(SystemExit):
            main(["greet"])
        assert "(not in use: plugin 'plot'" in capsys.readouterr().err
    finally:
        gt.disable_plugin("plot", disabled=False)


@pytest.mark.parametrize("name", ["two words", "--plain", " "])
def test_a_command_is_one_word(name: str, register: Register) -> None:
    with pytest.raises(gt.errors.PluginError, match="is no single word"):
        register("acme", {name: greet})
