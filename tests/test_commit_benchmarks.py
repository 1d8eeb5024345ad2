"""Benchmarks over commits: asv's suite, its results, the page and the graphs made of them."""

from __future__ import annotations

import json
import platform
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "benchmarks" / "asv"
RESULTS = sorted((FOLDER / "results").glob("*/*-*.json"))
INSTALL = 'pip install "gradtape[history]"'


def run(code: str, *arguments: str) -> str:
    """Run code in a process of its own: the benchmarks' programs have names such as `files`."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(FOLDER)!r}); {code}"],
        capture_output=True,
        text=True,
        timeout=240,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commits() -> set[str]:
    """Return the commits that have results."""
    return {json.loads(path.read_text("utf-8"))["commit_hash"] for path in RESULTS}


def git(*arguments: str) -> str:
    """Return what git says of this repository; skip the test where there is none."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no git repository")
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"git {arguments[0]} fails: {done.stderr.strip()}")
    return done.stdout


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    """The titles of each comparison of the suite, by its name in asv."""
    told = run(
        "import json; from suite import comparison; print(json.dumps({"
        "f'{one.__module__[6:]}.{one.__name__}': one.params[0] for one in comparison.every()}))"
    )
    found: dict[str, list[str]] = json.loads(told)
    return found


def test_each_program_runs_and_none_is_left_out() -> None:
    told = run(
        "from suite import comparison\n"
        "for one in comparison.every():\n"
        "    assert all(map(comparison._exists, one.needs)), one.needs\n"
        "    one.rounds = 1\n"
        "    found = one().times()\n"
        "    for title, name, base in one.rows:\n"
        "        assert 0 < found[name] < 1e8 and 0 < found[base] < 1e8, title\n"
        "        print(title)"
    )
    assert len(told.splitlines()) > 20


def test_what_a_commit_lacks_is_noticed() -> None:
    names = ("vmap", "saving.verify", "compat.tensorflow.function", "training.fit(compile)")
    missing = ("no_such", "saving.no_such", "compat.no_such.function", "training.fit(no_such)")
    told = run(
        "from suite.comparison import _exists; "
        f"print([_exists(name) for name in {names + missing!r}])"
    )
    assert told.strip() == str([True] * len(names) + [False] * len(missing))


def test_asv_finds_each_comparison_and_keeps_them_apart(rows: dict[str, list[str]]) -> None:
    pytest.importorskip("asv_runner", reason=INSTALL)
    told = run(
        "import json; from asv_runner.discovery import disc_benchmarks; "
        f"print(json.dumps([[x.name, x.version, x.setup_cache_key, x.params, x.unit] "
        f"for x in disc_benchmarks({str(FOLDER / 'suite')!r})]))"
    )
    found = {name: rest for name, *rest in json.loads(told)}
    methods = ("track_ratio", "track_time")
    wanted = {f"{name}.{method}" for name in rows for method in methods}
    assert found.keys() == wanted | {"conditions.track_load"}
    keys = {found[f"{name}.track_ratio"][1] for name in rows}
    assert len(keys) == len(rows)  # asv measures once for each key
    for name, (version, _, params, unit) in found.items():
        assert re.fullmatch(r"\d+", version), "a version of its own keeps results valid"
        if name.endswith(methods):
            assert params == [[repr(title) for title in rows[name.rpartition(".")[0]]]]
            assert unit == ("seconds" if name.endswith("time") else "times NumPy's")


def test_the_configuration_is_valid() -> None:
    pytest.importorskip("asv_runner", reason=INSTALL)
    from asv.config import Config

    given = Config.load(str(FOLDER / "asv.conf.json"))
    assert vars(given).keys() <= {*vars(Config()), "version"}
    assert (FOLDER / given.repo).resolve() == ROOT
    assert (FOLDER / given.benchmark_dir / "__init__.py").is_file()
    assert (FOLDER / given.results_dir).is_dir()
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    for folder in (given.env_dir, given.html_dir):
        path = (FOLDER / folder).resolve().relative_to(ROOT)
        assert f"{path.parts[0]}/" in ignored


def test_the_results_are_small_and_name_no_machine() -> None:
    assert len(commits()) >= 3
    paths = [path for path in (FOLDER / "results").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in paths) < 200_000
    text = "".join(path.read_text("utf-8") for path in paths)
    assert "/home/" not in text
    assert "/tmp/" not in text
    host = platform.node()
    assert len(host) < 4 or host not in text


def test_measured_commits_are_in_the_history() -> None:
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("the clone is shallow")
    known = set(git("rev-list", "HEAD").split())
    assert commits() <= known


def test_the_page_is_up_to_date() -> None:
    script = ROOT / "docs" / "make_history_page.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run python docs/make_history_page.py\n{done.stderr}"


def test_a_change_is_a_percentage(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("suite", "suite.comparison"):
        fake = ModuleType(name)
        fake.comparison = fake  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, fake)
    monkeypatch.setattr(sys, "path", [*sys.path])
    page = runpy.run_path(str(ROOT / "docs" / "make_history_page.py"))
    assert page["cells"]([2.0, None, 1.5], 2e-6) == ["2", "-", "1.5", "-25 %", "-", "2"]
    assert page["cells"]([None, 1234.5], None) == ["-", "1,234", "-", "-"]
    failed = {"commit_hash": "abc", "result_columns": ["result"], "results": {"a": [None]}}
    with pytest.raises(ValueError, match="a failed at abc: measure it again"):
        page["value"](failed, "a", "")


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The part of the site that publishes the graphs."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    import history  # type: ignore[import-not-found]

    yield history
    sys.modules.pop("history")


def test_the_graphs_show_every_measured_commit(graphs: Any, tmp_path: Path) -> None:
    pytest.importorskip("asv_runner", reason=INSTALL)
    git("rev-parse", "HEAD")
    reason = graphs.publish(tmp_path / "graphs")
    if reason is not None:
        assert "unshallow" in reason
        pytest.skip(reason)
    index = json.loads((tmp_path / "graphs" / "index.json").read_text("utf-8"))
    assert set(index["revision_to_hash"].values()) >= commits()
    drawn = [*(tmp_path / "graphs" / "graphs").rglob("*.TinyOps.track_ratio.json")]
    assert len(json.loads(min(drawn, key=lambda path: len(path.parts)).read_text())) >= 3
    broken = runpy.run_path(str(ROOT / "docs" / "site" / "check_links.py"))["broken"]
    assert broken(tmp_path / "graphs")[1] == []


def test_without_a_history_the_site_says_why_it_has_no_graphs(
    graphs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("asv_runner", reason=INSTALL)
    monkeypatch.setattr(graphs, "ROOT", tmp_path)
    assert "no git repository" in graphs.publish(tmp_path / "graphs")
    monkeypatch.setattr(graphs, "SUITE", tmp_path)
    assert "make bench-history" in graphs.publish(tmp_path / "graphs")
    assert not (tmp_path / "graphs").exists()
