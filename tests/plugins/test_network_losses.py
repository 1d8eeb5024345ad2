"""More of networks: activations, losses, segments, normalisation, dropout."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from gradcheck import check_gradients

import gradtape as gt
from gradtape.core.extend import ops

RNG = np.random.default_rng(0)
nn = gt.nn


def R(*shape):
    return RNG.standard_normal(shape)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


X = np.array([[-4.5, -2.2, -0.7, 0.3], [0.6, 1.8, 2.6, 3.9]])
SIGNS = np.array([[1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0]])
P, Q = softmax(R(3, 4)), softmax(R(3, 4))
SHARES = sigmoid(R(2, 4))
IDS = np.array([2, 0, 2, 3])

ACTIVATIONS = {
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "log_sigmoid": lambda x: np.log(sigmoid(x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def activation(name):
    return (lambda x: nn.gelu(x, approximate=True)) if name == "gelu_tanh" else getattr(nn, name)


def normalised(x, axis):
    centred = x - x.mean(axis, keepdims=True)
    return centred / np.sqrt(x.var(axis, keepdims=True) + 1e-3)


# name: (ours, NumPy's, inputs)
SAMPLES = {
    **{name: (activation(name), theirs, [X]) for name, theirs in ACTIVATIONS.items()},
    "sigmoid_cross_entropy": (
        lambda z, x: nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
        lambda z, x: -z * np.log(sigmoid(x)) - (1 - z) * np.log(1 - sigmoid(x)),
        [SHARES, X],
    ),
    "binary_cross_entropy": (
        lambda z, p: nn.binary_cross_entropy(labels=z, probabilities=p),
        lambda z, p: -z * np.log(p) - (1 - z) * np.log(1 - p),
        [SHARES, SHARES[::-1]],
    ),
    "categorical_cross_entropy": (
        lambda z, p: nn.categorical_cross_entropy(labels=z, probabilities=p),
        lambda z, p: -np.sum(z * np.log(p), -1),
        [P, Q],
    ),
    "kl_divergence": (
        lambda z, p: nn.kl_divergence(labels=z, probabilities=p, axis=0),
        lambda z, p: np.sum(z * np.log(z / p), 0),
        [P, Q],
    ),
    "huber": (
        lambda z, p: nn.huber(labels=z, predictions=p, delta=1.5),
        lambda z, p: np.where(np.abs(z - p) < 1.5, (z - p) ** 2 / 2, 1.5 * np.abs(z - p) - 1.125),
        [SIGNS, X],
    ),
    "hinge": (
        lambda z, p: nn.hinge(labels=z, predictions=p),
        lambda z, p: np.maximum(1 - z * p, 0),
        [SIGNS, X],
    ),
    "cosine_similarity": (
        nn.cosine_similarity,
        lambda x, y: (x * y).sum(-1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1),
        [P, Q[0]],
    ),
    "embedding_lookup": (
        lambda w: nn.embedding_lookup(w, IDS[None]),
        lambda w: w[IDS[None]],
        [R(4, 2)],
    ),
    "segment_sum": (
        lambda x: nn.segment_sum(x, IDS, 5),
        lambda x: np.stack([x[i == IDS].sum(0) for i in range(5)]),
        [R(4, 2)],
    ),
    "layer_normalization": (
        nn.layer_normalization,
        lambda x, s, o: normalised(x, -1) * s + o,
        [R(2, 3, 4), R(4), R(4)],
    ),
    "layer_normalization over two": (
        lambda x: nn.layer_normalization(x, axis=(0, 2)),
        lambda x: normalised(x, (0, 2)),
        [R(2, 3, 2)],
    ),
    "group_normalization": (
        lambda x, s, o: nn.group_normalization(x, 2, s, o),
        lambda x, s, o: normalised(x.reshape(2, 3, 2, 2), (1, 3)).reshape(2, 3, 4) * s + o,
        [R(2, 3, 4), R(4), R(4)],
    ),
    "instance normalisation": (
        lambda x: nn.group_normalization(x, 3),
        lambda x: normalised(x, (1, 2)),
        [R(2, 2, 2, 3)],
    ),
}


@pytest.fixture(params=SAMPLES)
def sample(request):
    return SAMPLES[request.param]


def test_values_are_those_of_the_definition(sample):
    ours, theirs, inputs = sample
    result, want = ours(*map(gt.constant, inputs)), theirs(*inputs)
    assert result.shape == want.shape
    np.testing.assert_allclose(result.numpy(), want, rtol=1e-12, atol=1e-14)


def test_gradients_of_two_orders(sample):
    ours, _, inputs = sample
    check_gradients(ours, *inputs)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_dtypes_stay(sample, dtype):
    ours, theirs, inputs = sample
    xs = [gt.constant(x.astype(dtype)) for x in inputs]
    with gt.GradientTape() as tape:
        tape.watch(xs)
        y = ours(*xs)
    assert y.dtype == dtype
    assert all(g.dtype == dtype for g in tape.gradient(y, xs))
    if dtype == "float32":
        np.testing.assert_allclose(y.numpy(), theirs(*inputs), rtol=1e-4, atol=1e-5)


def test_one_trace_with_unknown_sizes_gives_values_and_gradients(sample):
    ours, _, inputs = sample
    xs = [gt.constant(x) for x in inputs]

    def run(*xs):
        with gt.GradientTape() as tape:
            tape.watch(xs)
            y = ours(*xs)
        return [y, *tape.gradient(y, list(xs))]

    want = run(*xs)
    specs = [gt.TensorSpec([None] * x.ndim, x.dtype) for x in xs]
    for traced in (gt.function(run), gt.function(input_signature=specs)(run)):
        for mine, theirs in zip(traced(*xs), want, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-14)
    output = gt.function(ours).get_concrete_function(*xs).graph.outputs[0]
    assert (output.shape, output.dtype) == (want[0].shape, want[0].dtype)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_finite_for_large_inputs_at_two_orders(name):
    x = gt.constant(np.array([-1e4, -50.0, 0.0, 50.0, 1e4]))
    with np.errstate(over="raise", invalid="raise"):
        with gt.GradientTape() as outer:
            outer.watch(x)
            with gt.GradientTape() as inner:
                inner.watch(x)
                y = activation(name)(x)
            slope = inner.gradient(y, x)
        bend = outer.gradient(slope, x, unconnected_gradients="zero")
    for value in (y, slope, bend):
        assert np.isfinite(value.numpy()).all()


def test_exact_gelu():
    scipy = pytest.importorskip("scipy.special")
    np.testing.assert_allclose(nn.gelu(gt.constant(X)).numpy(), X * scipy.ndtr(X), rtol=1e-12)
    check_gradients(nn.gelu, X)
    near = nn.gelu(gt.constant(X), approximate=True)
    np.testing.assert_allclose(near.numpy(), X * scipy.ndtr(X), atol=5e-4)
    assert gt.layers.Dense(2, activation="gelu")(gt.ones((1, 2))).shape == (1, 2)


def test_torch_agrees():
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    pairs = {
        "selu": functional.selu, "mish": functional.mish, "softsign": functional.softsign,
        "hard_silu": functional.hardswish, "hard_tanh": functional.hardtanh,
        "hard_sigmoid": functional.hardsigmoid, "log_sigmoid": functional.logsigmoid,
    }  # fmt: skip
    at = np.array([-3.0, -1.0, 0.0, 1.0, 3.0, 0.4])
    for name, theirs in pairs.items():
        t, x = torch.tensor(at, requires_grad=True), gt.constant(at)
        y = theirs(t)
        y.sum().backward()
        with gt.GradientTape() as tape:
            tape.watch(x)
            mine = getattr(nn, name)(x)
        np.testing.assert_allclose(mine.numpy(), y.detach().numpy(), atol=1e-15)
        if name not in ("hard_silu", "selu"):  # which differ at a kink
            np.testing.assert_allclose(tape.gradient(mine, x).numpy(), t.grad.numpy(), atol=1e-15)


def test_cross_entropies_at_the_edges():
    extreme = nn.sigmoid_cross_entropy_with_logits(labels=[0.0, 1.0], logits=[1e4, 1e4])
    assert extreme.tolist() == [1e4, 0.0]
    certain = nn.binary_cross_entropy(labels=[1.0, 1.0], probabilities=[0.0, 1.0])
    assert certain.numpy() == pytest.approx([16.118, 0.0], abs=1e-3)
    nothing = nn.kl_divergence(labels=[0.0, 1.0], probabilities=[0.5, 0.5])
    assert nothing.item() == pytest.approx(np.log(2.0))
    assert nn.cosine_similarity(gt.zeros(3), gt.ones(3)).item() == 0.0


def test_segments():
    assert nn.segment_sum([1.0, 2.0, 4.0], [1, 0, 1]).tolist() == [2.0, 5.0]
    assert nn.segment_sum(gt.zeros((0, 2)), gt.zeros(0, "int64"), 3).shape == (3, 2)
    assert nn.segment_sum(gt.zeros((0, 2)), gt.zeros(0, "int64")).shape == (0, 2)
    kernel = gt.registry().ops["segment_sum"].kernel
    x = R(4, 2)
    mine = kernel(strict, strict.asarray(x), strict.asarray(IDS), num=5)
    np.testing.assert_allclose(np.asarray(mine), ops["segment_sum"].raw(x, IDS, num=5))


@pytest.mark.parametrize("name", ["selu", "softsign", "log_sigmoid", "mish", "hard_sigmoid",
                                  "hard_tanh", "hard_silu"])  # fmt: skip
def test_kernels_need_no_more_than_the_array_api(name):
    mine = gt.registry().ops[name].kernel(strict, strict.asarray(X))
    np.testing.assert_allclose(np.asarray(mine), ops[name].raw(X))


def test_dropout():
    x = gt.ones((200, 50))
    generator = gt.random.Generator(3)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = nn.dropout(x, 0.2, generator)
    assert sorted(set(y.numpy().ravel().tolist())) == [0.0, 1.25]
    assert y.numpy().mean() == pytest.approx(1.0, abs=0.02)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), y.numpy())
    assert nn.dropout(x, 0.2, gt.random.Generator(3)).tolist() == y.tolist()
    assert nn.dropout(x, 0.5, training=False) is x
    assert nn.dropout(x, 0.0) is x
    assert (nn.dropout(x, 0.5).numpy() == 0).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda x: nn.sigmoid_cross_entropy_with_logits(labels=x, logits=x[:, :1]),
            ValueError,
            r"sigmoid_cross_entropy.*\(2, 4\) and \(2, 1\)",
        ),
        (lambda x: nn.huber(labels=x, predictions=x[0]), ValueError, "huber.*one shape"),
        (lambda x: nn.huber(labels=x, predictions=x, delta=0), ValueError, "huber.*delta"),
        (lambda x: nn.hinge(labels=x, predictions=x[0]), ValueError, "hinge.*one shape"),
        (
            lambda x: nn.kl_divergence(labels=x * x, probabilities=x * x, axis=2),
            ValueError,
            "kl_divergence.*axis 2",
        ),
        (lambda x: nn.embedding_lookup(x, [0.5]), TypeError, "embedding_lookup.*integers"),
        (lambda x: nn.segment_sum(x, [0], 2), ValueError, r"segment_sum.*\(1,\) and \(2, 4\)"),
        (lambda x: nn.group_normalization(x, 3), ValueError, "group_normalization.*4 channels"),
        (lambda x: nn.group_normalization(x, 0), ValueError, "group_normalization.*one group"),
        (lambda x: nn.dropout(x, 1.0), ValueError, "dropout.*rate.*1.0"),
    ],
)
def test_errors_name_the_op_eagerly_and_traced(call, error, words):
    for run in (call, gt.function(call)):
        with pytest.raises(error, match=f"(?s){words}"):
            run(gt.constant(X))


def test_segment_numbers_out_of_range_are_errors():
    with pytest.raises(ValueError, match=r"segment_sum.*0 to 1, got 0 to 3"):
        nn.segment_sum(gt.ones(2), [0, 3], 2)
    with pytest.raises(TypeError, match=r"segment_sum.*float"):
        nn.segment_sum(gt.ones(2), [0.0, 1.0], 2)
