"""Ops whose formulas hold for real numbers refuse complex ones instead of being wrong."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt

Z = np.array([[0.5 + 1.0j, -2.0], [0.25, 1.0j]])
UNARY = (
    "elu gelu hard_silu log_sigmoid log_softmax logsumexp mish selu sigmoid silu softmax softplus "
    "softsign huber"
).split()


@pytest.mark.parametrize("name", UNARY)
def test_complex_numbers_are_refused_by_name_eagerly_and_in_a_trace(name: str) -> None:
    op = gt.registry().ops[name]
    with pytest.raises(TypeError, match=rf"{name}: .*real numbers.*complex128"):
        op(Z, **op.defaults)
    with pytest.raises(TypeError, match=r"real numbers|complex"):
        gt.function(lambda z: op(z, **op.defaults))(Z)


def test_losses_and_normalisation_refuse_complex_numbers() -> None:
    labels = np.array([0, 1])
    with pytest.raises(TypeError, match="real numbers"):
        gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=Z)
    with pytest.raises(TypeError, match="real numbers"):
        gt.nn.softmax_cross_entropy_with_logits(labels=Z.real, logits=Z)
    with pytest.raises(TypeError, match="real numbers"):
        gt.nn.sigmoid_cross_entropy_with_logits(labels=Z.real, logits=Z)
    with pytest.raises(TypeError, match="real numbers"):
        gt.registry().ops["batch_norm_training"](Z, np.ones(2), np.zeros(2))
