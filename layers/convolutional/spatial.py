"""What layers over images share: the position of the channels, and windows.

``Windowed`` is the base class of all convolutions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ...core.extend import Variable, known_size, ops, sizes_differ
from .. import activations, initializers
from ..base.configured import Configured, sizes_of

__all__ = ["Spatial", "Windowed"]

_AXES = {1: "steps", 2: "rows, columns", 3: "planes, rows, columns"}


class Spatial(Configured):
    """A layer over images of ``rank`` spatial axes, with the channels last or first.

    A class for a number of axes names it: ``class Conv2D(_Conv, rank=2)``.

    Attributes
    ----------
    _member : str
        The docstring of a family's classes. ``{name}`` stands for the class, ``{axes}`` for its
        spatial axes, and ``{8}`` for an 8 for each of them.
    """

    _gradtape_internal = "* rank"

    rank: ClassVar[int]
    _member: ClassVar[str] = ""
    data_format: str

    def __init_subclass__(cls, rank: int | None = None, **kwargs: Any) -> None:
        if rank is not None:
            cls.rank = rank
            text = cls._member.replace("{name}", cls.__name__).replace("{axes}", _AXES[rank])
            cls.__doc__ = re.sub(r"{(\d+)}", lambda size: ", ".join([size[1]] * rank), text)
        super().__init_subclass__(**kwargs)

    def set_data_format(self, data_format: str | None) -> None:
        """Store the position of the channels.

        Raises
        ------
        ValueError
            If it is neither ``"channels_last"`` (or ``None``) nor ``"channels_first"``.
        """
        if data_format not in (None, "channels_last", "channels_first"):
            raise ValueError(
                f"{type(self).__name__}: data_format must be 'channels_last' or 'channels_first', "
                f"got {data_format!r}"
            )
        self.data_format = data_format or "channels_last"

    @property
    def channels_axis(self) -> int:
        """The axis of the channels."""
        return -1 if self.data_format == "channels_last" else 1

    def known_rank(self, x: Any) -> Any:
        """Return a shape; raise if a trace does not know the number of axes."""
        if x.array.shape is None:
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): the rank of its input must be "
                "known; use a TensorSpec with a rank"
            )
        return x.array.shape

    def images(self, x: Any) -> Any:
        """Return inputs with their channels last.

        Raises
        ------
        ValueError
            If they have a different number of axes.
        """
        shape = x.array.shape
        if shape is not None and len(shape) != self.rank + 2:
            last = self.data_format == "channels_last"
            axes = f"{_AXES[self.rank]}, channels" if last else f"channels, {_AXES[self.rank]}"
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): expected inputs of shape "
                f"(batch, {axes}), got {shape}"
            )
        if self.data_format == "channels_last":
            return x
        return ops["moveaxis"](x, source=1, destination=-1)

    def wide_enough(self, x: Any, windows: Sequence[int]) -> None:
        """Raise if channels-last images are known to be smaller than a window."""
        shape = x.array.shape
        for n, window in zip(() if shape is None else shape[1:-1], windows):
            if known_size(n) and n < window:
                raise ValueError(
                    f"layer {self.name!r} ({type(self).__name__}): windows of {tuple(windows)} do "
                    f"not fit into images of {tuple(shape[1:-1])}; with padding='same' they do"
                )

    def as_given(self, y: Any) -> Any:
        """Return a result with its channels at the position of the inputs' channels."""
        if self.data_format == "channels_last":
            return y
        return ops["moveaxis"](y, source=-1, destination=1)


class Windowed(Spatial):
    """Windows over images, a bias, an activation.

    Attributes
    ----------
    kernels : tuple of str
        The attributes that hold the kernels; the first gives the number of input channels.
    """

    _gradtape_internal = "*"

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

    def __init_subclass__(cls, rank: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(rank=rank, **kwargs)
        if rank is not None:
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
