"""``Batched``: an array with a hidden leading axis, on which ops run once for all examples.

``vmap`` and Jacobians pass such arrays to functions and gradient rules written for one example. An
op that receives one applies its batching rule. The rule adapts parameters to the hidden axis and
runs the op on the array inside, which may be of any type.

Every transformation has a level. Later ones have higher levels, and the highest level among an op's
arrays is the outermost.

``HIDE`` and ``UNHIDE`` move the axis of the examples: they enter and leave a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from itertools import count
from types import MappingProxyType
from typing import Any

from ..base.array_types import ArrayOperators, describe
from ..base.context import Setting, active_batches, active_graph, after_batches, back_in
from ..base.dtypes import numpy_dtype
from ..base.sizes import known_size
from ..base.table import F, ops
from ..base.user_code import raise_hidden
from ..errors import TraceError
from ..ops.dispatch import backend_of, is_transformed
from ..tensors.convert import with_others
from ..tensors.op import Op
from ..tensors.tensor import Tensor

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
        raise_hidden(error[1])


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

    def ended(self) -> str | None:
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
        ended = self.ended()
        if ended is not None:
            return f"any more: {ended}"
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


def some_examples(level: int, examples: slice, size: int) -> Setting[Any]:
    """Run a block in which ops see only some examples of a batch of ``size`` that has ended.

    What they return has fewer rows than arrays from before; no block of examples is a whole batch.
    """
    return Setting(_seen, {**_seen.get(), level: (examples, size)})


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


# -- entering and leaving a batch ------------------------------------------------------------------


class _Boundary(Op):
    """An op that works on arrays of every type without computing anything."""

    __slots__ = ("apply",)

    def __init__(self, name: str, apply: Callable[..., Any], **record: Any) -> None:
        super().__init__(name, lambda xp: None, **record)
        self.apply = apply

    def resolve(self, arrays: Sequence[Any]) -> Callable[..., Any]:
        if any(type(x) is Tensor for x in arrays):
            return super().resolve(arrays)
        self._kernels[tuple(map(type, arrays))] = self.apply
        return self.apply


def _hide(x: Any, *, level: int) -> Any:
    if type(x) is Batched and x.level > level:  # stays the outermost; its axis must stay first
        return Batched(_hide(F.swapaxes(x.array, axis1=0, axis2=1), level=level), x.level)
    return Batched(x, level)


def _unhide(x: Any, like: Any, *, level: int) -> Any:
    if type(x) is not Batched or x.level < level:
        return as_batched(x, like)
    if x.level == level:
        return x.array if level in running_levels else seen_rows(x)
    inner, beside = x.array, like
    if type(like) is Batched and like.level == x.level:
        beside = row_of(like.array)
    if not has_level(inner, level):
        return Batched(F.swapaxes(as_batched(inner, beside), axis1=0, axis2=1), x.level)
    return Batched(F.swapaxes(_unhide(inner, beside, level=level), axis1=0, axis2=1), x.level)


class _Hide(_Boundary):
    """In a trace, adds an array to the graph before it becomes a batch.

    Values computed from it are then part of the graph, not constants of the trace. Tapes could not
    follow such constants, because their batches have ended when the graph runs.
    """

    __slots__ = ()

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        if active_graph.get() is not None:
            inputs = tuple(_ENTER(x) for x in inputs)
        return super().__call__(*inputs, **params)


def in_trace(array: Any) -> Any:
    """Return an array as a value of the traced graph, or the array itself outside a trace."""
    graph = active_graph.get()
    return array if graph is None or is_transformed(array) else graph.adopt(array)


def _enter(x: Any) -> Any:
    graph = active_graph.get()
    if graph is None or is_transformed(x):
        return x
    return graph.add(ops["identity"], (x,), {})


_ENTER: Op = _Boundary(
    "vmap_enter", _enter, inputs=("x",), jvp="linear", gradients={"x": lambda g: g}
)

#: Make the first axis of an array the hidden one of a level.
HIDE: Op = _Hide(
    "vmap_hide",
    _hide,
    inputs=("x",),
    params={"level": 0},
    jvp="linear",
    gradients={"x": lambda g, x_like, level: UNHIDE.raw(g, x_like, level=level)},
)
#: Make the hidden axis of a level the first one; ``like`` gives its length.
UNHIDE: Op = _Boundary(
    "vmap_unhide",
    _unhide,
    inputs=("x", "like"),
    params={"level": 0},
    jvp="linear",
    gradients={"x": lambda g, level: HIDE.raw(g, level=level), "like": None},
)


def in_words(fn: Callable[..., Any], arrays: list[Any], batched: list[bool]) -> Any:
    """Return a batching rule's result from ``fn``, which composes the op for one example."""
    level = new_level()
    followed = any(type(x) is Tensor for x in arrays)
    running_levels.add(level)  # by hand, since this runs for single ops
    try:
        if not followed:
            given = [Batched(x, level) if b else x for x, b in zip(arrays, batched, strict=True)]
            result = fn(*given)
            return result.array if has_level(result, level) else Shared(result)
        given = [
            Op.__call__(HIDE, x, level=level) if b else x
            for x, b in zip(arrays, batched, strict=True)
        ]
        result = fn(*given)
        if has_level(result.array, level):
            return UNHIDE(result, result, level=level)
        return Shared(result)
    finally:
        running_levels.discard(level)


