"""``gradtape plugin new``: what it writes is installed, found, tested, typed and saved with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from installing import Environment, required
from without_extras import lay_out

import gradtape as gt
from gradtape.cli import main
from gradtape.cli.templates import KINDS

SAVE = """
import sys, gradtape as gt
from my_ops import soft_abs

class Model(gt.Module):
    @gt.function(input_signature=[gt.TensorSpec([None])])
    def __call__(self, x):
        return soft_abs(x, width=4.0)

gt.save(Model(), sys.argv[1])
"""
LOAD = """
import sys, warnings, gradtape as gt
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    try:
        print(gt.load(sys.argv[1])([3.0]).tolist())
    except gt.saving.MissingPlugin as error:
        print("missing:", error)
print(*(warning.message for warning in told))
"""


def search_path(folder: Path) -> str:
    """Return a folder in which type checkers find the package; empty if they do by themselves."""
    if Path(gt.__file__).parent.name == "gradtape":
        return ""
    lay_out(folder / "site")
    return str(folder / "site")


def plugins(environment: Environment) -> dict[str, dict[str, object]]:
    told = environment.run("-m", "gradtape", "plugins", "--json")
    return {record["name"]: record for record in json.loads(told)}


#: By kind, what ``gradtape plugins --json`` lists the distribution with.
PROVIDED = {
    "op": ("ops", ["my-op::soft_abs"]),
    "backend": ("backends", ["my-backend"]),
    "executor": ("executors", ["my-executor"]),
    "engine": ("collectives", ["my-engine"]),
    "layer": ("modules", ["my_layer.Scale"]),
    "optimizer": ("modules", ["my_optimizer.SignMomentum"]),
    "format": (None, None),
}


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a new distribution of each kind."""
    folder = tmp_path_factory.mktemp("projects")
    for kind in KINDS:
        assert main(["plugin", "new", f"my-{kind}", "--kind", kind, "--out", str(folder)]) == 0
    return folder


def test_every_kind_is_tested() -> None:
    assert PROVIDED.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_distribution_is_found_and_passes_its_tests_without_other_packages(
    kind: str, projects: Path, tmp_path: Path
) -> None:
    if kind == "backend":
        pytest.importorskip("array_api_strict", reason="pip install array-api-strict")
    project = projects / f"my-{kind}"
    environment = Environment(tmp_path / "environment")
    environment.install(project)
    record = plugins(environment)[f"my_{kind}"]
    assert (record["distribution"], record["status"]) == (f"my-{kind}", "ready")
    key, names = PROVIDED[kind]
    assert key is None or record[key] == names
    told = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = [*told["dependencies"], *told["optional-dependencies"]["test"]]
    environment.see_only(set().union(*(required(re.split(r"[<>=]", need)[0]) for need in needs)))
    passed = environment.run(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", str(project / "tests"))
    )
    assert re.search(r"^\d passed", passed.splitlines()[-1]), passed
    readme = (project / "README.md").read_text(encoding="utf-8")
    environment.run("-c", re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[0])
    hidden = environment.run("-c", "from importlib.util import find_spec as f; print(f('scipy'))")
    assert hidden.split() == ["None"]


def test_new_distributions_are_annotated(projects: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason='pip install "gradtape[test]"')
    options = ["--strict", "--config-file=", "--follow-imports=silent"]
    sources = [str(path) for path in sorted(projects.glob("*/src/*"))]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path / 'cache'}", *sources],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": search_path(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflows_are_ones_of_github(projects: Path) -> None:
    pytest.importorskip("check_jsonschema", reason='pip install "gradtape[test]"')
    files = [str(path) for path in projects.glob("*/.github/workflows/test.yml")]
    assert len(files) == len(KINDS)
    schema = ["--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *schema, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_files_name_the_distribution_and_its_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugin", "new", "my-ops", "--out", str(tmp_path)]) == 0
    project, file = tmp_path / "my-ops", str(tmp_path / "model.h5")
    written = sorted(str(p.relative_to(project)) for p in project.rglob("*") if p.is_file())
    told = capsys.readouterr().out
    assert all(str(project / name) in told for name in written)
    environment = Environment(tmp_path / "environment")
    assert "my_ops" not in plugins(environment)
    environment.install(project, editable=True)
    record = plugins(environment)["my_ops"]
    assert (record["version"], record["status"]) == ("0.1.0", "ready")
    assert record["ops"] == record["rules"] == ["my-ops::soft_abs"]

    environment.run("-c", SAVE, file)
    assert environment.run("-c", LOAD, file).split() == ["[1.0]"]
    pyproject = project / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace('version = "0.1.0"', 'version = "0.2.0"'))
    environment.install(project)
    told = environment.run("-c", LOAD, file)
    assert re.search(r"\[1\.0\]\n.*plugin 'my_ops' has version 0\.2\.0 here.* 0\.1\.0", told)
    environment.pip("uninstall", "--yes", "my-ops")
    told = environment.run("-c", LOAD, file)
    assert re.search(r"missing: .*needs plugin 'my_ops' .*pip install my-ops", told)
    assert "my_ops" not in plugins(environment)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "'' is not a valid name"),
        ("my ops", "'my ops' is not a valid name"),
        ("../ops", "'../ops' is not a valid name"),
        ("2ops", "is not a valid name.* start with a letter"),
        ("ops-", "is not a valid name.* end with a letter or digit"),
        ("MyOps", "is not a valid name.* lower-case letters"),
        ("naïve", "is not a valid name"),
        ("class", "'class' cannot be the name of a module"),
        ("tests", "'tests' cannot be the name of a module"),
        ("layers", "'layers' is gradtape's own name"),
        ("numpy", "'numpy' is in use: the distribution 'numpy' is already installed"),
        ("gradtape", "'gradtape' is in use"),
        ("json", "'json' is in use: a module 'json' is already installed"),
    ],
)
def test_a_name_that_cannot_be_is_refused(
    name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugin", "new", name, "--out", str(tmp_path)]) == 1
    assert re.search(f"^gradtape plugin: .*{message}", capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_exists_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my-ops").mkdir()
    assert main(["plugin", "new", "my-ops", "--out", str(tmp_path)]) == 1
    assert "my-ops already exists" in capsys.readouterr().err
    assert not list((tmp_path / "my-ops").iterdir())
    assert main(["plugin", "new", "my-ops", "--out", str(tmp_path / "absent")]) == 1
    assert "absent is not an existing folder" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["plugin", "new"])
