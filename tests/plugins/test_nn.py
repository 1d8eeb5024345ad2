"""Activations, cross-entropies, batch normalisation: batches, ties, extreme inputs."""

from __future__ import annotations

import numpy as np
import pytest
from families.nn import ACTIVATIONS, RNG, SHARES, X, log_softmax
from gradcheck import check_gradients

import gradtape as gt
from gradtape.core.extend import ops


@pytest.mark.parametrize("case", ACTIVATIONS)
def test_one_trace_serves_every_batch_size(case):
    fn, _ = ACTIVATIONS[case]
    if "cross" in case:
        pytest.skip("the labels fix the batch size here; see the next test")

    @gt.function(input_signature=[gt.TensorSpec([None, 5], "float64")])
    def traced(x):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        return y, tape.gradient(y, x)

    for batch in (1, 3, 7):
        x = gt.constant(RNG.standard_normal((batch, 5)))
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        again, slope = traced(x)
        np.testing.assert_array_equal(again.numpy(), y.numpy())
        np.testing.assert_allclose(slope.numpy(), tape.gradient(y, x).numpy())


@pytest.mark.parametrize("rank", ["known", "unknown"])
def test_cross_entropies_trace_with_unknown_sizes(rank):
    shape, rows = ([None, 5], [None]) if rank == "known" else (None, None)
    specs = [gt.TensorSpec(shape, "float64"), gt.TensorSpec(rows, "int64")]

    @gt.function(input_signature=specs)
    def traced(logits, labels):
        with gt.GradientTape() as tape:
            tape.watch(logits)
            sparse = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            dense = gt.nn.softmax_cross_entropy_with_logits(
                labels=gt.one_hot(labels, 5, "float64"), logits=logits
            )
        return sparse, dense, tape.gradient(sparse, logits)

    for batch in (1, 4):
        logits = RNG.standard_normal((batch, 5))
        labels = RNG.integers(0, 5, batch)
        sparse, dense, slope = traced(logits, labels)
        want = -log_softmax(logits)[np.arange(batch), labels]
        np.testing.assert_allclose(sparse.numpy(), want)
        np.testing.assert_allclose(dense.numpy(), want)
        np.testing.assert_allclose(
            slope.numpy(), np.exp(log_softmax(logits)) - np.eye(5)[labels], atol=1e-15
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_inputs_neither_overflow_nor_lose_their_gradient(dtype):
    big = np.array([-1e4, -100.0, 0.0, 100.0, 1e4], dtype)
    with np.errstate(over="raise", invalid="raise"):
        for name in ("relu", "elu", "sigmoid", "softplus", "silu", "softmax", "log_softmax"):
            x = gt.constant(big)
            with gt.GradientTape() as outer, gt.GradientTape() as inner:
                outer.watch(x)
                inner.watch(x)
                y = getattr(gt.nn, name)(x)
                slope = inner.gradient(y, x)
            bend = outer.gradient(slope, x, unconnected_gradients="zero")
            for value in (y, slope, bend):
                assert np.all(np.isfinite(value.numpy())), name
        x = gt.constant(big[None])
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=[0], logits=x)
        assert y.item() == 2e4
        assert tape.gradient(y, x).tolist() == [[-1.0, 0.0, 0.0, 0.0, 1.0]]
    assert gt.nn.sigmoid(gt.constant(-50.0, dtype)).item() == pytest.approx(np.exp(-50.0))
    assert gt.nn.softplus(gt.constant(-50.0, dtype)).item() == pytest.approx(np.exp(-50.0))


@pytest.mark.parametrize(
    ("fn", "at", "slope"),
    [
        (gt.nn.relu, 0.0, 0.0),
        (gt.nn.relu6, 0.0, 0.0),
        (gt.nn.relu6, 6.0, 0.0),
        (gt.nn.leaky_relu, 0.0, 0.2),
        (gt.nn.elu, 0.0, 1.0),
        (lambda x: gt.clip_by_norm(x, 2.0), 0.0, 1.0),
    ],
)
def test_gradients_at_kinks(fn, at, slope):
    x = gt.constant(at)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    assert tape.gradient(y, x).item() == pytest.approx(slope)


