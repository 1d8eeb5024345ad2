"""Convolutions of each channel with separate filters, and mixtures of their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from ...core.extend import Variable
from ...nn import conv, depthwise_conv
from .. import initializers
from ..base.configured import positive
from ..base.losses import Rules
from .windowed import Windowed

__all__ = ["DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"]


def _by_channel(layer: Any, array: Any) -> Any:
    """Return a kernel that PyTorch keeps as (channels * depth_multiplier, 1, *kernel_size)."""
    if array.shape[1:2] != (1,):
        raise ValueError(f"not the kernel of a convolution by channel: its shape is {array.shape}")
    kernel = array.reshape(-1, layer.depth_multiplier, *array.shape[2:])
    return np.moveaxis(kernel, (0, 1), (-2, -1))


def _in_groups(layer: Any, kernel: Any) -> Any:
    return np.moveaxis(kernel, (-2, -1), (0, 1)).reshape(-1, 1, *kernel.shape[:-2])


class _Depthwise(Windowed):
    _member = """Convolution of ``(batch, {axes}, channels)``, each channel by itself.

    References
    ----------
    F. Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", CVPR 2017.

    Examples
    --------
    >>> gt.layers.{name}(3, depth_multiplier=2)(gt.ones((2, {8}, 4))).shape
    (2, {6}, 8)
    """
    _family = """
    Parameters
    ----------
    depth_multiplier
        The number of results per channel, 1 by default.

    Attributes
    ----------
    kernel : Variable
        Shape ``(*kernel_size, channels, depth_multiplier)``; created at the first call.
    bias : Variable or None
        Shape ``(channels * depth_multiplier,)``.
    """
    _in_keras = "depthwise_conv{}d"

    kernel: Variable
    ruled: ClassVar[Mapping[str, str]] = {"depthwise": "kernel", "bias": "bias"}

    @classmethod
    def _in_pytorch(cls, rank: int) -> Mapping[str, Any]:
        return {"kernel": ("weight", (_by_channel, _in_groups)), "bias": ("bias", None)}

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        (self.depth_multiplier,) = positive(self, depth_multiplier=depth_multiplier)
        self.set_windows(kernel_size, strides, padding, data_format, dilation_rate)
        self.set_ends(activation, use_bias, bias_initializer)
        self.depthwise_initializer = initializers.get(depthwise_initializer)

    def build(self, input_shape: Any) -> None:
        """Make the weights for images with a known number of channels."""
        channels = self.known(input_shape, self.channels_axis)
        shape = (*self.kernel_size, channels, self.depth_multiplier)
        self.kernel = self.add_weight(shape, self.depthwise_initializer, "kernel")
        self.add_bias(channels * self.depth_multiplier)

    def call(self, x: Any) -> Any:
        """Apply the layer to images."""
        x = self.checked(x)
        return self.finished(depthwise_conv(x, self.kernel.value, **self.windows))


class DepthwiseConv1D(_Depthwise, saved_as="layers.DepthwiseConv1D"):
    rank = 1


class DepthwiseConv2D(_Depthwise, saved_as="layers.DepthwiseConv2D"):
    rank = 2


class _Separable(Windowed):
    _member = """Convolution of ``(batch, {axes}, channels)`` by channel, then mixed.

    References
    ----------
    F. Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", CVPR 2017.

    Examples
    --------
    >>> gt.layers.{name}(6, 3)(gt.ones((2, {8}, 4))).shape
    (2, {6}, 6)
    """
    _family = """
    Parameters
    ----------
    filters
        The number of output channels.
    depth_multiplier
        The number of results per channel, before they are mixed; 1 by default.

    Attributes
    ----------
    depthwise_kernel : Variable
        Shape ``(*kernel_size, channels, depth_multiplier)``; there once the layer has been called.
    pointwise_kernel : Variable
        Shape ``(1, ..., channels * depth_multiplier, filters)``.
    bias : Variable or None
        Shape ``(filters,)``.
    """
    _in_keras = "separable_conv{}d"

    kernels = ("depthwise_kernel", "pointwise_kernel")
    depthwise_kernel: Variable
    pointwise_kernel: Variable
    ruled: ClassVar[Mapping[str, str]] = {
        "depthwise": "depthwise_kernel",
        "pointwise": "pointwise_kernel",
        "bias": "bias",
    }

    @classmethod
    def _in_pytorch(cls, rank: int) -> Mapping[str, Any]:
        return {  # two layers there, by their usual names
            "depthwise_kernel": ("depthwise/weight", (_by_channel, _in_groups)),
            "pointwise_kernel": ("pointwise/weight", (*range(2, rank + 2), 1, 0)),
            "bias": ("pointwise/bias", None),
        }

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        pointwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.filters, self.depth_multiplier = positive(
            self, filters=filters, depth_multiplier=depth_multiplier
        )
        self.set_windows(kernel_size, strides, padding, data_format, dilation_rate)
        self.set_ends(activation, use_bias, bias_initializer)
        self.depthwise_initializer = initializers.get(depthwise_initializer)
        self.pointwise_initializer = initializers.get(pointwise_initializer)

    def build(self, input_shape: Any) -> None:
        """Make the weights for images with a known number of channels."""
        channels = self.known(input_shape, self.channels_axis)
        self.depthwise_kernel = self.add_weight(
            (*self.kernel_size, channels, self.depth_multiplier),
            self.depthwise_initializer,
            "depthwise_kernel",
        )
        self.pointwise_kernel = self.add_weight(
            (*(1,) * self.rank, channels * self.depth_multiplier, self.filters),
            self.pointwise_initializer,
            "pointwise_kernel",
        )
        self.add_bias(self.filters)

    def call(self, x: Any) -> Any:
        """Apply the layer to images."""
        x = self.checked(x)
        y = depthwise_conv(x, self.depthwise_kernel.value, **self.windows)
        return self.finished(conv(y, self.pointwise_kernel.value))


class SeparableConv1D(_Separable, saved_as="layers.SeparableConv1D"):
    rank = 1


class SeparableConv2D(_Separable, saved_as="layers.SeparableConv2D"):
    rank = 2
