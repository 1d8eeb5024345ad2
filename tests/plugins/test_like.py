"""Ops that take a shape from another tensor: adjoint pairs, public makers, traces."""

from __future__ import annotations

import numpy as np
import pytest
from gradcheck import check_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gradtape as gt
from gradtape.core.extend import ops

MAKERS = [gt.zeros_like, gt.ones_like, lambda x, dtype=None: gt.full_like(x, 2.5, dtype=dtype)]


@pytest.mark.parametrize(("make", "value"), list(zip(MAKERS, (0.0, 1.0, 2.5), strict=True)))
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_makers(make, value, shape):
    x = gt.constant(np.ones(shape, np.float32))
    y = make(x)
    assert (y.shape, y.dtype) == (shape, "float32")
    assert np.all(y.numpy() == value)
    assert make(x, dtype="float64").dtype == "float64"
    assert make(gt.Variable(1.0)).item() == value


@pytest.mark.parametrize("make", MAKERS)
def test_makers_are_not_connected(make):
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = make(x), make(x, dtype="float64")
    assert tape.gradient(y, x) is None
    assert tape.gradient(z, x) is None


def test_full_like_differentiates_its_value():
    x = np.ones((2, 3))
    check_gradients(lambda v: gt.full_like(x, v) * x, 1.5)
    check_gradients(lambda v: gt.full_like(x, v) ** 2, np.array([1.0, 2.0, 3.0]))
    assert gt.full_like(gt.constant([1, 2]), 2.5).tolist() == [2, 2]
    assert gt.full_like(3.0, 2.0).item() == 2.0
    with pytest.raises(ValueError, match="broadcast"):
        gt.full_like(x, np.ones(2))


@pytest.mark.parametrize("spec", [None, (None,), (None, 3)])
def test_makers_follow_the_run_time_shape(spec):
    @gt.function(input_signature=[gt.TensorSpec(spec)])
    def f(x):
        return gt.ones_like(x), gt.full_like(x, 3.0, dtype="float64")

    shape = (2,) if spec == (None,) else (4, 3)
    ones, threes = f(gt.constant(np.zeros(shape, np.float32)))
    assert (ones.shape, ones.dtype) == (shape, "float32")
    assert (threes.shape, threes.dtype) == (shape, "float64")


def test_like_ops_at_second_order():
    x, like = np.array([[1.0], [2.0]]), np.ones((3, 2, 4))
    check_gradients(lambda x: ops["broadcast_like"](x, like) ** 2, x)
    check_gradients(lambda x: ops["unbroadcast_like"](x, np.ones((2, 1))) ** 2, like)
    check_gradients(lambda x: ops["reshape_like"](x, np.ones((4, 6))) ** 2, like)
    check_gradients(lambda x: ops["unreduce_like"](x, like, axis=(0, -1)) ** 2, x[:, 0])
    check_gradients(
        lambda x: ops["unreduce_like"](x, like, axis=-1, keepdims=True) ** 2, like[..., :1]
    )
    check_gradients(lambda z: ops["cast_like"](z, x) ** 2, x + 1j)


def test_casts_between_real_and_complex():
    z = gt.constant(np.array([1.0 + 2.0j]))
    like = gt.constant(np.ones((2, 1), np.float32))
    assert ops["broadcast_like"](z, like).tolist() == [[1.0], [1.0]]
    assert ops["cast_like"](like, z).dtype == "complex128"


@pytest.mark.parametrize(
    ("axis", "count"), [(None, 24.0), (0, 2.0), ((0, -1), 8.0), ((), 1.0), (-2, 3.0)]
)
@pytest.mark.parametrize(("dtype", "real"), [("float32", "float32"), ("complex128", "float64")])
def test_size_over(axis, count, dtype, real):
    x = gt.constant(np.ones((2, 3, 4), dtype))
    size = ops["size_over"](x, axis=axis)
    assert (size.item(), size.dtype, size.shape) == (count, real, ())
    f = gt.function(
        lambda x: ops["size_over"](x, axis=axis), input_signature=[gt.TensorSpec(None, dtype)]
    )
    assert f(x).item() == count


def dot(a, b):
    return float(np.sum(np.asarray(a) * np.asarray(b)))


@settings(max_examples=50, deadline=None)
@given(hnp.mutually_broadcastable_shapes(num_shapes=1, base_shape=(2, 3, 2)), st.integers(0, 9))
def test_unbroadcast_is_the_adjoint_of_broadcast(shapes, seed):
    rng = np.random.default_rng(seed)
    (small,), big = shapes.input_shapes, shapes.result_shape
    x, g = rng.normal(size=small), rng.normal(size=big)
    up, down = ops["broadcast_like"](x, g), ops["unbroadcast_like"](g, x)
    assert (up.shape, down.shape) == (big, small)
    assert dot(up, g) == pytest.approx(dot(x, down), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from([None, 0, 2, -2, (0, 2), (2, 1), ()]), st.booleans(), st.integers(0, 9))
def test_unreduce_is_the_adjoint_of_sum(axis, keepdims, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2, 3, 4))
    small = ops["sum"](x, axis=axis, keepdims=keepdims)
    g = rng.normal(size=small.shape)
    up = ops["unreduce_like"](g, x, axis=axis, keepdims=keepdims)
    assert up.shape == x.shape
    assert dot(small, g) == pytest.approx(dot(x, up), abs=1e-12)