def of_each_example(
    grads: Sequence[Tensor | None], upstream: Sequence[Tensor]
) -> list[Tensor | None]:
    """Return gradients of a user's rule with one for each example, which are summed later.

    A rule that does not use the upstream gradients returns the same for all examples.
    """
    levels = {level: x for x in upstream for level in levels_of(x.array)}
    return [g if g is None else _spread(g, levels) for g in grads] if levels else list(grads)


def _spread(g: Tensor, levels: dict[int, Tensor]) -> Tensor:
    for level in sorted(levels.keys() - levels_of(g.array)):
        like = levels[level]
        g = HIDE(F.spread_like(g, UNHIDE.raw(like, like, level=level)), level=level)
    return g


def over_examples(g: Any, level: int) -> Any:
    """Return a gradient (array or tensor) summed over the hidden axis of a level."""
    if not has_level(g.array if type(g) is Tensor else g, level):
        return g  # zeros, or the sum already
    return F.sum(UNHIDE.raw(g, g, level=level), axis=0, keepdims=False)


class InBatch:
    """Extends a gradient function of one example to all examples of a level.

    Attributes
    ----------
    inputs, results
        The inputs and results of the function, with the hidden axis first. An input that all
        examples share has no such axis, and its gradient is the sum over the examples.
    """

    def __init__(self, backward: Any, inputs: list[Any], results: list[Any], level: int) -> None:
        like = next(x.array for x in (*inputs, *results) if type(x) is Batched and x.level == level)
        self.backward = backward
        self.grad_fn = backward.grad_fn
        self.level = level
        self.batched = [has_level(x, level) for x in inputs]
        self.inputs = [x.array if b else x for x, b in zip(inputs, self.batched, strict=True)]
        self.results = [UNHIDE.raw(y, like, level=level) for y in results]
        self.specs = [(x.shape, x.dtype) for x in self.inputs]
        self._batches = active_batches.get()
        self.function, self.code, self.refusal = backward.function, backward.code, backward.refusal
        self._given = [has_level(x, level) for x in backward.given]
        self.given = [x.array if b else x for x, b in zip(backward.given, self._given, strict=True)]
        self.key = level, tuple(self.batched), tuple(self._given), backward.key

    @property
    def lost(self) -> Any:
        """The places of arguments that it leaves out."""
        return self.backward.lost

    def again(self, given: list[Tensor]) -> tuple[InBatch, list[Any]]:
        """Run the function on other tensors; return its gradient function and results."""
        level = self.level
        hidden = [HIDE(x, level=level) if b else x for x, b in zip(given, self._given, strict=True)]
        backward, results = self.backward.again(hidden)
        lowered = InBatch(backward, backward.inputs, results, level)
        return lowered, lowered.results

    def __call__(
        self, upstream: Sequence[Tensor], ended: Collection[int] = ()
    ) -> list[Tensor | None]:
        """Return the gradient of each input."""
        level = self.level
        with back_in(self._batches):
            # what all examples share may have one gradient, the sum, or one for each example
            grads = self.backward([HIDE(g, level=level) for g in upstream], (*ended, level))
        return [
            None
            if g is None
            else UNHIDE(g, upstream[0], level=level)
            if batched and has_level(g.array, level)
            else Tensor(as_batched(g.array, upstream[0].array))
            if batched
            else over_examples(g, level)
            for g, batched in zip(grads, self.batched, strict=True)
        ]


def leave(x: Any, like: Tensor, level: int) -> Tensor:
    """Return ``x`` with the hidden axis of a level first; repeated, if it has none."""
    x = with_others(x, (like,))
    if has_level(x.array, level):
        return UNHIDE(x, like, level=level)
    result: Tensor
    # it stays there; only the number of examples is taken from ``like``
    if _on_different_backends(x, like):
        one: Tensor = ops["expand_dims"](x, axis=(0,))
        result = ops["broadcast_to"](one, shape=(like.shape[0], *x.shape))
    else:
        result = ops["spread_like"](x, like)
    return result


def _on_different_backends(x: Tensor, like: Tensor) -> bool:
    """Return whether two tensors of known values are arrays of different backends."""
    arrays = x.array, like.array
    if type(arrays[0]) is type(arrays[1]) or any(map(is_transformed, arrays)):
        return False
    return backend_of(arrays[0]) is not backend_of(arrays[1])


def check_randomness() -> None:
    """Raise ``RuntimeError`` inside a ``vmap`` without a setting for random numbers."""
    if any(batch.randomness == "error" for batch in active_batches.get()):
        raise RuntimeError(
            'random numbers are drawn inside vmap: use vmap(..., randomness="different") for '
            'separate numbers for each example, or randomness="same" for the same for all'
        )


def key_for_examples(key: Tensor) -> Tensor:
    """Return a key of random numbers for the enclosing batches: per example, or for all.

    Raises
    ------
    RuntimeError
        If an enclosing ``vmap`` does not say which.
    """
    check_randomness()
    for level, like, randomness in active_batches.get():
        if randomness == "different":
            key = HIDE(ops["random_split"](key, like), level=level)
    return key
