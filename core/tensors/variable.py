"""``Variable``: state that models train, read through tensors and changed by assignment."""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import prod
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, Never

import numpy as np

from ..base.array_types import TensorSpec, next_id
from ..base.context import active_graph, active_tapes, note_trainable
from ..base.dtypes import (
    CASTING,
    computing,
    default_dtype,
    in_precision,
    is_differentiable,
    numpy_dtype,
)
from ..base.sizes import Shape, same_shape
from ..base.table import services
from ..base.user_code import not_known
from ..errors import TraceError
from ..ops.dispatch import check_same_backend, settled, settling
from .convert import as_stored_value, check_cast, constant, own_array
from .notebooks import table
from .tensor import Tensor
from .value_holder import ValueHolder

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What to use for arguments of PyTorch and TensorFlow.
_MEANT = {
    "device": "gradtape.backend(place) around it",
    "requires_grad": "trainable",
    "shape": "an initial value of that shape, such as gradtape.zeros(shape)",
}


#: Holds an object that another one replaces whenever a variable begins or ends to train.
TOGGLED = [object()]


class Pending(NamedTuple):
    """A variable's value that is loaded at its first use.

    Attributes
    ----------
    read
        A function that returns the value as a new NumPy array.
    shape, dtype
        The array's shape and dtype.
    """

    read: Callable[[], NDArray[Any]]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Variable(ValueHolder):
    """A mutable tensor with a fixed shape and dtype.

    Reading a trainable variable inside a :class:`GradientTape` watches it. A value that was read
    does not change when the variable is assigned later.

    Several threads may change one variable. Each ``assign``, ``assign_add`` and ``assign_sub``,
    each step of an optimizer, and each call of a traced function that assigns it is atomic. If you
    read the value and assign it in separate calls, hold ``lock`` during both.

    Parameters
    ----------
    initial_value
        Anything that :func:`gradtape.constant` takes, or a function of no arguments returning it.
    trainable
        Whether tapes watch it and optimizers change it. Integer and boolean variables never train.
    name
        A name for messages and saved files.
    dtype
        The dtype, if not the value's own.
    unknown
        Any other argument is an error, which says what to use.

    Attributes
    ----------
    lock : threading.RLock
        The lock to hold while the value changes. If the new value depends on the old one, hold it
        from the read on.

    Raises
    ------
    TypeError
        If the value is not numeric.
    TraceError
        If the initial value is unknown in a trace.

    Examples
    --------
    >>> w = gt.Variable([1.0, 2.0])
    >>> with gt.GradientTape() as tape:
    ...     y = gt.sum(w * w)
    >>> tape.gradient(y, w).tolist()
    [2.0, 4.0]
    >>> w.assign_sub([1.0, 1.0]).tolist()
    [0.0, 1.0]
    """

    _gradtape_internal = "check_shape holding id read_as set_array unasked"

    __slots__ = ("__weakref__", "_array", "_pending", "_trainable", "id", "lock", "name", "unasked")

    def __init__(
        self,
        initial_value: Any,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        **unknown: Never,
    ) -> None:
        for argument in unknown:
            instead = _MEANT.get(argument, "initial_value, trainable, name and dtype")
            raise TypeError(f"Variable takes no argument {argument!r}; use {instead}")
        if isinstance(initial_value, type):
            raise TypeError(f"Variable: the initial value is the class {initial_value.__name__}")
        if callable(initial_value):
            initial_value = initial_value()
        _check_trainable(trainable)
        initial = constant(initial_value, dtype)
        array = initial.array
        if not hasattr(array, "__array__") and not hasattr(array, "__dlpack__"):
            raise not_known(array, "the initial value of a Variable")
        self._array = array
        self._begin(array.dtype, trainable, name, None)
        given = dtype is None and isinstance(initial_value, (np.ndarray, np.generic))
        self.unasked = given and numpy_dtype(array.dtype) != default_dtype()
        if any(tape.checks_constants for tape in active_tapes.get()):
            self._report_assignment(initial, "assign")

    def _begin(
        self, dtype: np.dtype[Any], trainable: bool, name: str | None, pending: Pending | None
    ) -> None:
        self._pending = pending
        self._trainable = bool(trainable) and is_differentiable(numpy_dtype(dtype))
        self.name = "Variable" if name is None else str(name)
        self.unasked = False
        self.id = next_id()
        self.lock = RLock()

    @classmethod
    def holding(
        cls, array: NDArray[Any] | Pending, trainable: bool = True, name: str | None = None
    ) -> Variable:
        """Return a variable of an array with no other holder, which is not copied on the host.

        Parameters
        ----------
        array
            The array, or a :class:`Pending` that loads it at the first use of the value.
        trainable, name
            As for a variable.

        Returns
        -------
        Variable
            A variable on the current backend.
        """
        variable = cls.__new__(cls)
        if isinstance(array, Pending):
            variable._begin(array.dtype, trainable, name, array)
        else:
            variable._array = own_array(array)
            variable._begin(array.dtype, trainable, name, None)
        return variable

    def __getattr__(self, name: str) -> Any:
        # the slot of the array is not set if the value is not loaded yet, or is put away
        if name != "_array":
            return object.__getattribute__(self, name)  # raises the error again
        with self.lock:
            if self._pending is not None:  # no other thread was faster
                self._array = own_array(self._pending.read())
                self._pending = None
            return object.__getattribute__(self, name)

    @property
    def trainable(self) -> bool:
        """Whether tapes watch it and optimizers change it. A traced function that reads this is
        traced again when it changes."""
        return note_trainable(self, self._trainable)

    @trainable.setter
    def trainable(self, value: bool) -> None:
        _check_trainable(value)
        if self._trainable is not bool(value):
            self._trainable = bool(value)
            TOGGLED[0] = object()

    @property
    def value(self) -> Tensor:
        """The current value; reading it watches the variable if it is trainable.

        The read is recorded by the tapes that are active now; to a tape that starts later, this
        tensor is a constant. In a layer that computes in another dtype, it has that dtype.
        """
        graph = active_graph.get()
        read = Tensor(self._array if graph is None else graph.read(self))
        for tape in active_tapes.get():
            tape.accessed(self, read)
        return in_precision(read, computing.get()) if CASTING else read

    def read_as(self, array: Any) -> Tensor:
        """Return the variable's value as a tensor, and report the read to the active tapes.

        Only for ops, which do not return this tensor to users: rows that are read one by one are
        then rows of one tensor. Reads by users have separate identities, since each may be a
        source.

        Parameters
        ----------
        array
            The variable's array, or its symbol in a trace.

        Returns
        -------
        Tensor
            A tensor with a new identity, which further reads under one tape share.
        """
        tapes = active_tapes.get()
        reads = tapes[0].reads if len(tapes) == 1 else None
        if reads is not None:
            known = reads.get(self.id)
            if known is not None and known[0] is array:
                return Tensor.with_id(array, known[1])
        read = Tensor(array)
        for tape in tapes:
            tape.accessed(self, read)
        if reads is not None:
            reads[self.id] = array, read.id
        return read

    def _read(self) -> Tensor:
        graph = active_graph.get()
        read = self.read_as(self._array if graph is None else graph.read(self))
        return in_precision(read, computing.get()) if CASTING else read

    def handle(self) -> Tensor:
        """Return the value with the variable's identity on tapes, without watching the variable.

        Every tape that watches the variable follows this tensor. It is for code that names the
        variable to a tape (sources, inputs of a record), and must not reach users.

        Returns
        -------
        Tensor
            The current value.
        """
        graph = active_graph.get()
        return Tensor.with_id(self._array if graph is None else graph.read(self), self.id)

    def read_value(self) -> Tensor:
        """Return the current value, as :attr:`value` does.

        Returns
        -------
        Tensor
            The current value; tapes watch the variable if it is trainable.
        """
        return self.value

    # read many times per step, so it avoids a Python function call
    array = property(
        attrgetter("_array"), doc="The variable's raw array; reading it is not watched or traced."
    )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; it never changes."""
        pending = self._pending  # another thread may set it to None meanwhile
        held = self._array if pending is None else pending
        shape: tuple[int, ...] = held.shape
        return shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype; it never changes."""
        pending = self._pending  # another thread may set it to None meanwhile
        held = self._array if pending is None else pending
        return numpy_dtype(held.dtype)

    def assign(self, value: Any) -> Variable:
        """Replace the value.

        Parameters
        ----------
        value
            A value of the variable's shape. Its dtype is cast within a kind (``float64`` to
            ``float32``, but not ``float32`` to ``int32``). No gradient passes to it.

        Returns
        -------
        Variable
            The variable itself.

        Raises
        ------
        ValueError
            If the shape differs; the variable is unchanged.
        TypeError
            If the dtype cannot be cast, or the value is on another backend; the variable is
            unchanged.
        """
        value = as_stored_value(value, self, "assign")
        array = self._checked(value, "assign")
        with self.lock:
            self._set(array)
        return self._report_assignment(value, "assign")

    def assign_add(self, delta: Any) -> Variable:
        """Add ``delta`` to the value.

        Parameters
        ----------
        delta
            The value to add; it broadcasts to the variable's shape. No gradient passes to it.

        Returns
        -------
        Variable
            The variable itself.

        Raises
        ------
        ValueError
            If the result has another shape; the variable is unchanged.
        TypeError
            If the dtype of the result cannot be converted; the variable is unchanged.
        """
        delta = as_stored_value(delta, self, "assign_add")
        with self.lock:
            value = self._current() + delta
            self._set(self._checked(value, "assign_add"))
        return self._report_assignment(value, "assign_add")

    def assign_sub(self, delta: Any) -> Variable:
        """Subtract ``delta`` from the value.

        Parameters
        ----------
        delta
            The value to subtract; it broadcasts to the variable's shape. No gradient passes to it.

        Returns
        -------
        Variable
            The variable itself.

        Raises
        ------
        ValueError
            If the result has another shape; the variable is unchanged.
        TypeError
            If the dtype of the result cannot be converted; the variable is unchanged.
        """
        delta = as_stored_value(delta, self, "assign_sub")
        with self.lock:
            value = self._current() - delta
            self._set(self._checked(value, "assign_sub"))
        return self._report_assignment(value, "assign_sub")

    def _report_assignment(self, value: Tensor, method: str) -> Variable:
        """Report an assignment to the active tapes, and return the variable."""
        for tape in active_tapes.get():
            tape.record_break(
                [value],
                [self.handle()],
                f"{method} to variable {self.name!r} passes no gradient to the value",
            )
        return self

    def _current(self) -> Tensor:
        graph = active_graph.get()
        return Tensor(self._array if graph is None else graph.read(self))

    def _checked(self, value: Tensor, method: str) -> Any:
        array = value.array
        if getattr(array, "batched", False):
            raise TraceError(
                f"{method}: variable {self.name!r} has one value, but the value to assign differs "
                "from example to example of a vmap; return it from the function instead"
            )
        self.check_shape(array.shape, method)
        if array.dtype is not self._array.dtype and value.dtype != self.dtype:
            if not np.can_cast(value.dtype, self.dtype, "same_kind"):
                raise TypeError(
                    f"{method}: variable {self.name!r} has dtype {self.dtype}, but the value has "
                    f"{value.dtype}; cast it with value.astype({self.dtype.name!r})"
                )
            check_cast(value, self.dtype, f"{method} to variable {self.name!r}")
            array = value.astype(self.dtype).array
        if active_graph.get() is None:
            check_same_backend(array, self._array, f"{method} to variable {self.name!r}")
        return array

    def check_shape(self, shape: Shape, method: str = "assign") -> None:
        """Raise ``ValueError`` if a value of ``shape`` does not fit, as far as it is known.

        Parameters
        ----------
        shape
            A tuple of sizes, ``None`` for an unknown one; or ``None`` for an unknown rank.
        method
            The name at the start of the message.

        Raises
        ------
        ValueError
            If the number of axes or a known size differs from the variable's.
        """
        own = self._array.shape
        if not same_shape(shape, own) and not TensorSpec(own, self.dtype).admits(shape):
            raise ValueError(
                f"{method}: variable {self.name!r} has shape {self.shape}, but the value has shape "
                f"{shape}"
            )

    def _set(self, array: Any) -> None:
        for tape in active_tapes.get():
            tape.changing(self, self._current().array)
        graph = active_graph.get()
        if graph is None:
            self._array = settled((array,))[0] if settling else array
        else:
            graph.assign(self, array)

    def set_array(self, array: Any) -> None:
        """Replace the raw array without checks, for optimizers and readers that have checked it.

        They must hold :func:`exclusive` from the read of the old array on.

        Parameters
        ----------
        array
            An array of the variable's backend, shape and dtype.
        """
        for tape in active_tapes.get():
            tape.changing(self, self._array)
        self._array = settled((array,))[0] if settling else array

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        reduced: tuple[Any, ...] = services["saving.pickle_variable"](self, protocol)
        return reduced

    def __copy__(self) -> Variable:
        twin = self._twin()
        if hasattr(self, "__dict__"):  # a subclass's
            vars(twin).update(vars(self))
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        twin = memo[id(self)] = self._twin()
        if hasattr(self, "__dict__"):
            vars(twin).update(copy.deepcopy(vars(self), memo))
        return twin

    def _twin(self) -> Variable:
        """Return a new variable that starts with the same value."""
        twin = type(self).__new__(type(self))
        twin._array = self._array  # arrays are replaced on assignment, never written
        twin._begin(self.dtype, self._trainable, self.name, None)
        return twin

    def __repr__(self) -> str:
        trainable = "" if self.trainable else " trainable=False"
        value = np.array2string(np.asarray(self.numpy()), separator=", ", threshold=100)
        gap = "\n" if "\n" in value else ""
        return (
            f"<Variable {self.name!r} shape={self.shape} dtype={self.dtype}{trainable} "
            f"value={gap}{value}>"
        )

    def _repr_html_(self) -> str:
        trainable = "" if self.trainable else " trainable=False"
        title = f"Variable {self.name!r} shape={self.shape} dtype={self.dtype}{trainable}"
        return table(title, np.asarray(self.numpy()))


def _check_trainable(given: Any) -> None:
    """Raise unless it is a boolean: the second argument may be meant as a dtype or a name."""
    if not isinstance(given, (bool, np.bool_)):
        raise TypeError(
            f"Variable: trainable is True or False, got {given!r}; give other settings by name: "
            "gradtape.Variable(value, name=..., dtype=...)"
        )
