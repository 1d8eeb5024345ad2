"""Every layer has a policy: it computes in its dtype, and comes back from a file with it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layer_cases import FAMILIES

import gradtape as gt
from gradtape import layers as L

#: By policy: how far what is computed may be from the same in float32.
NEAR = {"mixed_float16": 2e-2, "mixed_bfloat16": 1e-1}
#: These call layers, which have policies.
AROUND = (L.RNN, L.StackedRNNCells, L.TimeDistributed, L.Bidirectional, L.Sequential, gt.Model)
KINDS = sorted(name for name in L.__all__ if isinstance(getattr(L, name), type))


def tensors(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in tensors(part)] if isinstance(x, (list, tuple)) else [x]


def host(x: Any) -> Any:
    return gt.as_tensor(x).numpy().astype("float32")


@pytest.mark.parametrize("name", KINDS)
def test_every_layer_takes_a_dtype_but_those_that_only_call_layers(name: str) -> None:
    kind = getattr(L, name)
    if kind is not L.Layer:
        only_calls = issubclass(kind, AROUND) and not issubclass(kind, (L.LSTM, L.GRU, L.SimpleRNN))
        assert ("dtype" in inspect.signature(kind).parameters) is not only_calls


@pytest.mark.parametrize("policy", NEAR)
@pytest.mark.parametrize("name", FAMILIES)
def test_every_layer_computes_by_its_policy_and_keeps_float32(
    name: str, policy: str, tmp_path: Path
) -> None:
    case = FAMILIES[name]
    inputs = case.inputs(3)
    gt.random.set_seed(0)
    plain = case.make()
    with gt.mixed_precision.policy(policy):
        gt.random.set_seed(0)
        layer = case.make()
    want = plain(inputs)
    layer(inputs)
    own = {v.dtype.name for v in layer.variables if v.dtype.kind == "f"}
    assert own <= {"float32"}
    if layer.variables:
        layer.set_weights(plain.get_weights())
    with gt.GradientTape() as tape:
        got = layer(inputs)
        loss = sum(gt.mean(y.astype("float32") ** 2) for y in tensors(got))
    floating = [y for y in tensors(got) if y.dtype.kind == "f"]
    expected = "float16" if policy == "mixed_float16" else "float32"
    assert {y.dtype.name for y in floating} == {expected}
    for a, b in zip(tensors(got), tensors(want), strict=True):
        assert a.shape == b.shape
        scale = max(1.0, float(np.abs(host(b)).max()))
        assert np.abs(host(a) - host(b)).max() <= NEAR[policy] * scale
    for g in tape.gradient(loss, list(layer.trainable_variables)):
        assert g is None or g.dtype.name == "float32"
    traced = gt.function(lambda *given: layer(list(given) if case.several else given[0]))
    again = traced(*(inputs if case.several else [inputs]))
    for a, b in zip(tensors(again), tensors(got), strict=True):
        np.testing.assert_allclose(host(a), host(b), rtol=NEAR[policy], atol=NEAR[policy])
    gt.save(layer, tmp_path / "layer.h5")
    loaded = gt.load(tmp_path / "layer.h5")
    for a, b in zip(tensors(loaded(inputs)), tensors(got), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(host(a), host(b))


@pytest.mark.parametrize("name", FAMILIES)
def test_files_tell_of_a_policy_only_where_there_is_one(name: str) -> None:
    layer = FAMILIES[name].make()
    if not layer.variables and type(layer).build is L.Layer.build:
        assert "dtype" not in layer.get_config()
    assert layer.get_config().get("dtype") is None


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("unroll", [False, True])
def test_recurrent_layers_carry_states_in_the_dtype_to_compute_in(
    unroll: bool, masked: bool, stateful: bool
) -> None:
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    mask = np.array([[True] * 5, [True] * 3 + [False] * 2]) if masked else None
    cells = [L.GRUCell(4, dtype="mixed_float16"), L.LSTMCell(4, dropout=0.2, dtype="mixed_float16")]
    settings = {"return_sequences": True, "unroll": unroll, "stateful": stateful}
    for layer in (
        L.LSTM(4, dropout=0.2, recurrent_dropout=0.2, dtype="mixed_float16", **settings),
        L.RNN(cells, **settings),
        L.RNN([cells[0], L.SimpleRNNCell(4)], **settings),
    ):
        y = layer(x, mask=mask, training=True)
        traced = gt.function(lambda x, layer=layer: layer(x, mask=mask))
        assert traced(x).dtype == y.dtype
        assert layer(x, initial_state=None, mask=mask).dtype == y.dtype
        assert {s.dtype.name for s in layer.states or ()} <= {"float32"}


def test_integers_become_what_is_computed_in() -> None:
    images = np.arange(16, dtype="uint8").reshape(1, 4, 4, 1)
    with gt.mixed_precision.policy("mixed_float16"):
        layers = [L.Rescaling(1 / 255), L.AveragePooling2D(), L.GlobalAveragePooling2D()]
        layers += [L.Conv2D(2, 2)]
    assert {layer(images).dtype.name for layer in layers} == {"float16"}


def test_normalisation_of_large_numbers_does_not_overflow() -> None:
    x = np.array([[300.0, 400.0, 500.0]], "float32")
    for make in (L.LayerNormalization, L.RMSNormalization, L.UnitNormalization):
        layer = make(dtype="mixed_float16")
        np.testing.assert_allclose(host(layer(x)), host(make()(x)), rtol=2e-3)
