"""Gradients, Jacobians and batches of what has no elements, or no axes; refusals in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_gradients

Call = Callable[..., Any]


def in_every_mode(f: Call, *arrays: Any, unknown: bool = True) -> None:
    """Run first and second gradients, Jacobians, forward mode, batches and traces of ``f``."""
    xs = [gt.constant(x) for x in arrays]
    want = f(*xs)
    calls = [f, gt.function(f)]
    if unknown:
        signature = [gt.TensorSpec([None] * x.ndim, "float64") for x in arrays]
        calls.append(gt.function(f, input_signature=signature))
    for call in calls:
        with gt.GradientTape() as outer:
            outer.watch(xs)
            with gt.GradientTape() as tape:
                tape.watch(xs)
                y = call(*xs)
                loss = gt.sum(y * y)
            first = tape.gradient(loss, xs)
            total = sum(gt.sum(g * g) for g in first)
        assert y.shape == want.shape
        assert [g.shape for g in first] == [x.shape for x in arrays]
        assert [g.shape for g in outer.gradient(total, xs)] == [x.shape for x in arrays]
    for i, x in enumerate(arrays):
        assert gt.jacobian(f, argnums=i)(*xs).shape == (*want.shape, *x.shape)
        batch = gt.constant(np.stack([x, x]))

        def one(v: Any, i: int = i) -> Any:
            return f(*xs[:i], v, *xs[i + 1 :])

        assert gt.vmap(one)(batch).shape == (2, *want.shape)
        slopes = gt.vmap(gt.grad(lambda v, one=one: gt.sum(one(v) ** 2)))(batch)
        assert slopes.shape == batch.shape
    assert gt.jvp(f, tuple(xs), tuple(xs))[1].shape == want.shape


PRODUCTS = [
    ((0,), (0,)),
    ((3, 0), (0,)),
    ((0,), (0, 3)),
    ((2, 0), (0, 3)),
    ((4, 2, 0), (0, 3)),
    ((4, 2, 0), (4, 0, 3)),
    ((4, 2, 0), (0,)),
    ((0, 2), (2, 3)),
    ((2, 2), (2, 0)),
    ((0, 2, 3), (3, 2)),
]


@pytest.mark.parametrize("shapes", PRODUCTS, ids=str)
@pytest.mark.parametrize("f", [gt.dot, gt.matmul, gt.inner, gt.vecdot, gt.matvec, gt.vecmat])
def test_products_over_empty_axes_have_gradients(f: Call, shapes: Any) -> None:
    x, y = (np.zeros(shape) for shape in shapes)
    try:
        want = getattr(np, f.__name__)(x, y)
    except ValueError:
        pytest.skip("these shapes do not match")
    assert f(x, y).shape == want.shape
    in_every_mode(f, x, y)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(
    "name",
    "sum prod max min nansum nanprod nanmax nanmin nanmean nanvar ptp cumsum cumprod".split(),
)
def test_an_array_without_axes_is_reduced_over_axis_0_in_every_mode(name: str, axis: int) -> None:
    f = getattr(np, name)
    assert f(gt.constant(2.0), axis=axis).shape == f(np.array(2.0), axis=axis).shape
    in_every_mode(lambda x: f(x, axis=axis), np.array(2.0), unknown=False)


@pytest.mark.parametrize("axis", [0, -1])
def test_an_array_without_axes_has_one_element_along_axis_0(axis: int) -> None:
    x = np.array(3.0)
    for f in (
        lambda x: np.repeat(x, 2, axis=axis),
        lambda x: np.take(x, 0, axis=axis),
        lambda x: np.take(x, [0, 0], axis=axis),
        lambda x: np.squeeze(x, axis=axis),
    ):
        np.testing.assert_array_equal(f(gt.constant(x)), f(x))
        in_every_mode(f, x, unknown=False)
        check_gradients(lambda x, f=f: f(x) ** 2, x)
    for f in (np.all, np.any, np.argmax, np.argmin, np.count_nonzero):
        assert f(gt.constant(x), axis=axis) == f(x, axis=axis)
        assert gt.vmap(lambda x, f=f: f(x, axis=axis))(np.ones(2)).shape == (2,)
    with pytest.raises(np.exceptions.AxisError):
        gt.linalg.norm(x, axis=axis)


CONVOLUTIONS = [
    (gt.nn.conv1d, (0, 3, 2), (2, 2, 2)),
    (gt.nn.conv1d, (2, 3, 0), (2, 0, 2)),
    (gt.nn.conv1d, (2, 3, 2), (2, 2, 0)),
    (gt.nn.conv1d, (2, 0, 2), (1, 2, 2)),
    (gt.nn.conv2d, (0, 3, 3, 1), (2, 2, 1, 2)),
    (gt.nn.conv2d, (1, 3, 3, 2), (2, 2, 2, 0)),
    (gt.nn.conv1d_transpose, (0, 3, 2), (2, 2, 2)),
    (gt.nn.conv1d_transpose, (2, 3, 0), (2, 2, 0)),
    (gt.nn.conv2d_transpose, (0, 3, 3, 1), (2, 2, 2, 1)),
]


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(("f", "images", "filters"), CONVOLUTIONS)
def test_convolutions_of_nothing_have_jacobians(
    f: Call, images: Any, filters: Any, padding: str
) -> None:
    if padding == "valid" and images[1] == 0 and "transpose" not in f.__name__:
        padding = "same"

    def call(x: Any, w: Any) -> Any:
        return f(x, w, padding=padding)

    x, w = np.ones(images), np.ones(filters)
    in_every_mode(call, x, w, unknown=False)
    none = gt.vmap(call, in_axes=(None, 0))(x, np.ones((0, *filters)))
    assert none.shape == (0, *call(x, w).shape)


@pytest.mark.parametrize(
    ("shift", "axis"), [((1, 2), (0, 0)), ((1, 2), (0, -2)), (1, (0, 0)), ((1, 2, 3), (0, 1, 0))]
)
def test_a_roll_along_one_axis_twice_adds_up(shift: Any, axis: Any) -> None:
    x = np.arange(12.0).reshape(3, 4)
    want = np.roll(x, shift, axis)
    np.testing.assert_array_equal(gt.roll(x, shift, axis), want)
    np.testing.assert_array_equal(gt.vmap(lambda x: gt.roll(x, shift, axis))(x[None])[0], want)
    in_every_mode(lambda x: gt.roll(x, shift, axis), x)


def test_broadcasting_to_a_rank_that_a_trace_does_not_know_is_refused_in_words() -> None:
    x, y = gt.constant(np.ones(3)), gt.constant(np.ones((2, 3)))
    specs = [gt.TensorSpec([None], "float64"), gt.TensorSpec(None, "float64")]
    traced = gt.function(lambda x, y: gt.broadcast_to(x, y.shape), input_signature=specs)
    with pytest.raises(gt.errors.TraceError, match="its rank is unknown: give its TensorSpec"):
        traced(x, y)
    way = gt.function(
        lambda x, y: gt.broadcast_arrays(x, y)[0],
        input_signature=[gt.TensorSpec([None], "float64"), gt.TensorSpec(None, "float64")],
    )
    assert way(x, y).shape == (2, 3)


REFUSED: list[tuple[Call, type[Exception], str]] = [
    (lambda: gt.random.randint(3, 0, 2.5), TypeError, "random.randint: "),
    (lambda: gt.random.randint(3, np.float64(4)), TypeError, "random.randint: "),
    (lambda: gt.random.randint(3, 0, 2**70), ValueError, "random.randint: "),
    (lambda: gt.random.choice(2, p=[np.nan, 0.5]), ValueError, "random.choice: .*nan"),
    (lambda: gt.random.choice(2, p=[np.inf, 0.5]), ValueError, "random.choice: .*inf"),
    (lambda: gt.random.choice(2, p=[0.0, 0.0]), ValueError, "random.choice: "),
    (lambda: gt.random.choice(3, 2, False, p=[1.0, 0, 0]), ValueError, "random.choice: cannot"),
    (lambda: gt.random.choice(0), ValueError, "random.choice: there is nothing"),
    (lambda: gt.random.choice("abc"), TypeError, "random.choice: "),
    (lambda: gt.random.normal(2, "a"), TypeError, "random.normal: "),
    (lambda: gt.random.normal((2,), np.ones(3)), ValueError, "random.normal: "),
    (lambda: gt.random.normal(2, dtype="spam"), TypeError, "random.normal: "),
    (lambda: gt.random.uniform(2, "a"), TypeError, "random.uniform: "),
    (lambda: gt.random.exponential((2,), np.ones(3)), ValueError, "random.exponential: "),
    (lambda: gt.random.truncated_normal((2,), np.ones(3)), ValueError, "random.truncated_normal: "),
    (lambda: gt.random.gamma((2,), np.ones(3)), ValueError, "random.gamma: "),
    (lambda: gt.random.gamma((2,), -1.0), ValueError, "random.gamma: "),
    (lambda: gt.random.bernoulli((2,), np.ones(3)), ValueError, "random.bernoulli: "),
    (lambda: gt.random.categorical("a"), TypeError, "random.categorical: "),
    (lambda: gt.random.categorical(np.zeros((2, 0))), ValueError, "random.categorical: "),
    (lambda: gt.random.permutation("a"), TypeError, "random.permutation: "),
    (lambda: gt.random.shuffle("a"), TypeError, "random.shuffle: "),
    (lambda: gt.nn.log_softmax([1.0], axis=3), np.exceptions.AxisError, "log_softmax: axis 3"),
    (lambda: gt.nn.log_softmax(1.0), np.exceptions.AxisError, "log_softmax: axis -1"),
    (lambda: gt.from_dlpack(3), AttributeError, "from_dlpack: .*int"),
    (lambda: gt.from_dlpack(np.array(["a"])), BufferError, "from_dlpack: "),
    (lambda: gt.nn.one_hot([0, 1], -1), ValueError, "one_hot: depth .*-1"),
    (lambda: gt.around([1.0], 1.5), TypeError, "around: "),
    (lambda: gt.linspace(gt.constant(0.0), 1.0, -2), ValueError, "linspace: num .*-2"),
]


@pytest.mark.parametrize(("call", "kind", "words"), REFUSED, ids=[row[2] for row in REFUSED])
def test_what_is_refused_is_named(call: Call, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=f"^{words}"):
        call()