def test_nan_stays_nan():
    for name in ("relu", "relu6", "sigmoid", "softplus", "elu", "softmax"):
        assert np.isnan(getattr(gt.nn, name)(gt.constant([np.nan])).numpy()).all(), name


def test_dense_cross_entropy_gradients_are_the_slopes_of_its_value():
    """Also where labels do not sum to 1; and one for the labels."""
    logits, labels = gt.constant(X), gt.constant(SHARES * 3)
    with gt.GradientTape() as tape:
        tape.watch([logits, labels])
        loss = gt.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    to_logits, to_labels = tape.gradient(loss, [logits, labels])
    np.testing.assert_allclose(to_logits.numpy(), 3 * (np.exp(log_softmax(X)) - SHARES))
    np.testing.assert_allclose(to_labels.numpy(), -log_softmax(X))
    check_gradients(
        lambda labels, logits: gt.nn.softmax_cross_entropy_with_logits(
            labels=labels, logits=logits
        ),
        SHARES * 3,
        X,
    )


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_an_impossible_class_that_no_label_claims_costs_nothing(dtype):
    logits = gt.constant([[0.0, -np.inf, 0.0]], "float64")
    labels = np.array([[1, 0, 0]], dtype)

    def loss(logits):
        return gt.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)

    assert loss(logits).tolist() == pytest.approx([np.log(2.0)])
    assert gt.grad(lambda x: gt.sum(loss(x)))(logits).tolist() == [[-0.5, 0.0, 0.5]]
    curvature = gt.hessian(lambda x: gt.sum(loss(x)))(logits).numpy()[0, :, 0]
    np.testing.assert_allclose(curvature, [[0.25, 0, -0.25], [0, 0, 0], [-0.25, 0, 0.25]])
    assert np.isinf(loss(gt.constant([[-np.inf, 0.0, 0.0]])).numpy()).all()


def test_cross_entropy_of_more_axes_and_of_nothing():
    logits, labels = RNG.standard_normal((2, 3, 4)), np.array([[0, 1, 2], [3, 3, 0]])
    fn = gt.nn.sparse_softmax_cross_entropy_with_logits
    want = -np.take_along_axis(log_softmax(logits), labels[..., None], -1)[..., 0]
    np.testing.assert_allclose(fn(labels=labels, logits=logits).numpy(), want)
    check_gradients(lambda x: fn(labels=labels, logits=x), logits)
    assert fn(labels=np.zeros(0, np.int64), logits=np.zeros((0, 4))).shape == (0,)
    assert fn(labels=2, logits=logits[0, 0]).shape == ()
    small = fn(labels=labels.astype("uint8"), logits=logits.astype("float32"))
    np.testing.assert_allclose(small.numpy(), want, rtol=1e-5)


def test_softmax_of_nothing():
    assert gt.nn.softmax(gt.zeros((0, 3))).shape == (0, 3)
    assert gt.nn.softmax(gt.zeros((3, 0))).shape == (3, 0)
    assert gt.nn.log_softmax(gt.zeros((3, 0))).shape == (3, 0)


def test_one_hot():
    assert gt.one_hot([0, 2], 3).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert gt.one_hot([[1], [-1], [5]], 2, "int32").tolist() == [[[0, 1]], [[0, 0]], [[0, 0]]]
    assert gt.one_hot(1, 2).dtype == "float32"


def test_clip_by_norm_leaves_short_vectors_exactly_as_they_are():
    x = gt.constant(RNG.standard_normal(50), "float32")
    assert gt.clip_by_norm(x, 100.0).tolist() == x.tolist()
    clipped = gt.clip_by_norm(x, 0.5)
    assert gt.linalg.norm(clipped).item() == pytest.approx(0.5)
    limit = gt.constant(0.5)
    with gt.GradientTape() as tape:
        tape.watch(limit)
        y = gt.clip_by_norm(x, limit)
    want = np.sum(x.numpy()) / np.linalg.norm(x.numpy())
    assert tape.gradient(y, limit).item() == pytest.approx(want, rel=1e-5)


