"""Recurrent layers that create their cells: ``SimpleRNN``, ``LSTM``, ``GRU``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Unpack

from .. import regularizers
from ..base.weights import Rules
from ..configs import serialized
from .cells import Cell, GRUCell, LSTMCell, SimpleRNNCell
from .rnn import RNN

__all__ = ["GRU", "LSTM", "SimpleRNN"]


if TYPE_CHECKING:

    class _Settings(Rules, total=False):
        """The arguments of these layers by name."""

        activation: Any
        recurrent_activation: Any
        use_bias: bool
        kernel_initializer: Any
        recurrent_initializer: Any
        bias_initializer: Any
        unit_forget_bias: bool
        dropout: float
        recurrent_dropout: float
        seed: int | None
        reset_after: bool
        return_sequences: bool
        return_state: bool
        go_backwards: bool
        stateful: bool
        unroll: bool
        name: str | None
        dtype: Any


class _Recurrent(RNN):
    """A recurrent layer that creates its cell, and takes the arguments of both.

    A subclass names the class of its cells, ``cell=LSTMCell``, which makes its constructor.
    """

    _gradtape_internal = "set_up"

    _family = """
    Parameters
    ----------
    units
        The length of the output.
    recurrent_activation
        That of the gates, ``"sigmoid"`` by default.
    use_bias
        Whether to add a bias; true by default.
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

    if TYPE_CHECKING:  # what a constructor takes by position depends on the cell

        def __init__(self, units: int, *args: Any, **settings: Unpack[_Settings]) -> None: ...

    def __init_subclass__(cls, cell: type[Cell] | None = None, **kwargs: Any) -> None:
        if cell is not None:
            cls.__init__ = _constructor(cell)  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)

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


def _constructor(cell_class: type[Cell]) -> Any:
    """Return the constructor of a layer: the arguments of its cell, then those of :class:`RNN`.

    The last arguments are ``name``, ``dtype`` and the rules.
    """
    of_cell = inspect.signature(cell_class.__init__)
    ends = {name: of_cell.parameters[name] for name in ("name", "dtype", "rules")}
    steps = {
        name: parameter
        for name, parameter in inspect.signature(RNN.__init__).parameters.items()
        if name not in ("self", "cell", *ends)
    }
    first = {name: x for name, x in of_cell.parameters.items() if name not in ends}
    signature = of_cell.replace(parameters=[*first.values(), *steps.values(), *ends.values()])

    def __init__(self: Any, *args: Any, **settings: Any) -> None:
        try:
            given = dict(signature.bind(self, *args, **settings).arguments)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}.__init__(): {error}") from None
        del given["self"]
        given |= given.pop("rules", {})
        activity, name = given.pop("activity_regularizer", None), given.pop("name", None)
        own = {step: given.pop(step) for step in steps if step in given}
        self.set_up(cell_class(**given), name, activity, **own)

    vars(__init__)["__signature__"] = signature
    return __init__


class SimpleRNN(_Recurrent, cell=SimpleRNNCell, saved_as="layers.SimpleRNN"):
    """Recurrent layer: ``h = tanh(x @ kernel + h @ recurrent_kernel + bias)`` at each step.

    Parameters
    ----------
    activation
        A name or any callable, ``"tanh"`` by default.

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


class LSTM(_Recurrent, cell=LSTMCell, saved_as="layers.LSTM"):
    """Recurrent layer with a memory, which gates write, keep and read.

    Parameters
    ----------
    activation
        That of the candidate and of the output, ``"tanh"`` by default.
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


class GRU(_Recurrent, cell=GRUCell, saved_as="layers.GRU"):
    """Recurrent layer whose gates mix the state with a candidate for the next.

    Parameters
    ----------
    activation
        That of the candidate, ``"tanh"`` by default.
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
