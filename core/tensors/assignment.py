"""Assignment of several variables at once, and Python's in-place operators of variables.

Several variables are locked, assigned, and hidden while their memory is written. ``Stream`` is the
variable that holds the state of a random number stream, also after a fork.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from operator import attrgetter
from types import CodeType, FrameType
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from ..base.array_types import BINARY
from ..base.context import active_tapes, init_scope
from ..base.observers import AllRecords
from ..base.sizes import same_shape
from ..base.table import PACKAGE, services
from ..base.user_code import package_of, unread_argument, warn_user
from ..ops.dispatch import to_numpy
from .convert import on_device_of
from .tensor import Operators, Tensor
from .variable import Pending, Variable

# the slots themselves, which are set without running Python code
_hold, _put_away = vars(Variable)["_array"].__set__, vars(Variable)["_array"].__delete__
_await = vars(Variable)["_pending"].__set__


def set_arrays(variables: Sequence[Variable], arrays: Iterable[Any]) -> None:
    """Replace the raw arrays of variables: all of them, or none if a signal handler raises.

    Parameters
    ----------
    variables
        The variables. An executor passes those of ``graph.updates``, which are locked while it
        runs.
    arrays
        An array for each, of its variable's backend, shape and dtype.

    See Also
    --------
    Variable.set_array : The same for one.

    Examples
    --------
    >>> from gradtape.plugin import set_arrays
    >>> v = gt.Variable([1.0, 2.0])
    >>> set_arrays([v], [np.array([3.0, 4.0], "float32")])
    >>> v.tolist()
    [3.0, 4.0]
    """
    for tape in active_tapes.get():
        for variable in variables:
            tape.changing(variable, variable._array)
    # Python runs signal handlers between bytecode instructions, and this is a single one
    deque(map(_hold, variables, arrays), maxlen=0)


def hide_arrays(variables: Sequence[Variable], copies: Iterable[Pending]) -> None:
    """Hide the arrays of variables while the holder of their locks writes into them.

    Other threads wait, and the same thread reads copies. :func:`restore_arrays` ends this.

    Parameters
    ----------
    variables
        The variables.
    copies
        For each variable, a :class:`Pending` that copies its array.
    """
    # a single instruction, as in set_arrays
    deque(chain(map(_await, variables, copies), map(_put_away, variables)), maxlen=0)


def restore_arrays(variables: Sequence[Variable], arrays: Iterable[Any]) -> None:
    """Restore the arrays that :func:`hide_arrays` has hidden.

    Parameters
    ----------
    variables
        The variables.
    arrays
        The array of each.
    """
    deque(chain(map(_hold, variables, arrays), map(_await, variables, repeat(None))), maxlen=0)


class exclusive:
    """Prevent other threads from changing variables while a block reads and changes them.

    It is reentrant, and any thread may enter it again.

    Parameters
    ----------
    variables
        The variables.
    """

    __slots__ = ("_locks",)

    def __init__(self, variables: Iterable[Variable]) -> None:
        # always in the same order, to avoid deadlocks between threads
        self._locks = [v.lock for v in sorted(set(variables), key=attrgetter("id"))]

    def __enter__(self) -> None:
        for lock in self._locks:
            lock.acquire()

    def __exit__(self, *error: object) -> None:
        for lock in self._locks:
            lock.release()


@contextmanager
def holding(states: Sequence[tuple[Variable, Any]]) -> Iterator[None]:
    """Run a block with other arrays in variables, then restore the current ones.

    Parameters
    ----------
    states
        Variables, each with an array of its backend, shape and dtype.
    """
    others = [(variable, then) for variable, then in states if variable.array is not then]
    with exclusive(variable for variable, _ in states):
        now = [(variable, variable.array) for variable, _ in states]
        try:
            for variable, then in others:
                variable.set_array(then)
            yield
        finally:
            for variable, array in now:
                variable.set_array(array)


# -- in-place operators ----------------------------------------------------------------------------


# For `v -= g`, Python binds the name to a new tensor. NumPy-style code means that in a formula. As
# an update of the variable it does nothing, so it warns.

#: A name in modules whose functions call formulas of the user, which may use ``v -= ...``.
FORMULAS = "_gradtape_formulas"
#: The operators, as Python writes them.
_SYMBOLS = dict(zip(BINARY, "+ - * / // % ** @ & | ^ << >>".split(), strict=True))
#: The methods that update in place; other operators need ``assign``.
_UPDATES = {"add": "assign_add(...)", "sub": "assign_sub(...)"}


def _in_place(name: str) -> Callable[[Variable, Any], Tensor]:
    compute, symbol = getattr(Operators, f"__{name}__"), _SYMBOLS[name]

    def operator(self: Variable, other: Any) -> Tensor:
        result: Tensor = compute(self, other)
        if _seems_an_update(self, result):
            update = _UPDATES.get(name, f"assign(v {symbol} ...)")
            warn_user(
                f"v {symbol}= ... made a new tensor; variable {self.name!r} keeps its value. Write "
                f"v.{update} to change the variable, or v = v {symbol} ... to compute a tensor",
                UserWarning,
            )
        return result

    operator.__name__, operator.__qualname__ = f"__i{name}__", f"Variable.__i{name}__"
    return operator


def _seems_an_update(variable: Variable, result: Tensor) -> bool:
    """Return whether the variable could hold the result, and no formula is being computed."""
    if not same_shape(result.array.shape, variable.shape):
        return False
    if any(type(tape.records) is not AllRecords for tape in active_tapes.get()):
        return False
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:  # a module that computes its output, a loss, a metric
        if FORMULAS in frame.f_globals:
            return False
        frame = frame.f_back
    return True


# For `v += x`, a function that is written for NumPy changes its caller's array. A tensor does not
# change, so what the function computes is lost if it does not use v any more.

#: The addresses of such operators that are known to be right. Each lies within its code, which is
#: kept alive here.
_right: dict[int, CodeType] = {}


def _rebinding(name: str) -> Callable[[Tensor, Any], Tensor]:
    compute, symbol = getattr(Operators, f"__{name}__"), _SYMBOLS[name]

    def operator(self: Tensor, other: Any) -> Tensor:
        frame = sys._getframe(1)
        if id(frame.f_code) + frame.f_lasti not in _right:
            _look_for_lost_update(frame, symbol)
        result: Tensor = compute(self, other)
        return result

    operator.__name__, operator.__qualname__ = f"__i{name}__", f"Tensor.__i{name}__"
    return operator


def _look_for_lost_update(frame: FrameType, symbol: str) -> None:
    """Warn if the running ``v += x`` is meant for an array of the function's caller."""
    code = frame.f_code
    name = unread_argument(code, frame.f_lasti)
    if name and package_of(frame) != PACKAGE:
        warn_user(
            f"{code.co_name}: {name} {symbol}= ... made a new tensor, which nothing uses: the "
            f"caller's tensor stays as it was. Return {name} from {code.co_name} and use the "
            "result, or let the caller pass gradtape.writable(tensor), which changes",
            UserWarning,
        )
        return
    if len(_right) > 10_000:
        _right.clear()
    _right[id(code) + frame.f_lasti] = code


