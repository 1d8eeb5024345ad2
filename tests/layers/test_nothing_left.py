"""Layers of padding only, of equal values, and of one value: finite, with finite gradients."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from layer_cases import FAMILIES, Case

import gradtape as gt
from gradtape import layers as L

#: Layers that find whole examples at once, whose names for masks differ.
BY_NAME = {"MultiHeadAttention": ("query_mask", "value_mask")}


def several(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in several(part)] if isinstance(x, (list, tuple)) else [x]


def mask_for(name: str, x: Any, all_out: bool) -> dict[str, Any]:
    masks = []
    for part in several(x):
        mask = np.ones(part.shape if name.startswith("Softmax") else part.shape[:2], bool)
        mask[slice(None) if all_out else 0] = False
        masks.append(mask)
    if name in BY_NAME:
        return dict.fromkeys(BY_NAME[name], masks[0])
    return {"mask": masks if isinstance(x, list) else masks[0]}


def takes_mask(name: str) -> bool:
    case = FAMILIES[name]
    parameters = inspect.signature(type(case.make()).__call__).parameters
    return ("mask" in parameters or name in BY_NAME) and all(
        len(shape) > 1 and shape[0] != "int" for shape in case.shapes
    )


MASKED = [name for name in FAMILIES if takes_mask(name)]
#: What inputs are replaced by.
VALUES = {
    "0": lambda x: x * 0,
    "3": lambda x: x * 0 + 3,
    "tiny": lambda x: x * np.float32(1e-30),
    "one example": lambda x: x[:1],
}


def check(layer: Any, case: Case, x: Any, **settings: Any) -> Any:
    """Return the results, which are finite, as are gradients and the layer's state."""
    given = [gt.constant(part) for part in several(x)]
    sources = [part for part in given if part.dtype.kind == "f"]
    with warnings.catch_warnings(), gt.GradientTape() as tape:
        warnings.simplefilter("ignore", UserWarning)  # BatchNorm learns nothing from one value
        tape.watch(sources)
        y = several(layer(given if case.several else given[0], **settings))
        loss = sum(gt.sum(part.astype("float32") ** 2) for part in y)
    grads = tape.gradient(loss, [*sources, *layer.trainable_variables])
    found = [gt.as_tensor(part).numpy() for part in (*y, *grads) if part is not None]
    held = [v.numpy() for v in layer.variables if v.dtype.kind == "f"]
    assert all(np.isfinite(part).all() for part in found + held)
    return y


@pytest.mark.parametrize("name", FAMILIES)
def test_values_without_variance_give_finite_gradients(name: str) -> None:
    case = FAMILIES[name]
    for value in VALUES.values():
        x = case.inputs(2)
        if several(x)[0].dtype.kind == "f":
            x = [value(part) for part in x] if case.several else value(x)
        for training in (True, False):
            check(case.make(), case, x, training=training)


@pytest.mark.parametrize("all_out", [False, True])
@pytest.mark.parametrize("name", MASKED)
def test_what_is_all_padding_gives_finite_gradients(name: str, all_out: bool) -> None:
    case = FAMILIES[name]
    x = case.inputs(2)
    if name == "GlobalAveragePooling1D":  # its steps are the second axis here
        x = np.swapaxes(x, 1, 2)
        case = case._replace(make=L.GlobalAveragePooling1D)
    for training in (True, False):
        layer = case.make()
        layer([*x] if case.several else x)  # builds it
        before = layer.get_weights() if layer.variables else []
        check(layer, case, x, training=training, **mask_for(name, x, all_out))
        if all_out and before:
            for a, b in zip(before, layer.get_weights(), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("traced", [False, True])
def test_batch_norm_leaves_out_padding_that_is_nan(traced: bool) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 2)).astype("float32")
    mask = np.array([[True, True, False], [False, False, False]])
    kept, poisoned = L.BatchNorm(), L.BatchNorm()
    kept(x, training=True, mask=mask)
    with_nan = np.where(mask[..., None], x, np.float32("nan"))
    call = lambda x: poisoned(x, training=True, mask=mask)  # noqa: E731
    y = (gt.function(call) if traced else call)(gt.constant(with_nan))
    assert np.isfinite(y.numpy()[mask]).all()
    for a, b in zip(kept.get_weights(), poisoned.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("score", [-1e12, -5e4, 1e12])
@pytest.mark.parametrize("axis", [-1, [1, 2]])
def test_softmax_leaves_out_what_is_masked_whatever_the_scores(axis: Any, score: float) -> None:
    x = np.full((1, 2, 4), score, "float32")
    mask = np.ones((1, 2, 4), bool)
    mask[..., 1] = False
    for dtype in ("float32", "mixed_float16"):
        layer = L.Softmax(axis, dtype=dtype)
        given = np.clip(x, -6e4, 6e4) if dtype == "mixed_float16" else x
        share = 1 / 3 if axis == -1 else 1 / 6
        expected = np.where(mask, share, 0)
        np.testing.assert_allclose(layer(given, mask=mask).numpy(), expected, rtol=1e-3)
        nothing = layer(given, mask=np.zeros_like(mask)).numpy()
        np.testing.assert_allclose(nothing, 1 / 4 if axis == -1 else 1 / 8, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e6, 1e15])
def test_attention_leaves_out_what_is_masked_whatever_the_scores(scale: float) -> None:
    query = np.full((1, 1, 2), -scale, "float32")
    key = np.full((1, 3, 2), scale, "float32")
    value = np.array([[[1.0], [2.0], [50.0]]], "float32")
    mask = [None, np.array([[True, True, False]])]
    with_mask = L.Attention()([query, value, key], mask=[np.ones((1, 1), bool), mask[1]])
    assert with_mask.item() == 1.5


def test_vectors_of_large_numbers_are_normalised() -> None:
    x = np.array([[3e25, 4e25]], "float32")
    np.testing.assert_allclose(L.UnitNormalization()(x).numpy(), [[0.6, 0.8]], rtol=1e-6)
    assert L.Dot(1, normalize=True)([x, x]).item() == pytest.approx(1.0, rel=1e-6)


def test_vectors_of_integers_are_normalised() -> None:
    x = np.array([[3, 4]])
    np.testing.assert_allclose(L.UnitNormalization()(x).numpy(), [[0.6, 0.8]], rtol=1e-6)
    assert L.Dot(1, normalize=True)([x, x]).item() == pytest.approx(1.0, rel=1e-6)
