"""The files that each release wrote are read by all later ones, and compute what they did."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from releases import contents, everything, keeping, make_release_files, public, runs

import gradtape as gt
from gradtape.saving.reports import checks

pytestmark = pytest.mark.usefixtures("forks")

HERE = Path(__file__).parent / "releases"
ROOT = HERE.parents[2]
RELEASES = sorted(path.parent for path in HERE.glob("*/SHA256SUMS"))
CASES = {**contents.CASES, **everything.CASES}
#: The modules of each release; what else is in its folder has tests of its own.
MODULES = [
    pytest.param(path, id=f"{path.parent.name}-{path.stem}")
    for release in RELEASES
    for path in sorted(release.glob("*.h5"))
    if path.name not in (*runs.WEIGHTS, runs.CHECKPOINT)
]
OTHERS = [
    pytest.param(release / name, id=f"{release.name}-{name}")
    for release in RELEASES
    for name in runs.WEIGHTS
]
#: Files without graphs: what they hold comes back as gradtape's own classes.
NO_GRAPHS = {"metrics", "optimizers"}


def below(kind: str, path: Path) -> contents.Arrays:
    """Return the inputs or the results that are kept for a file."""
    name = path.name if path.name in (*runs.WEIGHTS, runs.CHECKPOINT) else path.stem
    start = f"{kind}/{name}/"
    arrays = keeping.kept(path.parent / "expected.npz")
    return {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}


def released() -> list[str]:
    """Return the minor releases in the changelog."""
    return re.findall(r"^## (\d+\.\d+\.0) \(", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)


def test_each_minor_release_has_a_folder() -> None:
    told = released()
    major, minor, _ = gt.__version__.split(".")
    assert {*told, f"{major}.{minor}.0"} <= {path.name for path in RELEASES}
    assert {path.name for path in HERE.iterdir() if path.name[0].isdigit()} == {
        path.name for path in RELEASES
    }


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_the_files_are_as_they_were_written(release: Path) -> None:
    lines = (release / "SHA256SUMS").read_text("utf-8").splitlines()
    assert len(lines) > 20
    told = {name: digest for digest, name in (line.split("  ") for line in lines)}
    found = [path for path in release.iterdir() if path.name != "SHA256SUMS"]
    assert {x.name: hashlib.sha256(x.read_bytes()).hexdigest() for x in found} == told


@pytest.mark.parametrize("path", MODULES)
def test_a_file_computes_and_trains_as_it_did(path: Path) -> None:
    wanted = below("results", path)
    assert len(wanted) > 2
    found = CASES[path.stem].results(gt.load(path), below("inputs", path))
    assert keeping.differences(found, wanted) == []


@pytest.mark.parametrize("path", MODULES)
def test_a_file_verifies(path: Path) -> None:
    report = gt.saving.verify(path)
    if path.stem in NO_GRAPHS:
        assert not report.checks
    else:
        assert report.ok, report.table()
        assert report.checks


@pytest.mark.parametrize("path", OTHERS)
def test_weights_fit_the_model_that_they_are_of(path: Path) -> None:
    assert keeping.differences(runs.weights_results(path), below("results", path)) == []


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_an_interrupted_run_goes_on(release: Path, tmp_path: Path) -> None:
    shutil.copy(release / runs.CHECKPOINT, tmp_path)
    found = runs.fit(tmp_path / runs.CHECKPOINT, resume=True)
    assert keeping.differences(found, below("results", release / runs.CHECKPOINT)) == []
    begun = runs.fit(tmp_path / "new.h5", resume=True)  # there is no file: from the beginning
    assert keeping.differences(begun, found) == []


def told_since(version: str, *kinds: str) -> str:
    """Return what changelog and fragments tell, under some titles, of the time since a release."""
    fragments = (x for kind in kinds for x in (ROOT / "docs" / "changes").glob(f"*.{kind}.md"))
    texts = [path.read_text("utf-8") for path in fragments]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8").partition(f"\n## {version} (")[0]
    titles = "|".join(kinds).title()
    section = rf"^### (?:{titles})\n(.*?)(?=^##|\Z)"
    return "\n".join([*texts, *re.findall(section, changelog, re.DOTALL | re.MULTILINE)])


def made_public(version: str) -> dict[str, Any]:
    """Return what a release made public, as it was recorded."""
    return json.loads(keeping.kept(HERE / version / "expected.npz")["public"].tobytes())


@pytest.mark.parametrize("version", released())
def test_what_a_release_made_public_is_there(version: str) -> None:
    old, now = made_public(version), public.public()
    assert public.gone(old, now, told_since(version, "removed")) == []
    changes = told_since(version, "changed", "deprecated", "removed")
    assert public.altered(old, now, changes) == []
    assert public.uncounted(old, now) == [], "raise the second number of gradtape.plugin.API"


def test_the_newest_release_has_recorded_all_that_it_made_public() -> None:
    if list((ROOT / "docs" / "changes").glob("+*.md")):
        pytest.skip("there are changes since the newest release")
    newest = released()[0]
    now = json.loads(public.packed(public.public()))
    lacking = public.gone(now, made_public(newest), "")
    assert lacking == [], "before its tag: make_release_files.py --public"


API = """
gradtape.one: function (x, /, a: int = 1, *, b: str | None = None, _c=2, **more: Any) -> None
gradtape.nn.two: op (x, y, name: str | None = None)
gradtape.Three.run: method (self, x: Any) -> None
gradtape.Three: class (a: list[int] = <factory>) -> None
gradtape.Five: class (NONE | ZERO)
gradtape.six: function (**options: Unpack[Options]) -> None
gradtape.seven: function (*x: Any, **unknown: Never) -> None
gradtape.four: the same as gradtape.one
"""


def test_parameters_are_read() -> None:
    names = public.public(API)["names"]
    found = {name: public.call(told) for name, told in names.items()}
    assert found == {
        "gradtape.one": (["", "a"], {"a": "1", "b": "None"}, False, False, True, 1),
        "gradtape.nn.two": (
            ["x", "y", "name"],
            {"x": None, "y": None, "name": "None"},
            False,
            False,
            False,
            0,
        ),
        "gradtape.Three.run": (["x"], {"x": None}, False, False, False, 0),
        "gradtape.Three": (["a"], {"a": "..."}, False, False, False, 0),
        "gradtape.six": ([], {}, False, True, False, 0),
        "gradtape.seven": ([], {}, True, False, False, 0),
        "gradtape.Five": None,
        "gradtape.four": None,
    }
    assert (
        public.options()["gradtape inspect"]
        == "-h --help --graph --svg --html --verify --json".split()
    )


def test_what_is_gone_is_found() -> None:
    now = public.public(API)
    assert public.gone(now, now, "") == []
    later = public.public(API.replace("b: str | None = None, ", "").replace("gradtape.four", "_"))
    assert public.gone(now, later, "") == ["gradtape.four", "gradtape.one(b=)"]
    assert public.gone(now, later, "- `gt.four` and `b` of `gt.one`.") == []
    assert public.gone(later, now, "") == []
    other = public.public(API.replace("six: function (", "six: function (a=1, "))
    assert public.gone(other, now, "") == []  # Options may have it
    own = public.public(API.replace("the same as gradtape.one", "function (x) -> None"))
    assert public.gone(now, own, "") == ["gradtape.four(a=)", "gradtape.four(b=)"]
    for kind in ("ops", "hooks"):
        lost = {**now, kind: type(now[kind])()}
        assert len(public.gone(now, lost, "")) == len(now[kind]) > 20
    assert public.gone(now, {**now, "hooks": {}, "plugin": [now["plugin"][0] + 1, 0]}, "") == []
    more = {**now, "hooks": {**now["hooks"], "gradtape_more": []}}
    assert public.uncounted(now, more) == ["gradtape_more"]
    more["names"] = {**now["names"], "gradtape.plugin.more": "", "gradtape.more": ""}
    assert public.uncounted(now, more) == ["gradtape.plugin.more", "gradtape_more"]
    assert public.uncounted(more, now) == []
    assert public.uncounted(now, {**more, "plugin": [now["plugin"][0], 99]}) == []
    fewer = {**now["commands"], "gradtape diff": ["-h", "--help"]}
    assert public.gone(now, {**now, "commands": fewer}, "") == ["gradtape diff --json"]
    del fewer["gradtape diff"]
    assert "gradtape diff --help" in public.gone(now, {**now, "commands": fewer}, "")
    told = "- `gradtape diff --json`, and `-h` and `--help` of it."
    assert public.gone(now, {**now, "commands": fewer}, told) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "a: int = 1",
            "a: int = 2",
            ["gradtape.one(a=1) by default", "gradtape.four(a=1) by default"],
        ),
        ("(x, y, name", "(y, x, name", ["gradtape.nn.two(x, y, name) in this order"]),
        (
            "(x, y, name",
            "(x, z, y, name",
            ["gradtape.nn.two(x, y, name) in this order", "gradtape.nn.two without z"],
        ),
        ("(x, y, ", "(x, *, y, ", ["gradtape.nn.two(x, y, name) in this order"]),
        ("self, x: Any", "self, x: Any, y", ["gradtape.Three.run without y"]),
        ("class (a: list[int] = <factory>)", "int 3", ["gradtape.Three cannot be called"]),
        ("*x: Any, **unknown: Never", "x: Any = ()", ["gradtape.seven(*more)"]),
        (
            ", **more: Any",
            "",
            ["gradtape.four(**more)", "gradtape.one(**more)"],
        ),
        ("**more: Any", "**more: Unpack[Options]", []),
        (", **unknown: Never", "", []),
        ("(x, /, a", "(x, a", []),
        ("(x, /, a", "(x=0, /, a", []),
        (
            "(x, /, a",
            "(x, z, /, a",
            [
                "gradtape.four with 1 arguments",
                "gradtape.four(, a) in this order",
                "gradtape.one with 1 arguments",
                "gradtape.one(, a) in this order",
            ],
        ),
        ("self, x: Any", "self, x: Any, y=2, *, z=3", []),
        ("a: int = 1", "a: float = 1", []),
    ],
)
def test_a_call_that_would_mean_something_else_is_found(
    old: str, new: str, told: list[str]
) -> None:
    assert API.count(old) == 1
    now, later = public.public(API), public.public(API.replace(old, new))
    assert public.altered(now, later, "") == sorted(told)
    if "called" not in "".join(told):
        changes = "`gt.one`, `four`, `gt.nn.two`, `gt.seven`, `gt.Three.run(x, y)`"
        assert public.altered(now, later, changes) == []


def test_an_argument_of_a_command_that_would_mean_something_else_is_found() -> None:
    old, new = public.public(API), public.public(API)
    assert public.altered({**old, "arguments": {}}, new, "") == []  # nothing was recorded
    taken = new["arguments"]
    taken["gradtape demo"]["--epochs"]["default"] = "5"
    taken["gradtape plugins"]["--check"]["values"] = "+"
    taken["gradtape profile"]["--by"]["choices"].remove("op")
    taken["gradtape profile"]["--by"]["choices"].append("more")
    del taken["gradtape diff"]["argument 2"]
    key = {"values": "None", "required": True, "default": "None", "choices": []}
    taken["gradtape verify"] |= {"--key": key, "--more": {**key, "required": False}}
    assert public.altered(old, new, "") == [
        "gradtape demo --epochs has other default than 100",
        "gradtape diff argument 2 is missing",
        "gradtape plugins --check has other values than None",
        "gradtape profile --by op",
        "gradtape verify --key is required",
    ]
    told = "`gradtape demo --epochs`, `plugins --check`, `profile --by`, `verify --key`, `diff`"
    assert public.altered(old, new, told) == []


def test_what_is_public_can_be_recorded_until_there_is_a_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / gt.__version__
    shutil.copytree(RELEASES[-1], folder)
    before = keeping.kept(folder / "expected.npz")
    keeping.keep(folder / "expected.npz", {**before, "public": np.zeros(1, "uint8")})
    script = runpy.run_path(str(HERE / "make_release_files.py"))
    main, has_tag = script["main"], script["has_tag"]
    # the tests also run where there is the tag, before the release is published
    monkeypatch.setitem(main.__globals__, "has_tag", lambda version: False)
    assert main("--public", tmp_path) == 0
    after = keeping.kept(folder / "expected.npz")
    assert json.loads(after["public"].tobytes()) == json.loads(public.packed(public.public()))
    assert keeping.differences({**after, "public": before["public"]}, before) == []
    test_the_files_are_as_they_were_written(folder)
    monkeypatch.setitem(main.__globals__, "has_tag", lambda version: True)
    assert main("--public", tmp_path) == 1
    assert "is released" in capsys.readouterr().err
    if shutil.which("git"):
        monkeypatch.setitem(main.__globals__, "ROOT", tmp_path)
        config = tmp_path / "config"
        config.write_text("[user]\nname = us\nemail = us@example.org\n", "utf-8")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
        for command in ("init", "commit --allow-empty --message A", "tag v1.2.3"):
            subprocess.run(["git", *command.split()], cwd=tmp_path, check=True, capture_output=True)
        assert [has_tag(version) for version in ("1.2.3", "1.2.4")] == [True, False]


def test_the_files_of_a_release_can_be_written(tmp_path: Path) -> None:
    script = [sys.executable, str(HERE / "make_release_files.py"), "new", str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    written = {path.name for path in (tmp_path / "new").iterdir()}
    assert written >= {path.name for path in RELEASES[-1].iterdir()}
    for name in ("sequential", "own"):
        path = tmp_path / "new" / f"{name}.h5"
        found = CASES[name].results(gt.load(path), below("inputs", path))
        assert keeping.differences(found, below("results", path)) == []


def test_results_are_as_close_as_the_page_says_that_verify_wants_them() -> None:
    assert keeping.TOLERANCE == checks.TOLERANCE
    page = (ROOT / "docs" / "releases.md").read_text("utf-8")
    assert "allows a relative 1e-4 for `float32` and 1e-9 for `float64`" in page
    assert (checks.TOLERANCE[4], checks.TOLERANCE[8]) == (1e-4, 1e-9)


@pytest.mark.parametrize("version", ["", ".", "..", "0.1.0/", "../releases", "/tmp", " 0.1.0"])
def test_only_the_folder_of_a_version_is_replaced(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_release_files, "HERE", tmp_path)
    for owner, name in ((make_release_files, "write"), (shutil, "rmtree")):
        monkeypatch.setattr(owner, name, pytest.fail)
    (tmp_path / "kept").mkdir()
    assert make_release_files.main(version, tmp_path) == 1
    assert (tmp_path / "kept").is_dir()


def test_a_difference_is_told() -> None:
    want = {"a": np.ones(3, "float32"), "n": np.arange(2), "call/gradient of x": np.ones(2)}
    assert keeping.differences(dict(want), want) == []
    for name, other in [
        ("a", np.ones(3, "float32") * np.float32(1.001)),
        ("a", np.ones(3)),
        ("a", np.ones((3, 1), "float32")),
        ("a", np.array([1.0, np.nan, 1.0], "float32")),
        ("n", np.arange(1, 3)),
        ("call/gradient of x", np.ones(2) * (1 + 1e-7)),
    ]:
        (told,) = keeping.differences({**want, name: other}, want)
        assert told.startswith(name)
    assert len(keeping.differences({}, want)) == len(keeping.differences(want, {})) == 3
