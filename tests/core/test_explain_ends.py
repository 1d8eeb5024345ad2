"""``tape.explain``: paths that leave for NumPy, and paths that lead elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt


@pytest.fixture
def x() -> gt.Tensor:
    return gt.constant([1.5, 2.0])


@pytest.mark.filterwarnings("ignore::gradtape.errors.BrokenPathWarning")
@pytest.mark.parametrize(
    "leave",
    [
        lambda y: y.numpy(),
        lambda y: np.asarray(y),
        lambda y: float(gt.sum(y)),
        lambda y: gt.sum(y).item(),
        lambda y: y.tolist(),
        lambda y: np.array(y, copy=True),
    ],
)
def test_leaving_for_numpy(leave: Callable[[Any], Any], x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.constant(2.0) * leave(x * 3.0)
    text = tape.explain(y, x)
    assert text.startswith("None: a path from the source ends: a value that depends on it was read")
    assert ".numpy()" in text
    assert tape.gradient(y, x) is None


def test_a_value_that_is_only_looked_at_breaks_nothing(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * 3.0
        y.numpy()
        z = y * 2.0
    assert tape.explain(z, x).startswith("Connected")


def test_an_outer_tape_hears_of_it_too(x: gt.Tensor) -> None:
    with gt.GradientTape() as outer, gt.GradientTape() as inner:
        outer.watch(x)
        y = gt.constant((x * 2.0).numpy())
    assert "read with .numpy()" in outer.explain(y, x)
    assert "never watched" in inner.explain(y, x)


def test_an_end_off_the_way_is_not_told(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.floor(x)
        gt.ceil(x)
        gt.stop_gradient(x)
    text = tape.explain(y, x)
    assert "floor" in text
    assert "ceil" not in text
    assert "stop_gradient" not in text


def test_an_end_after_the_target_is_not_told(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.floor(x) * 2.0
        gt.sign(gt.trunc(x))
    text = tape.explain(y, x)
    assert "floor" in text
    assert "trunc" not in text


def test_a_constant_is_named_as_a_likely_reason(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.constant(2.0) * 3.0
    assert "no op used it" in tape.explain(y, x)
    assert "are constants" in tape.explain(y, x)


def test_a_variable_read_with_numpy_is_not_watched() -> None:
    v = gt.Variable(2.0)
    with gt.GradientTape() as tape:
        y = gt.constant(v.numpy()) * 3.0
    assert "with .numpy() does not watch it" in tape.explain(y, v)


def test_leaving_by_dlpack(x: gt.Tensor) -> None:
    v = gt.Variable([1.0, 2.0], name="v")
    for source in (x, v):
        with gt.GradientTape() as tape:
            tape.watch(source)
            y = gt.constant(np.from_dlpack(source)) * 2.0
        text = tape.explain(y, source)
        assert (
            "ends: a value that depends on it was exported to another library by __dlpack__" in text
        )


@pytest.mark.parametrize(
    "fn",
    [
        lambda t: np.sqrt([t, t]),
        lambda t: np.mean([t, t], axis=0),
        lambda t: np.sqrt([gt.sum(t), gt.sum(t)]),
        lambda t: np.sqrt((t, 2.0 * t)),
    ],
)
def test_lists_of_tensors_leave_for_numpy(fn: Callable[[Any], Any], x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.constant(fn(x * 3.0))
    text = tape.explain(y, x)
    assert ".numpy()" in text
    assert "list of tensors" in text
    assert "gradtape.stack" in text


def test_a_watched_variable_that_is_read_with_numpy_is_named() -> None:
    v = gt.Variable([2.0, 3.0], name="v")
    with gt.GradientTape() as tape:
        y = gt.sum(v) * 0.0 + gt.constant(v.numpy())
        z = gt.constant(v.numpy()) * 3.0
    assert not tape.explain(y, v).startswith("None")
    assert "variable 'v' ends: a value that depends on it was read" in tape.explain(z, v)


# -- gradients of zero -----------------------------------------------------------------------------


@gt.custom_gradient
def closed(x: Any) -> Any:
    return x * 1.0, lambda g: g * 0.0


@pytest.mark.parametrize(
    ("fn", "ops"),
    [
        (lambda x: gt.sum(gt.exp(x * gt.zeros(2))), ["multiply"]),
        (lambda x: gt.sum(gt.nn.relu(gt.sin(x) - 5.0) * 2.0), ["relu"]),
        (lambda x: gt.clip(x * 10.0, -1.0, 1.0), ["clip"]),
        (lambda x: gt.where(x > 100.0, x, 0.0), ["where"]),
        (lambda x: gt.nn.relu(x - 100.0) + gt.minimum(x, -100.0), ["relu", "minimum"]),
        (lambda x: gt.function(lambda x: gt.sum(x * 0.0))(x), ["multiply"]),
        (lambda x: gt.split(x, 2)[0] * 0.0, ["multiply"]),
        (lambda x: closed(x), ["closed"]),
    ],
)
def test_a_gradient_of_zero_names_the_op_that_made_it(
    fn: Callable[[Any], Any], ops: list[str], x: gt.Tensor
) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    text = tape.explain(y, x)
    assert text.startswith("Zero: the target depends on the source")
    for op in ops:
        assert op in text
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [0.0, 0.0])


def test_gradients_that_cancel_are_told_from_those_that_are_zero(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.exp(x) * 1.0 - gt.exp(x)
        z = x * 1.0 - x * 1.0
    assert "Zero" in tape.explain(z, x)
    assert "through op 'multiply' cancel" in tape.explain(z, x)
    assert "cancel" in tape.explain(y, x)


def test_a_gradient_of_some_zeros_is_connected(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.nn.relu(x - 1.75)
        empty = gt.sum(x[:0]) + gt.sum(x)
    assert tape.explain(y, x).startswith("Connected")
    assert tape.explain(empty, x).startswith("Connected")


def test_a_rule_that_fails_is_named_and_not_raised(x: gt.Tensor) -> None:
    def broken(g: Any) -> Any:
        raise RuntimeError("broken rule")

    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.custom_gradient(lambda y: (y * 1.0, broken))(x)
    assert "RuntimeError: broken rule" in tape.explain(y, x)


def test_values_that_only_a_run_knows_are_not_asked_for(x: gt.Tensor) -> None:
    said = []

    def f(x: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = x * 0.0
        said.append(tape.explain(y, x))
        return tape.gradient(y, x)

    gt.function(f)(x)
    gt.vmap(f)(x)
    assert all(text.startswith("Connected") for text in said)


# -- what was watched ------------------------------------------------------------------------------


def test_what_was_watched_is_named(x: gt.Tensor) -> None:
    matrix, v = gt.ones((2, 3), "float64"), gt.Variable(1.0, name="w")
    with gt.GradientTape() as tape:
        tape.watch(matrix)
        tape.watch(gt.ones(5))
        y = v * x
    text = tape.explain(y, x)
    assert "watched: variable 'w', a tensor float64[2, 3], 1 that no longer exists" in text
    with gt.GradientTape() as tape:
        y = x * 2.0
    assert "(watched: nothing)" in tape.explain(y, x)


def test_a_reset_is_told_first(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        tape.reset()
        y = x * 2.0
    text = tape.explain(y, x)
    assert 0 < text.index("was reset") < text.index("never watched since")
