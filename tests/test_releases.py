"""Versions, changelog fragments and the files that a public repository has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gradtape as gt

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def run(*command: str, cwd: Path = ROOT) -> str:
    """Run a tool of the environment that runs the tests."""
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, cwd=cwd, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_version_is_the_same_everywhere() -> None:
    version = PROJECT["project"]["version"]
    assert gt.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_each_change_is_of_a_known_type() -> None:
    types = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
    table = (ROOT / "docs" / "changes" / "README.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == types
    for path in (ROOT / "docs" / "changes").iterdir():
        if path.name != "README.md":
            stem, kind, suffix = path.name.split(".")
            assert re.fullmatch(r"\+[a-z0-9-]+", stem), path.name
            assert kind in types, path.name
            assert suffix == "md"
            assert path.read_text("utf-8").strip()


def test_changes_become_a_changelog(tmp_path: Path) -> None:
    pytest.importorskip("towncrier", reason='pip install "gradtape[release]"')
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "docs" / "changes").mkdir(parents=True)
    (tmp_path / "docs" / "changes" / "+one.fixed.md").write_text("`gt.sin` was right before.\n")
    (tmp_path / "docs" / "changes" / "+two.added.md").write_text("`gt.sine`.\n")
    before = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    arguments = ("build", "--yes", "--version", "9.8.7", "--date", "2031-01-02")
    run("towncrier", *arguments, cwd=tmp_path)
    after = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    head, rest = after.split("## 9.8.7 (2031-01-02)\n")
    assert before.startswith(head)
    assert before.endswith(rest[rest.index("\n## ") :])
    assert re.search(r"### Added\n\n- `gt.sine`.\n\n### Fixed\n\n- `gt.sin` was right", rest)


def test_pre_commit_has_the_linters_of_the_suite() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    pins = set(re.findall(r"\[(\w+==[\d.]+)\]", text))
    assert pins
    assert pins <= set(PROJECT["project"]["optional-dependencies"]["test"])


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", ".github/workflows/*.yml"),
        ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("vendor.github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("vendor.dependabot", ".github/dependabot.yml"),
        ("vendor.citation-file-format", "CITATION.cff"),
    ],
)
def test_files_of_a_public_repository_are_well_formed(schema: str, files: str) -> None:
    pytest.importorskip("check_jsonschema", reason='pip install "gradtape[test]"')
    paths = [str(path) for path in ROOT.glob(files)]
    assert paths
    run("check_jsonschema", "--builtin-schema", schema, *paths)


def test_workflows_are_safe() -> None:
    places = (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
    zizmor = shutil.which("zizmor", path=os.pathsep.join(places))
    if zizmor is None:
        pytest.skip('pip install "gradtape[test]"')
    command = [zizmor, "--offline", "--no-progress", str(ROOT / ".github")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_calls_what_a_developer_calls() -> None:
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    targets = re.findall(r"run: make (\w+)", text)
    assert set(targets) <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
    assert targets[0] == "test"
    least = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert f'python: ["{least}", ' in text
