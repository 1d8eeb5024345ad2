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
        lambda: [L.LSTM(3, return_sequences=True, go_backwards=True), L.GRU(2)],
        lambda: [
            L.Bidirectional(L.GRU(3, return_sequences=True, go_backwards=True)),
            L.SimpleRNN(2),
        ],
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


class Keeps(L.Layer):
    supports_masking = True

    def call(self, x: Any) -> Any:
        return x * 2.0


class Marks(L.Layer):
    makes_mask = True

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        return gt.not_equal(x[..., 0], 0.0)

    def call(self, x: Any) -> Any:
        return x


class Adds(L.Layer):
    def call(self, x: Any, mask: Any = None) -> Any:
        return gt.sum(x if mask is None else gt.where(mask[..., None], x, 0.0), axis=1)


def embed() -> Any:
    return L.Embedding(5, 4, mask_zero=True)


def by_keys() -> Any:
    ids = gt.Input((None,), dtype="int32")
    x = embed()(ids)
    y = L.MultiHeadAttention(2, 3)(x, x)
    return gt.Model(ids, L.GlobalAveragePooling1D()(gt.tanh(x + y) * 2.0))


#: Models in which masks go through other models, layers of one's own, attention and ops.
LEADING = {
    "a row in a row": lambda: L.Sequential([L.Sequential([embed(), L.Dense(3)]), L.LSTM(2)]),
    "to a row": lambda: L.Sequential([embed(), L.Sequential([L.Dense(3), L.LSTM(2)])]),
    "a row in a graph": lambda: functional(L.Sequential([embed(), L.Dense(3)]), L.LSTM(2)),
    "a graph in a row": lambda: L.Sequential([functional(embed(), L.Dense(3)), L.LSTM(2)]),
    "an op": lambda: functional(embed(), gt.tanh, lambda x: x * x, L.LSTM(2)),
    "own, kept": lambda: L.Sequential([embed(), Keeps(), L.GRU(2)]),
    "own, taken": lambda: L.Sequential([embed(), Adds()]),
    "own, made": lambda: L.Sequential([L.Embedding(5, 4), L.Lambda(masked), Marks(), L.GRU(2)]),
    "Masking": lambda: L.Sequential([embed(), L.Lambda(masked), L.Masking(), L.SimpleRNN(2)]),
    "Lambda": lambda: L.Sequential([embed(), L.Lambda(gt.sin, mask=lambda x, m: m), L.LSTM(2)]),
    "Lambda, taken": lambda: L.Sequential(
        [embed(), L.Lambda(lambda x, mask: gt.sum(gt.where(mask[..., None], x, 0.0), axis=1))]
    ),
    "attention in a row": lambda: L.Sequential(
        [embed(), L.MultiHeadAttention(2, 3), L.GlobalAveragePooling1D()]
    ),
    "attention": by_keys,
    "both ways": lambda: L.Sequential([embed(), Keeps(), L.Bidirectional(L.LSTM(2))]),
}


def masked(x: Any, mask: Any = None) -> Any:
    seen = gt.not_equal(gt.abs(x[..., :1]), 0.0) if mask is None else mask[..., None]
    return gt.where(seen, x, 0.0)


@pytest.mark.parametrize("name", LEADING)
def test_masks_go_everywhere_and_into_files(name: str, tmp_path: Path) -> None:
    gt.random.set_seed(0)
    net = LEADING[name]()
    if name == "own, made":  # padding is a row of zeros
        net(IDS)
        net.layers[0].embeddings.assign(
            net.layers[0].embeddings.numpy() * (np.arange(5) > 0)[:, None]
        )
    with warnings.catch_warnings(action="error"):
        y = net(IDS).numpy()
        np.testing.assert_allclose(net(LONGER).numpy(), y, rtol=1e-5, atol=1e-6)
        gt.save(net, tmp_path / "a.h5")
        again = gt.load(tmp_path / "a.h5")
        np.testing.assert_allclose(again(LONGER).numpy(), y, rtol=1e-5, atol=1e-6)
    slopes = []
    for model in (net, again):
        with gt.GradientTape() as tape:
            loss = gt.sum(model(LONGER) ** 2)
        slopes.append(tape.gradient(loss, list(model.trainable_variables)))
    for one, two in zip(*slopes, strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-4, atol=1e-6)


