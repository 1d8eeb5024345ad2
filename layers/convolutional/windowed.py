"""``Windowed``: the shared part of all convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.extend import Variable, sizes_differ
from .. import activations, initializers
from ..base.configured import sizes_of
from .spatial import Spatial

__all__ = ["Windowed"]


class Windowed(Spatial):
    """Windows over images, a bias, an activation.

    Attributes
    ----------
    kernels : tuple of str
        The attributes that hold the kernels; the first gives the number of input channels.
    """

    _family = """
    Parameters
    ----------
    kernel_size
        The size of the windows: a number, or one for each spatial axis.
    strides
        The distance between windows, 1 by default: a number, or one for each spatial axis.
    padding
        As for :class:`Conv2D`, ``"valid"`` by default.
    dilation_rate
        The distance between the elements that a window sees, 1 by default.

    Raises
    ------
    ValueError
        If a setting is out of range. At the call, if the input has a different number of axes or
        channels.
    """

    kernels: ClassVar[tuple[str, ...]] = ("kernel",)
    #: Whether each element makes a window, in place of each window an element.
    enlarges: ClassVar[bool] = False
    #: What Keras calls the classes, with ``{}`` for the rank.
    _in_keras: ClassVar[str]
    bias: Variable | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if rank := vars(cls).get("rank"):
            cls.names_elsewhere = {
                "pytorch": cls._in_pytorch(rank),
                "keras": {"": (cls._in_keras.format(rank), None)},
            }

    @classmethod
    def _in_pytorch(cls, rank: int) -> Mapping[str, Any]:
        """Return PyTorch's names of the weights."""
        return {"kernel": ("weight", (*range(2, rank + 2), 1, 0)), "bias": ("bias", None)}

    def set_windows(
        self, kernel_size: Any, strides: Any, padding: Any, data_format: Any, dilation_rate: Any
    ) -> None:
        """Check and store the settings of the windows.

        Raises
        ------
        ValueError
            If a setting is out of range.
        """
        self.kernel_size = sizes_of(self, "kernel_size", kernel_size, self.rank)
        self.strides = sizes_of(self, "strides", strides, self.rank)
        self.dilation_rate = sizes_of(self, "dilation_rate", dilation_rate, self.rank)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                f"{type(self).__name__}: strides {self.strides} and dilation_rate "
                f"{self.dilation_rate}: one of them must be 1"
            )
        paddings = ("valid", "same", "causal")[: 3 if self.rank == 1 else 2]
        if str(padding).lower() not in paddings:
            raise ValueError(
                f"{type(self).__name__}: padding must be one of {', '.join(paddings)}, "
                f"got {padding!r}"
            )
        self.padding = str(padding).lower()
        self.set_data_format(data_format)

    def set_ends(self, activation: Any, use_bias: bool, bias_initializer: Any) -> None:
        """Store the settings of what follows the windows."""
        self.activation = activations.get(activation)
        self.use_bias = bool(use_bias)
        self.bias_initializer = initializers.get(bias_initializer)

    @property
    def windows(self) -> dict[str, Any]:
        """The op's settings."""
        padding: Any = self.padding
        if padding == "causal":
            padding = (((self.kernel_size[0] - 1) * self.dilation_rate[0], 0),)
        return {"strides": self.strides, "padding": padding, "dilations": self.dilation_rate}

    @property
    def built(self) -> bool:
        """Whether the kernels exist."""
        return self.kernels[-1] in vars(self)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The kernels, and the bias if there is one."""
        return (*self.kernels, "bias") if self.use_bias else self.kernels

    def channels_for(self, kernel: tuple[int, ...]) -> int:
        """Return the number of input channels that a kernel of this shape is for."""
        return kernel[-2]

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return the shape of images that a kernel belongs to."""
        kernel = shapes.get(self.kernels[0], ())
        if len(kernel) != self.rank + 2:
            return None
        sizes: list[int | None] = [None] * (self.rank + 2)
        sizes[self.channels_axis] = self.channels_for(kernel)
        return tuple(sizes)

    def checked(self, x: Any) -> Any:
        """Return inputs with their channels last, in a floating dtype.

        Raises
        ------
        ValueError
            If they have a different number of axes or channels.
        """
        x, kernel = self.images(x), getattr(self, self.kernels[0])
        shape, channels = x.array.shape, self.channels_for(kernel.shape)
        if shape is not None and sizes_differ(shape[-1], channels):
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): expected {channels} channels, got "
                f"{shape[-1]}, with channels last an input of shape {shape}"
            )
        if self.padding == "valid" and not self.enlarges:
            spans = zip(self.kernel_size, self.dilation_rate)
            self.wide_enough(x, [(size - 1) * apart + 1 for size, apart in spans])
        return x.astype(kernel.value.dtype) if x.dtype.kind in "biu" else x

    def finished(self, y: Any) -> Any:
        """Return a convolution with bias and activation, with the channels where they were."""
        if self.bias is not None:
            y = y + self.bias.value
        y = self.as_given(y)
        return y if self.activation is None else self.activation(y)

    def add_bias(self, filters: int) -> None:
        """Create the bias, if there is one."""
        if self.use_bias:
            self.bias = self.add_weight((filters,), self.bias_initializer, "bias")
