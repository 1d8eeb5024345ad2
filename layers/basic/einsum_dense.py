"""``EinsumDense``: a product with weights along any axes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

from ...core.extend import Variable, functions, known_size, ops
from .. import activations, initializers
from ..base.configured import Configured
from ..base.losses import Rules

__all__ = ["EinsumDense"]

_EQUATION = re.compile(r"^(\.\.\.)?([a-zA-Z]+),([a-zA-Z]+)->(\.\.\.)?([a-zA-Z]+)$")


class EinsumDense(Configured, saved_as="layers.EinsumDense"):
    """``activation(einsum(equation, x, kernel) + bias)``.

    Parameters
    ----------
    equation
        An equation of two operands, such as ``"ab,bc->ac"`` or ``"...x,xy->...y"``; an ellipsis
        stands for leading axes.
    output_shape
        The sizes of the result without the first axis, or without the axes of the ellipsis.
        ``None`` is a size that follows from the input. A number stands for the last axis.
    bias_axes
        The result's axes along which the bias varies, such as ``"c"``; no bias by default.
    rules
        ``kernel_regularizer``, ``bias_regularizer``, ``activity_regularizer`` and constraints: as
        for :class:`Dense`.

    Attributes
    ----------
    kernel : Variable
        Its shape follows from the equation; created at the first call.
    bias : Variable or None
        Of size 1 along the result's axes that are not in ``bias_axes``.

    Raises
    ------
    ValueError
        If the equation does not have two operands, or ``bias_axes`` are not in the result. At the
        call, if a size of the kernel is unknown.

    Examples
    --------
    >>> layer = gt.layers.EinsumDense("abc,cd->abd", (None, 6), bias_axes="d")
    >>> layer(gt.ones((2, 3, 4))).shape
    (2, 3, 6)
    """

    kernel: Variable
    bias: Variable | None = None
    ruled: ClassVar[Mapping[str, str]] = {"kernel": "kernel", "bias": "bias"}

    def __init__(
        self,
        equation: str,
        output_shape: Any,
        activation: Any = None,
        bias_axes: str | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.equation = str(equation).replace(" ", "")
        parsed = _EQUATION.match(self.equation)
        if parsed is None or bool(parsed[1]) != bool(parsed[4]):
            raise ValueError(
                f"EinsumDense: equation must be like 'ab,bc->ac' or '...x,xy->...y', got "
                f"{equation!r}"
            )
        _, self._given, self._weights, _, self._result = parsed.groups()
        if not set(bias_axes or "") <= set(self._result):
            raise ValueError(
                f"EinsumDense: bias_axes {bias_axes!r} are not all in the result of {equation!r}"
            )
        given = output_shape if isinstance(output_shape, Sequence) else (output_shape,)
        self.output_shape = tuple(given)
        self.activation = activations.get(activation)
        self.bias_axes = bias_axes
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self._told: dict[str, int] = {}  # sizes that the weights of a file tell

    @property
    def built(self) -> bool:
        """Whether the kernel is there."""
        return "kernel" in vars(self)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The kernel, and the bias if there is one."""
        return ("kernel", "bias") if self.bias_axes else ("kernel",)

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return the input shape that a kernel belongs to."""
        kernel = shapes.get("kernel", ())
        if len(kernel) != len(self._weights):
            return None
        self._told = dict(zip(self._weights, kernel))
        return tuple(self._told.get(x) for x in self._given)

    def build(self, input_shape: Any) -> None:
        """Create the weights."""
        sizes = dict(zip(reversed(self._result), reversed(self.output_shape)))
        sizes.update((x, n) for x, n in self._told.items() if sizes.get(x) is None)
        for letter, size in zip(reversed(self._given), reversed(input_shape or ())):
            if sizes.get(letter) is None:
                sizes[letter] = size
            elif known_size(size) and letter in self._weights and sizes[letter] != size:
                raise ValueError(
                    f"layer {self.name!r} (EinsumDense): output_shape {self.output_shape} does not "
                    f"fit an input of shape {input_shape} in {self.equation!r}"
                )
        axes = self.bias_axes or ""
        missing = [x for x in (*self._weights, *axes) if not known_size(sizes.get(x))]
        if missing:
            raise ValueError(
                f"layer {self.name!r} (EinsumDense): the size of {missing[0]!r} in "
                f"{self.equation!r} must be known when it is first called, got shape {input_shape}"
            )
        shape = tuple(int(sizes[x]) for x in self._weights)
        self.kernel = self.add_weight(shape, self.kernel_initializer, "kernel")
        if axes:
            along = self._result[min(map(self._result.index, axes)) :]
            shape = tuple(int(sizes[x]) if x in axes else 1 for x in along)
            self.bias = self.add_weight(shape, self.bias_initializer, "bias")

    def call(self, x: Any) -> Any:
        """Multiply ``x`` by the kernel."""
        sizes = dict(zip(self._weights, self.kernel.shape))
        places = range(-len(self._given), 0)
        shape = x.array.shape
        if shape is not None and ("..." not in self.equation and len(shape) != len(self._given)):
            raise ValueError(
                f"layer {self.name!r} (EinsumDense): expected {len(self._given)} axes for "
                f"{self.equation!r}, got an input of shape {shape}"
            )
        x = self.fitted(x, {i: sizes[a] for i, a in zip(places, self._given) if a in sizes})
        kernel = self.kernel.value
        x = x.astype(kernel.dtype) if x.dtype.kind in "biu" else x
        y = functions["einsum"](self.equation, x, kernel)
        y = y if self.bias is None else ops["add"](y, self.bias.value)
        return y if self.activation is None else self.activation(y)
