"""``tape.explain``: one reason for each way in which a gradient is ``None``."""

from __future__ import annotations

import threading
import warnings

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


# -- arguments with which every gradient is None ---------------------------------------------------


def test_mistaken_arguments_warn_instead_of_returning_none_silently(x: gt.Tensor) -> None:
    count = gt.Variable([1, 2])
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = gt.sum(x * x)
        chosen = gt.argmax(gt.stack([x, y]))
    cases = [
        (y, count, "variable 'Variable' has dtype int64; only floats"),
        (chosen, x, "target has dtype int64; only floats"),
        (y, gt.reshape(x, (1,))[0], "the source was computed after the tape's with block ended"),
        (y, [gt.constant(1.0)], "the source was computed after the tape's with block ended"),
        (x, y, "the source depends on the target: swap the arguments"),
        (y / 2.0, x, "the target was computed after the tape's with block ended"),
    ]
    for target, source, reason in cases:
        with pytest.warns(gt.errors.BrokenPathWarning, match="gradient: None") as caught:
            found = tape.gradient(target, source)
        assert found in (None, [None])
        assert len(caught) == 1
        assert reason in str(caught[0].message)
        assert caught[0].filename == __file__
    with pytest.warns(gt.errors.BrokenPathWarning, match=r"jacobian: None.*swap the arguments"):
        assert tape.jacobian(x, y) is None


def test_a_rebound_name_warns_in_the_next_step() -> None:
    w = gt.Variable(1.0)
    told = []
    for _ in range(2):
        with gt.GradientTape() as tape:
            y = w * w
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            g = tape.gradient(y, w)
        told.append([str(warning.message) for warning in caught])
        if g is not None:
            w = w - 0.1 * g
    assert told[0] == []
    assert "the source was never watched" in told[1][0]


@pytest.mark.filterwarnings("error")
def test_a_none_that_a_program_may_expect_is_silent(x: gt.Tensor) -> None:
    used, unused, frozen = gt.Variable(1.0), gt.Variable(1.0), gt.Variable(1.0, trainable=False)
    count, other = gt.Variable(1), gt.constant(1.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = x * used * frozen
        with tape.stop_recording():
            z = x * x
        with gt.GradientTape() as inner:
            inner.watch(x)
            line = 3.0 * x
        slope = inner.gradient(line, x)
    assert tape.gradient(y, unused) is None
    assert tape.gradient(y, [unused, frozen]) == [None, None]
    assert tape.gradient(y, other) is None
    assert tape.gradient(y, [count, used])[0] is None
    assert tape.gradient(z, x) is None
    assert tape.gradient(slope, x) is None
    assert tape.gradient([], x) is None
    after = y / 2.0
    assert tape.gradient(after, after).item() == 1.0
    assert tape.gradient(after, x, unconnected_gradients="zero").item() == 0.0
