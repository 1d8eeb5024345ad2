"""Masks of padding go from the embedding to the layers that leave it out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers as L

IDS = np.array([[1, 2, 3, 0, 0], [4, 1, 0, 0, 0]], "int32")
LONGER = np.concatenate([IDS, np.zeros((2, 3), "int32")], axis=1)


def functional(*parts: Any) -> Any:
    x = start = gt.Input((None,), dtype="int32")
    for part in parts:
        x = part(x)
    return gt.Model(start, x)


@pytest.fixture(params=[lambda *parts: L.Sequential(parts), functional], ids=["row", "graph"])
def model(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize(
    "rest",
    [
        lambda: [L.LSTM(3)],
        lambda: [L.GRU(3, return_sequences=True), L.Dropout(0.5), L.SimpleRNN(2)],
        lambda: [L.Bidirectional(L.LSTM(3))],
        lambda: [L.TimeDistributed(L.Dense(3)), L.LayerNormalization(), L.LSTM(2), L.Dense(2)],
        lambda: [L.Dense(3), L.Activation("relu"), L.Softmax(), L.RNN([L.GRUCell(2)])],
    ],
)
def test_padding_makes_no_difference(model: Any, rest: Any, tmp_path: Path) -> None:
    net = model(L.Embedding(5, 4, mask_zero=True), *rest())
    with warnings.catch_warnings(action="error"):
        y = net(IDS).numpy()
        np.testing.assert_allclose(net(LONGER).numpy(), y, rtol=1e-5, atol=1e-6)
    traced = gt.function(lambda x: net(x), input_signature=[gt.TensorSpec([None, None], "int32")])
    np.testing.assert_allclose(traced(LONGER).numpy(), y, rtol=1e-5, atol=1e-6)
    gt.save(net, tmp_path / "a.h5")
    np.testing.assert_allclose(gt.load(tmp_path / "a.h5")(IDS).numpy(), y, rtol=1e-5, atol=1e-6)
    plain = model(L.Embedding(5, 4), *rest())
    plain(IDS)
    plain.set_weights(net.get_weights())
    assert np.abs(plain(IDS).numpy() - y).max() > 1e-4


def test_a_layer_that_takes_no_mask_says_so(model: Any) -> None:
    net = model(L.Embedding(5, 4, mask_zero=True), L.Conv1D(3, 2), L.LSTM(2))
    with pytest.warns(UserWarning, match=r"layer 'conv1d' \(Conv1D\) takes no mask, so padding"):
        net(IDS)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_a_mean_over_steps_leaves_padding_out(first: bool, keepdims: bool) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype("float32")
    mask = np.array([[1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], bool)
    layer = L.GlobalAveragePooling1D("channels_first" if first else None, keepdims)
    y = layer(x.swapaxes(1, 2) if first else x, mask=mask).numpy()
    assert y.shape == ((2, 3) if not keepdims else (2, 3, 1) if first else (2, 1, 3))
    np.testing.assert_allclose(y.reshape(2, 3)[0], x[0, :2].mean(0), rtol=1e-6)
    assert not y[1].any()


def test_padding_is_zero_in_sequences_of_both_directions() -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype("float32")
    mask = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], bool)
    layer = L.Bidirectional(L.LSTM(4, return_sequences=True))
    y = layer(x, mask=mask).numpy()
    assert not y[~mask].any()
    np.testing.assert_allclose(y[:1, :3], layer(x[:1, :3]).numpy(), rtol=1e-5, atol=1e-6)


def test_attention_takes_the_masks_of_its_inputs() -> None:
    ids = gt.Input((None,), dtype="int32")
    x = L.Embedding(5, 4, mask_zero=True)(ids)
    net = gt.Model(ids, L.Attention()([x, x]))
    embedding = net.layers[0]
    y = net(IDS).numpy()
    x = embedding(IDS)
    mask = embedding.compute_mask(IDS)
    np.testing.assert_allclose(y, L.Attention()([x, x], mask=[mask, mask]).numpy(), rtol=1e-6)
    np.testing.assert_allclose(net(LONGER).numpy()[:, :5], y, rtol=1e-5, atol=1e-6)


def test_sums_are_padding_where_all_their_terms_are() -> None:
    one, two = gt.Input((None,), dtype="int32"), gt.Input((None,), dtype="int32")
    embed = L.Embedding(5, 4, mask_zero=True)
    sums = L.Add()([embed(one), embed(two)])
    net = gt.Model([one, two], L.LSTM(3)(sums))
    y = net([IDS, IDS[::-1]]).numpy()
    np.testing.assert_allclose(net([LONGER, LONGER[::-1]]).numpy(), y, rtol=1e-5, atol=1e-6)


def test_a_mask_that_is_given_counts() -> None:
    ids, own = gt.Input((5,), dtype="int32"), gt.Input((5,), dtype="bool")
    x = L.Embedding(5, 4, mask_zero=True)(ids)
    net = gt.Model([ids, own], L.LSTM(3)(x, mask=own))
    everything = np.ones((2, 5), bool)
    unmasked = gt.Model(ids, L.LSTM(3)(x)).layers[0]
    assert unmasked is net.layers[0]
    given = net([IDS, everything]).numpy()
    assert np.abs(given - net([IDS, IDS != 0]).numpy()).max() > 1e-4
