"""``gradtape inspect``, ``verify`` and ``diff``: options, exit codes, errors in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gradtape as gt
from gradtape.cli import main


class Model(gt.Module):
    """A function and a variable."""

    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable([1.0, 2.0])

    @gt.function(input_signature=[gt.TensorSpec([None, 2])])
    def scale(self, x: Any) -> Any:
        return gt.sin(x) * self.w


@pytest.fixture
def path(tmp_path: Path) -> str:
    gt.save(Model(), tmp_path / "model.h5")
    return str(tmp_path / "model.h5")


def other(path: str) -> str:
    model = gt.load(path)
    model.w.assign([1.0, 3.0])
    target = path.replace("model.h5", "other.h5")
    gt.save(model, target)
    return target


def test_diff_exits_like_diff(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", path, path]) == 0
    assert capsys.readouterr().out.endswith("They hold the same.\n")
    assert main(["diff", path, other(path)]) == 1
    assert "~ w: float32[2]; 1 of 2 elements changed, max abs 1," in capsys.readouterr().out
    assert main(["diff", path, path + ".absent"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("gradtape diff: ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["inspect"], {"path", "modules", "variables", "functions", "requires"}),
        (["verify"], {"ok", "checks", "skipped", "backend"}),
    ],
)
def test_json_of_a_file(
    arguments: list[str], keys: set[str], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, path, "--json"]) == 0
    assert keys <= set(json.loads(capsys.readouterr().out))


def test_json_of_two_files_and_of_a_graph(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--json", path, other(path)]) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["same"] is False
    assert record["variables"][0]["distance"]["max_abs"] == 1.0
    assert main(["inspect", path, "--graph", "model.scale", "--json"]) == 0
    (graph,) = json.loads(capsys.readouterr().out)
    assert [step["label"] for step in graph["graph"]["steps"]] == ["sin", "w", "multiply"]


def test_json_of_plugins_and_ops(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "--json"]) == 0
    plugins = {item["name"]: item for item in json.loads(capsys.readouterr().out)}
    assert plugins["numpy"]["status"] == "ready"
    assert plugins["numpy"]["backends"] == ["numpy"]
    assert "sin" in plugins["ops"]["ops"]
    assert main(["plugins", "--ops", "--json"]) == 0
    ops = {item["name"]: item for item in json.loads(capsys.readouterr().out)}
    assert ops["sin"]["gradient"].startswith("ops (gradtape")
    assert ops["floor"].keys() == {"name", "kernel", "gradient", "own_kernels", "contested"}


@pytest.mark.needs("reports")
def test_a_graph_as_text_and_as_a_picture(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", path, "--graph", "model.scale"]) == 0
    assert "%1 = sin(%0)  " in capsys.readouterr().out
    target = tmp_path / "graph.svg"
    assert main(["inspect", path, "--graph", "model.scale", "--svg", str(target)]) == 0
    assert target.read_text("utf-8").startswith("<svg")
    assert main(["inspect", path, "--graph", "model.scal"]) == 1
    captured = capsys.readouterr()
    assert "did you mean model.scale?" in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.needs("reports")
def test_a_page_with_what_was_verified(path: str, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert main(["inspect", path, "--html", str(target)]) == 0
    assert "and not run" in target.read_text("utf-8")
    assert main(["inspect", path, "--html", str(target), "--verify"]) == 0
    assert "verified</span>" in target.read_text("utf-8")


@pytest.mark.parametrize("option", ["--html", "--svg"])
def test_the_file_itself_is_not_written_over(
    option: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(path).read_bytes()
    graph = ["--graph", "model.scale"] if option == "--svg" else []
    (tmp_path / "link").symlink_to(path)
    for target in (path, str(tmp_path / "link")):
        assert main(["inspect", path, *graph, option, target]) == 1
        assert "is the file being inspected" in capsys.readouterr().err
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [["--svg", "a.svg"], ["--verify"], ["--html", "a.html", "--graph", "model.scale"]],
)
def test_options_that_say_nothing_are_refused(
    arguments: list[str], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["inspect", path, *arguments])
    assert caught.value.code == 2
    assert "gradtape inspect: error: --" in capsys.readouterr().err


def test_an_error_that_quotes_a_file_does_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(tmp_path / "a\x1b[2J\u202eb.h5")]) == 1
    error = capsys.readouterr().err
    assert error.rstrip("\n").isprintable()
    assert "[2J" in error
    assert "b.h5" in error


def test_help_says_what_runs_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    for command, words in (
        ("inspect", "Nothing in a file is run."),
        ("diff", "0 if the contents are the same, 1"),
        ("verify", "This runs the computations in the file"),
    ):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert words in " ".join(capsys.readouterr().out.split())


def test_names_in_letters_that_a_terminal_lacks_are_escaped(tmp_path: Path) -> None:
    model = gt.Module("m")
    model.rate = "größer"
    gt.save(model, tmp_path / "model.h5")
    done = subprocess.run(
        [sys.executable, "-m", "gradtape", "inspect", str(tmp_path / "model.h5")],
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"rate = 'gr\\xf6\\xdfer'" in done.stdout
