"""Layers linear in their weights: ``Dense``, ``EinsumDense``, ``Embedding``."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

from ...core.extend import Variable, as_tensor, functions, known_size, ops, sizes_differ, to_numpy
from ...nn import embedding_lookup
from .. import activations, initializers
from ..base.configured import Configured, positive
from ..base.layer import Elsewhere, Layer
from ..base.weights import Rules

__all__ = ["Dense", "EinsumDense", "Embedding"]


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
        self._sizes_of_weights: dict[str, int] = {}  # sizes that the weights of a file tell

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
        self._sizes_of_weights = dict(zip(self._weights, kernel))
        return tuple(self._sizes_of_weights.get(x) for x in self._given)

    def build(self, input_shape: Any) -> None:
        """Create the weights."""
        sizes = dict(zip(reversed(self._result), reversed(self.output_shape)))
        sizes.update((x, n) for x, n in self._sizes_of_weights.items() if sizes.get(x) is None)
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


class Embedding(Configured, saved_as="layers.Embedding"):
    """A vector of weights for each integer.

    Parameters
    ----------
    input_dim
        The number of integers, which go from 0 to ``input_dim - 1``.
    output_dim
        The length of a vector.
    embeddings_initializer
        A name, an object of :mod:`gradtape.layers.initializers`, or a function of shape and dtype;
        ``"uniform"`` between -0.05 and 0.05 by default.
    mask_zero
        Whether 0 is padding. In a model, recurrent and attention layers after this one skip it, and
        so do losses and metrics if the mask reaches the output. Elsewhere, pass the result of
        :meth:`compute_mask` to layers as ``mask=``.
    dtype
        The dtype of the weights, ``float32`` by default.

    Attributes
    ----------
    embeddings : Variable
        Shape ``(input_dim, output_dim)``; created at the first call.

    Raises
    ------
    ValueError
        If a dimension is not positive.
    TypeError
        At the call, if the inputs are not integers.
    IndexError
        At the call, if an integer is out of range, such as a negative one.

    Examples
    --------
    >>> gt.layers.Embedding(10, 4)([[1, 2, 3]]).shape
    (1, 3, 4)
    """

    takes_integers = True

    #: :meth:`compute_mask` is asked in models.
    makes_mask: ClassVar[bool] = True
    names_elsewhere: ClassVar[Elsewhere] = {"pytorch": {"embeddings": ("weight", None)}}

    embeddings: Variable
    ruled: ClassVar[Mapping[str, str]] = {"embeddings": "embeddings"}

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        mask_zero: bool = False,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.input_dim, self.output_dim = positive(self, input_dim=input_dim, output_dim=output_dim)
        self.embeddings_initializer = initializers.get(embeddings_initializer)
        self.mask_zero = bool(mask_zero)

    @property
    def built(self) -> bool:
        """Whether the weights exist."""
        return "embeddings" in vars(self)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The vectors."""
        return ("embeddings",)

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return any shape: it makes no difference."""
        return (None,)

    def build(self, input_shape: Any) -> None:
        """Make the weights."""
        shape = (self.input_dim, self.output_dim)
        self.embeddings = self.add_weight(shape, self.embeddings_initializer, "embeddings")

    def compute_mask(self, ids: Any, mask: Any = None) -> Any:
        """Return where integers are not padding; ``None`` without ``mask_zero``."""
        return ops["not_equal"](as_tensor(ids), 0) if self.mask_zero else None

    def call(self, ids: Any) -> Any:
        """Look up integers of any shape."""
        if ids.dtype.kind not in "iu":
            raise TypeError(
                f"layer {self.name!r} (Embedding): expected integers, got {ids.dtype}; cast them "
                "with .astype('int32')"
            )
        try:
            rows = ids
            if ids.dtype.kind == "i":  # a negative one would count from the end
                rows = ops["embedding_rows"](ids.astype("int64"), count=self.input_dim)
            return embedding_lookup(self.embeddings.value, rows)
        except IndexError as error:
            raise IndexError(self._outside(ids) or str(error)) from None

    def _outside(self, ids: Any) -> str:
        """Describe the integers that are out of range; empty if they have no values here."""
        if not hasattr(ids.array, "__array__") and not hasattr(ids.array, "__dlpack__"):
            return ""
        values = to_numpy(ids.array)
        outside = values[(values < 0) | (values >= self.input_dim)]
        return (
            f"layer {self.name!r} (Embedding): expected integers from 0 to {self.input_dim - 1} "
            f"(input_dim is {self.input_dim}), got {outside[0]}; {outside.size} of {values.size} "
            "are out of bounds"
        )
