"""Reshaping, reordering, joining, cutting, picking: values, gradients, traces, errors."""

from __future__ import annotations

import numpy as np
import pytest
from gradcheck import check_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gradtape as gt

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4))
Y = RNG.standard_normal((2, 3, 4))
MASK = X > 0
INDEX = np.array([[0, -1], [2, 0]])
ALONG = np.array([[0, 0, 3], [1, 1, 1], [2, 0, -1]])

# name -> (ours, NumPy's, inputs)
SAMPLES = {
    "reshape": (lambda x: gt.reshape(x, (2, 6)), lambda x: np.reshape(x, (2, 6)), [X]),
    "reshape -1": (lambda x: gt.reshape(x, (-1, 2)), lambda x: np.reshape(x, (-1, 2)), [X]),
    "reshape int": (lambda x: gt.reshape(x, 12), np.ravel, [X]),
    "ravel": (gt.ravel, np.ravel, [Y]),
    "transpose": (gt.transpose, np.transpose, [Y]),
    "transpose axes": (
        lambda x: gt.transpose(x, (1, -1, 0)),
        lambda x: np.transpose(x, (1, -1, 0)),
        [Y],
    ),
    "permute_dims": (
        lambda x: gt.permute_dims(x, (2, 0, 1)),
        lambda x: np.transpose(x, (2, 0, 1)),
        [Y],
    ),
    "matrix_transpose": (gt.matrix_transpose, np.matrix_transpose, [Y]),
    "moveaxis": (lambda x: gt.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), [Y]),
    "moveaxis two": (
        lambda x: gt.moveaxis(x, (0, 1), (-1, 0)),
        lambda x: np.moveaxis(x, (0, 1), (-1, 0)),
        [Y],
    ),
    "swapaxes": (lambda x: gt.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, -1), [Y]),
    "swapaxes same": (lambda x: gt.swapaxes(x, 1, -2), lambda x: x, [Y]),
    "expand_dims": (lambda x: gt.expand_dims(x, -1), lambda x: np.expand_dims(x, -1), [X]),
    "expand_dims two": (
        lambda x: gt.expand_dims(x, (0, 2)),
        lambda x: np.expand_dims(x, (0, 2)),
        [X],
    ),
    "squeeze": (gt.squeeze, np.squeeze, [X[:, None, :1]]),
    "squeeze axis": (lambda x: gt.squeeze(x, 1), lambda x: np.squeeze(x, 1), [X[:, None, :1]]),
    "broadcast_to": (
        lambda x: gt.broadcast_to(x, (2, 3, 4)),
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        [X[:, :1]],
    ),
    "full": (lambda x: gt.full((2, 3), x), lambda x: np.full((2, 3), x), [X[0, 0]]),
    "flip": (gt.flip, np.flip, [X]),
    "flip axis": (lambda x: gt.flip(x, (0, -1)), lambda x: np.flip(x, (0, -1)), [Y]),
    "roll": (lambda x: gt.roll(x, 2), lambda x: np.roll(x, 2), [X]),
    "roll axes": (
        lambda x: gt.roll(x, (1, -2), (0, 1)),
        lambda x: np.roll(x, (1, -2), (0, 1)),
        [X],
    ),
    "tril": (lambda x: gt.tril(x, 1), lambda x: np.tril(x, 1), [Y]),
    "triu": (gt.triu, np.triu, [X]),
    "diag": (lambda x: gt.diag(x, -1), lambda x: np.diag(x, -1), [X[0]]),
    "diag of a matrix": (gt.diag, np.diag, [X]),
    "diagonal": (lambda x: gt.diagonal(x, 1), lambda x: np.diagonal(x, 1), [X]),
    "diagonal axes": (
        lambda x: gt.diagonal(x, -1, 2, 0),
        lambda x: np.diagonal(x, -1, 2, 0),
        [Y],
    ),
    "trace": (gt.trace, np.trace, [X]),
    "tile": (lambda x: gt.tile(x, 2), lambda x: np.tile(x, 2), [X]),
    "tile more": (lambda x: gt.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), [X]),
    "tile less": (lambda x: gt.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), [Y]),
    "repeat": (lambda x: gt.repeat(x, 2, -1), lambda x: np.repeat(x, 2, -1), [X]),
    "repeat counts": (
        lambda x: gt.repeat(x, [2, 0, 1], 0),
        lambda x: np.repeat(x, [2, 0, 1], 0),
        [X],
    ),
    "repeat flat": (lambda x: gt.repeat(x, 3), lambda x: np.repeat(x, 3), [X]),
    "pad": (
        lambda x: gt.pad(x, ((1, 2), (0, 3)), constant_values=5),
        lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=5),
        [X],
    ),
    "pad all": (lambda x: gt.pad(x, 1), lambda x: np.pad(x, 1), [X]),
    "pad pair": (lambda x: gt.pad(x, (1, 0)), lambda x: np.pad(x, (1, 0)), [Y]),
    "concatenate": (
        lambda x, y: gt.concatenate([x, y, x], axis=-1),
        lambda x, y: np.concatenate([x, y, x], axis=-1),
        [X, X[:, :1]],
    ),
    "concatenate flat": (
        lambda x, y: gt.concat([x, y], axis=None),
        lambda x, y: np.concatenate([x, y], axis=None),
        [X, Y],
    ),
    "stack": (
        lambda x, y: gt.stack([x, y, x], axis=1),
        lambda x, y: np.stack([x, y, x], axis=1),
        [X, X * 2],
    ),
    "unstack": (
        lambda x: gt.unstack(x, axis=1)[2],
        lambda x: np.moveaxis(x, 1, 0)[2],
        [X],
    ),
    "split": (lambda x: gt.split(x, 2, axis=1)[1], lambda x: np.split(x, 2, axis=1)[1], [X]),
    "split at": (
        lambda x: gt.split(x, [1, 1, 9])[2],
        lambda x: np.split(x, [1, 1, 9])[2],
        [X],
    ),
    "take": (lambda x: gt.take(x, INDEX, axis=0), lambda x: np.take(x, INDEX, axis=0), [X]),
    "take last": (lambda x: gt.take(x, INDEX, -1), lambda x: np.take(x, INDEX, -1), [Y]),
    "take flat": (lambda x: gt.take(x, [7, 7, -1]), lambda x: np.take(x, [7, 7, -1]), [X]),
    "gather": (lambda x: gt.gather(x, INDEX), lambda x: x[INDEX], [X]),
    "gather axis": (lambda x: gt.gather(x, [1, 1], axis=1), lambda x: x[:, [1, 1]], [X]),
    "take_along_axis": (
        lambda x: gt.take_along_axis(x, ALONG, axis=1),
        lambda x: np.take_along_axis(x, ALONG, axis=1),
        [X],
    ),
    "take_along_axis broadcast": (
        lambda x: gt.take_along_axis(x, ALONG[:1, :1], axis=1),
        lambda x: np.take_along_axis(x, ALONG[:1, :1], axis=1),
        [X],
    ),
    "take_along_axis flat": (
        lambda x: gt.take_along_axis(x, np.array([3, 3, 0]), axis=None),
        lambda x: np.take_along_axis(x, np.array([3, 3, 0]), axis=None),
        [X],
    ),
    "sort": (lambda x: gt.sort(x, axis=0), lambda x: np.sort(x, axis=0), [X]),
    "sort flat": (lambda x: gt.sort(x, axis=None), lambda x: np.sort(x, axis=None), [X]),
    "x[1]": (lambda x: x[1], lambda x: x[1], [X]),
    "x[-1, 2]": (lambda x: x[-1, 2], lambda x: x[-1, 2], [X]),
    "x[::-2, 1:]": (lambda x: x[::-2, 1:], lambda x: x[::-2, 1:], [X]),
    "x[..., None, 0]": (lambda x: x[..., None, 0], lambda x: x[..., None, 0], [Y]),
    "x[index]": (lambda x: x[INDEX], lambda x: x[INDEX], [X]),
    "x[index, index]": (lambda x: x[INDEX, INDEX], lambda x: x[INDEX, INDEX], [X]),
    "x[index, :, 0]": (lambda x: x[[0, 1], :, 0], lambda x: x[[0, 1], :, 0], [Y]),
    "x[:, index, 0]": (lambda x: x[:, [0, 1, 1], 0], lambda x: x[:, [0, 1, 1], 0], [Y]),
    "x[1, ..., index]": (lambda x: x[1, ..., [0, 0]], lambda x: x[1, ..., [0, 0]], [Y]),
    "x[mask]": (lambda x: x[MASK], lambda x: x[MASK], [X]),
    "x[:, mask]": (lambda x: x[:, MASK], lambda x: x[:, MASK], [Y]),
    "x[mask row, index]": (
        lambda x: x[np.array([True, False, True]), [1, 1]],
        lambda x: x[np.array([True, False, True]), [1, 1]],
        [X],
    ),
    "x[[]]": (lambda x: x[[]], lambda x: x[[]], [X]),
}