def test_each_step_has_its_own_mask() -> None:
    ids = np.array([[[1, 2, 0], [3, 0, 0], [0, 0, 0]]] * 2, "int32")
    net = L.Sequential([embed(), L.TimeDistributed(L.LSTM(3)), L.GRU(2)])
    longer = np.pad(ids, ((0, 0), (0, 2), (0, 3)))
    np.testing.assert_allclose(net(longer).numpy(), net(ids).numpy(), rtol=1e-5, atol=1e-6)


def test_the_mask_of_what_a_model_gives_can_be_had() -> None:
    for net in (L.Sequential([embed(), L.Dense(3)]), functional(embed(), L.Dense(3))):
        assert net.compute_mask(IDS).tolist() == (IDS != 0).tolist()
    assert L.Sequential([embed(), L.LSTM(3)]).compute_mask(IDS) is None


def test_an_op_that_mixes_steps_says_that_it_ends_a_mask() -> None:
    net = functional(embed(), lambda x: gt.cumsum(x, axis=1), L.LSTM(2))
    with pytest.warns(UserWarning, match=r"'cumsum' .*takes no mask, so padding"):
        net(IDS)


@pytest.mark.parametrize("masked_too", [False, True])
@pytest.mark.parametrize("axis", [1, -2])
def test_sequences_joined_along_steps_join_their_masks(axis: int, masked_too: bool) -> None:
    one, two = gt.Input((None,), dtype="int32"), gt.Input((None,), dtype="int32")
    parts = [embed()(one), L.Embedding(5, 4, mask_zero=masked_too)(two)]
    joined = gt.Model([one, two], L.Concatenate(axis=axis)(parts))
    net = gt.Model([one, two], L.LSTM(3)(joined.output))
    other = np.array([[2, 1, 0, 4], [3, 0, 0, 0]], "int32")
    seen = np.concatenate([IDS != 0, (other != 0) | (not masked_too)], axis=1)
    assert joined.compute_mask([IDS, other]).tolist() == seen.tolist()
    expected = net.layers[-1](joined([IDS, other]).numpy(), mask=seen).numpy()
    y = net([IDS, other]).numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-5)
    np.testing.assert_allclose(net([LONGER, other]).numpy(), y, rtol=1e-5, atol=1e-6)
    traced = gt.function(lambda a, b: net([a, b]))
    np.testing.assert_allclose(traced(LONGER, other).numpy(), y, rtol=1e-5, atol=1e-6)


def test_nan_may_be_padding(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 2)).astype("float32")
    net = L.Sequential([L.Masking(float("nan")), L.LSTM(3)])
    y = net(x).numpy()
    longer = np.pad(x, ((0, 0), (0, 2), (0, 0)), constant_values=np.nan)
    np.testing.assert_allclose(net(longer).numpy(), y, rtol=1e-5)
    gt.save(net, tmp_path / "a.h5")
    np.testing.assert_allclose(gt.load(tmp_path / "a.h5")(longer).numpy(), y, rtol=1e-5)


@pytest.mark.parametrize(
    "layer",
    [
        lambda: L.GroupNormalization(2),
        lambda: L.LayerNormalization([1, 2]),
        lambda: L.RMSNormalization(1),
        lambda: L.UnitNormalization(-2),
        lambda: L.Softmax(1),
    ],
)
def test_a_layer_that_computes_along_steps_says_that_padding_counts(layer: Any) -> None:
    net = L.Sequential([embed(), layer(), L.Dense(2)])
    with pytest.warns(UserWarning, match="computes along the steps, and padding counts"):
        net(IDS)
    with warnings.catch_warnings(action="error"):
        assert net.layers[1](net.layers[0](IDS)).shape == (2, 5, 4)
    with pytest.warns(UserWarning, match="computes along the steps"):
        assert net.compute_mask(IDS).tolist() == (IDS != 0).tolist()


def test_products_along_axes_have_no_mask() -> None:
    ids = gt.Input((5,), dtype="int32")
    x = embed()(ids)
    net = gt.Model(ids, L.Dot(2)([x, x]))
    with pytest.warns(UserWarning, match=r"\(Dot\) takes no mask, so padding"):
        assert net.compute_mask(IDS) is None
