"""A step that fails leaves every variable as it was, and the next one is as if it had not been."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from executing import Training, differences, each_executor

import gradtape as gt


@each_executor
@pytest.mark.parametrize("wrong", [3, -1, 10**9])
def test_labels_out_of_range_leave_all_variables_as_they_were(name: str, wrong: int) -> None:
    with gt.executor(name):
        training, alone = Training(), Training()
        for number in range(12):
            training.step()
            alone.step()
            before = training.state()
            labels = training.labels.copy()
            labels[number % len(labels)] = wrong
            with pytest.raises((IndexError, ValueError), match="label"):
                training.run(gt.constant(training.x), gt.constant(labels))
            assert differences(training.state(), before) == []
        assert differences(training.state(), alone.state()) == []


def cholesky_of(v: Any, x: Any) -> Any:
    return gt.linalg.cholesky(gt.reshape(x[:4], (2, 2)))


def reshaped(v: Any, x: Any) -> Any:
    return gt.reshape(x, (5, -1))


def added(v: Any, x: Any) -> Any:
    return x + v


def taken(v: Any, x: Any) -> Any:
    return v[gt.cast(x[0], "int64")]


#: What fails for the second input, and not for the first.
FAILING: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "no decomposition": (cholesky_of, [2.0, 0.0, 0.0, 2.0, 1.0], [-1.0, 0.0, 0.0, 2.0, 1.0]),
    "no such shape": (reshaped, [1.0] * 5, [1.0] * 6),
    "shapes that do not broadcast": (added, [1.0] * 5, [1.0] * 4),
    "an index out of bounds": (taken, [4.0] * 5, [7.0] * 5),
}


@each_executor
@pytest.mark.parametrize("kind", FAILING)
@pytest.mark.parametrize("last", [False, True])
def test_a_node_that_fails_leaves_all_variables_as_they_were(
    name: str, kind: str, last: bool
) -> None:
    fail, good, bad = FAILING[kind]
    with gt.executor(name):
        vs = [gt.Variable(np.arange(5.0) + i) for i in range(4)]
        count = gt.Variable(0, dtype="int64")

        @gt.function(input_signature=[gt.TensorSpec([None], "float64")])
        def step(x: Any) -> Any:
            count.assign_add(1)
            seen = 0.0 if last else gt.sum(fail(vs[0], x))
            for v in vs:
                v.assign(v * 0.5 + 1.0 + seen * 0.0)
            return gt.sum(fail(vs[0], x)) if last else gt.sum(vs[0])

        for number in range(8):
            before = [np.array(v.numpy()) for v in (*vs, count)]
            with pytest.raises((ValueError, IndexError, np.linalg.LinAlgError)):
                step(gt.constant(bad, dtype="float64"))
            assert differences([v.numpy() for v in (*vs, count)], before) == []
            step(gt.constant(good, dtype="float64"))
            assert count.item() == number + 1
        want = np.arange(5.0)
        for _ in range(8):
            want = want * 0.5 + 1.0
        assert np.array_equal(vs[0].numpy(), want)


@each_executor
def test_an_update_of_another_shape_than_its_variable_changes_none(name: str) -> None:
    with gt.executor(name):
        first, second = gt.Variable(np.zeros(3)), gt.Variable(np.zeros(3))

        @gt.function(input_signature=[gt.TensorSpec([None], "float64")])
        def step(x: Any) -> Any:
            first.assign_add(gt.ones(3, dtype="float64"))
            second.assign(x * 2.0)

        for number in range(8):
            with pytest.raises(ValueError, match="has shape"):
                step(np.ones(2))
            assert (first.tolist(), second.tolist()) == ([number] * 3, [2.0 * bool(number)] * 3)
            step(np.ones(3))


@each_executor
def test_fit_finds_a_loss_that_is_not_finite_before_anything_is_committed(name: str) -> None:
    with gt.executor(name):
        random = np.random.default_rng(0)
        x = random.normal(size=(64, 5)).astype("float32")
        y = (x[:, 0] > 0).astype("int64")
        model = gt.layers.Sequential(
            [gt.layers.Dense(8, activation="relu"), gt.layers.BatchNorm(), gt.layers.Dense(2)]
        )
        adam = gt.training.Adam(0.01)
        options = {"batch_size": 16, "seed": 0, "verbose": False}
        gt.training.fit(model, (x, y), optimizer=adam, epochs=2, **options)
        variables = [*model.variables, *adam.variables]
        before = [np.array(v.numpy()) for v in variables]
        bad = x.copy()
        bad[-1, 2] = np.nan
        with pytest.raises(Exception, match=r"(?i)nan|finite"):
            gt.training.fit(model, (bad, y), optimizer=adam, epochs=1, **options)
        assert differences([v.numpy() for v in variables], before) == []


@each_executor
def test_what_was_raised_names_the_op(name: str) -> None:
    with gt.executor(name):

        @gt.function(input_signature=[gt.TensorSpec([None]), gt.TensorSpec([None])])
        def run(x: Any, y: Any) -> Any:
            return gt.exp(x * 2.0) + y

        for _ in range(6):
            assert run(gt.ones(3), gt.ones(3)).shape == (3,)
            with pytest.raises(ValueError, match="add"):
                run(gt.ones(3), gt.ones(4))