for _name in BINARY:
    setattr(Variable, f"__i{_name}__", _in_place(_name))
    setattr(Tensor, f"__i{_name}__", _rebinding(_name))


_streams: WeakValueDictionary[int, Stream] = WeakValueDictionary()


class Stream(Variable):
    """The key ``[seed, count]`` of a stream of random numbers: a variable that does not train.

    In a forked process a stream with a chosen seed continues where it was. A stream with a random
    seed gets another seed, so that the processes do not draw the same numbers.

    Parameters
    ----------
    key
        Two integers of ``int64``.
    asked
        Whether the user chose the seed. A seed that is assigned later counts as chosen.
    """

    __slots__ = ("_drawn",)

    #: The stream of the process, from which seeds are drawn.
    shared: ClassVar[Stream | None] = None

    def __init__(self, key: Any, asked: bool) -> None:
        with init_scope():
            super().__init__(key, trainable=False, name="state")
        self._drawn = None if asked else self.seed
        _streams[self.id] = self

    @property
    def seed(self) -> int:
        """The seed."""
        return int(to_numpy(self._array)[0])

    @property
    def asked(self) -> bool:
        """Whether the user chose the seed."""
        seed, count = to_numpy(self._array).tolist()
        # a layer may add the count to both integers
        return self._drawn is None or seed not in (self._drawn, self._drawn + count)

    @classmethod
    def of_process(cls) -> Stream:
        """Return the stream of functions without a generator, which ``set_seed`` seeds."""
        if cls.shared is None:
            services["ops.random_generator"]()
        assert cls.shared is not None
        return cls.shared

    @classmethod
    def restored(cls, array: Any, name: str, drawn: int | None) -> Stream:
        """Return a stream as it was saved.

        Parameters
        ----------
        array
            The key, an array with no other holder.
        name
            The variable's name.
        drawn
            The seed from the operating system; None if the user chose the seed.
        """
        stream = cls.holding(array, trainable=False, name=name)
        assert isinstance(stream, Stream)
        stream.__setstate__((drawn,))
        return stream

    @property
    def drawn(self) -> int | None:
        """The seed from the operating system; None if the user chose the seed."""
        return None if self.asked else self._drawn

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if self is Stream.shared:  # a copy uses the stream of its own process
            return Stream.of_process, ()
        return (*super().__reduce_ex__(protocol)[:2], (self._drawn,))

    def __setstate__(self, state: tuple[int | None]) -> None:
        (self._drawn,) = state
        _streams[self.id] = self

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        return self if self is Stream.shared else super().__deepcopy__(memo)

    def _twin(self) -> Variable:
        twin = super()._twin()
        assert isinstance(twin, Stream)
        twin.__setstate__((self._drawn,))
        return twin

    def fork(self, change: int) -> None:
        """Continue with another seed, unless the user chose the current one."""
        if self._drawn is not None and not self.asked:
            seed, count = to_numpy(self._array).tolist()
            seed -= self._drawn
            self._drawn ^= change
            key = np.array([self._drawn + seed, count], np.int64)
            self.set_array(on_device_of(key, Tensor(self._array)).array)


class _Fork:
    """Handles a fork of the process for all streams."""

    def __init__(self) -> None:
        self.held = exclusive(())

    def begin(self) -> None:
        # no other thread may be drawing: in the child the draw would never end
        self.held = exclusive(_streams.values())
        self.held.__enter__()

    def end_in_parent(self) -> None:
        self.held.__exit__()

    def end_in_child(self) -> None:
        self.held.__exit__()
        # one for all: a copy keeps drawing the same as its original
        change = int.from_bytes(os.urandom(8)) >> 2
        with init_scope():
            for stream in list(_streams.values()):
                stream.fork(change)


if hasattr(os, "register_at_fork"):
    _fork = _Fork()
    os.register_at_fork(
        before=_fork.begin,
        after_in_parent=_fork.end_in_parent,
        after_in_child=_fork.end_in_child,
    )
