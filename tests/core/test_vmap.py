"""``vmap`` gives what a loop over the examples gives, gradients included."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt


def test_it_stacks_results_along_the_axes_asked_for() -> None:
    x = gt.constant(np.arange(12.0).reshape(3, 4))
    w = gt.constant(np.arange(4.0))
    result = gt.vmap(lambda x, w: x * w, in_axes=(0, None), out_axes=1)(x, w)
    np.testing.assert_array_equal(result, (x.numpy() * w.numpy()).T)
    result = gt.vmap(lambda column: gt.sum(column), in_axes=-1)(x)
    np.testing.assert_array_equal(result, x.numpy().sum(axis=0))


def test_containers_go_in_and_come_out() -> None:
    batch = {"a": gt.ones((2, 3)), "b": gt.ones((5,))}
    out = gt.vmap(lambda d: {"s": gt.sum(d["a"]) + gt.sum(d["b"])}, in_axes=({"a": 0, "b": None},))(
        batch
    )
    np.testing.assert_array_equal(out["s"], [8.0, 8.0])


def test_gradients_go_through_it_and_it_goes_over_gradients() -> None:
    def slope(x: gt.Tensor) -> gt.Tensor:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.sin(x) * x
        return tape.gradient(y, x)

    x = gt.constant([0.5, 1.0, 2.0])
    expected = np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy())
    np.testing.assert_allclose(gt.vmap(slope)(x), expected, rtol=1e-6)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.vmap(lambda x: gt.sin(x) * x)(x)
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-6)


@pytest.mark.parametrize("size", [2, None])
def test_it_works_in_a_trace(size: int | None) -> None:
    @gt.function(input_signature=[gt.TensorSpec([size, 3])])
    def sums(x: gt.Tensor) -> gt.Tensor:
        return gt.vmap(lambda row: gt.sum(row * gt.ones(3)))(x)

    np.testing.assert_array_equal(sums(gt.ones((2, 3))), [3.0, 3.0])


@pytest.mark.parametrize(
    ("shapes", "in_axes", "message"),
    [
        (((2,), (3,)), 0, "batch sizes of the arguments differ"),
        (((2,), (2,)), None, "no argument has a batch axis"),
        (((2,), (2,)), (0, 1), r"argument 1 of shape \(2,\) has no axis 1"),
        (((2,), (2,)), (0,), "2 arguments, but in_axes is"),
        (((0,), (0,)), 0, "the batch is empty"),
    ],
)
def test_bad_batches_are_refused_in_words(shapes, in_axes, message) -> None:
    arguments = [gt.zeros(shape) for shape in shapes]
    with pytest.raises(ValueError, match=message):
        gt.vmap(lambda x, y: x + y, in_axes=in_axes)(*arguments)
