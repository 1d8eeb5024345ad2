"""Reshaping, joining, cutting, picking: dtypes, traces at any rank, nothing, adjoints."""

from __future__ import annotations

import numpy as np
import pytest
from families.shape import RNG, SAMPLES, X
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gradtape as gt


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "bool"])
@pytest.mark.parametrize(
    "case", [name for name in SAMPLES if name not in ("trace", "sort", "sort flat")]
)
def test_dtypes_are_kept(case, dtype):
    ours, _, inputs = SAMPLES[case]
    assert ours(*(gt.constant(x.astype(dtype)) for x in inputs)).dtype == dtype


@pytest.mark.parametrize("case", SAMPLES)
def test_traces_infer_the_shape_and_agree(case):
    """The shape rule is right for known sizes, and one trace with unknown ones does it all."""
    ours, theirs, inputs = SAMPLES[case]
    want = theirs(*inputs)
    known = gt.function(ours)
    np.testing.assert_array_equal(known(*map(gt.constant, inputs)).numpy(), want)
    (output,) = known.concrete_functions[0].graph.outputs
    assert all(n in (None, m) for n, m in zip(output.shape, np.shape(want), strict=True))
    if "mask" not in case:
        assert output.shape == np.shape(want)
    if case in ("unstack", "trace"):
        return  # the number of results, and of axes, must be known
    specs = [gt.TensorSpec([None] * np.ndim(x), "float64") for x in inputs]
    unknown = gt.function(input_signature=specs)(ours)
    np.testing.assert_array_equal(unknown(*inputs).numpy(), want)
    xs = [gt.constant(x) for x in inputs]
    grads = []
    for fn in (unknown, ours):
        with gt.GradientTape() as tape:
            tape.watch(xs)
            y = fn(*xs)
            loss = gt.sum(y * y)
        grads.append(tape.gradient(loss, xs))
    for mine, theirs_ in zip(*grads, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs_.numpy())


RANKLESS = {
    "reshape": lambda x: gt.reshape(x, (-1, 2)),
    "ravel": gt.ravel,
    "transpose": gt.transpose,
    "moveaxis": lambda x: gt.moveaxis(x, 0, -1),
    "swapaxes": lambda x: gt.swapaxes(x, 0, -1),
    "expand_dims": lambda x: gt.expand_dims(x, -1),
    "flip": gt.flip,
    "roll": lambda x: gt.roll(x, 1, 0),
    "tile": lambda x: gt.tile(x, 2),
    "repeat": lambda x: gt.repeat(x, 2, 0),
    "pad": lambda x: gt.pad(x, 1),
    "concatenate": lambda x: gt.concatenate([x, x], axis=0),
    "stack": lambda x: gt.stack([x, x]),
    "split": lambda x: gt.split(x, 2, axis=-1)[0],
    "take": lambda x: gt.take(x, [0, 0], axis=-1),
    "sort": gt.sort,
    "x[..., 0]": lambda x: x[..., 0],
}


@pytest.mark.parametrize("case", RANKLESS)
def test_one_trace_serves_every_rank(case):
    fn = RANKLESS[case]

    @gt.function(input_signature=[gt.TensorSpec(None, "float64")])
    def slope(x):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = fn(x * x)
        return y, tape.gradient(y, x)

    for shape in [(4,), (2, 4), (3, 2, 4)]:
        x = gt.constant(RNG.standard_normal(shape))
        y, g = slope(x)
        np.testing.assert_array_equal(y.numpy(), fn(x * x).numpy())
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = fn(x * x)
        np.testing.assert_allclose(g.numpy(), tape.gradient(y, x).numpy())


EMPTY = {
    "reshape": lambda x: gt.reshape(x, (4, 0)),
    "transpose": gt.transpose,
    "concatenate": lambda x: gt.concatenate([x, x]),
    "stack": lambda x: gt.stack([x, x]),
    "tile": lambda x: gt.tile(x, (2, 2)),
    "repeat": lambda x: gt.repeat(x, 2, 1),
    "pad": lambda x: gt.pad(x, 1),
    "flip": gt.flip,
    "split": lambda x: gt.split(x, 2)[0],
    "take": lambda x: gt.take(x, np.zeros((2, 0), np.int64), axis=1),
    "getitem": lambda x: x[:, 1:],
    "broadcast_to": lambda x: gt.broadcast_to(x, (2, 0, 4)),
}


