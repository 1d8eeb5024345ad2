"""``Dense``: a fully connected layer."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from ...core.extend import Variable, known_size, ops, sizes_differ
from .. import activations, initializers
from ..base.layer import Elsewhere, Layer
from ..base.losses import Rules

__all__ = ["Dense"]


class Dense(Layer, saved_as="layers.Dense"):
    """``activation(x @ kernel + bias)``.

    Parameters
    ----------
    units
        The number of outputs.
    activation
        A name (``"relu"``, ``"softmax"``, ...) or any callable; none by default.
    use_bias
        Whether to add a bias.
    kernel_initializer, bias_initializer
        Names, objects of :mod:`gradtape.layers.initializers`, or functions of shape and dtype.
    dtype
        The weights' dtype, or a precision policy. The default is the dtype of the first input if
        that is floating, otherwise ``float32``.
    name
        A Python identifier.
    rules
        ``kernel_regularizer``, ``bias_regularizer`` and ``activity_regularizer`` (of the output)
        add to the loss: names (``"l2"``), objects of :mod:`gradtape.layers.regularizers`, or
        functions of a tensor. Constraints of the same weights, such as ``kernel_constraint``, are
        objects of :mod:`gradtape.layers.constraints`. ``trainable=False`` creates frozen weights.

    Attributes
    ----------
    kernel : Variable
        Shape ``(inputs, units)``; created at the first call.
    bias : Variable or None
        Shape ``(units,)``.

    Raises
    ------
    ValueError
        If ``units`` is not positive. At the call, if the size of the last axis of ``x`` is not the
        one that the layer was built for.

    Notes
    -----
    ``x`` has shape ``(..., inputs)``, the result ``(..., units)``. Integers and booleans are cast
    to the weights' dtype.

    Examples
    --------
    >>> layer = gt.layers.Dense(3, activation="relu")
    >>> layer(gt.ones((2, 5))).shape
    (2, 3)
    """

    takes_one = True
    takes_integers = False
    keeps_mask = True

    names_elsewhere: ClassVar[Elsewhere] = {
        "pytorch": {"kernel": ("weight", (1, 0)), "bias": ("bias", None)}
    }

    kernel: Variable
    bias: Variable | None = None
    ruled: ClassVar[Mapping[str, str]] = {"kernel": "kernel", "bias": "bias"}

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        dtype: Any = None,
        name: str | None = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        if not hasattr(units, "__index__") or operator.index(units) < 1:
            raise ValueError(f"Dense: units must be a positive integer, got {units!r}")
        self.units = operator.index(units)
        self.activation = activations.get(activation)
        self.use_bias = bool(use_bias)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self._given = (kernel_initializer, bias_initializer)

    @property
    def built(self) -> bool:
        """Whether the kernel exists."""
        return "kernel" in vars(self)

    def build(self, input_shape: Any) -> None:
        """Create the weights for inputs whose last axis is known."""
        if not input_shape or not known_size(input_shape[-1]):
            raise ValueError(
                f"layer {self.name!r} (Dense): the last axis of its input must be known when it is "
                f"first called, got shape {input_shape}"
            )
        self.kernel = self.add_weight(
            (input_shape[-1], self.units), self.kernel_initializer, "kernel"
        )
        if self.use_bias:
            self.bias = self.add_weight((self.units,), self.bias_initializer, "bias")

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The kernel, and the bias if there is one."""
        return ("kernel", "bias") if self.use_bias else ("kernel",)

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return the input shape that a kernel belongs to."""
        kernel = shapes.get("kernel", ())
        return (None, kernel[0]) if len(kernel) == 2 else None

    def call(self, x: Any) -> Any:
        """Apply the layer to ``x`` of shape ``(..., inputs)``."""
        kernel = self.kernel
        array = x.array
        shape = array.shape
        if shape is not None and (not shape or sizes_differ(shape[-1], kernel.array.shape[0])):
            raise ValueError(
                f"layer {self.name!r} (Dense): expected inputs of shape "
                f"(..., {kernel.shape[0]}), got {shape}; its kernel has shape {kernel.shape}"
            )
        weights = kernel.value
        if x.dtype.kind in "biu":
            x = x.astype(weights.dtype)
        y = ops["matmul"](x, weights)
        if self.bias is not None:
            y = ops["add"](y, self.bias.value)
        return y if self.activation is None else self.activation(y)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "units": self.units,
            "activation": activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": initializers.serialize(self._given[0]),
            "bias_initializer": initializers.serialize(self._given[1]),
            **super().get_config(),
        }
