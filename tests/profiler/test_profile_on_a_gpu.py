"""gt.profile() on a GPU: its own events measure, nothing waits in between (pretend library)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt


@pytest.fixture
def clock() -> Iterator[Any]:
    with pretend_gpu.as_cupy() as library:
        yield library.timeline


def test_steps_are_between_two_events_and_the_host_waits_once_at_the_end(clock: Any) -> None:
    x = gt.constant(np.ones((4, 4), "float32")).to("cupy")
    with gt.profile() as p:
        gt.sin(x @ x)
        assert clock.waits == 0
    rows = {row.name: row for row in p.rows()}
    assert rows["sin"].seconds == pytest.approx(1e-3)
    assert rows["matmul"].seconds == pytest.approx(1e-3)
    assert clock.waits == 1
    assert clock.ranges == []
    assert clock.names == ["matmul", "sin"]
    assert p.clocks == {"GPU"}
    assert "by the clock of: GPU" in str(p)


def test_gradient_rules_contain_the_kernels_that_they_run(clock: Any) -> None:
    x = gt.constant(np.ones(3, "float32")).to("cupy")
    with gt.profile() as p, gt.GradientTape() as tape:
        tape.watch(x)
        tape.gradient(gt.sin(x), x)
    rows = {(row.name, row.phase): row.seconds for row in p.rows()}
    assert rows["sin", "forward"] == pytest.approx(1e-3)
    assert rows["sin", "backward"] == pytest.approx(3e-3)  # cos began and ended in it
    kernels = {row.name: row.seconds for row in p.rows("kernel")}
    assert kernels["cos"] == pytest.approx(1e-3)


def test_an_error_leaves_no_range_open(clock: Any) -> None:
    x = gt.constant(np.ones((2, 3), "float32")).to("cupy")
    with pytest.raises(ValueError, match="matmul"), gt.profile():
        x @ x
    assert clock.ranges == []


def test_a_compiled_function_is_told_by_its_kernels(clock: Any) -> None:
    f = gt.function(lambda x: gt.sin(x) * 2.0, executor="plain")
    x = gt.constant(np.ones(3, "float32")).to("cupy")
    f(x)
    with gt.profile() as p:
        f(x)
    rows = {row.name: row for row in p.rows()}
    assert rows["sin"].phase == "compiled"
    assert sum(row.seconds for row in p.rows()) == pytest.approx(p.measured)
    assert clock.ranges == []
