"""``gradtape plugins`` and ``doctor`` answer, whatever plugins do; so does every other command."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAD = "import gradtape as gt\n"
BACKEND = (
    HEAD
    + """
class B(gt.plugin.Backend):
    name = array_module = "acme"
    def unavailable(self): {0}
    def diagnosis(self): {0}
gradtape_backends = gt.hookimpl(lambda: [B()])
"""
)
DIAGNOSIS = HEAD + "gradtape_diagnoses = gt.hookimpl(lambda: {{'acme': lambda: {0}}})"
COMMAND = (
    HEAD
    + """
def command(parser):
    {0}
gradtape_commands = gt.hookimpl(lambda: {{"acme": command}})
"""
)
PLUGINS = {
    "prints": (HEAD + "print('{')\ngradtape_ops = gt.hookimpl(lambda: print('[') or [])", ""),
    "a reason that is none": (BACKEND.format("return 5"), "returned int instead of a text"),
    "a backend that exits": (BACKEND.format("raise SystemExit(0)"), "SystemExit: 0"),
    "a diagnosis that exits": (DIAGNOSIS.format("exit(0)"), "SystemExit: 0"),
    "packages that are none": (DIAGNOSIS.format("{'packages': {'': 5}}"), "something else than te"),
    "a package in none": (DIAGNOSIS.format("{'packages': {'no.such': 'x'}}"), ""),
    "variables that are none": (DIAGNOSIS.format("{'variables': [5]}"), "something else than te"),
    "a command that ends": (COMMAND.format("raise GeneratorExit"), ""),
    "a command with per cent": (COMMAND.format("'Convert 50% of files.'"), ""),
}


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Write a plugin's module, which all commands use."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("GRADTAPE_PLUGIN_MODULES", "acme_plugin")
    monkeypatch.setenv("GRADTAPE_DISABLE_PLUGINS", "jax")  # which takes a second to import
    return lambda code: (tmp_path / "acme_plugin.py").write_text(code)


def run(*arguments: str):
    command = [sys.executable, "-m", "gradtape", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("kind", PLUGINS)
def test_reports_appear(kind: str, plugin) -> None:
    code, said = PLUGINS[kind]
    plugin(code)
    told = run("plugins", "--json")
    assert "acme_plugin" in [x["name"] for x in json.loads(told.stdout)]
    found = run("doctor", "--no-measure", "--json")
    assert "acme_plugin" in [x["name"] for x in json.loads(found.stdout)["plugins"]]
    assert said in told.stdout + found.stdout
    helped = run("--help")
    assert (helped.returncode, "tutorial" in helped.stdout) == (0, True)


@pytest.mark.parametrize("late", ["", ".modules"])
def test_reports_appear_even_if_problems_are_errors(late: str, tmp_path, plugin, monkeypatch):
    plugin("")
    (tmp_path / "bcme.py").write_text("1 / 0")
    info = tmp_path / "bcme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bcme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gradtape{late}]\nbcme = bcme\n")
    monkeypatch.setenv("GRADTAPE_PLUGINS_STRICT", "1")
    for command in (["plugins"], ["doctor", "--no-measure"]):
        done = run(*command)
        assert done.returncode == 1
        assert "bcme" in done.stdout
        assert done.stderr.startswith(
            f"gradtape {command[0]}: plugin 'bcme' (bcme 1.0): ZeroDivisionError"
        )
    if not late:
        done = run("inspect", "no_such_file.h5")
        assert done.stderr.startswith("gradtape inspect: plugin 'bcme' (bcme 1.0): ZeroDivision")


def test_a_plugin_that_hangs_is_named(plugin) -> None:
    plugin("import time\ntime.sleep(2)")
    code = "from gradtape.cli import main, plugins; plugins._PATIENCE = 0.2; main(['plugins'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "still waiting for plugin 'acme_plugin', which is imported" in done.stderr
    assert "GRADTAPE_DISABLE_PLUGINS=acme_plugin" in done.stderr
