"""The command line as a user meets it: tables, errors in one line, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gradtape as gt
from gradtape.cli import main
from gradtape.cli.plugins import format_table
from gradtape.core.extend import Backend, Engine, Op, plain


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a new process."""
    return subprocess.run(
        [sys.executable, "-m", "gradtape", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONSAFEPATH": "1", **settings},
    )


def rows(text: str) -> dict[str, list[str]]:
    """Return a table's rows by their first cell."""
    table = text.partition("\n\n")[0].splitlines()[2:]
    return {line.split()[0]: line.split() for line in table}


class Halves:
    """A plugin without a distribution."""

    @staticmethod
    @gt.hookimpl
    def gradtape_ops() -> list[Op]:
        return [
            Op(
                "halves::halve",
                lambda xp, x: x / 2,
                gradients={"x": lambda g: g / 2},
                infer=lambda x: (x.shape, x.dtype),
            ),
            Op(
                "halves::floor_half",
                lambda xp, x: xp.floor(x / 2),
                gradients={"x": None},
                infer=lambda x: (x.shape, x.dtype),
            ),
        ]


@pytest.fixture
def halves() -> Iterator[None]:
    gt.register_plugin(Halves(), "halves")
    yield
    gt.unregister_plugin("halves")


def test_version() -> None:
    result = run("--version")
    assert result.returncode == 0
    assert result.stdout == f"gradtape {gt.__version__}\n"


def test_the_installed_command_is_the_same() -> None:
    command = os.path.join(os.path.dirname(sys.executable), "gradtape")
    result = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60)
    assert result.stdout == f"gradtape {gt.__version__}\n"


@pytest.mark.needs("plugins.cupy")
def test_plugins_lists_what_ships(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins"]) == 0
    found = rows(capsys.readouterr().out)
    assert {"numpy", "cupy", "ops", "layers"} <= set(found)
    assert found["numpy"][1:4] == ["gradtape", gt.__version__, "ready"]
    assert {"kernels", "backends", "diagnoses"} <= set(found["numpy"])
    assert found["ops"][4::2][:2] == ["ops", "rules"]
    assert all(int(n.rstrip(",")) > 40 for n in found["ops"][5::2][:2])


def test_plugins_counts_ops_and_rules_of_a_plugin_added_by_hand(
    halves: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugins"]) == 0
    assert rows(capsys.readouterr().out)["halves"][1:] == "(by hand) - ready ops 2, rules 1".split()


class Various:
    """A plugin with one of most kinds, and a backend and an engine whose library is missing."""

    @staticmethod
    @gt.hookimpl
    def gradtape_collectives() -> list[Engine]:
        class Absent(Engine):
            name = "several"

            def unavailable(self) -> str:
                return "pip install various"

        return [Absent()]

    @staticmethod
    @gt.hookimpl
    def gradtape_modules() -> dict[str, type]:
        return {"various.Module": gt.Module}

    @staticmethod
    @gt.hookimpl
    def gradtape_executors() -> dict[str, Any]:
        return {"various": plain}

    @staticmethod
    @gt.hookimpl
    def gradtape_kernels() -> dict[tuple[str, str], Any]:
        return {("sin", "various"): abs}

    @staticmethod
    @gt.hookimpl
    def gradtape_backends() -> list[Backend]:
        class Absent(Backend):
            name = array_module = "various"

            @property
            def xp(self) -> Any:
                import no_such_library

                return no_such_library

        return [Absent()]


@pytest.mark.needs("plugins.cupy", "plugins.jax", "plugins.mpi", "plugins.fused")
def test_plugins_tells_of_modules_executors_and_backends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gt.register_plugin(Various(), "various")
    gt.register_plugin(types.SimpleNamespace(), "hollow")
    try:
        assert main(["plugins"]) == 0
        plugins, backends, executors, engines, *notes = capsys.readouterr().out.split("\n\n")
        assert main(["plugins", "--json"]) == 0
        records = {record["name"]: record for record in json.loads(capsys.readouterr().out)}
    finally:
        gt.unregister_plugin("various")
        gt.unregister_plugin("hollow")
    assert plugins.splitlines()[0].split()[4:] == ["provides"]
    various = " ".join(rows(plugins)["various"][4:])
    assert various == "unavailable kernels 1, backends 1, modules 1, executors 1, engines 1"
    assert rows(plugins)["hollow"][4:] == ["empty", "-"]
    assert int(rows(plugins)["layers"][5].rstrip(",")) > 5
    assert (rows(backends)["numpy"][-1], rows(backends)["various"]) == (
        "yes",
        ["various", "various", "no"],
    )
    assert rows(executors)["plain"][1:] == ["executors", "(gradtape", f"{gt.__version__})"]
    assert rows(executors)["various"] == ["various", "various"]
    assert rows(engines)["mpi"][:2] == ["mpi", "mpi"]
    assert rows(engines)["several"] == ["several", "various", "no"]
    assert any("hollow: it provides nothing" in note for note in notes)
    assert "No module named 'no_such_library'" in " ".join("".join(notes).split())
    record = records["various"]
    assert (record["modules"], record["executors"]) == (["various.Module"], ["various"])
    assert record["collectives"] == ["several"]
    assert "no_such_library" in record["unavailable"]["various"]
    assert record["unavailable"]["several"] == "pip install various"
    assert records["numpy"]["unavailable"] == {}


def test_a_backend_that_fails_when_asked_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    class Failing(Backend):
        name = "failing"
        array_module = "failing"

        def unavailable(self) -> str | None:
            raise RuntimeError("no driver")

        def diagnosis(self) -> dict[str, Any]:
            raise RuntimeError("no tool")

    hook = gt.hookimpl(lambda: [Failing()])
    gt.register_plugin(types.SimpleNamespace(gradtape_backends=hook), "by-hand")
    try:
        assert main(["plugins"]) == 0
        assert main(["doctor", "--no-measure"]) == 0
    finally:
        gt.unregister_plugin("by-hand")
    told = " ".join(capsys.readouterr().out.split())
    assert told.count("'failing': unavailable() raised RuntimeError: no driver") == 2
    assert "The backend 'failing' cannot report: RuntimeError: no tool." in told


def test_a_closed_output_is_no_error() -> None:
    command = f"{sys.executable} -m gradtape --version; {sys.executable} -m gradtape plugins >&-"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd="/")
    assert (result.returncode, result.stderr) == (0, "")


def test_ops_names_who_provides_kernel_and_gradient(
    halves: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugins", "--ops"]) == 0
    out = capsys.readouterr().out
    found = rows(out)
    assert found["halves::halve"] == ["halves::halve", "halves", "halves", "-"]
    assert found["halves::floor_half"] == ["halves::floor_half", "halves", "-", "-"]
    ours = f"ops (gradtape {gt.__version__})"
    assert " ".join(found["sin"][:7]) == f"sin {ours} {ours}"
    assert out.endswith(f"{len(gt.registry().ops)} ops\n")


@pytest.mark.needs("plugins.cupy")
def test_a_disabled_plugin_is_listed_as_such() -> None:
    result = run("plugins", GRADTAPE_DISABLE_PLUGINS="cupy")
    assert result.returncode == 0
    assert rows(result.stdout)["cupy"][3] == "disabled"


def test_a_broken_plugin_is_listed_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "on_fire.py").write_text(
        "import gradtape as gt\n"
        "@gt.hookimpl\n"
        "def gradtape_ops():\n"
        '    raise OSError("the disk is on fire")\n'
    )
    installed = tmp_path / "on_fire-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: on-fire\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[gradtape]\nbroken = on_fire\n")
    result = run("plugins", PYTHONPATH=str(tmp_path))
    assert result.returncode == 0
    out = " ".join(result.stdout.split())
    assert "plugin 'broken' (on-fire 1.0): OSError: the disk is on fire" in out


