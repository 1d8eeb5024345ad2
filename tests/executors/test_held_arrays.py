"""What was handed out never changes: tensors, arrays, views and exports, through 100 steps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from executing import Training, differences, each_executor, same_bits

import gradtape as gt

STEPS = 100
TAKEN_AT = (0, 1, 2, 3, 4, 7, 50)

#: How a variable, or a tensor, is held; nothing else of it is kept.
HOLDS: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda v: v[...] if isinstance(v, gt.Tensor) else v.value,
    "numpy": lambda v: v.numpy(),
    "asarray": lambda v: np.asarray(v),
    "slice": lambda v: np.atleast_1d(v.numpy())[:1],
    "reversed": lambda v: np.atleast_1d(v.numpy())[::-1],
    "flat": lambda v: np.asarray(v.numpy()).reshape(-1),
    "memoryview": lambda v: memoryview(np.asarray(v.numpy())),
    "memoryview of a slice": lambda v: memoryview(np.atleast_1d(v.numpy())[1:]),
    "dlpack": lambda v: np.from_dlpack(v),
    "raw array": lambda v: v.array,
    "view of the raw array": lambda v: v.array.T,
    "reshaped tensor": lambda v: gt.reshape(v, (-1,)),
    "transposed tensor": lambda v: gt.transpose(v),
    "rows": lambda v: list(v) if v.ndim else v.numpy(),
    "flat iterator": lambda v: np.asarray(v.numpy()).flat,
    "generator": lambda v: _later(v.array),
    "closure": lambda v: lambda x=v.array: x,
    "tensor's copy": lambda v: copy.copy(v if isinstance(v, gt.Tensor) else v.value),
}


def _later(x: Any) -> Any:
    """A frame that refers to an array until it is asked."""
    yield None
    yield x


def held(how: str, x: Any) -> tuple[Any, np.ndarray]:
    """Hold something in one way; return that, and a copy of the value."""
    value = np.array(np.asarray(x.numpy()))
    kept = HOLDS[how](x)
    if how == "generator":
        next(kept)
    return kept, value


def read(how: str, kept: Any) -> np.ndarray:
    if how == "generator":
        return np.asarray(next(kept))
    if how == "closure":
        return np.asarray(kept())
    if how == "rows" and isinstance(kept, list):
        return np.stack([row.numpy() for row in kept])
    if how == "flat iterator":
        return np.array(list(kept), kept.base.dtype)
    return np.asarray(kept.numpy() if isinstance(kept, gt.Tensor) else kept)


def shown(how: str, value: np.ndarray) -> np.ndarray:
    """Return what a hold of a value must show."""
    if how == "slice":
        return np.atleast_1d(value)[:1]
    if how == "reversed":
        return np.atleast_1d(value)[::-1]
    if how == "memoryview of a slice":
        return np.atleast_1d(value)[1:]
    if how in ("flat", "reshaped tensor", "flat iterator"):
        return value.reshape(-1)
    if how in ("view of the raw array", "transposed tensor"):
        return value.T
    return value


@each_executor
@pytest.mark.parametrize("how", HOLDS)
def test_what_was_held_of_variables_and_outputs_stays(name: str, how: str) -> None:
    with gt.executor(name):
        training = Training()
        taken = []
        for step in range(STEPS):
            if step in TAKEN_AT:
                taken += [held(how, v) for v in training.variables if v.size or how != "rows"]
            outputs = training.step()
            if step in TAKEN_AT:
                taken += [held(how, y) for y in outputs if y.ndim or how != "rows"]
            del outputs
        found = [read(how, kept) for kept, _ in taken]
        assert differences(found, [shown(how, value) for _, value in taken]) == []


@each_executor
def test_what_is_held_of_some_steps_does_not_change_training(name: str) -> None:
    """Memory that is held is replaced by other memory, with the same values."""
    with gt.executor(name):
        alone, observed = Training(), Training()
        kept = []
        for step in range(20):
            alone.step()
            if step % 3:
                kept += [v.numpy() for v in observed.variables[step % 5 :: 3]]
            kept += observed.step()[step % 4 :]
        assert differences(observed.state(), alone.state()) == []


@each_executor
def test_inputs_are_never_written(name: str) -> None:
    with gt.executor(name):
        x, y = np.linspace(-1.0, 1.0, 60, dtype="float32").reshape(6, 10), np.ones((6, 10), "f")
        given = [gt.constant(x), gt.constant(y)]
        before = [np.array(a.numpy()) for a in given]

        @gt.function
        def run(a: Any, b: Any) -> Any:
            c = a * 2.0 + b
            d = gt.maximum(c, 0.0) - a
            return gt.sum(d * c, axis=0), d / 3.0 + b

        for _ in range(10):
            run(*given)
            run(*[gt.constant(a) for a in (x, y)])  # which nobody else holds
        assert differences([a.numpy() for a in given], before) == []
        assert same_bits(x, before[0])
        assert same_bits(y, before[1])


@each_executor
def test_outputs_of_two_calls_are_two_arrays(name: str) -> None:
    with gt.executor(name):

        @gt.function
        def run(a: Any) -> Any:
            b = a * 2.0 + 1.0
            return b, b - a, gt.transpose(b), gt.reshape(b, (-1,)), a

        first = run(gt.ones((3, 4)))
        copies = [np.array(y.numpy()) for y in first]
        for i in range(10):
            later = run(gt.ones((3, 4)) * float(i))
            for a in first:
                for b in later:
                    assert not np.shares_memory(a.array, b.array)
        assert differences([y.numpy() for y in first], copies) == []


@each_executor
def test_an_output_that_is_a_variables_value_stays(name: str) -> None:
    with gt.executor(name):
        v = gt.Variable(np.zeros((20, 30), "float32"))
        w = gt.Variable(np.zeros(30, "float32"))

        @gt.function
        def step() -> Any:
            old = v.value
            v.assign_add(gt.ones((20, 30)) + w)
            w.assign(w * 1.0)
            return old, v.value, gt.transpose(v), v[2:5]

        kept = [step() for _ in range(STEPS)]
        for i, (old, new, turned, rows) in enumerate(kept):
            for tensor, value in ((old, i), (new, i + 1), (turned, i + 1), (rows, i + 1)):
                assert set(np.asarray(tensor.numpy()).ravel()) == {float(value)}


@each_executor
def test_outputs_that_are_fed_back_are_right(name: str) -> None:
    """A call may be given what the last one returned, and nobody else holds it."""
    with gt.executor(name):

        @gt.function
        def run(a: Any, b: Any) -> Any:
            return a + b, a * 0.5 + 1.0

        a, b = gt.ones(1000), gt.zeros(1000)
        want = np.ones(1000, "float32"), np.zeros(1000, "float32")
        for _ in range(STEPS):
            a, b = run(a, b)
            want = want[0] + want[1], want[0] * np.float32(0.5) + np.float32(1.0)
        assert differences([a.numpy(), b.numpy()], want) == []


@each_executor
def test_a_tape_that_read_a_variable_before_the_steps_differentiates_what_it_read(
    name: str,
) -> None:
    with gt.executor(name):
        training = Training()
        training.steps(3)
        kernel = training.model.layers[0].kernel
        want = 2.0 * kernel.numpy()
        with gt.GradientTape() as tape:
            y = gt.sum(kernel * kernel)
        training.steps(STEPS)
        assert same_bits(tape.gradient(y, kernel).numpy(), want)


@each_executor
def test_constants_of_a_graph_are_never_written(name: str) -> None:
    with gt.executor(name):
        mask = gt.constant(np.arange(40.0, dtype="float32").reshape(5, 8))
        value = np.array(mask.numpy())
        run = gt.function(lambda x: (x * mask + mask, gt.sum(mask * 2.0 - x, axis=0)))
        want = [np.array(y.numpy()) for y in run(gt.ones((5, 8)))]
        for _ in range(10):
            found = [y.numpy() for y in run(gt.ones((5, 8)))]
        assert differences(found, want) == []
        assert same_bits(mask.numpy(), value)
