"""``gradtape train``: what a rank's script finds, what is told of the job, how many threads."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from jobs import HERE, MISSING, run

import gradtape as gt
from gradtape.cli import doctor_distributed, launching, main
from gradtape.core.extend import Place, place

needs_mpi = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Return a script with a module beside it, which Python finds as it does for scripts."""
    (tmp_path / "beside.py").write_text('WORD = "here"')
    return Path(shutil.copy(HERE / "telling.py", tmp_path))


def told(said: str) -> list[dict]:
    return [json.loads(text) for text in re.findall(r"\{.*?\}", said)]  # lines may be mixed


@needs_mpi
def test_each_rank_runs_the_script_with_its_share_of_the_cores(script: Path) -> None:
    free = dict.fromkeys(launching.THREADS, "")
    job = run(script, "--lr", 0.1, "init", train=True, PYTHONSAFEPATH="", **free)
    assert job.code == 0, job.said
    assert not job.left
    share = str(max(1, len(os.sched_getaffinity(0)) // 2))
    found = {
        "arguments": ["--lr", "0.1", "init"],
        "name": "__main__",
        "beside": "here",
        "threads": [share] * 3,
    }
    assert told(job.said) == [found, found]
    (header,) = [line for line in job.said.splitlines() if line.startswith("gradtape train: ")]
    for part in ("2 ranks on ", "engine 'mpi', mpi4py ", f"gradtape {gt.__version__}", "NumPy "):
        assert part in header
    assert header.endswith(f"threads of BLAS per rank: {share}")


@needs_mpi
def test_a_script_that_joins_no_group_is_told_of_once(script: Path) -> None:
    job = run(script, train=True, ranks=3, PYTHONSAFEPATH="", OMP_NUM_THREADS="5")
    assert job.code == 0, job.said
    assert [x["threads"][0] for x in told(job.said)] == ["5"] * 3  # as the user set it
    assert job.said.count("3 ranks each ran the whole script; it never called") == 1


@needs_mpi
def test_a_rank_that_leaves_before_it_joins_does_not_keep_the_others_waiting(script: Path) -> None:
    job = run(script, "early", train=True, PYTHONSAFEPATH="")
    assert job.code == 4, job.said
    assert not job.left


@needs_mpi
def test_the_doctor_lets_ranks_try_each_collective() -> None:
    job = run("-m", "gradtape", "doctor", "--distributed", "--json", ranks=2)
    assert job.code == 0, job.said
    found = json.loads(job.said)
    assert found["started"] == {"rank": 0, "size": 2, "local_rank": 0, "local_size": 2}
    assert not found["problems"]
    group = found["group"]
    assert set(group["wrong"].values()) == {None}
    assert {"all_reduce", "all_gather", "broadcast", "reduce_scatter"} <= set(group["wrong"])
    assert all(x["us"] > 0 for records in group["times"].values() for x in records)
    assert [x["threads"] for x in group["ranks"]] == [1, 1]


def test_without_a_launcher_the_doctor_says_how_to_start(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--distributed"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no launcher started this process" in said
    if MISSING is None:
        assert "mpiexec -n 2 gradtape doctor --distributed" in said
        assert "engines mpi: ready, mpi4py " in said


def test_what_is_missing_is_named_with_what_installs_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert main(["doctor", "--distributed"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert 'pip install "gradtape[mpi]"' in said
    assert "No mpiexec was found: pip install mpich" in said


def test_a_launcher_of_another_mpi_is_a_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mpi4py", reason='mpi4py is not installed: pip install "gradtape[mpi]"')
    other = {"path": "/opt/mpiexec", "family": "Open MPI", "version": "5.0"}
    monkeypatch.setattr(doctor_distributed, "_launcher", lambda: other)
    assert main(["doctor", "--distributed"]) == 1
    assert "/opt/mpiexec belongs to Open MPI, and mpi4py's library to MPICH" in " ".join(
        capsys.readouterr().out.split()
    )


def test_alone_the_script_runs_in_this_process(
    script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.flags.safe_path:  # Python adds no folder then
        monkeypatch.syspath_prepend(script.parent)
    before = sys.argv, list(sys.path)
    assert main(["train", str(script), "a", "--b"]) == 0
    (found,) = told(capsys.readouterr().out)
    assert (found["arguments"], found["name"]) == (["a", "--b"], "__main__")
    assert (sys.argv, sys.path) == before
    sys.modules.pop("beside", None)


def test_alone_the_exit_code_is_the_scripts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "leave.py"
    for code, expected in (("3", 3), ("'in words'", 1), ("None", 0)):
        script.write_text(f"import sys; sys.exit({code})")
        assert main(["train", str(script)]) == expected
    assert "in words" in capsys.readouterr().err
    assert main(["train", str(tmp_path / "nowhere.py")]) == 1
    assert "there is no file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, None),  # in a batch script, not in a step
        (
            {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"},
            Place(2, 4, 0, 2),
        ),
        (
            {
                "OMPI_COMM_WORLD_RANK": "1",
                "OMPI_COMM_WORLD_SIZE": "3",
                "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "3",
            },
            Place(1, 3, 1, 3),
        ),
        (
            {
                "SLURM_PROCID": "9",
                "SLURM_STEP_NUM_TASKS": "11",
                "SLURM_LOCALID": "1",
                "SLURM_NODEID": "2",
                "SLURM_STEP_TASKS_PER_NODE": "4(x2),3",
            },
            Place(9, 11, 1, 3),
        ),
    ],
)
def test_what_launchers_say_is_understood(
    environment: dict[str, str], expected: Place | None
) -> None:
    assert place(environment) == expected


@pytest.mark.parametrize(
    ("mine", "launcher", "quota", "ranks", "environment", "expected"),
    [
        (8, 8, None, 4, {}, 2),  # nobody is bound to cores
        (2, 8, None, 4, {}, 2),  # each is bound to its own
        (8, 32, None, 8, {}, 4),  # each to those of its socket, with others
        (8, 8, None, 16, {}, 1),
        (8, 8, 2.5, 1, {}, 2),  # a container's share of time
        (16, 16, None, 4, {"SLURM_CPUS_PER_TASK": "3"}, 3),
        (2, 16, None, 4, {"SLURM_CPUS_PER_TASK": "3"}, 2),
    ],
)
def test_a_ranks_share_of_the_cores(
    mine: int,
    launcher: int,
    quota: float | None,
    ranks: int,
    environment: dict[str, str],
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launching, "cores", lambda pid=0: range(launcher if pid else mine))
    monkeypatch.setattr(launching, "quota", lambda: quota)
    assert launching.share_of_cores(ranks, environment) == expected
    given = launching.threads_to_set(Place(0, ranks, 0, ranks), environment)
    assert given == dict.fromkeys(launching.THREADS, str(expected))
    assert launching.threads_to_set(Place(0, 2, 0, 2), {"MKL_NUM_THREADS": "1"}) == {}
