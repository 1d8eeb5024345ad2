"""One of every layer, with inputs that it takes: what all of them promise is tested on these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradtape import layers as L

__all__ = ["FAMILIES", "Case"]


class Case(NamedTuple):
    """A layer, and the shapes of its inputs without the batch; ``"int"`` for numbers to look up."""

    make: Callable[[], Any]
    shapes: tuple[Any, ...]
    several: bool = False  # whether the inputs come in one list

    def inputs(self, batch: int, seed: int = 0) -> Any:
        """Return inputs of a batch."""
        random = np.random.default_rng(seed)
        found = [
            random.integers(0, 5, (batch, *shape[1:])).astype("int32")
            if shape[:1] == ("int",)
            else random.standard_normal((batch, *shape)).astype("float32")
            for shape in self.shapes
        ]
        return found if self.several else found[0]


def _adapted() -> Any:
    layer = L.Normalization()
    layer.adapt(np.random.default_rng(0).standard_normal((50, 4)) * 3 + 1)
    return layer


_image, _line, _volume, _pair = (6, 5, 4), (7, 4), (4, 4, 4, 2), ((3, 4), (3, 4))
_random = {"bias_initializer": "random_normal"}

FAMILIES: dict[str, Case] = {
    "Dense": Case(lambda: L.Dense(3, activation="tanh", **_random), (_line,)),
    "Activation": Case(lambda: L.Activation("gelu"), (_line,)),
    "BatchNormalization": Case(lambda: L.BatchNormalization(), (_line,)),
    "BatchNormalization first": Case(lambda: L.BatchNormalization(1, epsilon=0.1), (_line,)),
    "Dropout": Case(lambda: L.Dropout(0.5, seed=1, noise_shape=(None, 1, None)), (_line,)),
    "Conv1D": Case(lambda: L.Conv1D(3, 2, activation="tanh", **_random), (_line,)),
    "Conv1D causal": Case(lambda: L.Conv1D(3, 3, padding="causal", dilation_rate=2), (_line,)),
    "Conv2D": Case(lambda: L.Conv2D(3, (3, 2), strides=2, **_random), (_image,)),
    "Conv2D same": Case(lambda: L.Conv2D(4, 3, padding="same", groups=2), (_image,)),
    "Conv2D first": Case(lambda: L.Conv2D(3, 2, data_format="channels_first"), (_image,)),
    "Conv3D": Case(lambda: L.Conv3D(2, 2, dilation_rate=2), (_volume,)),
    "Conv1DTranspose": Case(lambda: L.Conv1DTranspose(3, 3, strides=2), (_line,)),
    "Conv2DTranspose": Case(
        lambda: L.Conv2DTranspose(3, 3, strides=2, padding="same", output_padding=1), (_image,)
    ),
    "Conv3DTranspose": Case(lambda: L.Conv3DTranspose(2, 2, padding="same"), (_volume,)),
    "DepthwiseConv1D": Case(lambda: L.DepthwiseConv1D(2, depth_multiplier=2), (_line,)),
    "DepthwiseConv2D": Case(lambda: L.DepthwiseConv2D(3, **_random), (_image,)),
    "SeparableConv1D": Case(lambda: L.SeparableConv1D(3, 2), (_line,)),
    "SeparableConv2D": Case(lambda: L.SeparableConv2D(3, 2, padding="same"), (_image,)),
    "MaxPooling1D": Case(lambda: L.MaxPooling1D(2), (_line,)),
    "MaxPooling2D": Case(lambda: L.MaxPooling2D(3, 2, "same"), (_image,)),
    "MaxPooling3D": Case(L.MaxPooling3D, (_volume,)),
    "AveragePooling1D": Case(lambda: L.AveragePooling1D(3, 1, "same"), (_line,)),
    "AveragePooling2D": Case(lambda: L.AveragePooling2D((2, 3)), (_image,)),
    "AveragePooling3D": Case(L.AveragePooling3D, (_volume,)),
    "GlobalMaxPooling1D": Case(L.GlobalMaxPooling1D, (_line,)),
    "GlobalMaxPooling2D": Case(lambda: L.GlobalMaxPooling2D(keepdims=True), (_image,)),
    "GlobalMaxPooling3D": Case(L.GlobalMaxPooling3D, (_volume,)),
    "GlobalAveragePooling1D": Case(lambda: L.GlobalAveragePooling1D("channels_first"), (_line,)),
    "GlobalAveragePooling2D": Case(L.GlobalAveragePooling2D, (_image,)),
    "GlobalAveragePooling3D": Case(L.GlobalAveragePooling3D, (_volume,)),
    "ZeroPadding1D": Case(lambda: L.ZeroPadding1D((1, 2)), (_line,)),
    "ZeroPadding2D": Case(lambda: L.ZeroPadding2D(((0, 1), (2, 0))), (_image,)),
    "ZeroPadding3D": Case(L.ZeroPadding3D, (_volume,)),
    "Cropping1D": Case(lambda: L.Cropping1D((1, 2)), (_line,)),
    "Cropping2D": Case(lambda: L.Cropping2D(((0, 1), (2, 0))), (_image,)),
    "Cropping3D": Case(L.Cropping3D, (_volume,)),
    "UpSampling1D": Case(L.UpSampling1D, (_line,)),
    "UpSampling2D": Case(lambda: L.UpSampling2D((2, 3)), (_image,)),
    "UpSampling2D bilinear": Case(lambda: L.UpSampling2D(2, interpolation="bilinear"), (_image,)),
    "UpSampling3D": Case(L.UpSampling3D, (_volume,)),
    "Flatten": Case(lambda: L.Flatten(data_format="channels_first"), (_image,)),
    "Reshape": Case(lambda: L.Reshape((2, -1)), (_line,)),
    "Permute": Case(lambda: L.Permute((3, 1, 2)), (_image,)),
    "RepeatVector": Case(lambda: L.RepeatVector(3), ((4,),)),
    "Add": Case(L.Add, _pair, True),
    "Subtract": Case(L.Subtract, _pair, True),
    "Multiply": Case(L.Multiply, (*_pair, (1, 4)), True),
    "Average": Case(L.Average, _pair, True),
    "Maximum": Case(L.Maximum, _pair, True),
    "Minimum": Case(L.Minimum, _pair, True),
    "Concatenate": Case(lambda: L.Concatenate(axis=1), ((3, 4), (2, 4)), True),
    "Dot": Case(lambda: L.Dot((2, 1), normalize=True), ((3, 4), (4, 2)), True),
    "LayerNormalization": Case(L.LayerNormalization, (_line,)),
    "LayerNormalization axes": Case(lambda: L.LayerNormalization(axis=[1, 2]), (_image,)),
    "RMSNormalization": Case(L.RMSNormalization, (_line,)),
    "GroupNormalization": Case(lambda: L.GroupNormalization(2), (_image,)),
    "UnitNormalization": Case(L.UnitNormalization, (_line,)),
    "Normalization": Case(_adapted, ((4,),)),
    "Rescaling": Case(lambda: L.Rescaling([1.0, 2.0, 3.0, 4.0], 0.5), (_line,)),
    "Embedding": Case(lambda: L.Embedding(5, 3), (("int", 4),)),
    "EinsumDense": Case(
        lambda: L.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="e"), (_line,)
    ),
    "Masking": Case(L.Masking, (_line,)),
    "Identity": Case(L.Identity, (_line,)),
    "ActivityRegularization": Case(lambda: L.ActivityRegularization(0.1, 0.2), (_line,)),
    "ReLU": Case(lambda: L.ReLU(1.0, 0.1, 0.2), (_line,)),
    "LeakyReLU": Case(L.LeakyReLU, (_line,)),
    "ELU": Case(lambda: L.ELU(0.7), (_line,)),
    "Softmax": Case(lambda: L.Softmax([1, 2]), (_line,)),
    "PReLU": Case(lambda: L.PReLU("random_normal", shared_axes=[1]), (_line,)),
    "SpatialDropout1D": Case(lambda: L.SpatialDropout1D(0.5, seed=1), (_line,)),
    "SpatialDropout2D": Case(lambda: L.SpatialDropout2D(0.5, seed=1), (_image,)),
    "SpatialDropout3D": Case(lambda: L.SpatialDropout3D(0.5, seed=1), (_volume,)),
    "GaussianNoise": Case(lambda: L.GaussianNoise(0.5, seed=1), (_line,)),
    "GaussianDropout": Case(lambda: L.GaussianDropout(0.5, seed=1), (_line,)),
    "AlphaDropout": Case(lambda: L.AlphaDropout(0.5, seed=1), (_line,)),
    "SimpleRNN": Case(lambda: L.SimpleRNN(3, **_random), (_line,)),
    "LSTM": Case(lambda: L.LSTM(3, return_sequences=True, **_random), (_line,)),
    "LSTM back": Case(lambda: L.LSTM(2, go_backwards=True), (_line,)),
    "GRU": Case(lambda: L.GRU(3, return_sequences=True, **_random), (_line,)),
    "GRU reset before": Case(lambda: L.GRU(2, reset_after=False), (_line,)),
    "RNN": Case(lambda: L.RNN([L.GRUCell(3), L.LSTMCell(2)]), (_line,)),
    "Bidirectional": Case(
        lambda: L.Bidirectional(L.GRU(2, return_sequences=True), merge_mode="ave"), (_line,)
    ),
    "TimeDistributed": Case(lambda: L.TimeDistributed(L.Dense(3, activation="tanh")), (_line,)),
    "Attention": Case(lambda: L.Attention(use_scale=True), _pair, True),
    "Attention concat": Case(lambda: L.Attention(score_mode="concat"), _pair, True),
    "AdditiveAttention": Case(L.AdditiveAttention, _pair, True),
    "MultiHeadAttention": Case(lambda: L.MultiHeadAttention(2, 3), (_line,)),
}
