"""Recurrent layers that create their cells: ``SimpleRNN``, ``LSTM``, ``GRU``."""

from __future__ import annotations

from typing import Any, Unpack

from .. import regularizers
from ..base.weights import Rules
from ..configs import serialized
from .cells import Cell, GRUCell, LSTMCell, SimpleRNNCell
from .rnn import RNN

__all__ = ["GRU", "LSTM", "SimpleRNN"]


class _Recurrent(RNN):
    """A recurrent layer that creates its cell; the cell's settings come before the layer's."""

    _family = """
    Parameters
    ----------
    kernel_initializer, recurrent_initializer, bias_initializer
        Names, objects of :mod:`gradtape.layers.initializers`, or functions of shape and dtype.
    dropout, recurrent_dropout
        The fractions of inputs and of states that are dropped in training, 0 by default; the same
        elements at every step of a batch.
    seed
        A seed for dropout; by default one is drawn from ``gradtape.random``.
    return_sequences, return_state, go_backwards, stateful, unroll
        As for :class:`RNN`, ``False`` by default.
    rules
        ``kernel_regularizer``, ``recurrent_regularizer``, ``bias_regularizer`` and
        ``activity_regularizer`` (of the output) add to the loss: names (``"l2"``), objects of
        :mod:`gradtape.layers.regularizers`, or functions of a tensor. Constraints of the same
        weights, such as ``kernel_constraint``, are objects of :mod:`gradtape.layers.constraints`.

    Attributes
    ----------
    cell : Layer
        The cell, with ``kernel``, ``recurrent_kernel`` and ``bias``.
    states : list of Variable
        The states of a stateful layer.

    Raises
    ------
    ValueError
        If a setting is out of range. At the call, if the input does not have three axes, or has a
        different number of features.
    """

    def set_up(self, cell: Cell, name: str | None, activity: Any, **settings: bool) -> None:
        """Create the layer with its cell."""
        RNN.__init__(self, cell, **settings, name=name)
        self.dtype = cell.dtype
        if not cell.trainable:
            self.trainable = False
        if activity is not None:
            self.activity_regularizer = regularizers.get(activity)

    @property
    def given_dtype(self) -> str | None:
        """The requested dtype or policy, which is that of the cell."""
        found: str | None = vars(self.cell).get("_gradtape_policy", self.dtype)
        return found

    def rules_given(self) -> dict[str, Any]:
        """Return the regularizers and constraints of the cell's weights, and of the output."""
        activity = serialized("regularizer", self.activity_regularizer)
        own = {} if activity is None else {"activity_regularizer": activity}
        return {**self.cell.rules_given(), **own}

    def __getattr__(self, name: str) -> Any:
        # settings and weights of the cell, as in Keras
        cell = vars(self).get("cell")
        if cell is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(cell, name)


class SimpleRNN(_Recurrent, saved_as="layers.SimpleRNN"):
    """Recurrent layer: ``h = tanh(x @ kernel + h @ recurrent_kernel + bias)`` at each step.

    Parameters
    ----------
    units
        The length of the output.
    activation
        A name or any callable, ``"tanh"`` by default.
    use_bias
        Whether to add a bias; true by default.

    References
    ----------
    J. L. Elman, "Finding Structure in Time", Cognitive Science 14, 1990.

    Examples
    --------
    >>> gt.layers.SimpleRNN(4)(gt.ones((2, 5, 3))).shape
    (2, 4)
    >>> gt.layers.SimpleRNN(4, return_sequences=True)(gt.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

    takes_integers = False

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
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        activity = rules.pop("activity_regularizer", None)
        cell = SimpleRNNCell(
            units,
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            dropout=dropout,
            recurrent_dropout=recurrent_dropout,
            seed=seed,
            dtype=dtype,
            **rules,
        )
        self.set_up(
            cell,
            name,
            activity,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
        )


class LSTM(_Recurrent, saved_as="layers.LSTM"):
    """Recurrent layer with a memory, which gates write, keep and read.

    Parameters
    ----------
    units
        The length of the output.
    activation
        That of the candidate and of the output, ``"tanh"`` by default.
    recurrent_activation
        That of the gates, ``"sigmoid"`` by default.
    use_bias
        Whether to add a bias, as is the default.
    unit_forget_bias
        Whether the forget gate's bias begins with 1, as is the default.

    References
    ----------
    S. Hochreiter and J. Schmidhuber, "Long Short-Term Memory", Neural Computation 9, 1997.

    Examples
    --------
    >>> gt.layers.LSTM(4)(gt.ones((2, 5, 3))).shape
    (2, 4)
    >>> gt.layers.LSTM(4, return_sequences=True)(gt.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

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
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        activity = rules.pop("activity_regularizer", None)
        cell = LSTMCell(
            units,
            activation=activation,
            recurrent_activation=recurrent_activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            unit_forget_bias=unit_forget_bias,
            dropout=dropout,
            recurrent_dropout=recurrent_dropout,
            seed=seed,
            dtype=dtype,
            **rules,
        )
        self.set_up(
            cell,
            name,
            activity,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
        )


class GRU(_Recurrent, saved_as="layers.GRU"):
    """Recurrent layer whose gates mix the state with a candidate for the next.

    Parameters
    ----------
    units
        The length of the output.
    activation
        That of the candidate, ``"tanh"`` by default.
    recurrent_activation
        That of the gates, ``"sigmoid"`` by default.
    use_bias
        Whether to add a bias, as is the default.
    reset_after
        Whether the reset gate comes after the product with the recurrent kernel; true by default.

    References
    ----------
    K. Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for Statistical
    Machine Translation", EMNLP 2014.

    Examples
    --------
    >>> gt.layers.GRU(4)(gt.ones((2, 5, 3))).shape
    (2, 4)
    >>> gt.layers.GRU(4, return_sequences=True)(gt.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

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
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        activity = rules.pop("activity_regularizer", None)
        cell = GRUCell(
            units,
            activation=activation,
            recurrent_activation=recurrent_activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            dropout=dropout,
            recurrent_dropout=recurrent_dropout,
            seed=seed,
            reset_after=reset_after,
            dtype=dtype,
            **rules,
        )
        self.set_up(
            cell,
            name,
            activity,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
        )
