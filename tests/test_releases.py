"""Versions, changelog fragments and the files that a public repository has."""

from __future__ import annotations

import datetime
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import types
import zipfile
from pathlib import Path

import pytest

import gradtape as gt

ROOT = Path(__file__).parents[1]
CI = ROOT / ".ci"
NOTES = types.SimpleNamespace(**runpy.run_path(str(CI / "release_notes.py")))
DIST = types.SimpleNamespace(**runpy.run_path(str(CI / "dist.py")))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def run(*command: str, cwd: Path = ROOT) -> str:
    """Run a tool of the environment that runs the tests."""
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, cwd=cwd, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def released(root: Path = ROOT) -> list[tuple[str, str]]:
    """Return the versions in the changelog with their dates, the newest first."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    found = re.findall(r"^## (.*)$", text, re.MULTILINE)
    rows = [re.fullmatch(r"(\d+\.\d+\.\d+) \((\d{4}-\d{2}-\d{2})\)", title) for title in found]
    assert all(rows), f"a section is a version with its date: {found}"
    return [(row[1], row[2]) for row in rows if row]


def check_versions(root: Path) -> None:
    """Compare what the files say of the version; before the first release there is no section."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert f'\n__version__ = "{version}"\n' in (root / "__init__.py").read_text("utf-8")
    citation = (root / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {version}\n" in citation
    minor = version.rpartition(".")[0]
    security = (root / "SECURITY.md").read_text("utf-8")
    assert f"| the latest minor version, now {minor} | yes |" in security
    dates = re.findall(r"^date-released: (.*)$", citation, re.MULTILINE)
    sections = released(root)
    assert dates == [date for _, date in sections[:1]]
    if sections:
        assert sections[0][0] == version
        numbers = [tuple(map(int, number.split("."))) for number, _ in sections]
        assert numbers == sorted(set(numbers), reverse=True)
        for _, date in sections:
            datetime.date.fromisoformat(date)
    else:
        assert list((root / "docs" / "changes").glob("+*.md")), "a release has a section"
    assert "unreleased" not in (root / "CHANGELOG.md").read_text("utf-8").lower()


def test_the_version_is_the_same_everywhere() -> None:
    assert gt.__version__ == PROJECT["project"]["version"]
    check_versions(ROOT)


def test_each_change_is_of_a_known_type() -> None:
    types = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
    table = (ROOT / "docs" / "changes" / "README.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == types
    for path in (ROOT / "docs" / "changes").iterdir():
        if path.name not in ("README.md", "template.jinja"):
            stem, kind, suffix = path.name.split(".")
            assert re.fullmatch(r"\+[a-z0-9-]+", stem), path.name
            assert kind in types, path.name
            assert suffix == "md"
            assert path.read_text("utf-8").strip()


def copied(folder: Path) -> Path:
    """Copy what a release changes, with changes of its own."""
    changes = folder / "docs" / "changes"
    changes.mkdir(parents=True)
    for name in (*NOTES.LINES, "CHANGELOG.md", "docs/changes/template.jinja"):
        shutil.copy(ROOT / name, folder / name)
    fragments = {
        "+a.summary": "About sines:\n\n- right ones,\n  always.\n\nAnd more.\n",
        "+one.fixed": "`gt.sin` was right before.\n",
        "+two.added": "`gt.sine`, which\nhas two lines.\n",
        "+three.added": "- A list.\n- Of two,\n  one with lines.\n",
    }
    for name, text in fragments.items():
        (changes / f"{name}.md").write_text(text, "utf-8")
    return folder


RENDERED = """## 9.8.7 (2031-01-02)

About sines:

- right ones,
  always.

And more.

### Added

- A list.
- Of two,
  one with lines.
- `gt.sine`, which
  has two lines.

### Fixed

- `gt.sin` was right before.
"""


def test_changes_become_a_changelog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("towncrier", reason='pip install "gradtape[release]"')
    copied(tmp_path)
    before = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    assert NOTES.main(["9.8.7", "2031-01-02"], tmp_path) == 0
    after = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    head, found, rest = after.partition(RENDERED)
    assert found
    assert before.startswith(head.rstrip("\n") + "\n")
    assert before.endswith(rest.lstrip("\n"))
    assert [x.name for x in (tmp_path / "docs" / "changes").iterdir()] == ["template.jinja"]
    check_versions(tmp_path)
    assert 'version = "9.8.7"' in (tmp_path / "pyproject.toml").read_text("utf-8")
    for arguments, why in [
        (["9.8.7"], "has 9.8.7 already"),
        (["9.8"], "three numbers"),
        ([], "three numbers"),
        (["9.8.8", "tomorrow"], "a date"),
        (["9.8.8"], "no change"),
    ]:
        assert NOTES.main(arguments, tmp_path) == 1
        assert why in capsys.readouterr().err
    (tmp_path / "docs" / "changes" / "+four.fixed.md").write_text("`gt.cos`.\n", "utf-8")
    check_versions(tmp_path)  # between two releases
    assert NOTES.main(["9.8.8", "2031-02-03"], tmp_path) == 0
    check_versions(tmp_path)
    assert released(tmp_path)[:2] == [("9.8.8", "2031-02-03"), ("9.8.7", "2031-01-02")]
    assert RENDERED in (tmp_path / "CHANGELOG.md").read_text("utf-8")


def test_what_the_next_release_tells_has_links_that_lead_somewhere() -> None:
    pytest.importorskip("towncrier", reason='pip install "gradtape[release]"')
    text = run("towncrier", "build", "--draft", "--version", "9.8.7")
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        assert (ROOT / target).exists(), target
    for path in (ROOT / "docs" / "changes").glob("+*.summary.md"):
        assert len(path.read_text("utf-8").splitlines()) <= 25, "a summary is short"
    assert len(list((ROOT / "docs" / "changes").glob("+*.summary.md"))) <= 1


README = """# A title

Some [words](docs/a.md#part) and [`code`](docs/b.md), ![a picture](docs/c.png), [here](#there),
[elsewhere](https://example.org), `f[0](x)`. <img src="docs/d.svg" width="9"> [two
lines](e.md).

```python
f[0](x)
```
"""


def test_the_description_has_no_relative_link() -> None:
    described = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["described"]
    plain = """# A title

Some words and `code`, , here,
[elsewhere](https://example.org), `f[0](x)`.  two
lines.

```python
f[0](x)
```
"""
    assert described(README, "", "1.0") == plain
    with_links = described(README, "https://host/us/it", "1.0")
    for link in (
        "[words](https://host/us/it/blob/v1.0/docs/a.md#part)",
        "[`code`](https://host/us/it/blob/v1.0/docs/b.md)",
        "![a picture](https://host/us/it/raw/v1.0/docs/c.png)",
        "[here](https://host/us/it/blob/v1.0/README.md#there)",
        '<img src="https://host/us/it/raw/v1.0/docs/d.svg" width="9">',
    ):
        assert link in with_links
    assert DIST.RELATIVE.findall(DIST.CODE.sub("", README)) != []
    ours = (ROOT / "README.md").read_text("utf-8")
    for text in (plain, with_links, described(ours, "", "1.0")):
        assert DIST.RELATIVE.findall(DIST.CODE.sub("", text)) == []


@pytest.mark.filterwarnings("ignore:Python 3.14 will")  # said where there is a filter
def test_sdists_unpack_on_the_oldest_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tarfile, "data_filter", raising=False)  # 3.11.3 and before lack it
    monkeypatch.delattr(tarfile.TarFile, "extraction_filter", raising=False)
    path = tmp_path / "a.tar.gz"
    (tmp_path / "a.txt").write_text("a", "utf-8")
    with tarfile.open(path, "w:gz") as held:
        held.add(tmp_path / "a.txt", "a-1/a.txt")
    DIST.unpack(path, tmp_path / "out")
    assert (tmp_path / "out/a-1/a.txt").read_text("utf-8") == "a"


def test_a_distribution_is_built_by_one_version_of_setuptools(tmp_path: Path) -> None:
    built_with = DIST.surroundings(tmp_path, 12)
    assert built_with["SOURCE_DATE_EPOCH"] == "12"
    pin = Path(built_with["PIP_CONSTRAINT"]).read_text("utf-8")
    (least,) = PROJECT["build-system"]["requires"]
    name, _, version = pin.strip().partition("==")
    assert least.startswith(f"{name}>=")
    assert int(version.partition(".")[0]) >= int(least.partition(">=")[2])


def test_what_is_not_committed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))  # it may be in a clone
    (tmp_path / "config").write_text("[user]\nname = us\nemail = us@example.org\n", "utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    git = DIST.git
    with pytest.raises(SystemExit, match="built from a clone"):
        DIST.tracked(tmp_path)
    git("init", "--quiet", root=tmp_path)
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("a = 1\n", "utf-8")
    git("add", "a.py", root=tmp_path)
    git("commit", "--quiet", "--message", "A", root=tmp_path)
    assert DIST.tracked(tmp_path) == {"a.py"}
    assert DIST.uncommitted(tmp_path) == []
    (tmp_path / "a.py").write_text("a = 2\n", "utf-8")
    assert DIST.uncommitted(tmp_path) == ["not committed: a.py"]


def test_strays_in_a_wheel_are_told(tmp_path: Path) -> None:
    good = {"gradtape/__init__.py": "", "gradtape/py.typed": "", "gradtape/docs/guides/a.md": ""}
    information = "gradtape-1.0.dist-info"
    good |= {f"{information}/METADATA": "Name: gradtape\n\n# A title\n"}
    good |= {f"{information}/licenses/LICENSE": ""}

    def told(files: dict[str, str]) -> list[str]:
        path = tmp_path / "a.whl"
        with zipfile.ZipFile(path, "w") as held:
            for name, text in files.items():
                held.writestr(name, text)
        return DIST.problems_of_wheel(path)

    assert told(good) == []
    for stray in (
        "gradtape/tests/test_a.py",
        "gradtape/core/__pycache__/a.py",
        "gradtape/docs/a.md",
        "gradtape/a.so",
        "tests/a.py",
    ):
        assert told({**good, stray: ""}) == [f"{stray} is no part of the package"]
    for name in ("gradtape/py.typed", f"{information}/licenses/LICENSE"):
        assert told({k: v for k, v in good.items() if k != name}) == [f"{name} is missing"]
    linked = {**good, f"{information}/METADATA": "Name: gradtape\n\n[a](b.md)\n"}
    assert told(linked) == ["a link to b.md leads nowhere on an index"]


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
    targets = re.findall(r"run: make ([\w-]+)", text)
    assert {"test", "test-oldest", "docs", "dist"} == set(targets)
    assert set(targets) <= set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert targets[0] == "test"
    least = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert f'python: ["{least}", ' in text
    oldest = text.partition("\n  oldest:\n")[2].partition("make test-oldest")[0]
    assert f'python-version: "{least}"' in oldest


def test_the_workflow_and_the_classifiers_have_the_same_pythons() -> None:
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    (row,) = re.findall(r"^ +python: \[(.*)\]$", text, re.MULTILINE)
    told = [x.rpartition(" ")[2] for x in PROJECT["project"]["classifiers"] if " :: 3." in x]
    assert re.findall(r"3\.\d+", row) == told


def test_actions_are_pinned_by_commit_and_each_in_one_version() -> None:
    pins: dict[str, set[str]] = {}
    template = ROOT / "cli" / "templates" / "__init__.py"  # no bot raises its pins
    for path in [*(ROOT / ".github" / "workflows").glob("*.yml"), template]:
        for action, pin in re.findall(r"uses: ([\w./$-]+)@?(.*)$", path.read_text("utf-8"), re.M):
            if action.startswith("$/"):  # of this repository
                assert (ROOT / action[2:]).exists()
                continue
            assert re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin), f"{action}@{pin}"
            pins.setdefault(action, set()).add(pin)
    assert len(pins) > 4
    assert {action: found for action, found in pins.items() if len(found) > 1} == {}


