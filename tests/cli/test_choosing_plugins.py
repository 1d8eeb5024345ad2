"""``--plugin``, ``--disable-plugin`` and the variables about plugins, on the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import gradtape as gt
from gradtape.cli import main

MODULE = """
import gradtape as gt
from gradtape.core.extend import Op

twice = Op(
    "mine::twice",
    lambda xp, x: 2 * x,
    gradients={"x": lambda g: 2 * g},
    infer=lambda x: (x.shape, x.dtype),
)


@gt.hookimpl
def gradtape_ops():
    return [twice]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_plugin.py").write_text(MODULE, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("my_plugin", None)


def run(*arguments: str):
    return subprocess.run(
        [sys.executable, "-m", "gradtape", *arguments], capture_output=True, text=True, check=False
    )


def test_verify_loads_a_plugin_that_is_a_module(folder, capsys) -> None:
    import my_plugin

    with gt.register_plugin(my_plugin):
        module = gt.Module()
        module.f = gt.function(my_plugin.twice, input_signature=[gt.TensorSpec([2])])
        module.f(gt.ones(2))
        gt.save(module, "m.h5")
    assert main(["verify", "m.h5"]) == 1
    assert "my_plugin" in capsys.readouterr().err
    assert main(["verify", "m.h5", "--plugin", "my_plugin"]) == 0
    assert main(["verify", "--plugin=my_plugin", "m.h5"]) == 0
    assert "mine::twice" not in gt.registry().ops  # for the command only


def test_the_processes_that_a_command_starts_have_the_plugins_too(folder) -> None:
    (folder / "script.py").write_text(
        "import subprocess, sys, gradtape as gt\n"
        "code = 'import gradtape as gt; print(gt.registry().op(\"mine::twice\")(2.0).item())'\n"
        "print(sys.argv[1:], 'cupy' in gt.registry().backends, flush=True)\n"
        "subprocess.run([sys.executable, '-c', code])\n",
        "utf-8",
    )
    options = ["--plugin", "my_plugin", "--disable-plugin", "gradtape:cupy"]
    done = run("train", *options, "script.py", "--plugin", "none_of_gradtape")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["['--plugin', 'none_of_gradtape'] False", "4.0"]


def test_what_cannot_be_a_plugin_is_told(folder, capsys) -> None:
    assert main(["plugins", "--plugin", "no_such_module"]) == 0
    out = capsys.readouterr().out
    assert "there is no module 'no_such_module': install it, or name its folder in" in " ".join(
        out.split()
    )
    for wrong in (["--plugin"], ["--plugin", "--json"], ["--disable-plugin="]):
        assert main(["plugins", *wrong]) == 2
        assert "needs a value" in capsys.readouterr().err
    assert main([]) == 0
    assert "--plugin MODULE[:OBJECT]" in capsys.readouterr().out


def test_problems_are_errors_if_the_user_wants_so(folder, monkeypatch) -> None:
    (folder / "my_plugin.py").write_text("import no_such_library", "utf-8")
    monkeypatch.setenv("GRADTAPE_PLUGIN_MODULES", "my_plugin")
    assert run("plugins").returncode == 0
    monkeypatch.setenv("GRADTAPE_PLUGINS_STRICT", "1")
    done = run("plugins")
    assert done.returncode == 1
    assert "plugin 'my_plugin': ModuleNotFoundError: No module named 'no_such_library'" in (
        done.stderr
    )
    monkeypatch.setenv("GRADTAPE_PLUGIN_MODULES", "")
    assert run("plugins").returncode == 0


def test_the_table_shows_apis_clashes_notes_and_what_waits(folder, capsys) -> None:
    (folder / "my_plugin.py").write_text(
        MODULE + "\n\ngradtape_api = (1, 7)\ngradtape_compatible_since = '0.9'\n", "utf-8"
    )
    assert main(["plugins", "--plugin", "my_plugin"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "my_plugin: it was written for version 1.7 of the plugin interface" in out
    assert main(["plugins", "--json", "--plugin", "my_plugin"]) == 0
    found = json.loads(capsys.readouterr().out)
    (mine,) = [x for x in found if x["name"] == "my_plugin"]
    assert (mine["api"], mine["compatible_since"], mine["status"]) == ([1, 7], "0.9", "ready")
    assert (mine["clashes"], len(mine["notes"])) == ([], 1)
