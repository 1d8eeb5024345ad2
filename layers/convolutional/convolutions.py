"""Convolutions over one to three spatial axes: plain, transposed, separable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from ...core.extend import Variable, ops
from ...nn import conv, conv_transpose, depthwise_conv
from .. import initializers
from ..base.configured import positive, sizes_of
from ..base.weights import Rules
from .spatial import Windowed

__all__ = [
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "DepthwiseConv1D",
    "DepthwiseConv2D",
    "SeparableConv1D",
    "SeparableConv2D",
]


class _Conv(Windowed):
    _member = """Convolution of images of shape ``(batch, {axes}, channels)``.

    Notes
    -----
    The filters are not flipped: it is a cross-correlation, as is usual in deep learning.

    Examples
    --------
    >>> gt.layers.{name}(4, 3, padding="same")(gt.ones((2, {8}, 3))).shape
    (2, {8}, 4)
    """
    _family = """
    Parameters
    ----------
    filters
        The number of output channels.
    padding
        ``"valid"``, the default: windows lie within the input. ``"same"``: zeros around it make
        ``ceil(size / stride)`` windows. ``"causal"``, over one axis: zeros only before the
        beginning, so that no result depends on later steps.
    groups
        The number of groups into which channels and filters are split, each convolved separately; 1
        by default.

    Attributes
    ----------
    kernel : Variable
        Shape ``(*kernel_size, channels / groups, filters)``; created at the first call.
    bias : Variable or None
        Shape ``(filters,)``.

    Raises
    ------
    ValueError
        If a setting is out of range, or strides and dilation are both above 1. At the call, if the
        input has a different number of axes or channels.
    """
    _in_keras = "conv{}d"

    kernel: Variable
    ruled: ClassVar[Mapping[str, str]] = {"kernel": "kernel", "bias": "bias"}

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.filters, self.groups = positive(self, filters=filters, groups=groups)
        if self.filters % self.groups:
            raise ValueError(
                f"{type(self).__name__}: filters must be a multiple of groups, got {self.filters} "
                f"filters and {self.groups} groups"
            )
        self.set_windows(kernel_size, strides, padding, data_format, dilation_rate)
        self.set_ends(activation, use_bias, bias_initializer)
        self.kernel_initializer = initializers.get(kernel_initializer)

    def build(self, input_shape: Any) -> None:
        """Create the weights for images with a known number of channels."""
        channels = self.known(input_shape, self.channels_axis)
        if channels % self.groups:
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): {channels} channels do not divide "
                f"into {self.groups} groups"
            )
        shape = (*self.kernel_size, channels // self.groups, self.filters)
        self.kernel = self.add_weight(shape, self.kernel_initializer, "kernel")
        self.add_bias(self.filters)

    def channels_for(self, kernel: tuple[int, ...]) -> int:
        """Return the number of input channels that belongs to a kernel of this shape."""
        return kernel[-2] * self.groups

    def call(self, x: Any) -> Any:
        """Apply the layer to images."""
        x = self.checked(x)
        return self.finished(conv(x, self.kernel.value, **self.windows, groups=self.groups))


class Conv1D(_Conv, rank=1, saved_as="layers.Conv1D"): ...


class Conv2D(_Conv, rank=2, saved_as="layers.Conv2D"): ...


class Conv3D(_Conv, rank=3, saved_as="layers.Conv3D"): ...


# -- transposed -----------------------------------------------------------------------------------


class _ConvTranspose(Windowed):
    _member = """Transposed convolution of ``(batch, {axes}, channels)``: it enlarges.

    References
    ----------
    Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016, chapter 4.

    Examples
    --------
    >>> gt.layers.{name}(4, 3, strides=2)(gt.ones((2, {5}, 3))).shape
    (2, {11}, 4)
    """
    _family = """
    Parameters
    ----------
    filters
        The number of output channels.
    strides
        The factor by which the input is enlarged, 1 by default: a number, or one for each spatial
        axis.
    padding
        ``"valid"``, the default: nothing is cut off. ``"same"``: sizes are multiplied by the
        strides.
    output_padding
        How much is added to one end of the result: a number, or one for each spatial axis, less
        than the stride. By default only what ``padding`` implies.

    Attributes
    ----------
    kernel : Variable
        Shape ``(*kernel_size, filters, channels)``; created at the first call.
    bias : Variable or None
        Shape ``(filters,)``.
    """
    _in_keras = "conv{}d_transpose"

    enlarges = True
    kernel: Variable
    ruled: ClassVar[Mapping[str, str]] = {"kernel": "kernel", "bias": "bias"}

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        (self.filters,) = positive(self, filters=filters)
        self.set_windows(kernel_size, strides, padding, data_format, dilation_rate)
        self.set_ends(activation, use_bias, bias_initializer)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.output_padding = output_padding
        if self.padding == "causal":
            raise ValueError(f"{type(self).__name__}: padding must be 'valid' or 'same'")
        if output_padding is not None:
            self.output_padding = sizes_of(self, "output_padding", output_padding, self.rank, 0)
            if any(a >= b for a, b in zip(self.output_padding, self.strides)):
                raise ValueError(
                    f"{type(self).__name__}: output_padding must be less than strides "
                    f"{self.strides}, got {output_padding!r}"
                )

    def build(self, input_shape: Any) -> None:
        """Make the weights for images with a known number of channels."""
        channels = self.known(input_shape, self.channels_axis)
        shape = (*self.kernel_size, self.filters, channels)
        self.kernel = self.add_weight(shape, self.kernel_initializer, "kernel")
        self.add_bias(self.filters)

    def channels_for(self, kernel: tuple[int, ...]) -> int:
        """Return the number of input channels that a kernel of this shape is for."""
        return kernel[-1]

    def call(self, x: Any) -> Any:
        """Apply the layer to images."""
        x = self.checked(x)
        settings = self.windows
        more = self.output_padding
        if more is None and self.padding == "valid":  # strides that windows do not fill count too
            more = tuple(max(s - k, 0) for s, k in zip(self.strides, self.kernel_size))
        if more is None or not (self.output_padding or any(more)):
            return self.finished(conv_transpose(x, self.kernel.value, **settings))
        cuts = [self._cut(i, n) for i, n in enumerate(more)]
        settings["padding"] = tuple((max(n, 0) // 2, (max(n, 0) + 1) // 2) for n in cuts)
        y = conv_transpose(x, self.kernel.value, **settings)
        if min(cuts) < 0:  # what is beyond the last window sees nothing
            widths = [(0, max(-n, 0)) for n in cuts]
            y = ops["pad"](y, pad_width=((0, 0), *widths, (0, 0)))
        return self.finished(y)

    def _cut(self, axis: int, more: int) -> int:
        """Return how many elements are cut off along a spatial axis, or added if below 0."""
        window = (self.kernel_size[axis] - 1) * self.dilation_rate[axis] + 1
        return (2 * (window // 2) if self.padding == "same" else 0) - more


class Conv1DTranspose(_ConvTranspose, rank=1, saved_as="layers.Conv1DTranspose"): ...


class Conv2DTranspose(_ConvTranspose, rank=2, saved_as="layers.Conv2DTranspose"): ...


class Conv3DTranspose(_ConvTranspose, rank=3, saved_as="layers.Conv3DTranspose"): ...


# -- of each channel with separate filters --------------------------------------------------------


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


class DepthwiseConv1D(_Depthwise, rank=1, saved_as="layers.DepthwiseConv1D"): ...


class DepthwiseConv2D(_Depthwise, rank=2, saved_as="layers.DepthwiseConv2D"): ...


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


class SeparableConv1D(_Separable, rank=1, saved_as="layers.SeparableConv1D"): ...


class SeparableConv2D(_Separable, rank=2, saved_as="layers.SeparableConv2D"): ...
