"""``gradtape train --engine NAME --ranks N``: each engine's launcher starts the ranks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from jobs import HERE, MISSING, Job, Running

from gradtape.cli import main

FAILING = HERE / "failing.py"
WIRES = HERE / "sockets"
needs_mpi = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


def started(engine: str, *command: object, ranks: int = 2) -> Job:
    """Run a script on ranks that the launcher of an engine starts."""
    train = ["-m", "gradtape", "train", "--engine", engine, "--ranks", str(ranks)]
    environment = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(WIRES)}
    return Running([sys.executable, *train, *map(str, command)], environment).end(None, 90)


@pytest.mark.parametrize("engine", ["wires", "jax", pytest.param("mpi", marks=needs_mpi)])
def test_the_launcher_of_an_engine_starts_its_ranks(engine: str) -> None:
    if engine == "jax":
        pytest.importorskip("jax", reason='pip install "gradtape[jax]"')
    job = started(engine, FAILING, "nothing", 0)
    assert job.code == 0, job.said
    assert not job.left
    assert sorted(re.findall(r"rank (\d) came to the end", job.said)) == ["0", "1"]
    (header,) = [line for line in job.said.splitlines() if line.startswith("gradtape train: ")]
    assert "2 ranks on " in header
    assert f"engine {engine!r}" in header


@pytest.mark.parametrize(
    ("way", "rank", "code", "said"),
    [
        ("exception", 1, 1, "the job ends: rank 1 raised ValueError: x is wrong"),
        ("SIGKILL", 1, None, "the job ends: rank 1 on "),
        ("SIGKILL", 0, None, "the job ends: rank 0 on "),
    ],
)
def test_a_rank_of_a_third_party_that_fails_ends_the_job(
    way: str, rank: int, code: int | None, said: str
) -> None:
    job = started("wires", FAILING, way, rank)
    assert job.code not in (0, -1), job.said
    assert code in (None, job.code)
    assert not job.left
    assert said in job.of(1 - rank)
    if way == "SIGKILL":
        assert "was ended by signal 9" in job.of(rank)


def test_ranks_that_fail_before_they_join_do_not_keep_the_others(tmp_path: Path) -> None:
    script = tmp_path / "early.py"
    script.write_text(
        "import os, time; time.sleep(100 if os.environ['GRADTAPE_PLACE'][0] > '0' else 0); 1 / 0"
    )
    job = started("wires", script)
    assert job.code == 1, job.said
    assert not job.left
    assert job.seconds < 60


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ranks", "2"], "--ranks needs an engine"),
        (["--engine", "mpj", "--ranks", "2"], "no plugin provides the engine 'mpj'"),
        (["--engine", "mpj"], "no plugin provides the engine 'mpj'"),
        (["--engine", "mpi", "--ranks", "0"], "--ranks must be at least 1"),
    ],
)
def test_what_cannot_start_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *arguments, str(FAILING)]) == 1
    assert said in capsys.readouterr().err
