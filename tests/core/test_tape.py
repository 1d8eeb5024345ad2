"""``GradientTape``: what it answers, what it refuses, and what surrounds it."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gradtape as gt

Pair = collections.namedtuple("Pair", ["first", "second"])


@pytest.fixture
def x() -> gt.Tensor:
    return gt.constant(3.0)


def are_active(*tapes: gt.GradientTape) -> list[bool]:
    """Return which tapes record what happens now: these watch a variable that is read."""
    v = gt.Variable(1.0)
    v * 1.0
    return [any(w is v for w in tape.watched_variables()) for tape in tapes]


def test_sources_and_targets_in_containers_of_every_kind(x: gt.Tensor) -> None:
    y = gt.constant(5.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch({"a": x, "b": [y]})
        z = x * y
    got = tape.gradient({"z": z}, {"b": [x, (y,)], "a": Pair(y, {"k": x})})
    assert list(got) == ["b", "a"]
    assert isinstance(got["a"], Pair)
    assert isinstance(got["b"][1], tuple)
    assert got["a"].first.numpy() == 3.0
    assert got["a"].second["k"].numpy() == 5.0
    assert got["b"][0].numpy() == 5.0
    assert got["b"][1][0].numpy() == 3.0
    assert tape.gradient(z, ()) == ()
    assert tape.gradient(z, {}) == {}


def test_the_same_source_twice(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    a, b = tape.gradient(y, [x, x])
    assert a.numpy() == b.numpy() == 6.0


def test_several_targets_are_summed(x: gt.Tensor) -> None:
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = x * 4.0
    assert tape.gradient([y, z], x).numpy() == 10.0
    assert tape.gradient([y, y], x).numpy() == 12.0
    assert tape.gradient((y, {"z": z}), [x])[0].numpy() == 10.0


def test_a_target_of_many_elements_is_summed() -> None:
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * [[1.0, 2.0], [3.0, 4.0]]
    np.testing.assert_array_equal(tape.gradient(y, x), [4.0, 6.0])


def test_output_gradients() -> None:
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = gt.sum(x)
    np.testing.assert_array_equal(
        tape.gradient(y, x, output_gradients=gt.constant([10.0, 100.0])), [20.0, 400.0]
    )
    both = tape.gradient({"y": y, "z": z}, x, output_gradients={"y": np.ones(2), "z": 5.0})
    assert both.dtype == np.float32
    np.testing.assert_array_equal(both, [7.0, 9.0])


@pytest.mark.parametrize(
    ("seed", "message"),
    [([1.0], r"2 targets but 1"), ([np.ones(3), 1.0], r"\(3,\).*\(2,\)"), ([None, 1.0], "None")],
)
def test_wrong_output_gradients(seed, message: str) -> None:
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y, z = x * x, gt.sum(x)
    with pytest.raises(ValueError, match=message):
        tape.gradient([y, z], x, output_gradients=seed)
    np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 4.0])  # the tape is not used up


def test_output_gradients_take_the_dtype_of_the_target() -> None:
    x = gt.constant(2.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * 1j
    for seed in (2, np.float64(2.0), gt.constant(2, dtype="int8")):
        got = tape.gradient(y, x, output_gradients=seed)
        assert (got.dtype, got.item()) == (np.float32, 8.0)
    with pytest.raises(TypeError, match=r"complex64.*real \(float32\)"):
        tape.gradient(y, x, output_gradients=1j)
    assert tape.gradient(z, x, output_gradients=1j).item() == 4.0


def test_unconnected_gradients() -> None:
    x, other = gt.constant([1.0, 2.0]), gt.Variable(np.zeros((2, 3)))
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * 2.0
    for zero in (gt.UnconnectedGradients.ZERO, "zero"):
        got = tape.gradient(y, {"x": x, "o": other}, unconnected_gradients=zero)
        np.testing.assert_array_equal(got["x"], [2.0, 2.0])
        assert got["o"].dtype == np.float64
        np.testing.assert_array_equal(got["o"], np.zeros((2, 3)))
    for none in (gt.UnconnectedGradients.NONE, "none"):
        assert tape.gradient(y, other, unconnected_gradients=none) is None
    with pytest.raises(ValueError, match="'none' or 'zero', got 'nought'"):
        tape.gradient(y, x, unconnected_gradients="nought")


@pytest.mark.parametrize("bad", [3.0, "x", object()], ids=["number", "text", "object"])
def test_targets_and_sources_are_tensors_or_variables(bad, x: gt.Tensor) -> None:
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(TypeError, match="target"):
        tape.gradient(bad, x)
    with pytest.raises(TypeError, match="sources"):
        tape.gradient(y, [x, bad])
    with pytest.raises(TypeError, match="watch"):
        tape.watch(bad)


def test_a_second_call_says_how_to_get_one(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match=r"GradientTape\(persistent=True\)"):
        tape.gradient(y, x)


def test_a_tape_that_answered_starts_afresh_when_entered_again() -> None:
    v = gt.Variable(3.0)
    tape = gt.GradientTape()
    for _ in range(3):
        with tape:
            y = v * v
        assert tape.gradient(y, v).numpy() == 6.0


def test_a_tape_that_was_only_left_goes_on_when_entered_again(x: gt.Tensor) -> None:
    tape = gt.GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    z = y * 100.0  # not recorded
    with tape:
        w = y * x
    assert z.numpy() == 900.0
    assert tape.gradient(w, x).numpy() == 27.0


def test_entering_twice_and_misplaced_calls_are_errors() -> None:
    tape = gt.GradientTape()
    with pytest.raises(RuntimeError, match="reset: this tape is not recording"):
        tape.reset()
    constant = gt.constant([[1.0]])
    for ask in (tape.gradient, tape.jacobian, tape.batch_jacobian):
        with pytest.raises(RuntimeError, match=f"{ask.__name__}: the tape was never entered"):
            ask(constant, constant)
    with pytest.raises(RuntimeError, match="not recording"), tape.stop_recording():
        pass
    with tape, pytest.raises(RuntimeError, match="already recording"), tape:
        pass
    assert are_active(tape) == [False]
    with pytest.raises(RuntimeError, match="reset: this tape is not recording"):
        tape.reset()
    with tape, tape.stop_recording(), pytest.raises(RuntimeError, match="not recording"):
        tape.reset()


@pytest.mark.parametrize("persistent", [False, True])
def test_gradient_inside_the_context_is_recorded_by_outer_tapes(x: gt.Tensor, persistent) -> None:
    with gt.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with gt.GradientTape(persistent) as inner:
            inner.watch(x)
            dy = inner.gradient(x * x * x, x)
            assert inner._all.keys() <= {x.id} or persistent
    assert dy.numpy() == 27.0
    assert outer.gradient(dy, x).numpy() == 18.0


def test_a_persistent_tape_asked_after_its_context_gives_no_second_order(x: gt.Tensor) -> None:
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * x
    dy = tape.gradient(y, x)
    with pytest.warns(gt.errors.BrokenPathWarning, match="target was computed after"):
        assert tape.gradient(dy, x) is None


def test_stop_recording_inside_a_gradient_that_is_recorded(x: gt.Tensor) -> None:
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        with outer.stop_recording():
            first = inner.gradient(y, x)
        z = first * x
    assert outer.gradient(z, x).numpy() == 27.0  # first is a constant to the outer tape


def test_reset_makes_a_used_tape_usable(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert tape.gradient(y, x).numpy() == 6.0
        tape.reset()
        tape.watch(x)
        z = x * x * x
    assert tape.gradient(z, x).numpy() == 27.0


def test_an_error_inside_the_block_leaves_no_tape_active() -> None:
    outer, tape = gt.GradientTape(), gt.GradientTape()
    with pytest.raises(ZeroDivisionError), outer, tape, tape.stop_recording():
        raise ZeroDivisionError
    assert are_active(outer, tape) == [False, False]
    with outer:
        assert are_active(outer, tape) == [True, False]
    with pytest.raises(ZeroDivisionError), gt.GradientTape() as tape:
        raise ZeroDivisionError
    assert are_active(outer, tape) == [False, False]


def test_an_error_in_the_backward_pass_restores_the_tapes_around_it(x: gt.Tensor) -> None:
    @gt.custom_gradient
    def f(x):
        return x * 1.0, lambda g: 1 / 0

    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        with pytest.raises(ZeroDivisionError):
            inner.gradient(y, x)
        assert are_active(outer, inner) == [True, False]
        z = x * x
    assert are_active(outer, inner) == [False, False]
    assert outer.gradient(z, x).numpy() == 6.0


def test_tapes_in_an_exit_stack_and_in_a_generator(x: gt.Tensor) -> None:
    with contextlib.ExitStack() as stack:
        tapes = [stack.enter_context(gt.GradientTape()) for _ in range(3)]
        for tape in tapes:
            tape.watch(x)
        y = x * x
    assert [tape.gradient(y, x).numpy() for tape in tapes] == [6.0] * 3

    def steps():
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            yield y
            z = y * x
        yield tape.gradient(z, x)

    assert [float(v) for v in steps()] == [9.0, 27.0]


def test_every_thread_may_have_tapes_of_its_own() -> None:
    def work(n: int) -> float:
        x = gt.constant(float(n))
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(100):
                y = gt.sin(y) + x
        return tape.gradient(y, x).item()

    expected = [work(n) for n in range(16)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(16))) == expected


def test_one_variable_in_many_threads() -> None:
    v = gt.Variable(2.0)

    def work(_: int) -> float:
        with gt.GradientTape() as tape:
            y = v * v
        return tape.gradient(y, v).item()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(64))) == {4.0}


def test_a_thread_with_the_context_copied_records_and_closes_nothing(x: gt.Tensor) -> None:
    made = []
    with gt.GradientTape() as tape:
        tape.watch(x)
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(lambda: made.append(x * x),))
        thread.start()
        thread.join()
        y = made[0] * x
    assert tape.gradient(y, x).numpy() == 27.0


def test_asyncio_tasks_keep_their_tapes_apart() -> None:
    async def work(value: float) -> float:
        x = gt.constant(value)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            await asyncio.sleep(0.001)
            y = y * x
            assert len(tape.watched_variables()) == 0
        return tape.gradient(y, x).item()

    async def main() -> list[float]:
        return await asyncio.gather(*(work(float(n)) for n in range(5)))

    assert asyncio.run(main()) == [0.0, 3.0, 12.0, 27.0, 48.0]


def test_a_task_that_outlives_the_tape_records_no_more() -> None:
    x, v = gt.constant(3.0), gt.Variable(2.0)

    async def main() -> None:
        ended = asyncio.Event()

        async def work() -> tuple[gt.Tensor, gt.Tensor]:
            before = x * x
            await ended.wait()
            return before, before * v

        with gt.GradientTape(persistent=True) as tape:
            tape.watch(x)
            task = asyncio.create_task(work())
            await asyncio.sleep(0)
        ended.set()
        before, after = await task
        assert tape.gradient(before, x).item() == 6.0
        with pytest.warns(gt.errors.BrokenPathWarning, match="target was computed after"):
            assert tape.gradient(after, x) is None
        assert tape.watched_variables() == ()

    asyncio.run(main())


def test_fanning_in_and_out() -> None:
    x = gt.constant(2.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        layers = [x]
        for _ in range(10):
            layers = [layers[0] + layers[-1], layers[0] * 0.5]
        y = layers[0] + layers[1]
    h = 1e-3

    def f(value: float) -> float:
        layers = [value]
        for _ in range(10):
            layers = [layers[0] + layers[-1], layers[0] * 0.5]
        return layers[0] + layers[1]

    np.testing.assert_allclose(tape.gradient(y, x), (f(2 + h) - f(2 - h)) / (2 * h), rtol=1e-5)


def test_sources_in_the_middle_of_a_path(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        a = x * 2.0
        b = a * a
        c = b * 3.0
    assert [g.numpy() for g in tape.gradient(c, [x, a, b, c])] == [72.0, 36.0, 3.0, 1.0]


def test_watching_an_intermediate_keeps_its_own_path(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.watch(y)
        z = y * y
    assert [g.numpy() for g in tape.gradient(z, [x, y])] == [108.0, 18.0]


def test_watching_late_differentiates_from_there(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        y = x * x
        tape.watch(x)
        z = y * x
    assert tape.gradient(z, x).numpy() == 9.0


def test_broadcast_operands_are_summed_back() -> None:
    a = gt.constant(np.ones((2, 1, 3), np.float32))
    b = gt.constant(np.ones((4, 1), np.float32))
    s = gt.constant(2.0)
    with gt.GradientTape() as tape:
        tape.watch([a, b, s])
        y = (a + b) * s
    da, db, ds = tape.gradient(y, [a, b, s])
    assert (da.shape, db.shape, ds.shape) == ((2, 1, 3), (4, 1), ())
    np.testing.assert_array_equal(da, np.full((2, 1, 3), 8.0))
    np.testing.assert_array_equal(db, np.full((4, 1), 12.0))
    assert ds.numpy() == 48.0


def test_gradients_have_the_dtype_of_their_source() -> None:
    a = gt.constant([1.0], dtype="float16")
    b = gt.constant([2.0], dtype="float64")
    z = gt.constant([1j])
    with gt.GradientTape() as tape:
        tape.watch([a, b, z])
        y = gt.real(a * b * z) + gt.abs(z)
    assert [g.dtype.name for g in tape.gradient(y, [a, b, z])] == [
        "float16",
        "float64",
        "complex64",
    ]


def test_a_complex_target(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.exp(x * 1j)
    np.testing.assert_allclose(tape.gradient(y, x), np.real(np.conj(1j * np.exp(3j))), rtol=1e-5)


def test_casts_to_integers_end_paths(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.cast(gt.cast(x, "int32"), "float32") * x
    assert tape.gradient(y, x).numpy() == 3.0


def test_a_deep_chain_does_not_recurse(x: gt.Tensor) -> None:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(100_000):
            y = y + 1.0
    assert tape.gradient(y, x).numpy() == 1.0


def test_a_tape_over_a_deep_chain_at_second_order() -> None:
    x = gt.constant(1.0, dtype="float64")
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = x
            for _ in range(2_000):
                y = y * x
        first = inner.gradient(y, x)
    assert first.numpy() == 2001.0
    assert outer.gradient(first, x).numpy() == 2001.0 * 2000.0


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_any_order(order: int) -> None:
    x = gt.constant(0.7, dtype="float64")

    def derivative(n: int) -> gt.Tensor:
        if n == 0:
            return gt.sin(x)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = derivative(n - 1)
        return tape.gradient(y, x)

    np.testing.assert_allclose(derivative(order), np.sin(0.7 + order * np.pi / 2), rtol=1e-12)


def test_a_tape_shows_its_state() -> None:
    x = gt.constant(1.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        gt.sin(x * 2.0)
        assert repr(tape) == "<GradientTape: persistent, recording, 2 records, 1 watched>"
    assert repr(gt.GradientTape()) == "<GradientTape: not recording, 0 records, 0 watched>"
