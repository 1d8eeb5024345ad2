"""A rank that fails, dies, leaves early or is stuck ends the job, and is named."""

from __future__ import annotations

import pytest
from jobs import HERE, MISSING, run
from killed_jobs import main

from gradtape.distributed.faults.hub import describe_different_collectives, describe_stuck

needs_mpi = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
FAILING = HERE / "failing.py"
GONE = "ended without a report"


@needs_mpi
@pytest.mark.parametrize(
    ("way", "rank", "said"),
    [
        ("exception", 1, "rank 1 raised ValueError: x is wrong"),
        ("thread", 0, "rank 0 raised ZeroDivisionError: division by zero"),
        ("exit0", 1, "ended its script after 5 collectives, and others wait for it: rank 0 in "),
        ("abort", 1, "rank 1 aborted: the data are gone"),
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


@needs_mpi
@pytest.mark.parametrize(
    ("way", "rank", "said"),
    [
        ("SIGKILL", 0, "was ended by signal 9 (SIGKILL: kill -9"),
        ("_exit0", 1, "ended with exit code 0, by os._exit or in native code"),
        ("exit3", 1, "rank 1 on {host} ended its script with exit code 3 after 5 collectives"),
    ],
)
def test_the_supervisor_says_how_a_rank_died(way: str, rank: int, said: str) -> None:
    job = run(FAILING, way, rank, ranks=2, train=True)
    assert job.code == 3 if way == "exit3" else job.code not in (0, -1), job.said
    assert not job.left
    host = job.said.partition(" of 2 on ")[2].partition("]")[0]
    assert said.format(host=host) in job.of(rank)
    assert f"rank {rank} on {host}" in job.of(1 - rank)
    if way != "exit3":
        assert GONE in job.of(1 - rank)


@needs_mpi
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_of_jax_is_named_and_the_others_are_not(rank: int) -> None:
    pytest.importorskip("jax", reason='pip install "gradtape[jax]"')
    job = run(
        *(FAILING, "SIGKILL", rank),
        ranks=2,
        train=True,
        GRADTAPE_ENGINE="jax",
        JAX_PLATFORMS="cpu",
    )
    assert job.code not in (0, -1), job.said
    assert not job.left
    # mpiexec may end the job before the supervisor of the killed process has said it
    assert "was ended by signal 9 (SIGKILL: kill -9" in job.of(rank) or not job.of(rank)
    (told,) = job.of(1 - rank).splitlines()  # without the error of its own collective
    assert told.startswith(f"the job ends: rank {rank} on ")
    assert GONE in told


@needs_mpi
def test_ranks_that_wait_in_different_collectives_are_named_without_a_timeout() -> None:
    job = run(FAILING, "another", 1, ranks=3)
    assert job.code not in (0, -1), job.said
    assert not job.left
    for rank in range(3):
        told = "ranks 0, 2 called reduce_in_place of float32["
        assert told in job.of(rank)
        assert "of step 6 of step; rank 1 called all_reduce of float64[3]" in job.of(rank)


@needs_mpi
def test_a_process_that_is_stopped_is_named_by_the_others() -> None:
    job = run(FAILING, "SIGSTOP", 1, ranks=3)
    assert job.code not in (0, -1), job.said
    assert not job.left
    for rank in (0, 2):
        assert "rank 1 on " in job.of(rank)
        assert "is stuck and does not answer" in job.of(rank)
        assert "of sum 5" in job.of(rank)


@needs_mpi
def test_an_exit_code_that_all_ranks_ask_for_is_the_jobs() -> None:
    job = run(FAILING, "exit3", -1, train=True)
    assert job.code == 3, job.said
    assert "the job ends" not in job.said


@needs_mpi
def test_ranks_that_all_fail_alike_are_told_once() -> None:
    job = run(FAILING, "exception", -1, ranks=3)
    assert job.code not in (0, -1)
    assert job.said.count("ValueError: x is wrong\n") == 4  # the traceback, and each rank's line
    assert job.said.count("Traceback") == 1
    assert "[ranks 0-2 of 3 on " in job.said


@needs_mpi
def test_killed_jobs_end_and_go_on() -> None:
    """What ``killed_jobs.py --kills 100`` does, once."""
    assert not main(kills=1, ranks=2, epochs=2, seed=3)


def test_who_is_stuck_is_told_by_what_ranks_answer() -> None:
    def state(count: int, doing: str | None, **more: object) -> dict[str, object]:
        return {"count": count, "doing": doing, "step": None, "at": "a.py, line 3, in f", **more}

    hosts = ["a", "a", "b"]
    waits = state(5, "all_reduce", step="step 2 of train")
    late = state(4, None, left=False)
    found = describe_stuck({0: waits, 1: late, 2: waits}, 2.0, hosts)
    assert found == (
        "rank 1 on a is stuck at a.py, line 3, in f, after collective number 4, while ranks 0, 2 "
        "wait for more than 2 s in all_reduce, collective number 5, of step 2 of train",
        [1],
    )
    # all have come meanwhile, or the rank that waited has gone on
    assert describe_stuck({0: state(5, None), 1: state(5, "all_reduce")}, 2.0, hosts) is None
    assert describe_stuck({0: state(5, None), 1: late}, 2.0, hosts) is None
    # nobody is late, and still it takes that long
    found = describe_stuck({0: waits, 1: waits}, 2.0, hosts)
    assert found is not None
    assert "check the network" in found[0]
    # all wait, but not for the same
    found = describe_stuck({0: waits, 1: waits, 2: state(5, "barrier")}, 2.0, hosts)
    assert found == (
        "ranks disagree in collective number 5: ranks 0-1 called all_reduce of step 2 of train; "
        "rank 2 called barrier",
        [],
    )
    # a report of an earlier collective says nothing about this one
    assert describe_different_collectives({0: state(4, "barrier"), 1: waits}) is None
    # one has ended, another is at an earlier collective, a third does not answer
    found = describe_stuck({0: waits, 1: state(4, "barrier", left=False), 2: None}, 2.0, hosts)
    assert found is not None
    assert found[1] == [1, 2]
    assert "rank 1 on a is stuck in barrier, its collective number 4; rank 2 on b" in found[0]
    found = describe_stuck({0: waits, 1: state(4, None, left=True)}, 2.0, hosts)
    assert found is not None
    assert "rank 1 on a ended its script after 4 collectives, while rank 0 waits" in found[0]
