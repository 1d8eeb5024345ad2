"""``limit_threads``: a limit from now on, or for a block; nothing without being asked."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.base import pool

threadpoolctl = pytest.importorskip("threadpoolctl")


def threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]


@pytest.fixture(autouse=True)
def as_before():
    before = pool.limit_pool(None)
    with threadpoolctl.threadpool_limits(2):  # given back after the test
        yield
    pool.limit_pool(before)


def test_a_block_has_its_limit() -> None:
    assert set(threads()) == {2}
    with gt.limit_threads(1):
        assert set(threads()) == {1}
        with gt.limit_threads(2):
            assert set(threads()) == {2}
        assert set(threads()) == {1}
    assert set(threads()) == {2}


def test_a_block_that_raises_gives_the_limit_back() -> None:
    with pytest.raises(KeyError), gt.limit_threads(1):
        raise KeyError("x")
    assert set(threads()) == {2}


def test_a_call_holds_from_then_on() -> None:
    gt.limit_threads(1)
    assert set(threads()) == {1}


@pytest.mark.parametrize(
    ("wrong", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_what_is_no_number_of_threads_is_refused(wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="limit_threads: n must be"):
        gt.limit_threads(wrong)
    assert set(threads()) == {2}


def test_an_integer_of_numpy_is_one() -> None:
    with gt.limit_threads(np.int64(1)):
        assert set(threads()) == {1}


def test_where_no_library_can_be_limited_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threadpoolctl, "threadpool_info", list)
    with (
        pytest.warns(RuntimeWarning, match=r"only gradtape's own.*VECLIB_MAXIMUM_THREADS"),
        gt.limit_threads(1),
    ):
        assert pool.threads() == 1


def test_without_threadpoolctl_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with (
        pytest.warns(RuntimeWarning, match=r'only gradtape.*pip install "gradtape\[threads\]"'),
        gt.limit_threads(1),
    ):
        assert pool.threads() == 1


def test_it_limits_the_threads_of_gradtape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool._Numbers, "default", 3)
    with gt.limit_threads(2):
        assert pool.threads() == 2
        with gt.limit_threads(8):
            assert pool.threads() == 3
        assert pool.threads() == 2
    assert pool.threads() == 3


def test_it_finds_the_threads_of_numpy_in_a_process_that_has_computed_nothing() -> None:
    code = "import gradtape as gt\ngt.limit_threads(1)\nimport threadpoolctl as t\n"
    code += "print({x['num_threads'] for x in t.threadpool_info()})"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd="/"
    )
    assert run.stdout == "{1}\n", run.stderr


def test_gradtape_changes_no_number_of_threads_by_itself() -> None:
    """Neither by an import nor by training, compiled."""
    code = """
import numpy, threadpoolctl
before = [x["num_threads"] for x in threadpoolctl.threadpool_info()]
import gradtape as gt
dense, sgd = gt.layers.Dense(4), gt.training.SGD(0.1)
x = gt.ones((8, 3))
dense(x)
@gt.function
def step():
    with gt.GradientTape() as tape:
        loss = gt.mean(dense(x) ** 2)
    sgd.apply_gradients(zip(tape.gradient(loss, dense.variables), dense.variables))
for _ in range(5): step()
found = threadpoolctl.threadpool_info()
assert [x["num_threads"] for x in found if x["internal_api"] == "openblas"][:1] == before[:1]
"""
    environment = {k: v for k, v in os.environ.items() if "THREADS" not in k}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd="/", env=environment)
