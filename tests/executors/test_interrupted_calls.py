"""A call that Ctrl-C stops assigns all variables or none, wherever it is stopped."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from executing import Training, differences, each_executor

import gradtape as gt


class Stopped(BaseException):
    """What a signal's handler raises, as KeyboardInterrupt."""


def stopped_at(number: int, call: Callable[[], Any]) -> bool:
    """Run a call, and stop it before the bytecode of a number; say whether it got there."""
    passed = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal passed
        frame.f_trace_opcodes = True
        if event == "opcode":
            passed += 1
            if passed == number:
                sys.settrace(None)
                raise Stopped
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Stopped:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.fixture(autouse=True)
def _without_collections() -> Any:
    gc.disable()
    yield
    gc.enable()


@each_executor
@pytest.mark.parametrize("dtypes", [["float32"] * 4, ["float32", "int64", "float64", "float32"]])
def test_a_call_assigns_all_or_none_wherever_it_is_stopped(name: str, dtypes: list[str]) -> None:
    with gt.executor(name):
        variables = [gt.Variable(np.zeros(3, dtype)) for dtype in dtypes]

        @gt.function
        def step(x: Any) -> Any:
            for v in variables:
                v.assign_add(gt.cast(x, v.dtype) * gt.ones(3, dtype=v.dtype))
            return gt.sum(variables[0])

        x = gt.constant(1.0)
        for _ in range(3):
            step(x)
        number = 0
        while stopped_at(number := number + 1, lambda: step(x)):
            counts = {value for v in variables for value in v.tolist()}
            assert len(counts) == 1, number
        before = variables[0].tolist()[0]
        step(x)
        assert [v.tolist() for v in variables] == [[before + 1.0] * 3] * 4


@each_executor
def test_training_goes_on_after_stops_as_if_they_had_not_been(name: str) -> None:
    with gt.executor(name):
        training, alone = Training(), Training()
        for one in (training, alone):
            one.steps(3)
        number = 0
        while stopped_at(number := number + 1 + number // 4, training.step):
            done = int(training.optimizer.iterations.item()) - 3
            assert done in (0, 1)
            if done:  # it was stopped after the last assignment
                alone.step()
            assert differences(training.state(), alone.state()) == []
            if done:
                break


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_a_signal_while_xla_runs_leaves_variables_that_can_be_read() -> None:
    pytest.importorskip("jax")
    with gt.backend("jax"):
        variables = [gt.Variable(np.eye(300, dtype="float32")) for _ in range(2)]

        @gt.function
        def step(x: Any) -> Any:
            for v in variables:
                new = v * 1.0
                for _ in range(8):
                    new = gt.matmul(new, v) * x
                v.assign(new)
            return gt.sum(variables[0])

        x = gt.constant(1.0)

    def interrupt(*_: Any) -> None:
        raise Stopped

    for _ in range(3):
        step(x).item()
    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        for k in range(20):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-3 * (1 + k % 7))
                while True:
                    step(x)
            except Stopped:
                interrupted += 1
            assert [float(gt.sum(v)) for v in variables] == [300.0, 300.0]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted == 20
