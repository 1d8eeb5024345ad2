"""Masked arrays: a tensor has no mask, so none of them becomes one without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

MASKED = np.ma.array([1.0, 2.0], mask=[False, True])

WAYS: dict[str, Callable[[], Any]] = {
    "constant": lambda: gt.constant(MASKED),
    "as_tensor": lambda: gt.as_tensor(MASKED, "float32"),
    "asarray": lambda: gt.asarray(MASKED),
    "from_dlpack": lambda: gt.from_dlpack(MASKED),
    "a variable": lambda: gt.Variable(MASKED),
    "an assignment": lambda: gt.Variable([1.0, 2.0]).assign(MASKED),
    "lists of them": lambda: gt.constant([MASKED, MASKED]),
    "lists with one": lambda: gt.constant([[0.0, 0.0], MASKED]),
    "the masked number": lambda: gt.constant([1.0, np.ma.masked]),
    "an operand": lambda: gt.ones(2) * MASKED,
    "an op": lambda: gt.sum(MASKED),
    "a NumPy function": lambda: np.add(gt.ones(2), MASKED),
    "a traced function": lambda: gt.function(lambda x: x)(MASKED),
    "a transform": lambda: gt.grad(lambda x: gt.sum(x * x))(MASKED),
    "a mask as index": lambda: gt.ones(2)[MASKED > 1.0],
    "inputs of a layer": lambda: gt.layers.Dense(1)(MASKED[None]),
    "data of fit": lambda: gt.training.fit(
        gt.layers.Dense(1), (MASKED[:, None], MASKED), loss="mse", verbose=False
    ),
    "labels of fit": lambda: gt.training.fit(
        gt.layers.Dense(1), (np.ones((2, 1)), MASKED), loss="mse", verbose=False
    ),
    "inputs of predict": lambda: gt.training.predict(gt.layers.Activation("relu"), MASKED),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_masked_array_is_refused(way: str) -> None:
    with pytest.raises((TypeError, IndexError), match=r"has no mask.*x\.filled\(value\)"):
        WAYS[way]()


def test_what_the_message_says_works() -> None:
    assert gt.constant(MASKED.filled(0.0)).tolist() == [1.0, 0.0]
    assert gt.constant(MASKED.mask).tolist() == [False, True]