BATCHES = [((6, 3), -1), ((2, 3, 4), 1), ((2, 3, 4), -1), ((3, 6), 0), ((2, 2, 2, 3), 3)]


@pytest.mark.parametrize(("shape", "axis"), BATCHES)
def test_batch_norm_training(shape, axis):
    x = RNG.standard_normal(shape) * 2 + 1
    gamma, beta = RNG.standard_normal((2, shape[axis]))
    over = tuple(i for i in range(len(shape)) if i != axis % len(shape))
    wide = [-1 if i not in over else 1 for i in range(len(shape))]

    def fn(x, gamma, beta):
        return ops["batch_norm_training"](x, gamma, beta, axis=axis, epsilon=1e-2)

    y, mean, variance = fn(x, gamma, beta)
    np.testing.assert_allclose(mean.numpy(), x.mean(over))
    np.testing.assert_allclose(variance.numpy(), x.var(over))
    centred = x - x.mean(over, keepdims=True)
    want = centred / np.sqrt(x.var(over, keepdims=True) + 1e-2)
    np.testing.assert_allclose(y.numpy(), want * gamma.reshape(wide) + beta.reshape(wide))
    check_gradients(fn, x, gamma, beta)
    check_gradients(lambda *xs: fn(*xs)[0], x, gamma, beta)
    check_gradients(lambda *xs: fn(*xs)[1:], x, gamma, beta)


@pytest.mark.parametrize("known", [True, False])
def test_batch_norm_training_traces_to_two_orders(known):
    spec = gt.TensorSpec([None, 3] if known else None, "float64")
    gamma, beta = gt.constant(RNG.standard_normal((2, 3))), gt.constant(np.ones(3))
    gamma = gamma[0]

    def bend(x):
        with gt.GradientTape() as outer:
            outer.watch(x)
            with gt.GradientTape() as inner:
                inner.watch(x)
                y, _, _ = ops["batch_norm_training"](x, gamma, beta, axis=-1, epsilon=1e-3)
                y = gt.sum(y * y * y)
            slope = inner.gradient(y, x)
            steepness = slope * slope
        return outer.gradient(steepness, x)

    traced = gt.function(input_signature=[spec])(bend)
    for batch in (2, 5):
        x = gt.constant(RNG.standard_normal((batch, 3)))
        np.testing.assert_allclose(traced(x).numpy(), bend(x).numpy(), rtol=1e-9)


def test_batch_norm_dtypes():
    x, gamma = gt.constant(RNG.standard_normal((4, 3)), "float32"), gt.constant(np.ones(3))
    for scale, want in ((gamma, "float64"), (gt.ones(3), "float32")):
        with gt.GradientTape() as tape:
            tape.watch([x, scale])
            y, _, _ = ops["batch_norm_training"](x, scale, scale, axis=-1, epsilon=1e-3)
        assert y.dtype == want
        assert [g.dtype for g in tape.gradient(y, [x, scale])] == [x.dtype, scale.dtype]


def test_batch_normalization_with_given_statistics():
    x, (mean, offset, scale) = RNG.standard_normal((4, 3)), RNG.standard_normal((3, 3))
    variance = np.array([0.5, 1.0, 2.0])
    y = gt.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)
    want = (x - mean) / np.sqrt(variance + 1e-3) * scale + offset
    np.testing.assert_allclose(y.numpy(), want)
    bare = gt.nn.batch_normalization(x, mean, variance)
    np.testing.assert_allclose(bare.numpy(), (want - offset) / scale)
    check_gradients(gt.nn.batch_normalization, x, mean, variance, offset, scale)


@pytest.mark.parametrize(
    ("labels", "error", "words"),
    [
        ([0, 1, 5], ValueError, "from 0 to 4, got 0 to 5"),
        ([0, -1, 2], ValueError, "got -1 to 2"),
        ([0.0, 1.0, 2.0], TypeError, "integers"),
    ],
)
def test_labels_out_of_range_are_errors(labels, error, words):
    with pytest.raises(error, match=words):
        gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=X)
    with pytest.raises(error, match=words):
        gt.nn.sparse_softmax_cross_entropy_with_logits(labels=[labels], logits=X[None])
