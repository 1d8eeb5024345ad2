"""A rank that fails, dies, leaves early or is stuck ends the job, and is named."""

from __future__ import annotations

import pytest
from jobs import HERE, MISSING, run

pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
FAILING = HERE / "failing.py"
GONE = "ended without a word"


@pytest.mark.parametrize(
    ("way", "rank", "said"),
    [
        ("exception", 1, "rank 1 raised ValueError: x is wrong"),
        ("thread", 0, "rank 0 raised ZeroDivisionError: division by zero"),
        ("exit0", 1, "ended its script after 10 collectives, and others wait for it: rank 0 in "),
        ("abort", 1, "rank 1 aborts: the data are gone"),
        ("sleep", 1, "rank 1 on {host} is stuck at {script}, line 30, in fail"),
    ],
)
def test_the_job_ends_and_every_rank_says_why(way: str, rank: int, said: str) -> None:
    job = run(FAILING, way, rank, ranks=2)
    assert job.code not in (0, -1), job.said
    assert not job.left
    assert "came to the end" not in job.said
    for told in (job.of(0), job.of(1)):
        (line,) = [x for x in told.splitlines() if x.startswith("the job ends: ")]
        host = line.partition(" on ")[2].partition(" ")[0]
        assert said.format(host=host, script=FAILING) in line
    if way == "sleep":
        assert "rank 0 waits for more than 0.7 s in all_reduce of float32[10]" in job.said


@pytest.mark.parametrize(
    ("way", "rank", "said"),
    [
        ("SIGKILL", 0, "was ended by signal 9 (SIGKILL: kill -9"),
        ("_exit0", 1, "ended with exit code 0, by os._exit or in native code"),
    ],
)
def test_the_supervisor_says_how_a_rank_died(way: str, rank: int, said: str) -> None:
    job = run(FAILING, way, rank, ranks=2, train=True)
    assert job.code not in (0, -1), job.said
    assert not job.left
    assert said in job.of(rank)
    assert f"rank {rank} on " in job.of(1 - rank)
    assert GONE in job.of(1 - rank)


def test_a_process_that_is_stopped_is_named_by_the_others() -> None:
    job = run(FAILING, "SIGSTOP", 1, ranks=3)
    assert job.code not in (0, -1), job.said
    assert not job.left
    for rank in (0, 2):
        assert "rank 1 on " in job.of(rank)
        assert "is stuck: it does not answer" in job.of(rank)


def test_an_exit_code_that_all_ranks_ask_for_is_the_jobs() -> None:
    job = run(FAILING, "exit3", -1, train=True)
    assert job.code == 3, job.said
    assert "the job ends" not in job.said


def test_ranks_that_all_fail_alike_are_told_once() -> None:
    job = run(FAILING, "exception", -1, ranks=3)
    assert job.code not in (0, -1)
    assert job.said.count("ValueError: x is wrong\n") == 4  # the traceback, and each rank's line
    assert job.said.count("Traceback") == 1
    assert "[ranks 0-2 of 3 on " in job.said
