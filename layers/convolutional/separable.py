"""Convolutions of each channel with filters of its own, and mixes of their results."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.extend import Variable
from ...nn import conv, depthwise_conv
from .. import initializers
from ..base.configured import positive
from ..base.layer import Elsewhere
from .windowed import Windowed

__all__ = ["DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"]


class _Depthwise(Windowed):
    family = """
    Parameters
    ----------
    kernel_size
        The size of the windows: a number, or one for each spatial axis.
    strides
        The distance between windows, 1 by default: a number, or one for each spatial axis.
    padding
        As for :class:`Conv2D`, ``"valid"`` by default.
    depth_multiplier
        The number of results for each channel, 1 by default.
    data_format
        ``"channels_last"``, the default, or ``"channels_first"``.
    dilation_rate
        The distance between the elements that a window sees, 1 by default.
    activation
        A name (``"relu"``, ...) or any callable; none by default.
    use_bias
        Whether to add a bias, as is the default.
    depthwise_initializer, bias_initializer
        Names, objects of :mod:`gradtape.layers.initializers`, or functions of shape and dtype.
    name
        A Python identifier.
    dtype
        The dtype of the weights; by default that of the first input if floating, else ``float32``.

    Attributes
    ----------
    kernel : Variable
        Shape ``(*kernel_size, channels, depth_multiplier)``; there once the layer has been called.
    bias : Variable or None
        Shape ``(channels * depth_multiplier,)``.

    Raises
    ------
    ValueError
        If a setting is out of its range; at the call, if the input has another number of axes or
        channels.
    """

    kernel: Variable

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
    ) -> None:
        super().__init__(name, dtype)
        (self.depth_multiplier,) = positive(self, depth_multiplier=depth_multiplier)
        self.set_windows(
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            bias_initializer,
        )
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
    """Convolution of ``(batch, steps, channels)``, each channel by itself.

    {family}

    References
    ----------
    F. Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", CVPR 2017.

    Examples
    --------
    >>> gt.layers.DepthwiseConv1D(3)(gt.ones((2, 10, 4))).shape
    (2, 8, 4)
    """

    rank = 1
    names_elsewhere: ClassVar[Elsewhere] = {"keras": {"": ("depthwise_conv1d", None)}}


class DepthwiseConv2D(_Depthwise, saved_as="layers.DepthwiseConv2D"):
    """Convolution of ``(batch, rows, columns, channels)``, each channel by itself.

    {family}

    References
    ----------
    F. Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", CVPR 2017.

    Examples
    --------
    >>> gt.layers.DepthwiseConv2D(3, depth_multiplier=2)(gt.ones((2, 8, 8, 4))).shape
    (2, 6, 6, 8)
    """

    rank = 2
    names_elsewhere: ClassVar[Elsewhere] = {"keras": {"": ("depthwise_conv2d", None)}}


class _Separable(Windowed):
    family = """
    Parameters
    ----------
    filters
        The number of output channels.
    kernel_size
        The size of the windows: a number, or one for each spatial axis.
    strides
        The distance between windows, 1 by default: a number, or one for each spatial axis.
    padding
        As for :class:`Conv2D`, ``"valid"`` by default.
    data_format
        ``"channels_last"``, the default, or ``"channels_first"``.
    dilation_rate
        The distance between the elements that a window sees, 1 by default.
    depth_multiplier
        The number of results for each channel, before they are mixed; 1 by default.
    activation
        A name (``"relu"``, ...) or any callable; none by default.
    use_bias
        Whether to add a bias, as is the default.
    depthwise_initializer, pointwise_initializer, bias_initializer
        Names, objects of :mod:`gradtape.layers.initializers`, or functions of shape and dtype.
    name
        A Python identifier.
    dtype
        The dtype of the weights; by default that of the first input if floating, else ``float32``.

    Attributes
    ----------
    depthwise_kernel : Variable
        Shape ``(*kernel_size, channels, depth_multiplier)``; there once the layer has been called.
    pointwise_kernel : Variable
        Shape ``(1, ..., channels * depth_multiplier, filters)``.
    bias : Variable or None
        Shape ``(filters,)``.

    Raises
    ------
    ValueError
        If a setting is out of its range; at the call, if the input has another number of axes or
        channels.
    """

    kernels = ("depthwise_kernel", "pointwise_kernel")
    depthwise_kernel: Variable
    pointwise_kernel: Variable

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
    ) -> None:
        super().__init__(name, dtype)
        self.filters, self.depth_multiplier = positive(
            self, filters=filters, depth_multiplier=depth_multiplier
        )
        self.set_windows(
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            bias_initializer,
        )
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
    """Convolution of ``(batch, steps, channels)`` by channel, then mixed.

    {family}

    References
    ----------
    F. Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", CVPR 2017.

    Examples
    --------
    >>> gt.layers.SeparableConv1D(6, 3)(gt.ones((2, 10, 4))).shape
    (2, 8, 6)
    """

    rank = 1
    names_elsewhere: ClassVar[Elsewhere] = {"keras": {"": ("separable_conv1d", None)}}


class SeparableConv2D(_Separable, saved_as="layers.SeparableConv2D"):
    """Convolution of ``(batch, rows, columns, channels)`` by channel, then mixed.

    {family}

    References
    ----------
    F. Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", CVPR 2017.

    Examples
    --------
    >>> gt.layers.SeparableConv2D(6, 3, padding="same")(gt.ones((2, 8, 8, 4))).shape
    (2, 8, 8, 6)
    """

    rank = 2
    names_elsewhere: ClassVar[Elsewhere] = {"keras": {"": ("separable_conv2d", None)}}
