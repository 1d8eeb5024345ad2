"""Sizes that tensors hold: what shapes made of such tensors are known to be."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import TraceError

INT32 = np.int32


def ints(*values, dtype=INT32):
    return gt.constant(np.array(values, dtype))


# what is made of the shape (n, m, 3) as a tensor, and what a trace says of zeros of that shape
SHAPES = {
    "all of it": (lambda s: s, "(n, m, 3)"),
    "an element": (lambda s: s[0], "(n,)"),
    "a slice": (lambda s: s[1:], "(m, 3)"),
    "reversed": (lambda s: s[::-1], "(3, m, n)"),
    "stacked": (lambda s: gt.stack([s[1], s[0], ints(7)[0]]), "(m, n, 7)"),
    "concatenated": (lambda s: gt.concatenate([s[:-1], ints(4)]), "(n, m, 4)"),
    "unstacked": (lambda s: gt.unstack(s)[1], "(m,)"),
    "split": (lambda s: gt.split(s, [1])[1], "(m, 3)"),
    "a sum": (lambda s: gt.sum(s), "(n + m + 3,)"),
    "a product": (lambda s: gt.prod(s[1:]), "(3*m,)"),
    "the largest": (lambda s: gt.max(s[1:]), "(max(m, 3),)"),
    "the smallest": (lambda s: gt.min(s[1:]), "(min(m, 3),)"),
    "arithmetic": (lambda s: 2 * s[:2] - ints(0, 1) + s[0], "(3*n, n + 2*m - 1)"),
    "a quotient": (lambda s: s // ints(2, 3, 2), "(n // 2, m // 3, 1)"),
    "a remainder": (lambda s: s[0] % 4, "(n % 4,)"),
    "up to a multiple": (lambda s: -(-s[0] // 8) * 8, "(-8*(-n // 8),)"),
    "a bound": (lambda s: gt.minimum(gt.maximum(s[:2], 1), 9), None),
    "cast": (lambda s: gt.cast(s, "int64"), "(n, m, 3)"),
    "in other shapes": (lambda s: s[0].reshape(1, 1).squeeze(0), "(n,)"),
    "tiled": (lambda s: gt.tile(s[:1], 2), "(n, n)"),
    "taken": (lambda s: gt.take(s, ints(2, 0)), "(3, n)"),
    "padded": (lambda s: gt.pad(s[:1], (1, 0)) + 1, "(1, n + 1)"),
    "broadcast": (lambda s: gt.broadcast_to(s[0], (2,)), "(n, n)"),
    "no gradient": (lambda s: gt.stop_gradient(s), "(n, m, 3)"),
    # what may wrap around, or divide by nothing, is what a run finds, and an unknown here
    "large numbers": (lambda s: s[0] * 2**24 // 2**24, None),
    "small numbers": (lambda s: gt.cast(gt.cast(s[0], "int8"), "int32"), None),
    "a division by a size": (lambda s: s[0] // gt.maximum(s[1], 1), "(n // max(m, 1),)"),
    "a division by a size, maybe 0": (lambda s: s[0] // s[1], None),
    "of floats": (lambda s: gt.cast(gt.ceil(s[0] / 2), "int32"), None),
}


def as_vector(x):
    return gt.stack([gt.as_tensor(n, INT32) for n in x.shape])


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_in_a_tensor_makes_arrays_as_eagerly_and_keeps_its_expression(name):
    make, said = SHAPES[name]
    shapes = []

    def zeros(x):
        made = gt.zeros(make(as_vector(x)))
        shapes.append(str(made.shape))
        return made + gt.sum(x)

    traced = gt.function(zeros, input_signature=[gt.TensorSpec([None, None, 3])])
    for n, m in [(1, 2), (2, 1), (3, 3), (7, 2)]:
        x = gt.ones((n, m, 3))
        assert traced(x).shape == zeros(x).shape
    assert said in (None, shapes[0])


def test_a_vector_is_a_shape_in_eager_code_too():
    assert gt.zeros(ints(2, 3)).shape == (2, 3)
    assert gt.ones((6,)).reshape(ints(2, -1)).shape == (2, 3)
    assert gt.zeros(np.array([2, 3])).shape == (2, 3)
    with pytest.raises(TypeError, match="zeros: a shape is"):
        gt.zeros(ints(2, 3).reshape(1, 2))
    with pytest.raises(TypeError, match="zeros: a shape is"):
        gt.zeros(gt.constant([2.0, 3.0]))


def test_a_vector_of_unknown_length_is_no_shape():
    traced = gt.function(gt.zeros, input_signature=[gt.TensorSpec([None], "int32")])
    with pytest.raises(TraceError, match="its number of elements is unknown"):
        traced(ints(1, 2))


def test_a_vector_that_a_run_brings_is_a_shape():
    traced = gt.function(gt.zeros, input_signature=[gt.TensorSpec([2], "int32")])
    assert traced(ints(1, 2)).shape == (1, 2)
    assert traced(ints(3, 0)).shape == (3, 0)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_sizes_in_tensors_are_known_inside_loops_and_branches(n):
    def grown(x):
        count = as_vector(x)[0]
        total = gt.while_loop(
            lambda i, t: i < 3,
            lambda i, t: (i + 1, t + gt.ones((count, 2))),
            (0, gt.zeros((count, 2))),
        )[1]
        return gt.cond(gt.sum(x) > 0, lambda: gt.ones((count, 2)) * total, lambda: total)

    traced = gt.function(grown, input_signature=[gt.TensorSpec([None])])
    np.testing.assert_array_equal(traced(gt.ones(n)), np.full((n, 2), 3.0))
