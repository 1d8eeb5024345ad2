"""Reductions and scans: values, gradients of first and second order, edges, dtypes, traces."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from gradcheck import check_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as gt

X = np.array([[[0.5, -1.25], [2.0, 0.75], [-0.4, 1.6]], [[1.1, -0.7], [0.2, 3.0], [-2.2, 0.9]]])
AXES = [None, 0, -1, (0, 2), (-1, 1), (0, 1, 2), ()]

# op, what NumPy says, parameters
REDUCTIONS = [
    (gt.sum, np.sum, {}),
    (gt.mean, np.mean, {}),
    (gt.prod, np.prod, {}),
    (gt.max, np.max, {}),
    (gt.min, np.min, {}),
    (gt.var, np.var, {}),
    (gt.var, np.var, {"ddof": 0.5}),
    (gt.std, np.std, {}),
    (gt.std, np.std, {"ddof": 0.5}),
    (gt.logsumexp, lambda x, **k: np.log(np.sum(np.exp(x), **k)), {}),
]
IDS = [f"{op.__name__}{list(params)}" for op, _, params in REDUCTIONS]


def gradient(f, *xs, **kwargs):
    """The value and the gradient of f at a constant, for each argument."""
    xs = [gt.constant(x) for x in xs]
    with gt.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    grads = tape.gradient(y, xs, **kwargs)
    return (y, *grads)


# -- values and gradients --------------------------------------------------------------------------


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize(("op", "reference", "params"), REDUCTIONS, ids=IDS)
def test_reductions(op, reference, params, axis, keepdims):
    if axis == () and op in (gt.std, gt.var):
        return  # a deviation of single elements: 0 of 0, tested below
    params = {**params, "axis": axis, "keepdims": keepdims}
    np.testing.assert_allclose(op(X, **params).numpy(), reference(X, **params), rtol=1e-13)
    check_gradients(lambda x: op(x, **params), X, order=1)


@pytest.mark.parametrize("axis", [None, 0, (-1,)])
@pytest.mark.parametrize(("op", "reference", "params"), REDUCTIONS, ids=IDS)
def test_reductions_at_second_order(op, reference, params, axis):
    check_gradients(lambda x: op(x, axis=axis, **params) ** 2, X[:, 1])


@pytest.mark.parametrize("op", [gt.sum, gt.mean, gt.prod, gt.var, gt.std])
def test_complex_reductions(op):
    z = X[0] + 1j * X[1]
    reference = getattr(np, op.__name__)
    np.testing.assert_allclose(op(z, axis=0).numpy(), reference(z, axis=0), rtol=1e-14)
    check_gradients(lambda z: op(z, axis=0), z)
    check_gradients(lambda z: op(z), z[:2])


@pytest.mark.parametrize("op", [gt.cumsum, gt.cumprod])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_scans(op, axis):
    reference = getattr(np, op.__name__)
    np.testing.assert_allclose(op(X, axis).numpy(), reference(X, axis), rtol=1e-14)
    check_gradients(lambda x: op(x, axis), X[0])
    check_gradients(lambda z: op(z, axis), X[0, :2] + 1j * X[1, :2])


@pytest.mark.parametrize("zeros", [(), (0,), (2,), (0, 2), (0, 1, 3)])
def test_products_with_zeros(zeros):
    x = np.array([0.7, -1.5, 2.0, 0.5])
    x[list(zeros)] = 0.0
    check_gradients(gt.prod, x, order=3)
    check_gradients(lambda x: gt.cumprod(x, 0), x, order=3)
    check_gradients(lambda x: gt.prod(gt.stack([x, x + 1.0]), axis=(0, 1)), x)


def test_product_of_0_4_3():
    assert gradient(gt.prod, [0.0, 4.0, 3.0])[1].tolist() == [12.0, 0.0, 0.0]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 1, -2])
def test_positions_truth_and_counts(axis, keepdims):
    x = np.where(np.abs(X) < 0.6, 0.0, X)
    for name in ("argmax", "argmin", "any", "all", "count_nonzero"):
        got = getattr(gt, name)(x, axis=axis, keepdims=keepdims)
        want = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
        np.testing.assert_array_equal(got.numpy(), want)
        assert got.dtype == want.dtype
        assert gradient(getattr(gt, name), x)[1] is None


# -- edges -----------------------------------------------------------------------------------------


def test_ties_share_evenly():
    assert gradient(gt.max, [0.0, 2.0, 2.0])[1].tolist() == [0.0, 0.5, 0.5]
    assert gradient(gt.min, [3.0, 3.0, 3.0, 4.0])[1].tolist() == pytest.approx([1 / 3] * 3 + [0])
    _, g = gradient(lambda x: gt.max(x, axis=1), [[1.0, 1.0], [1.0, 2.0]])
    assert g.tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert gt.amax is gt.max
    assert gt.amin is gt.min


def test_spread_of_equal_elements():
    assert gradient(gt.std, [2.0, 2.0])[1].tolist() == [0.0, 0.0]
    assert gradient(gt.var, [2.0, 2.0])[1].tolist() == [0.0, 0.0]
    assert gradient(lambda x: gt.std(x, axis=()), [2.0, 3.0])[1].tolist() == [0.0, 0.0]


def test_logsumexp_far_out():
    y, g = gradient(gt.logsumexp, [1000.0, 1000.0])
    assert y.item() == pytest.approx(1000.0 + np.log(2.0))
    assert g.tolist() == [0.5, 0.5]
    assert gt.logsumexp(gt.constant([0, 0])).item() == pytest.approx(np.log(2.0))
    y, g = gradient(gt.logsumexp, [-np.inf, 0.0])
    assert (y.item(), g.tolist()) == (0.0, [0.0, 1.0])
    with np.errstate(divide="ignore"):
        y, g = gradient(gt.logsumexp, [-np.inf, -np.inf])
        assert (y.item(), g.tolist()) == (-np.inf, [0.0, 0.0])
        assert gt.logsumexp(np.zeros((0,))).item() == -np.inf
        assert gt.logsumexp(np.zeros((2, 0)), axis=1).tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("op", [gt.sum, gt.prod])
def test_reductions_of_nothing(op):
    for axis, shape in ((None, ()), (0, (3,)), (1, (0,))):
        y, g = gradient(lambda x, axis=axis: op(x, axis=axis), np.zeros((0, 3)))
        assert (y.shape, g.shape) == (shape, (0, 3))
        assert np.all(y.numpy() == (0.0 if op is gt.sum else 1.0))


def test_means_of_nothing_are_nan():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        y, g = gradient(gt.mean, np.zeros((0, 3)))
    assert np.isnan(y.item())
    assert g.shape == (0, 3)


@pytest.mark.parametrize("op", [gt.max, gt.min, gt.argmax, gt.argmin])
def test_no_extreme_of_nothing(op):
    with pytest.raises(ValueError, match=r"empty|zero-size"):
        op(np.zeros((0,)))


@pytest.mark.parametrize(("op", "reference", "params"), REDUCTIONS, ids=IDS)
def test_reductions_without_axes(op, reference, params):
    y, g = gradient(op, np.float64(1.5))
    assert (y.shape, g.shape) == ((), ())


# -- dtypes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("op", "reference", "params"), REDUCTIONS, ids=IDS)
def test_dtypes_are_kept(op, reference, params, dtype):
    y, g = gradient(lambda x: op(x, axis=0, **params), X.astype(dtype))
    assert (y.dtype, g.dtype) == (dtype, dtype)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "cumsum", "cumprod"])
def test_integers_are_widened_as_by_numpy(name, dtype):
    x = np.ones(3, dtype)
    have, want = getattr(gt, name)(gt.constant(x)), getattr(np, name)(x)
    traced = gt.function(getattr(gt, name))(gt.constant(x))
    assert have.dtype == traced.dtype == want.dtype
    np.testing.assert_array_equal(have.numpy(), want)


def test_float16_means_do_not_overflow():
    x = np.full(4000, 30.0, np.float16)
    assert gt.mean(x).item() == 30.0
    assert gt.var(x).item() == 0.0
    assert gradient(gt.mean, x)[1].dtype == "float16"
    many = np.zeros(70_000, np.float16)
    assert gradient(gt.mean, many)[1].numpy()[0] == np.float16(1 / 70_000)


# -- parameters ------------------------------------------------------------------------------------


def _summed(axis):
    return lambda x: gt.sum(x, axis)


def test_axis_may_be_a_list_or_numpy_integers():
    x = gt.constant(X)
    for axis in ([0, 2], (np.int64(0), 2), np.int32(1)):
        want = np.sum(X, axis=tuple(axis) if isinstance(axis, list) else axis)
        np.testing.assert_allclose(gt.sum(x, axis=axis).numpy(), want)
        traced = gt.function(_summed(axis))
        np.testing.assert_allclose(traced(x).numpy(), want)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "mean",
        "prod",
        "max",
        "min",
        "var",
        "std",
        "logsumexp",
        "argmax",
        "argmin",
        "any",
        "all",
        "count_nonzero",
        "cumsum",
        "cumprod",
    ],
)
def test_an_axis_out_of_bounds(name, traced):
    op = getattr(gt, name)

    def f(x):
        return op(x, axis=3)

    with pytest.raises(np.exceptions.AxisError, match=r"axis 3 is out of bounds .* dimension 2"):
        (gt.function(f) if traced else f)(gt.constant(X[0]))


@pytest.mark.parametrize("traced", [False, True])
def test_an_axis_named_twice(traced):
    def f(x):
        return gt.sum(x, axis=(0, -2))

    with pytest.raises(ValueError, match=r"duplicate value in .*axis"):
        (gt.function(f) if traced else f)(gt.constant(X[0]))


@pytest.mark.parametrize("axis", ["0", 1.5, (0, None)])
def test_an_axis_that_is_no_integer(axis):
    with pytest.raises(TypeError, match="mean: axis must be"):
        gt.mean(X, axis=axis)
    with pytest.raises(TypeError, match="cumsum: axis must be"):
        gt.cumsum(X, axis=axis)
    with pytest.raises(TypeError, match="argmax: axis must be"):
        gt.argmax(X, axis=axis)


def test_numpy_functions_of_tensors():
    x = gt.constant(X)
    np.testing.assert_allclose(np.mean(x, axis=0).numpy(), np.mean(X, axis=0))
    np.testing.assert_allclose(np.std(x, ddof=1).numpy(), np.std(X, ddof=1))
    np.testing.assert_allclose(x.max(axis=1, keepdims=True).numpy(), X.max(axis=1, keepdims=True))


# -- traces ----------------------------------------------------------------------------------------


def both_orders(f, x):
    """The value of f, its gradient, and the gradient of that."""
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x)
    return [y, first, outer.gradient(first, x, unconnected_gradients="zero")]


@pytest.mark.parametrize("axis", [None, -1, (0, -1), (-2, -1)])
@pytest.mark.parametrize("spec", [None, (None, None, None), (None, 3, 2)])
@pytest.mark.parametrize(("op", "reference", "params"), REDUCTIONS, ids=IDS)
def test_traced_is_eager_at_every_batch_size(op, reference, params, spec, axis):
    def f(x):
        return op(x, axis=axis, **params)

    signature = [gt.TensorSpec(spec, "float64")]
    whole = gt.function(lambda x: both_orders(f, x), input_signature=signature)
    inside = gt.function(f, input_signature=signature)
    samples = [X, X[:1], np.concatenate([X, X + 1.0])]
    if spec is None:
        samples.append(X[None])
    for sample in samples:
        x = gt.constant(sample)
        for traced in (whole(x), both_orders(inside, x)):
            for have, want in zip(traced, both_orders(f, x), strict=True):
                np.testing.assert_array_equal(have.numpy(), want.numpy())


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 1, (0, -1)])
def test_traced_shapes(axis, keepdims):
    def shape(spec):
        f = gt.function(lambda x: gt.sum(x, axis=axis, keepdims=keepdims))
        return f.get_concrete_function(gt.TensorSpec(spec)).graph.outputs[0].shape

    known = np.sum(np.ones((4, 5, 6)), axis=axis, keepdims=keepdims).shape
    assert shape((4, 5, 6)) == known
    # an unknown first dimension stays unknown where it is kept
    assert shape((None, 5, 6)) == tuple(None if n == 4 else n for n in known)
    assert shape(None) == (() if axis is None and not keepdims else None)


@pytest.mark.parametrize("op", [gt.cumsum, gt.cumprod])
def test_traced_scans(op):
    f = gt.function(
        lambda x: both_orders(lambda x: op(x, -1), x),
        input_signature=[gt.TensorSpec(None, "float64")],
    )
    for x in (gt.constant(X), gt.constant(X[0, :1])):
        for have, want in zip(f(x), both_orders(lambda x: op(x, -1), x), strict=True):
            np.testing.assert_array_equal(have.numpy(), want.numpy())


# -- laws ------------------------------------------------------------------------------------------

arrays = st.integers(0, 1000).map(lambda seed: np.random.default_rng(seed).normal(size=(3, 2, 4)))
axes = st.sampled_from([None, 0, 1, (0, 2), (1, 2), -1])


@settings(max_examples=25, deadline=None)
@given(arrays, arrays, axes, st.floats(-3.0, 3.0))
def test_sums_and_means_are_linear(x, y, axis, c):
    for op in (gt.sum, gt.mean):
        have = op(x + c * y, axis=axis).numpy()
        want = op(x, axis=axis).numpy() + c * op(y, axis=axis).numpy()
        np.testing.assert_allclose(have, want, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(arrays, axes)
def test_gradients_of_sums_and_extremes_add_up(x, axis):
    groups = gt.sum(x, axis=axis).size
    assert gt.sum(gradient(lambda x: gt.mean(x, axis), x)[1]).item() == pytest.approx(groups)
    assert gt.sum(gradient(lambda x: gt.max(x, axis), x)[1]).item() == groups
    assert gt.sum(gradient(lambda x: gt.logsumexp(x, axis), x)[1]).item() == pytest.approx(groups)
    # moving all elements together does not change how far apart they are
    assert gt.sum(gradient(lambda x: gt.var(x, axis), x)[1]).item() == pytest.approx(0, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(arrays, axes)
def test_a_product_is_homogeneous(x, axis):
    """Euler: the sum of x times the gradient is the degree times the value."""
    y, g = gradient(lambda x: gt.prod(x, axis), x)
    degree = x.size // y.size
    np.testing.assert_allclose(gt.sum(x * g, axis).numpy(), degree * y.numpy(), rtol=1e-10)
