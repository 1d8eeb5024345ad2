"""``tape.explain``: one reason for each way in which a gradient is ``None``."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import gradtape as gt


@pytest.fixture
def x() -> gt.Tensor:
    return gt.constant(3.0)


def test_connected(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.explain(y, x).startswith("Connected: the target depends on the source")
    assert "itself" in tape.explain(x, x)
    assert tape.gradient(y, x).numpy() == 6.0  # explaining uses nothing up


def test_connected_through_many_inputs_and_outputs(x: gt.Tensor) -> None:
    @gt.custom_gradient
    def two(a):
        return (a * 1.0, a * 2.0), lambda g, h: g + h

    with gt.GradientTape() as tape:
        tape.watch(x)
        _, y = two(gt.stack([x, x]))
        z = gt.sum(y)
    assert tape.explain(z, x).startswith("Connected")


def test_never_watched(x: gt.Tensor) -> None:
    v = gt.Variable(1.0, name="seen")
    with gt.GradientTape() as tape:
        y = x * v
    text = tape.explain(y, x)
    assert "never watched" in text
    assert "seen" in text
    assert tape.gradient(y, x) is None


def test_not_trainable() -> None:
    v = gt.Variable(1.0, trainable=False, name="fixed")
    with gt.GradientTape() as tape:
        y = v * 2.0
    text = tape.explain(y, v)
    assert "'fixed'" in text
    assert "trainable=False" in text


def test_variables_not_watched_by_this_tape() -> None:
    v = gt.Variable(1.0)
    with gt.GradientTape(watch_accessed_variables=False) as tape:
        y = v * 2.0
    assert "watch_accessed_variables=False" in tape.explain(y, v)


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (gt.stop_gradient, "stop_gradient"),
        (gt.zeros_like, "zeros_like"),
        (gt.floor, "floor"),
        (lambda x: gt.cast(x, "int32") * 1.0, "int32"),
        (lambda x: gt.where(x > 0.0, 1.0, gt.constant(2.0)), "greater"),
    ],
)
def test_a_path_that_ends(f, reason: str, x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x) * 2.0
    text = tape.explain(y, x)
    assert text.startswith("None: a path from the source ends")
    assert reason in text
    assert tape.gradient(y, x) is None


def test_dtypes_without_gradients(x: gt.Tensor) -> None:
    n = gt.constant([1, 2])
    with gt.GradientTape() as tape:
        tape.watch([x, n])
        y = gt.sum(n * x)
        m = n * 2
    assert "the source has dtype int64" in tape.explain(y, n)
    assert "target has dtype int64" in tape.explain(m, x)


def test_not_connected(x: gt.Tensor) -> None:
    other = gt.constant(2.0)
    with gt.GradientTape() as tape:
        tape.watch([x, other])
        y = other * 2.0
    assert "no recorded op connects the source" in tape.explain(y, x)


def test_recording_was_stopped_and_where(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            y = x * x
    text = tape.explain(y, x)
    assert "recording was stopped at" in text
    assert "test_explain.py:" in text


def test_the_tape_was_reset(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
    assert "reset" in tape.explain(y, x)


def test_records_were_freed(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    assert "persistent=True" in tape.explain(y, x)


def test_never_entered(x: gt.Tensor) -> None:
    tape = gt.GradientTape()
    tape.watch(x)
    assert "never entered" in tape.explain(x * x, x)


def test_threads(x: gt.Tensor) -> None:
    tape = gt.GradientTape()
    made = []

    def other_thread() -> None:
        made.append(x * x)
        made.append(tape.explain(made[0], x))

    with tape:
        tape.watch(x)
        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
    assert "entered in another thread" in made[1]
    assert "copy_context" in tape.explain(made[0], x)


def test_an_assignment_is_no_path(x: gt.Tensor) -> None:
    v = gt.Variable(0.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = v.assign(x * 2.0) * 3.0
    assert tape.explain(y, x).startswith("None")
    assert tape.explain(y, v).startswith("Connected: the target depends on variable 'Variable'")
    np.testing.assert_array_equal(tape.gradient(y, v), 3.0)
