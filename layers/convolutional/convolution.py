"""Convolutions over one to three spatial axes."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.extend import Variable
from ...nn import conv
from .. import initializers
from ..base.configured import positive
from ..base.layer import Elsewhere
from .windowed import Windowed

__all__ = ["Conv1D", "Conv2D", "Conv3D"]


class _Conv(Windowed):
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
        ``"valid"``, the default: windows lie within the input. ``"same"``: zeros around it make
        ``ceil(size / stride)`` windows. ``"causal"``, over one axis: zeros before the beginning
        alone, so that no result depends on later steps.
    data_format
        ``"channels_last"``, the default, or ``"channels_first"``.
    dilation_rate
        The distance between the elements that a window sees, 1 by default.
    groups
        Into how many groups channels and filters are split, each of them on its own; 1 by default.
    activation
        A name (``"relu"``, ...) or any callable; none by default.
    use_bias
        Whether to add a bias, as is the default.
    kernel_initializer, bias_initializer
        Names, objects of :mod:`gradtape.layers.initializers`, or functions of shape and dtype.
    name
        A Python identifier.
    dtype
        The dtype of the weights; by default that of the first input if floating, else ``float32``.

    Attributes
    ----------
    kernel : Variable
        Shape ``(*kernel_size, channels / groups, filters)``; there once the layer has been called.
    bias : Variable or None
        Shape ``(filters,)``.

    Raises
    ------
    ValueError
        If a setting is out of its range, or strides and dilation are both above 1; at the call, if
        the input has another number of axes or channels.
    """

    kernel: Variable

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
    ) -> None:
        super().__init__(name, dtype)
        self.filters, self.groups = positive(self, filters=filters, groups=groups)
        if self.filters % self.groups:
            raise ValueError(
                f"{type(self).__name__}: filters must be a multiple of groups, got {self.filters} "
                f"filters and {self.groups} groups"
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
        self.kernel_initializer = initializers.get(kernel_initializer)

    def build(self, input_shape: Any) -> None:
        """Make the weights for images with a known number of channels."""
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
        """Return the number of input channels that a kernel of this shape is for."""
        return kernel[-2] * self.groups

    def call(self, x: Any) -> Any:
        """Apply the layer to images."""
        x = self.checked(x)
        return self.finished(conv(x, self.kernel.value, **self.windows, groups=self.groups))


class Conv1D(_Conv, saved_as="layers.Conv1D"):
    """Convolution of images of shape ``(batch, steps, channels)``.

    {family}

    Notes
    -----
    Filters do not turn: it is a correlation, as everywhere in this field.

    Examples
    --------
    >>> gt.layers.Conv1D(4, 3, padding="causal")(gt.ones((2, 10, 3))).shape
    (2, 10, 4)
    """

    rank = 1
    names_elsewhere: ClassVar[Elsewhere] = {
        "pytorch": {"kernel": ("weight", (2, 1, 0)), "bias": ("bias", None)},
        "keras": {"": ("conv1d", None)},
    }


class Conv2D(_Conv, saved_as="layers.Conv2D"):
    """Convolution of images of shape ``(batch, rows, columns, channels)``.

    {family}

    Notes
    -----
    Filters do not turn: it is a correlation, as everywhere in this field.

    Examples
    --------
    >>> gt.layers.Conv2D(8, 3, strides=2, activation="relu")(gt.ones((2, 9, 9, 3))).shape
    (2, 4, 4, 8)
    """

    rank = 2
    names_elsewhere: ClassVar[Elsewhere] = {
        "pytorch": {"kernel": ("weight", (2, 3, 1, 0)), "bias": ("bias", None)},
        "keras": {"": ("conv2d", None)},
    }


class Conv3D(_Conv, saved_as="layers.Conv3D"):
    """Convolution of images of shape ``(batch, planes, rows, columns, channels)``.

    {family}

    Notes
    -----
    Filters do not turn: it is a correlation, as everywhere in this field.

    Examples
    --------
    >>> gt.layers.Conv3D(2, 2)(gt.ones((1, 4, 4, 4, 3))).shape
    (1, 3, 3, 3, 2)
    """

    rank = 3
    names_elsewhere: ClassVar[Elsewhere] = {
        "pytorch": {"kernel": ("weight", (2, 3, 4, 1, 0)), "bias": ("bias", None)},
        "keras": {"": ("conv3d", None)},
    }