@pytest.mark.parametrize("case", EMPTY)
def test_empty_arrays_have_empty_gradients(case):
    x = gt.zeros((0, 4))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = EMPTY[case](x)
    assert tape.gradient(y, x).shape == (0, 4)


def test_repeated_indices_add_up():
    x = gt.constant([1.0, 2.0, 3.0])
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        picked = x[[0, 0, 2]]
        taken = gt.take(x, [0, 0, 2])
    assert tape.gradient(picked, x).tolist() == [2.0, 0.0, 1.0]
    assert tape.gradient(taken, x).tolist() == [2.0, 0.0, 1.0]


def test_joined_dtypes_promote_and_gradients_come_back_in_their_own():
    x, y = gt.constant([1.0], "float32"), gt.constant([2.0], "float64")
    for join in (gt.concatenate, gt.stack):
        with gt.GradientTape() as tape:
            tape.watch([x, y])
            z = join([x, y])
        assert z.dtype == "float64"
        assert [g.dtype.name for g in tape.gradient(z, [x, y])] == ["float32", "float64"]


def test_out_of_range_indices_are_errors():
    with pytest.raises(IndexError, match=r"take.*3"):
        gt.take(gt.constant(X), [3], axis=0)
    with pytest.raises(IndexError, match=r"getitem.*\(3, 4\)"):
        gt.constant(X)[[3]]


def test_unstack_and_iteration_agree():
    x = gt.constant(X)
    for ours, row in zip(gt.unstack(x), X, strict=True):
        np.testing.assert_array_equal(ours.numpy(), row)
    assert gt.unstack(gt.zeros((0, 2))) == ()
    traced = gt.function(input_signature=[gt.TensorSpec([None, 4], "float64")])(
        lambda x: gt.unstack(x, num=3)[1]
    )
    np.testing.assert_array_equal(traced(X).numpy(), X[1])


def test_argsort_is_stable_and_has_no_gradient():
    assert gt.argsort(gt.constant([2.0, 1.0, 2.0, 1.0])).tolist() == [1, 3, 0, 2]


def test_creation():
    assert gt.zeros((2, 3)).dtype == "float32"
    assert gt.ones(3, "int64").tolist() == [1, 1, 1]
    assert gt.full((2,), 7).tolist() == [7, 7]
    assert gt.eye(2, 3, 1).tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert gt.arange(3).dtype == "int64"
    assert gt.arange(0.0, 1.0, 0.25).dtype == "float32"
    assert gt.arange(1, 7, 2).tolist() == [1, 3, 5]
    assert gt.arange(2, dtype="float64").dtype == "float64"
    assert gt.linspace(0, 1, 3).tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(TypeError, match=r"zeros.*2\.5"):
        gt.zeros(2.5)


shapes = hnp.array_shapes(min_dims=1, max_dims=3, max_side=4)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_picking_and_adding_back_are_adjoint(data):
    """<g, x[i]> = <adjoint(g), x> for every index that NumPy takes."""
    shape = data.draw(shapes)
    index = data.draw(
        st.one_of(
            hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True),
            hnp.integer_array_indices(shape),
            hnp.arrays(bool, shape),
        )
    )
    x = RNG.standard_normal(shape)
    t = gt.constant(x)
    with gt.GradientTape() as tape:
        tape.watch(t)
        y = t[index]
    np.testing.assert_array_equal(y.numpy(), x[index])
    g = RNG.standard_normal(np.shape(x[index]))
    back = tape.gradient(y, t, output_gradients=gt.constant(g)).numpy()
    assert np.sum(back * x) == pytest.approx(np.sum(g * x[index]))
    traced = gt.function(lambda x: x[index])
    np.testing.assert_array_equal(traced(t).numpy(), x[index])
    inferred = traced.concrete_functions[0].graph.outputs[0].shape
    assert all(n in (None, m) for n, m in zip(inferred, x[index].shape, strict=True))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_splitting_and_concatenating_are_inverse(data):
    shape = data.draw(shapes)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis] + 1), max_size=3)))
    x = RNG.standard_normal(shape)
    parts = gt.split(x, cuts, axis=axis) if cuts else [gt.constant(x)]
    np.testing.assert_array_equal(gt.concatenate(parts, axis=axis).numpy(), x)
    again = gt.stack(gt.unstack(x, axis=axis), axis=axis)
    np.testing.assert_array_equal(again.numpy(), x)
