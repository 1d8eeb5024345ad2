"""Cells: one step of a recurrent layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

import numpy as np

from ...core.extend import Variable, is_transformed, ops, sizes_differ
from .. import activations, initializers
from ..base.configured import Configured, positive
from ..base.layer import Elsewhere
from ..base.weights import Rules
from ..dropout import Dropout

__all__ = ["GRUCell", "LSTMCell", "SimpleRNNCell"]


# PyTorch has a bias of the inputs and one of the states; here is their sum.
_SUM = (lambda cell, x: [x[0] + x[1]], lambda cell, x: [x[0], np.zeros_like(x[0])])


class Cell(Configured):
    """One step: ``output, states = cell(x, states)``.

    The contribution of the inputs is linear and the same for all steps. A recurrent layer computes
    it for all of them at once (:meth:`projected`), and each step starts from it (:meth:`step`).

    Attributes
    ----------
    gates : int
        The width of the weights, in multiples of ``units``.
    state_size : tuple of int
        The length of each state.
    """

    _gradtape_internal = (
        "bias bias_shape dropout gates initial_bias initial_states input_bias masked masks "
        "next_states projected recurrent_dropout set_up state_is_output step"
    )

    gates: ClassVar[int]
    #: Whether the first state after a step is its output; a class that defines ``step`` says so.
    state_is_output: ClassVar[bool] = False
    ruled: ClassVar[Mapping[str, str]] = {
        "kernel": "kernel",
        "recurrent": "recurrent_kernel",
        "bias": "bias",
    }
    names_elsewhere: ClassVar[Elsewhere] = {
        "pytorch": {
            "kernel": ("weight_ih", (1, 0)),
            "recurrent_kernel": ("weight_hh", (1, 0)),
            ("bias",): (("bias_ih", "bias_hh"), _SUM),
        }
    }
    defaults_elsewhere: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "pytorch": {"activation": "tanh", "recurrent_activation": "sigmoid"}
    }

    kernel: Variable
    recurrent_kernel: Variable
    bias: Variable | None = None

    _family = """
    Parameters
    ----------
    units
        The length of the output.
    activation
        The activation of the candidate and of the output, ``"tanh"`` by default.
    recurrent_activation
        The activation of the gates, ``"sigmoid"`` by default.
    kernel_initializer, recurrent_initializer, bias_initializer
        Names, objects of :mod:`gradtape.layers.initializers`, or functions of shape and dtype.
    dropout, recurrent_dropout
        The fractions of inputs and of states that are dropped in training, 0 by default.
    seed
        A seed for dropout; by default one is drawn from ``gradtape.random``.
    rules
        ``kernel_regularizer``, ``recurrent_regularizer`` and ``bias_regularizer`` add to the loss:
        names (``"l2"``), objects of :mod:`gradtape.layers.regularizers`, or functions of a tensor.
        Constraints of the same weights, such as ``kernel_constraint``, are objects of
        :mod:`gradtape.layers.constraints`.

    Raises
    ------
    ValueError
        If a setting is out of range. At the call, if the input has a different number of features.
    """

    def set_up(
        self,
        units: int,
        activation: Any,
        use_bias: bool,
        initial: tuple[Any, Any, Any],
        dropout: float,
        recurrent_dropout: float,
        seed: int | None,
    ) -> None:
        """Check and store what the constructors of all cells take.

        Raises
        ------
        ValueError
            If a setting is out of its range.
        """
        (self.units,) = positive(self, units=units)
        self.activation = activations.get(activation)
        self.use_bias = bool(use_bias)
        self.kernel_initializer = initializers.get(initial[0])
        self.recurrent_initializer = initializers.get(initial[1])
        self.bias_initializer = initializers.get(initial[2])
        self.seed = seed
        again = None if seed is None else seed + 1
        kind = self.given_dtype
        self.input_dropout = self.state_dropout = None
        if dropout:
            self.input_dropout = Dropout(dropout, seed, dtype=kind)
        if recurrent_dropout:
            self.state_dropout = Dropout(recurrent_dropout, again, dtype=kind)

    @classmethod
    def _rules(cls) -> tuple[str, ...]:
        # outputs are the layer's: a layer runs steps of a cell, and does not call it
        return tuple(rule for rule in super()._rules() if rule != "activity_regularizer")

    @property
    def dropout(self) -> float:
        """The fraction of the inputs that is dropped in training."""
        return 0.0 if self.input_dropout is None else self.input_dropout.rate

    @property
    def recurrent_dropout(self) -> float:
        """The fraction of the states that is dropped in training."""
        return 0.0 if self.state_dropout is None else self.state_dropout.rate

    @property
    def state_size(self) -> tuple[int, ...]:
        """The length of each state."""
        return (self.units,)

    @property
    def output_size(self) -> int:
        """The length of the output."""
        return self.units

    @property
    def built(self) -> bool:
        """Whether the kernels are there."""
        return "recurrent_kernel" in vars(self)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The kernels, and the bias if there is one."""
        return ("kernel", "recurrent_kernel", "bias")[: 3 if self.use_bias else 2]

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return the input shape that a kernel belongs to."""
        kernel = shapes.get("kernel", ())
        return (None, kernel[0]) if len(kernel) == 2 else None

    def build(self, input_shape: Any) -> None:
        """Make the weights for inputs whose last axis is known."""
        width = self.gates * self.units
        shape = (self.known(input_shape), width)
        self.kernel = self.add_weight(shape, self.kernel_initializer, "kernel")
        self.recurrent_kernel = self.add_weight(
            (self.units, width), self.recurrent_initializer, "recurrent_kernel"
        )
        if self.use_bias:
            self.bias = self.add_weight(self.bias_shape, self.initial_bias, "bias")

    @property
    def bias_shape(self) -> tuple[int, ...]:
        """The bias's shape."""
        return (self.gates * self.units,)

    def initial_bias(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return the bias's initial values."""
        return self.bias_initializer(shape, dtype)

    def initial_states(self, x: Any) -> list[Any]:
        """Return zeros, for inputs ``x`` of one step."""
        return [zeros_on_device_of(x, n, self.kernel.dtype) for n in self.state_size]

    initial_states.gives_zeros = True  # type: ignore[attr-defined]

    def projected(self, x: Any) -> Any:
        """Return the inputs' contribution, for inputs of one step or of many."""
        if sizes_differ((x.shape or (None,))[-1], self.kernel.shape[0]):
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): expected inputs of shape "
                f"(..., {self.kernel.shape[0]}), got {x.shape}"
            )
        kernel = self.kernel.value
        x = x.astype(kernel.dtype) if x.dtype.kind in "biu" else x
        y = ops["matmul"](x, kernel)
        return y if self.bias is None else ops["add"](y, self.input_bias())

    def input_bias(self) -> Any:
        """Return the bias of the inputs' contribution."""
        assert self.bias is not None
        return self.bias.value

    def step(self, share: Any, states: Sequence[Any], kept: Any = None) -> tuple[Any, list[Any]]:
        """Return the output and the next states.

        Parameters
        ----------
        share
            The result of :meth:`projected` for the step's inputs.
        states
            The states before it.
        kept
            The factor of the previous step's output: dropout of states.
        """
        raise NotImplementedError

    def masks(self, x: Any, training: Any) -> tuple[Any, Any]:
        """Return the factors of inputs and states in training, the same at each step.

        Parameters
        ----------
        x
            Inputs of one step.
        training
            Whether it is training.
        """
        first = second = None
        if training and self.input_dropout is not None:
            first = self.input_dropout(ops["ones_like"](x), training=True)
        if training and self.state_dropout is not None:
            like = self.initial_states(x)[0]
            second = self.state_dropout(ops["ones_like"](like), training=True)
        return first, second

    def call(self, x: Any, states: Any, training: bool = False) -> tuple[Any, list[Any]]:
        """Run a step with inputs ``x`` of shape ``(batch, features)``."""
        given = states if isinstance(states, (list, tuple)) else [states]
        return self.masked(x, given, self.masks(x, training))

    def masked(self, x: Any, states: Any, masks: tuple[Any, Any]) -> tuple[Any, list[Any]]:
        """Run a step with the result of :meth:`masks`."""
        dropped, kept = masks
        return self.step(self.projected(x if dropped is None else x * dropped), states, kept)


