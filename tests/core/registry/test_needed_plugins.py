"""Plugins are imported only for what they provide, and messages name what is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: A plugin of the same name as its distribution, as most are, and others that are late.
GROUPS = {
    "gradtape": "",
    "gradtape.names": "def gradtape_names():\n    return {'activation': {'acme.act': abs}}\n",
    "gradtape.modules": "def gradtape_modules():\n    return {}\n",
    "gradtape.commands": "def gradtape_commands():\n    return {}\n",
    "gradtape.datasets": "def gradtape_datasets():\n    return {'acme::one': list}\n",
    "gradtape.diagnoses": "def gradtape_diagnoses():\n    return {}\n",
    "gradtape.launchers": "def gradtape_launchers():\n    return {}\n",
    "gradtape.samples": "def gradtape_samples():\n    return {}\n",
}

PRELUDE = """
import sys, json
import gradtape as gt

def imported():
    return sorted(x.removeprefix("acme.") for x in sys.modules if x.startswith("acme."))

def message(call, *given):
    try:
        call(*given)
    except Exception as error:
        return str(error)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the distribution acme is installed."""
    folder = tmp_path_factory.mktemp("site")
    package, info = folder / "acme", folder / "acme-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    lines = []
    (package / "__init__.py").write_text("")
    for group, text in GROUPS.items():
        last = group.rpartition(".")[2]
        module = "plugin" if group == last else last
        name = "acme" if group == last else f"acme_{last}"
        head = "from gradtape.plugin import hookimpl\n\n" + ("@hookimpl\n" if text else "")
        (package / f"{module}.py").write_text(head + text)
        lines += [f"[{group}]", f"{name} = acme.{module}"]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


def told(site: Path, cwd: Path, code: str, **environment: str) -> object:
    """Run code that ends in ``print(json.dumps(...))`` in a fresh process."""
    paths = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-c", f"{PRELUDE}\n{code}"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": paths, **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_file_imports_no_plugin_that_files_do_not_need(site: Path, tmp_path: Path) -> None:
    code = """
model = gt.layers.Dense(2, activation="relu")
model(gt.ones((1, 3)))
gt.save(model, "model.h5")
gt.load("model.h5")
assert gt.saving.verify("model.h5").ok
print(json.dumps(imported()))
"""
    assert told(site, tmp_path, code) == ["modules", "plugin"]


def test_bare_names_import_no_plugin_of_others(site: Path, tmp_path: Path) -> None:
    code = """
data = gt.ones((4, 2)).numpy(), gt.ones((4, 1)).numpy()
gt.training.fit(
    gt.layers.Dense(1), data, optimizer="SGD", loss="mse", metrics=["mae"], verbose=False
)
print(json.dumps(imported()))
"""
    assert told(site, tmp_path, code) == ["plugin"]


def test_an_unknown_name_of_an_installed_distribution(site: Path, tmp_path: Path) -> None:
    code = """
print(json.dumps([
    message(gt.training.optimizers.get, "acme.Lion"),
    message(gt.datasets.load, "acme::two"),
    message(gt.registry().engine, "acne"),
]))
"""
    optimizer, dataset, engine = told(site, tmp_path, code)
    assert optimizer.endswith("; acme 1.0 is installed, and provides no such name")
    assert dataset.endswith("there are: digits, acme::one")
    assert "None" not in engine


def test_an_unknown_name_of_a_disabled_distribution(site: Path, tmp_path: Path) -> None:
    code = """
print(json.dumps(message(gt.training.optimizers.get, "acme.Lion")))
"""
    found = told(site, tmp_path, code, GRADTAPE_DISABLE_PLUGINS="acme:*")
    assert "(not in use: plugin 'acme' (acme 1.0), " in found
    assert "install" not in found
