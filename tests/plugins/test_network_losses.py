"""More of networks: large inputs, other libraries, edges, segments, dropout."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from families.network_losses import ACTIVATIONS, IDS, SAMPLES, R, X, activation
from gradcheck import check_gradients

import gradtape as gt
from gradtape.core.extend import ops

nn = gt.nn


@pytest.mark.parametrize("name", SAMPLES)
def test_values_in_single_precision(name):
    ours, theirs, inputs = SAMPLES[name]
    y = ours(*(gt.constant(x, "float32") for x in inputs))
    np.testing.assert_allclose(y.numpy(), theirs(*inputs), rtol=1e-4, atol=1e-5)


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


def test_segment_numbers_out_of_range_are_errors():
    with pytest.raises(ValueError, match=r"segment_sum.*0 to 1, got 0 to 3"):
        nn.segment_sum(gt.ones(2), [0, 3], 2)
    with pytest.raises(TypeError, match=r"segment_sum.*float"):
        nn.segment_sum(gt.ones(2), [0.0, 1.0], 2)
