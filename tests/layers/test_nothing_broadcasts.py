"""Sizes that differ from those of the weights are refused, one above all: it would broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers as L


def adapted() -> Any:
    layer = L.Normalization()
    layer.adapt(np.random.default_rng(0).standard_normal((5, 4)))
    return layer


def of(*shape: int) -> Any:
    return np.ones(shape, "float32")


@pytest.mark.parametrize(
    ("layer", "right", "wrong", "said"),
    [
        (L.LayerNormalization(), (2, 4), (2, 1), "of size 4 on axis -1, got .* shape .2, 1."),
        (L.LayerNormalization(axis=[1, 2]), (2, 3, 4), (2, 1, 4), "of size 3 on axis 1, 4 on axis"),
        (L.RMSNormalization(), (2, 4), (2, 1), "of size 4 on axis -1"),
        (L.GroupNormalization(2), (2, 4), (2, 1), "of size 4 on axis -1"),
        (adapted(), (2, 4), (2, 1), "of size 4 on axis -1"),
        (L.PReLU(), (2, 4), (2, 1), "of size 4 on axis 1"),
        (L.PReLU(), (2, 4), (2, 3, 4), "1 axes besides the batch"),
        (L.EinsumDense("ab,bc->ac", 3), (2, 4), (2, 1), "of size 4 on axis -1"),
        (L.EinsumDense("ab,bc->ac", 3), (2, 4), (2, 3, 4), "2 axes for 'ab,bc->ac'"),
        (L.Rescaling([1.0, 2.0, 3.0, 4.0]), (2, 4), (2, 1), "of size 4 on axis -1"),
        (L.MultiHeadAttention(2, 3), (2, 3, 4), (2, 3, 1), "of size 4 on axis -1"),
        (L.MultiHeadAttention(2, 3), (2, 3, 4), (2, 4), "a query of shape .batch, steps, size."),
        (L.LSTM(3, stateful=True), (4, 5, 2), (1, 5, 2), "of size 4 on axis 0"),
    ],
)  # fmt: skip
def test_another_size_is_refused_in_words(layer: Any, right: Any, wrong: Any, said: str) -> None:
    layer(of(*right))
    with pytest.raises(ValueError, match=rf"layer '\w+' \(\w+\): expected.* {said}"):
        layer(of(*wrong))
    traced = gt.function(lambda x: layer(x), input_signature=[gt.TensorSpec([None] * len(wrong))])
    with pytest.raises(ValueError, match=r"expected|cannot reshape"):
        traced(of(*wrong))


@pytest.mark.parametrize("shape", [(4, 5), (6,), (3, 6)])
def test_a_mask_of_another_shape_is_refused(shape: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a mask of shape \(batch, steps\), got"):
        L.GRU(3)(of(4, 6, 3), mask=np.ones(shape))


@pytest.mark.parametrize("shape", [(1, 3), (3,), (4, 2)])
def test_a_state_of_another_shape_is_refused(shape: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a state of shape \(4, 3\), got"):
        L.GRU(3)(of(4, 6, 2), initial_state=of(*shape))


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (L.Conv2D(2, (2, 5)), (1, 3, 4, 1)),
        (L.Conv1D(2, 3, dilation_rate=2), (1, 4, 1)),
        (L.Conv2D(2, 5, data_format="channels_first"), (1, 7, 6, 4)),
        (L.SeparableConv1D(2, 5), (1, 4, 1)),
        (L.DepthwiseConv2D(5), (1, 4, 4, 1)),
        (L.MaxPooling2D(5), (1, 4, 9, 1)),
        (L.AveragePooling1D(5), (1, 4, 1)),
    ],
)
def test_windows_larger_than_the_image_are_refused(layer: Any, shape: Any) -> None:
    with pytest.raises(ValueError, match=rf"layer '{layer.name}' .* do not fit into images of"):
        layer(of(*shape))
    assert L.Conv1DTranspose(2, 5)(of(1, 2, 1)).shape == (1, 6, 2)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("wrong", [-1, -5, 5])
def test_an_embedding_counts_from_no_end(wrong: int, dtype: str) -> None:
    layer = L.Embedding(5, 2)
    ids = np.array([[0, wrong]], dtype)
    with pytest.raises(IndexError, match="out of bounds"):
        layer(ids)
    traced = gt.function(lambda x: layer(x), input_signature=[gt.TensorSpec([None, None], dtype)])
    with pytest.raises(IndexError, match="out of bounds"):
        traced(ids)


@pytest.mark.parametrize("layer", [L.AveragePooling1D(2), L.GlobalAveragePooling1D()])
def test_means_of_integers_have_the_default_dtype(layer: Any) -> None:
    y = layer(np.arange(8, dtype="uint8").reshape(1, 4, 2))
    assert y.dtype == gt.default_dtype()
    assert y.numpy().ravel().tolist()[:2] == ([1.0, 2.0] if y.ndim == 3 else [3.0, 4.0])