def test_a_release_publishes_what_was_tested_without_a_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    jobs = re.split(r"^  (\w+):$", text.partition("\njobs:\n")[2], flags=re.MULTILINE)[1:]
    bodies = dict(zip(jobs[::2], jobs[1::2], strict=True))
    needs = {name: re.findall(r"^    needs: (\w+)$", body, re.M) for name, body in bodies.items()}
    order = ["version", "test", "attest", "publish", "attach"]
    assert needs == {name: order[max(i - 1, 0) : i] for i, name in enumerate(order)}
    assert "uses: $/.github/workflows/test.yml" in bodies["test"]
    assert "secrets." not in text
    assert {name for name, body in bodies.items() if "id-token: write" in body} == {
        "attest",
        "publish",
    }
    assert "environment:" in bodies["publish"]
    for name in ("attest", "publish"):  # what the tests of this run have built
        assert "name: dist" in bodies[name]


def test_a_tag_is_compared_with_the_version(tmp_path: Path) -> None:
    script = runpy.run_path(str(CI / "tagged.py"))
    tagged, main = script["notes"], script["main"]
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n', "utf-8")
    changelog = tmp_path / "CHANGELOG.md"

    def notes(tag: str, text: str) -> str:
        changelog.write_text(f"# Changelog\n\nA text.\n{text}", "utf-8")
        return tagged(tmp_path, tag, "https://host/us/it")

    new = "\n## 1.2.3 (2031-01-02)\n\n- [A `b`](c.md), `d[0](e)`, [f](https://g).\n"
    old = "\n## 1.2.2 (2030-01-02)\n\n- Old.\n"
    wanted = "- [A `b`](https://host/us/it/blob/v1.2.3/c.md), `d[0](e)`, [f](https://g)."
    assert notes("v1.2.3", new + old) == notes("v1.2.3", new) == wanted
    for tag, text, why in [
        ("v1.2.4", new, "the tag is v1.2.4"),
        ("1.2.3", new, "the tag is 1.2.3"),
        ("v1.2.3", old, "begins with '1.2.2"),
        ("v1.2.3", "\n## 1.2.3 (unreleased)\n", "unreleased"),
        ("v1.2.3", "", "begins with ''"),
        ("v1.2.3", new + 62_500 * "- ", "GitHub takes 125000"),
    ]:
        with pytest.raises(SystemExit, match=re.escape(why)):
            notes(tag, text)
    left = tmp_path / "docs/changes/+late.fixed.md"
    left.parent.mkdir(parents=True)
    left.write_text("`gt.cos`.\n", "utf-8")
    with pytest.raises(SystemExit, match=r"the changelog lacks .*late"):
        notes("v1.2.3", new)
    with pytest.raises(SystemExit, match="say which tag"):
        main(["v1.2.3"])


def test_the_table_of_supported_versions_follows_spec_0() -> None:
    page = (ROOT / "docs" / "releases.md").read_text("utf-8")
    row = r"^\| (Python|NumPy) (\d+\.\d+) \| ([\d-]+) \| ([\d-]+) \|$"
    rows = re.findall(row, page, re.MULTILINE)
    for library, version, released_on, until in rows:
        day = datetime.date.fromisoformat(released_on)
        years = {"Python": 3, "NumPy": 2}[library]
        assert until == day.replace(year=day.year + years).isoformat(), version
    pythons = [version for library, version, *_ in rows if library == "Python"]
    told = [x.rpartition(" ")[2] for x in PROJECT["project"]["classifiers"] if " :: 3." in x]
    assert pythons == told
    numpys = [version for library, version, *_ in rows if library == "NumPy"]
    assert f"numpy>={numpys[0]}" in PROJECT["project"]["dependencies"]
    assert set(numpys) >= {f"2.{i}" for i in range(int(numpys[-1].partition(".")[2]) + 1)}