@pytest.mark.parametrize("case", SAMPLES)
def test_values_are_numpys(case):
    ours, theirs, inputs = SAMPLES[case]
    result, want = ours(*map(gt.constant, inputs)).numpy(), theirs(*inputs)
    assert np.shape(result) == np.shape(want)
    np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize("case", SAMPLES)
def test_gradients_of_two_orders(case):
    ours, _, inputs = SAMPLES[case]
    # squared, so that the second order is not zero
    check_gradients(lambda *xs: gt.multiply(y := ours(*xs), y), *inputs)


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


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: gt.reshape(x, (5, -1)), ValueError, "reshape"),
        (lambda x: gt.reshape(x, (7,)), ValueError, "reshape"),
        (lambda x: gt.reshape(x, (-1, -1)), ValueError, "reshape"),
        (lambda x: gt.broadcast_to(x, (3, 5)), ValueError, "broadcast_to"),
        (lambda x: gt.broadcast_to(x, (4,)), ValueError, "broadcast_to"),
        (lambda x: gt.transpose(x, (0, 0)), ValueError, "transpose"),
        (lambda x: gt.transpose(x, (0,)), ValueError, "transpose"),
        (lambda x: gt.swapaxes(x, 0, 2), ValueError, "swapaxes.*axis 2"),
        (lambda x: gt.moveaxis(x, 0, 2), ValueError, "moveaxis.*axis 2"),
        (lambda x: gt.moveaxis(x, (0, 1), 0), ValueError, "moveaxis"),
        (lambda x: gt.expand_dims(x, 4), ValueError, "expand_dims.*axis 4"),
        (lambda x: gt.squeeze(x, 0), ValueError, "squeeze.*size 3"),
        (lambda x: gt.flip(x, 2), ValueError, "flip"),
        (lambda x: gt.roll(x, 1, 2), ValueError, "roll"),
        (lambda x: gt.repeat(x, -1), ValueError, "repeat.*-1"),
        (lambda x: gt.repeat(x, [1, 2]), ValueError, "repeat.*size 12"),
        (lambda x: gt.repeat(x, [1, 2], 0), ValueError, "repeat.*size 3"),
        (lambda x: gt.repeat(x, 1.5), TypeError, "repeat.*1.5"),
        (lambda x: gt.pad(x, ((1, 1), (1, 1), (1, 1))), ValueError, "pad"),
        (lambda x: gt.pad(x, -1), ValueError, "pad.*at least 0"),
        (lambda x: gt.pad(x, 1.5), TypeError, "pad.*1.5"),
        (lambda x: gt.pad(x, 1, mode="empty"), ValueError, "pad.*empty"),
        (lambda x: gt.concatenate([x, x[:2]], axis=1), ValueError, "concatenate.*3"),
        (lambda x: gt.concatenate([x, x[0]]), ValueError, "concatenate"),
        (lambda x: gt.concatenate([]), ValueError, "concatenate.*none"),
        (lambda x: gt.concatenate([x, x], axis=2), ValueError, "concatenate.*axis 2"),
        (lambda x: gt.stack([x, x[0]]), ValueError, "stack"),
        (lambda x: gt.stack([x, x], axis=3), ValueError, "stack.*axis 3"),
        (lambda x: gt.unstack(x, num=2), ValueError, "unstack"),
        (lambda x: gt.split(x, 2), ValueError, "split.*3"),
        (lambda x: gt.split(x, 0), ValueError, "split.*at least 1"),
        (lambda x: gt.split(x, [2, 1]), ValueError, "split.*ascend"),
        (lambda x: gt.sort(x, axis=2), ValueError, "sort.*axis 2"),
        (lambda x: gt.take(x, 0.5), TypeError, "take.*float"),
        (lambda x: gt.take(x, 0, axis=2), ValueError, "take.*axis 2"),
        (lambda x: gt.take_along_axis(x, [0], axis=1), ValueError, "take_along_axis"),
        (lambda x: gt.take(x, 0, axis="x"), TypeError, "take.*'x'"),
        (lambda x: gt.diag(gt.stack([x, x])), ValueError, "diag"),
        (lambda x: gt.reshape(x, "ab"), TypeError, "reshape.*'ab'"),
        (lambda x: x[0, 0, 0], IndexError, r"getitem.*\(3, 4\)"),
        (lambda x: x[5], IndexError, "getitem.*5"),
        (lambda x: x[np.array([True, False])], IndexError, r"getitem.*\(3, 4\)"),
    ],
)
def test_errors_name_the_op_eagerly_and_traced(call, error, words):
    for run in (call, gt.function(call)):
        with pytest.raises(error, match=f"(?s){words}"):
            run(gt.constant(X))


def test_out_of_range_indices_are_errors():
    with pytest.raises(IndexError, match=r"take.*3"):
        gt.take(gt.constant(X), [3], axis=0)
    with pytest.raises(IndexError, match=r"getitem.*\(3, 4\)"):
        gt.constant(X)[[3]]


def test_unstack_and_iteration_agree():
    x = gt.constant(X)
    for ours, row in zip(gt.unstack(x), X, strict=True):
        np.testing.assert_array_equal(ours.numpy(), row)
    assert gt.unstack(gt.zeros((0, 2))) == []
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
