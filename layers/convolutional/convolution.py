"""Convolutions over one to three spatial axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from ...core.extend import Variable
from ...nn import conv
from .. import initializers
from ..base.configured import positive
from ..base.losses import Rules
from .windowed import Windowed

__all__ = ["Conv1D", "Conv2D", "Conv3D"]


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


class Conv1D(_Conv, saved_as="layers.Conv1D"):
    rank = 1


class Conv2D(_Conv, saved_as="layers.Conv2D"):
    rank = 2


class Conv3D(_Conv, saved_as="layers.Conv3D"):
    rank = 3
