"""``Batched``: an array with a hidden leading axis, on which ops run once for all examples.

``vmap`` and Jacobians pass such arrays to functions and gradient rules written for one example. An
op that receives one applies its batching rule. The rule adapts parameters to the hidden axis and
runs the op on the array inside, which may be of any type.

Every transformation has a level. Later ones have higher levels, and the highest level among an op's
arrays is the outermost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from types import MappingProxyType
from typing import Any

from ..base.context import after_batches
from ..base.dtypes import numpy_dtype
from ..base.operators import ArrayOperators
from ..base.sizes import known_size
from ..base.spec import describe
from ..base.table import F
from ..errors import TraceError
from ..tensors.op import Op

new_level = count(1).__next__
#: The levels of running batches.
running_levels: set[int] = set()


class running_level:
    """Run a block with a new level; arrays of this level can be used only inside the block."""

    __slots__ = ("_level",)

    def __enter__(self) -> int:
        self._level = new_level()
        running_levels.add(self._level)
        return self._level

    def __exit__(self, *error: object) -> None:
        running_levels.discard(self._level)


class Batched(ArrayOperators):
    """One array per example, along the first axis of ``array``, which other code does not see."""

    __slots__ = ("array", "level")
    batched = True

    def __init__(self, array: Any, level: int) -> None:
        self.array = array
        self.level = level

    @property
    def shape(self) -> Any:
        """The shape of one example."""
        shape = self.array.shape
        return None if shape is None else shape[1:]

    @property
    def ndim(self) -> int:
        """The number of axes of one example."""
        return len(self.array.shape) - 1

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return numpy_dtype(self.array.dtype)

    def gone(self) -> str | None:
        """Return a message if the batch has ended; None while it runs."""
        array: Any = self
        while type(array) is Batched:
            if array.level not in running_levels and not after_batches.get():
                return self.used_after()
            array = array.array
        return None

    def used_after(self) -> str:
        """Return the message for a use after the batch."""
        return (
            f"{self!r} was made inside a vmap and is used after it; return it from the function "
            "instead"
        )

    def why_unknown(self) -> str:
        gone = self.gone()
        if gone is not None:
            return f"any more: {gone}"
        return (
            f"inside vmap, where it may differ from example to example ({self!r}). Compute with "
            "gradtape ops instead (gradtape.where or gradtape.cond for a choice), or loop over the "
            "examples."
        )

    def __repr__(self) -> str:
        return f"a batch of {describe(self.shape, self.dtype)}"


#: By the level of a batch that has ended: the examples that ops see of it, and how many it has.
_seen: ContextVar[Mapping[int, tuple[slice, int]]] = ContextVar(
    "gradtape_seen_examples", default=MappingProxyType({})
)


@contextmanager
def some_examples(level: int, examples: slice, size: int) -> Iterator[None]:
    """Run a block in which ops see only some examples of a batch of ``size`` that has ended.

    What they return has fewer rows than arrays from before; no block of examples is a whole batch.
    """
    token = _seen.set({**_seen.get(), level: (examples, size)})
    try:
        yield
    finally:
        _seen.reset(token)


def seen_rows(x: Batched) -> Any:
    """Return the array of a batch, with the hidden axis first: the examples that ops see."""
    seen = _seen.get().get(x.level)
    if seen is None or x.array.shape[0] != seen[1]:
        return x.array
    return F.getitem(x.array, index=(("slice", seen[0].start, seen[0].stop, None),))


class Shared:
    """What a batching rule returns for a result that is the same for all examples."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


def as_batched(x: Any, beside: Any) -> Any:
    """Return an array that all examples share, repeated along a new first axis.

    Parameters
    ----------
    x
        The array, without the hidden axis.
    beside
        An array with the hidden axis, whose first axis has the wanted length.

    Returns
    -------
    array
        Of shape ``(beside.shape[0], *x.shape)``.

    Examples
    --------
    >>> from gradtape.plugin import as_batched
    >>> as_batched(np.ones(3), np.zeros((5, 2))).shape
    (5, 3)
    """
    return F.spread_like(x, beside)


def row_of(x: Any) -> Any:
    """Return an array of the shape and dtype of one example of a batch, which may be empty."""
    if x.shape and known_size(x.shape[0]) and x.shape[0]:
        return F.getitem(x, index=(0,))
    return F.cast_like(F.sum(F.getitem(x, index=(("slice", 0, 1, None),)), axis=0), x)


def rank_of(x: Any, op: Op) -> int:
    """Return the number of axes of an array, for a batching rule that must know it.

    Parameters
    ----------
    x
        An array of any type; a batching rule receives the inner arrays.
    op
        The op, for the message.

    Returns
    -------
    int
        The number of axes, the hidden one included.

    Raises
    ------
    TraceError
        If the rank is unknown in a trace.

    Examples
    --------
    >>> from gradtape.plugin import rank_of
    >>> rank_of(np.ones((2, 3)), gt.exp)
    2
    """
    if x.shape is None:
        raise TraceError(
            f"{op.name}: vmap needs to know the number of axes; give the TensorSpec of "
            f"{x!r} a shape, with None for unknown sizes"
        )
    return len(x.shape)


def has_level(array: Any, level: int) -> bool:
    """Return whether an array differs from example to example at a level."""
    while type(array) is Batched:
        if array.level == level:
            return True
        array = array.array
    return False


def whole_shape(array: Any) -> Any:
    """Return the shape of the values behind an array, hidden axes included."""
    while type(array) is Batched:
        array = array.array
    return array.shape


def levels_of(array: Any) -> frozenset[int]:
    """Return the levels at which an array differs from example to example."""
    levels = []
    while type(array) is Batched:
        levels.append(array.level)
        array = array.array
    return frozenset(levels)


def outermost(arrays: Sequence[Any]) -> int:
    """Return the highest level among arrays, 0 if none of them is a batch."""
    return max((x.level for x in arrays if type(x) is Batched), default=0)