class SimpleRNNCell(Cell, saved_as="layers.SimpleRNNCell"):
    """A step of :class:`SimpleRNN`: ``tanh(x @ kernel + h @ recurrent_kernel + bias)``.

    Parameters
    ----------
    activation
        A name or any callable, ``"tanh"`` by default.

    Examples
    --------
    >>> cell = gt.layers.SimpleRNNCell(4)
    >>> output, states = cell(gt.ones((2, 3)), [gt.zeros((2, 4))])
    >>> output.shape
    (2, 4)
    """

    state_is_output = True
    gates = 1

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        initial = (kernel_initializer, recurrent_initializer, bias_initializer)
        self.set_up(units, activation, use_bias, initial, dropout, recurrent_dropout, seed)

    def step(self, share: Any, states: Sequence[Any], kept: Any = None) -> tuple[Any, list[Any]]:
        """Return the output, which is also the next state."""
        h = states[0] if kept is None else states[0] * kept
        y = ops["add"](share, ops["matmul"](h, self.recurrent_kernel.value))
        y = y if self.activation is None else self.activation(y)
        return y, [y]


class LSTMCell(Cell, saved_as="layers.LSTMCell"):
    """A step of :class:`LSTM`.

    Parameters
    ----------
    unit_forget_bias
        Whether the forget gate's bias starts at 1; true by default.

    Examples
    --------
    >>> cell = gt.layers.LSTMCell(4)
    >>> output, (h, c) = cell(gt.ones((2, 3)), [gt.zeros((2, 4)), gt.zeros((2, 4))])
    >>> output.shape
    (2, 4)
    """

    state_is_output = True
    gates = 4

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        initial = (kernel_initializer, recurrent_initializer, bias_initializer)
        self.set_up(units, activation, use_bias, initial, dropout, recurrent_dropout, seed)
        self.recurrent_activation = activations.get(recurrent_activation)
        self.unit_forget_bias = bool(unit_forget_bias)

    @property
    def state_size(self) -> tuple[int, ...]:
        """The lengths of the output and of the memory."""
        return (self.units, self.units)

    def initial_bias(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return the bias's initial values: 1 for the forget gate, if requested."""
        value = np.array(self.bias_initializer(shape, dtype))
        if self.unit_forget_bias:
            value[self.units : 2 * self.units] = 1
        return value

    def step(self, share: Any, states: Sequence[Any], kept: Any = None) -> tuple[Any, list[Any]]:
        """Return the output, and the next states, which are the output and the memory."""
        h, c = states
        h = h if kept is None else h * kept
        z = ops["add"](share, ops["matmul"](h, self.recurrent_kernel.value))
        y, c = self.next_states(z, c)
        return y, [y, c]

    def next_states(self, z: Any, c: Any) -> tuple[Any, Any]:
        """Return the output and the next memory.

        Parameters
        ----------
        z
            The inputs of the gates, of shape ``(batch, 4 * units)``: of the input gate, the forget
            gate, the candidate and the output gate.
        c
            The memory.
        """
        if self._is_usual() and _is_concrete(z, c):  # traces have the formula: it is compiled
            y, c = ops["lstm_gates"](z, c)
            return y, c
        gate = self.recurrent_activation or ops["identity"]
        act = self.activation or ops["identity"]
        both, g, o = ops["split"](z, sections=(2 * self.units, 3 * self.units), axis=-1)
        i, f = ops["split"](gate(both), sections=2, axis=-1)  # one call for two gates
        c = ops["add"](ops["multiply"](f, c), ops["multiply"](i, act(g)))
        return ops["multiply"](gate(o), act(c)), c

    def _is_usual(self) -> bool:
        """Return whether the activations are those of the op for all gates."""
        return self.activation is ops["tanh"] and self.recurrent_activation is ops["sigmoid"]


def _is_concrete(z: Any, c: Any) -> bool:
    """Return whether the gates' inputs and the memory are arrays, of one dtype and batch.

    In 16 bits the op, which rounds once, would differ from the formula that traces have.
    """
    concrete = not any(is_transformed(getattr(x, "array", x)) for x in (z, c))
    concrete = concrete and np.dtype(z.dtype).itemsize >= 4
    return concrete and z.dtype == c.dtype and z.shape[:-1] == c.shape[:-1]


def _gates_swapped(cell: GRUCell, array: Any) -> Any:
    """Return an array with the gates along its last axis in PyTorch's order, or back in ours."""
    if not cell.reset_after:
        raise ValueError("reset_after is False, and PyTorch resets after the product")
    update, reset, candidate = np.split(array, 3, axis=-1)
    return np.concatenate([reset, update, candidate], axis=-1)


_GATES = (
    lambda cell, array: _gates_swapped(cell, array.T),
    lambda cell, array: _gates_swapped(cell, array).T,
)
_BIASES = (
    lambda cell, x: [_gates_swapped(cell, np.stack(x))],
    lambda cell, x: list(_gates_swapped(cell, x[0])),
)


class GRUCell(Cell, saved_as="layers.GRUCell"):
    """A step of :class:`GRU`.

    Parameters
    ----------
    activation
        The activation of the candidate, ``"tanh"`` by default.
    reset_after
        Whether the reset gate comes after the product with the recurrent kernel; true by default.
        There are then two biases, shape ``(2, 3 * units)``.

    Examples
    --------
    >>> cell = gt.layers.GRUCell(4)
    >>> output, states = cell(gt.ones((2, 3)), [gt.zeros((2, 4))])
    >>> output.shape
    (2, 4)
    """

    state_is_output = True
    gates = 3
    names_elsewhere: ClassVar[Elsewhere] = {
        "pytorch": {
            "kernel": ("weight_ih", _GATES),
            "recurrent_kernel": ("weight_hh", _GATES),
            ("bias",): (("bias_ih", "bias_hh"), _BIASES),
        }
    }

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        reset_after: bool = True,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        initial = (kernel_initializer, recurrent_initializer, bias_initializer)
        self.set_up(units, activation, use_bias, initial, dropout, recurrent_dropout, seed)
        self.recurrent_activation = activations.get(recurrent_activation)
        self.reset_after = bool(reset_after)

    @property
    def bias_shape(self) -> tuple[int, ...]:
        """The bias's shape: for inputs and for states, if the reset comes after the product."""
        return (2, 3 * self.units) if self.reset_after else (3 * self.units,)

    def input_bias(self) -> Any:
        """Return the bias of the inputs' share."""
        bias = super().input_bias()
        return bias[0] if self.reset_after else bias

    def step(self, share: Any, states: Sequence[Any], kept: Any = None) -> tuple[Any, list[Any]]:
        """Return the output, which is the next state too."""
        before = states[0]
        h = before if kept is None else before * kept
        gate = self.recurrent_activation or ops["identity"]
        act = self.activation or ops["identity"]
        kernel, units = self.recurrent_kernel.value, self.units
        if self.reset_after:
            inner = ops["matmul"](h, kernel)
            if self.bias is not None:
                inner = ops["add"](inner, self.bias.value[1])
            xz, xr, xh = ops["split"](share, sections=3, axis=-1)
            hz, hr, hh = ops["split"](inner, sections=3, axis=-1)
            z, r = gate(ops["add"](xz, hz)), gate(ops["add"](xr, hr))
            candidate = act(ops["add"](xh, ops["multiply"](r, hh)))
        else:
            gates = gate(share[..., : 2 * units] + ops["matmul"](h, kernel[:, : 2 * units]))
            z, r = ops["split"](gates, sections=2, axis=-1)
            inner = ops["matmul"](ops["multiply"](r, h), kernel[:, 2 * units :])
            candidate = act(ops["add"](share[..., 2 * units :], inner))
        y = ops["add"](ops["multiply"](z, before), ops["multiply"](1.0 - z, candidate))
        return y, [y]


def zeros_on_device_of(x: Any, size: int, dtype: Any) -> Any:
    """Return zeros of shape ``(batch, size)`` on the device of ``x``, of shape ``(batch, ...)``."""
    column = ops["sum"](ops["zeros_like"](x), axis=tuple(range(1, x.ndim)))
    column = ops["expand_dims"](column, axis=1)
    return ops["broadcast_to"](column.astype(dtype), shape=(x.shape[0], size))
