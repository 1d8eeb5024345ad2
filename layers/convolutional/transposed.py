"""Transposed convolutions over one to three spatial axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from ...core.extend import Variable, ops
from ...nn import conv_transpose
from .. import initializers
from ..base.configured import positive, sizes_of
from ..base.losses import Rules
from .windowed import Windowed

__all__ = ["Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"]


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


class Conv1DTranspose(_ConvTranspose, saved_as="layers.Conv1DTranspose"):
    rank = 1


class Conv2DTranspose(_ConvTranspose, saved_as="layers.Conv2DTranspose"):
    rank = 2


class Conv3DTranspose(_ConvTranspose, saved_as="layers.Conv3DTranspose"):
    rank = 3
