"""``Stream``: the variable that holds the state of a random number stream, also after a fork."""

from __future__ import annotations

import os
import secrets
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from ..base.context import init_scope
from ..base.table import services
from ..ops.dispatch import to_numpy
from .assignment import exclusive
from .convert import beside
from .tensor import Tensor
from .variable import Variable

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
            self.set_array(beside(key, Tensor(self._array)).array)


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
        change = secrets.randbits(62)  # one for all: a copy keeps drawing the same as its original
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
