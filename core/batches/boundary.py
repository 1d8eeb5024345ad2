"""Entering and leaving a batch: ``HIDE`` and ``UNHIDE`` move the axis of the examples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..base.context import active_batches, active_graph, back_in
from ..base.table import F, ops
from ..ops.backends.owners import backend_of
from ..ops.dispatch import is_transformed
from ..tensors.convert import with_others
from ..tensors.op import Op
from ..tensors.tensor import Tensor
from .batched import (
    Batched,
    Shared,
    as_batched,
    has_level,
    levels_of,
    new_level,
    row_of,
    running_levels,
    seen_rows,
)


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
    if _elsewhere(x, like):  # it stays there; only the number of examples is taken from ``like``
        one: Tensor = ops["expand_dims"](x, axis=(0,))
        result = ops["broadcast_to"](one, shape=(like.shape[0], *x.shape))
    else:
        result = ops["spread_like"](x, like)
    return result


def _elsewhere(x: Tensor, like: Tensor) -> bool:
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