def test_wrong_arguments_exit_with_2() -> None:
    result = run("demo", "--epochs", "0")
    assert result.returncode == 2
    assert "at least 1, got 0" in result.stderr
    assert run("polish").returncode == 2


def test_alone_it_prints_its_help() -> None:
    result = run()
    assert result.returncode == 0
    assert result.stdout == run("--help").stdout
    assert "doctor" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["verify", "a.h5", "--max-memory", "1GB"], "must be a number greater than 0, such as 1e9"),
        (["verify", "a.h5", "--max-seconds", "nan"], "must be a number greater than 0"),
        (["demo", "--epochs", "ten"], "must be a whole number, at least 1, got ten"),
        (["demo", "--seed", "-1"], "must be a whole number from 0 to 2**63 - 1, got -1"),
    ],
)
def test_a_wrong_number_is_named(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["train", pytest.param("profile", marks=pytest.mark.needs("profiler"))]
)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\nx / 0\n", "line 2, in <module>"),
        ("import beside\nbeside.f()\n", "in f\n"),
        ("def (:\n", "SyntaxError"),
        ("raise BrokenPipeError\n", "line 1, in <module>"),
        ("open('not_there')\n", "FileNotFoundError"),
    ],
)
def test_an_error_of_a_script_is_shown_with_its_lines(
    command: str,
    text: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(tmp_path)  # under PYTHONSAFEPATH, Python does not do it either
    (tmp_path / "beside.py").write_text("def f():\n    raise ValueError('wrong')\n")
    script = tmp_path / "script.py"
    script.write_text(text)
    assert main([command, str(script)]) == 1
    told = capsys.readouterr().err
    assert said in told
    assert "runpy" not in told
    sys.modules.pop("beside", None)
    assert main([command, str(tmp_path / "absent.py")]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"gradtape {command}: there is no file ")
    assert told.count("\n") == 1


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_an_error_is_one_line_without_traceback(command: str, tmp_path: object) -> None:
    path = os.path.join(str(tmp_path), "absent.h5")
    result = run(command, path)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"gradtape {command}: ")
    assert "absent.h5" in result.stderr


def test_traceback_on_request(tmp_path: object) -> None:
    result = run("--traceback", "inspect", os.path.join(str(tmp_path), "absent.h5"))
    assert result.returncode == 1
    assert "Traceback" in result.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m gradtape plugins --ops | head -n 1; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, cwd="/"
    )
    assert result.stdout.splitlines()[-1] == "0"
    assert result.stderr == ""


def test_what_a_file_is_found_to_be_reaches_the_exit_code_of_a_pipe(tmp_path: Path) -> None:
    model = gt.Module("settings")
    model.rate = gt.Variable(0.5)
    gt.save(model, tmp_path / "nothing_to_verify.h5")
    verify = f"{sys.executable} -m gradtape verify nothing_to_verify.h5"
    command = f"{verify} | true; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert result.stdout == "1\n"


def test_columns_are_aligned() -> None:
    assert format_table([("name", "n"), ("a", 10), ("long name", 5)]) == (
        "name       n\n---------  --\na          10\nlong name  5"
    )
