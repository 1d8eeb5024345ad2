"""Losses over sampled classes: their formulas, written with NumPy, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_gradients

RNG = np.random.default_rng(0)
WEIGHTS, BIASES = RNG.standard_normal((7, 3)), RNG.standard_normal(7)
INPUTS, LABELS = RNG.standard_normal((4, 3)), np.array([[1, 2], [0, 6], [3, 3], [5, 1]])
#: The classes drawn, and the expected counts of the labels and of them; 1 and 3 are labels too.
SAMPLED = np.array([1, 4, 3]), RNG.uniform(0.2, 2.0, (4, 2)), RNG.uniform(0.2, 2.0, 3)


def by_hand(name: str, hits: bool) -> np.ndarray:
    classes, of_labels, of_classes = SAMPLED
    losses = []
    for x, labels, counts in zip(INPUTS, LABELS, of_labels, strict=True):
        true = WEIGHTS[labels] @ x + BIASES[labels] - np.log(counts)
        others = WEIGHTS[classes] @ x + BIASES[classes] - np.log(of_classes)
        if hits:
            others = others[~np.isin(classes, labels)]
        if name == "nce_loss":
            logits, given = np.append(true, others), np.append([0.5, 0.5], np.zeros(len(others)))
            losses.append(np.sum(np.logaddexp(0.0, logits) - given * logits))
        else:
            losses.append(np.mean(np.logaddexp.reduce(np.append(true, others)) - true))
    return np.array(losses)


@pytest.mark.parametrize("hits", [False, True])
@pytest.mark.parametrize("name", ["nce_loss", "sampled_softmax_loss"])
def test_a_sampled_loss_and_its_gradients(name: str, hits: bool) -> None:
    def loss(weights: Any, biases: Any, inputs: Any) -> gt.Tensor:
        return getattr(gt.nn, name)(
            *(weights, biases, LABELS, inputs, 3, 7),
            sampled_values=SAMPLED,
            remove_accidental_hits=hits,
        )

    np.testing.assert_allclose(loss(WEIGHTS, BIASES, INPUTS), by_hand(name, hits), rtol=1e-12)
    check_gradients(loss, WEIGHTS, BIASES, INPUTS)


def test_candidates_are_different_classes_and_frequent_ones_come_more_often() -> None:
    gt.random.set_seed(0)
    counts = np.zeros(50)
    for _ in range(200):
        classes, expected = gt.nn.log_uniform_candidates(5, 50)
        assert len(set(classes.tolist())) == 5
        counts[classes.numpy()] += 1
    assert counts[0] > counts[10] > 0
    np.testing.assert_allclose(counts[:3] / 200, expected[:3], atol=0.2)
