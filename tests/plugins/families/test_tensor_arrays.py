"""Tensor arrays, calls of Python in the runs of a trace, and slices by number."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt


def numbers(array, n, x):
    """Write the powers of x, in a loop."""

    def step(i, array, power):
        return i + 1, array.write(i, power), power * x

    return gt.while_loop(lambda i, *_: i < n, step, (0, array, gt.ones_like(x)))[1].stack()


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "made",
    [
        lambda n: gt.TensorArray("float32", n),
        lambda n: gt.TensorArray("float32", n, element_shape=()),
        lambda n: gt.TensorArray("float32", dynamic_size=True),
        lambda n: gt.TensorArray("float32"),
    ],
)
def test_a_loop_writes_and_gradients_come_back(made, traced) -> None:
    def total(x, n):
        return gt.sum(numbers(made(n), n, x))

    call = gt.function(total) if traced else total
    x, n = gt.constant(2.0), gt.constant(4)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = call(x, n)
    assert y == 1 + 2 + 4 + 8
    assert tape.gradient(y, x) == 1 + 2 * 2 + 3 * 4
    assert call(x, gt.constant(2)) == 3.0


def test_an_array_is_written_read_and_stacked_by_python() -> None:
    array = gt.TensorArray("float32", size=3)
    for i in range(3):
        array = array.write(i, [float(i), 1.0])
    assert array.read(1).tolist() == [1.0, 1.0]
    assert array.stack().tolist() == [[0, 1], [1, 1], [2, 1]]
    assert array.gather([2, 0]).tolist() == [[2, 1], [0, 1]]
    assert array.concat().tolist() == [0, 1, 1, 1, 2, 1]
    assert (array.size(), array.dtype, array.element_shape) == (3, np.float32, (2,))
    parts = gt.TensorArray("float32", size=2).split([1.0, 2.0, 3.0], [1, 2])
    assert parts.read(1).tolist() == [2.0, 3.0]
    back = gt.TensorArray("float32", size=2).unstack([1.0, 2.0])
    assert back.read(0) == 1.0
    assert gt.TensorArray("float32", size=2).scatter([1, 0], [5.0, 6.0]).stack().tolist() == [6, 5]
    assert gt.TensorArray("float32", size=2, element_shape=(1,)).stack().tolist() == [[0], [0]]
    assert repr(array) == "<TensorArray of float32 tensors of shape (2,)>"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda a: a.write(2, 1.0), IndexError, "index 2 is out of bounds for size 2"),
        (lambda a: a.write(-1, 1.0), IndexError, "index -1"),
        (lambda a: a.read(0), IndexError, "was not written"),
        (lambda a: a.write(0, gt.constant(1.0, "float64")), TypeError, "cannot write float64"),
        (lambda a: a.stack(), ValueError, "nothing was written"),
    ],
)
def test_what_an_array_cannot_do_is_refused(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call(gt.TensorArray("float32", size=2))


def test_a_call_is_made_in_each_run_in_order() -> None:
    seen = []

    @gt.function
    def noted(x):
        gt.host_call(lambda x: seen.append(("first", x.item())), x)

        def step(i):
            gt.host_call(lambda i: seen.append(("loop", i.item())), i)
            return i + 1

        n = gt.while_loop(lambda i: i < 2, step, 0)
        gt.cond(
            x > 1.0,
            lambda: gt.host_call(lambda: seen.append(("large",))) or x,
            lambda: x,
        )
        return n

    for x in (0.5, 2.0):
        assert noted(gt.constant(x)) == 2
    calls = [("first", 0.5), ("loop", 0), ("loop", 1), ("first", 2.0), ("loop", 0), ("loop", 1)]
    assert seen == [*calls, ("large",)]


def test_gradients_of_all_orders_go_through_a_call() -> None:
    def cubed(x):
        return gt.host_call(lambda x: x * x * x, x, results=gt.TensorSpec([None], "float64"))

    x = gt.constant([1.5, -2.0], "float64")
    for call in (cubed, gt.function(cubed)):
        with gt.GradientTape() as outer:
            outer.watch(x)
            with gt.GradientTape() as inner:
                inner.watch(x)
                y = call(x)
            slope = inner.gradient(y, x)
        np.testing.assert_allclose(y, x**3)
        np.testing.assert_allclose(slope, 3 * x**2)
        np.testing.assert_allclose(outer.gradient(slope, x), 6 * x)


def test_a_call_that_returns_something_else_is_refused() -> None:
    spec = gt.TensorSpec([2], "float32")

    def traced(function, results):
        return gt.function(lambda: gt.host_call(function, results=results))()

    for call in (gt.host_call, traced):
        with pytest.raises(ValueError, match=r"result 0 has shape \(3,\)"):
            call(lambda: gt.ones(3), results=spec)
        with pytest.raises(ValueError, match="returned 2 values, not 1"):
            call(lambda: [gt.ones(2), gt.ones(2)], results=[spec])
        with pytest.raises(TypeError, match="results must hold TensorSpecs"):
            call(lambda: 1.0, results="float32")


def test_a_call_is_not_saved(tmp_path) -> None:
    class Loud(gt.Module):
        @gt.function
        def __call__(self, x):
            gt.host_call(print, x)
            return x

    loud = Loud()
    loud(gt.constant(1.0))
    with pytest.raises(gt.saving.SaveError, match="host_call"):
        gt.save(loud, tmp_path / "loud.h5")


def test_slices_go_into_parts_and_back() -> None:
    rng = np.random.default_rng(0)
    x, index = rng.normal(size=(6, 2)), np.array([0, 2, 1, 0, 2, 0])
    parts = gt.dynamic_partition(x, index, 3)
    for i, part in enumerate(parts):
        np.testing.assert_array_equal(part, x[index == i])
    places = gt.dynamic_partition(np.arange(6), index, 3)
    np.testing.assert_array_equal(gt.dynamic_stitch(places, parts), x)
    whole = gt.function(lambda x: gt.dynamic_stitch(places, gt.dynamic_partition(x, index, 3)))
    np.testing.assert_array_equal(whole(x), x)
    gt.testing.check_gradients(lambda x: gt.dynamic_partition(x, index, 3)[0], gt.constant(x))
    gt.testing.check_gradients(lambda x: gt.dynamic_stitch([[2, 0]], [x]), gt.constant(x[:2]))
    assert gt.dynamic_stitch([[0], [[2]]], [[1.0], [[3.0]]]).tolist() == [1.0, 0.0, 3.0]
    with pytest.raises(ValueError, match="numbers of shape"):
        gt.dynamic_partition(x, index[:3], 3)
    with pytest.raises(ValueError, match="1 or more parts"):
        gt.dynamic_partition(x, index, 0)
    with pytest.raises(ValueError, match="1 indices for 2"):
        gt.dynamic_stitch([[0]], [[1.0], [2.0]])
