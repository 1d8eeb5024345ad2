"""``Batched``: an array with a hidden leading axis, on which ops run once for all examples.

``vmap`` and Jacobians hand such arrays to functions and gradient rules written for one example.
An op that is given one applies its batching rule: it moves parameters past the hidden axis and
runs the op on the array inside, which may be of any type.

Every transformation has a level, later ones a higher one, and the highest among an op's arrays is
the outermost.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import count
from math import nan
from typing import Any

from ..base.context import active_graph
from ..base.operators import ArrayOperators
from ..base.spec import describe
from ..base.table import F, ops
from ..errors import TraceError
from ..graphs.graph import Symbol
from ..ops.op import SCALARS, Op, is_transformed, register_array_type
from ..ops.quick import BinaryOp
from ..tensors.tensor import Tensor

__all__ = [
    "HIDE",
    "UNHIDE",
    "Batched",
    "Composed",
    "InBatch",
    "Shared",
    "as_batched",
    "has_level",
    "in_trace",
    "in_words",
    "levels_of",
    "new_level",
    "outermost",
    "over_examples",
    "rank_of",
    "row_of",
    "whole_shape",
]

new_level = count(1).__next__

# an op's batching rule: (op, arrays inside, which of them are batched, parameters) -> result(s),
# their first axis the hidden one; Shared(result) has none
Rule = Callable[[Op, list[Any], list[bool], dict[str, Any]], Any]


class Batched(ArrayOperators):
    """One array per example: ``array`` holds them along its first axis, which nobody else sees."""

    __slots__ = ("array", "level")

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
        return self.array.dtype

    def __repr__(self) -> str:
        return f"a batch of {describe(self.shape, self.dtype)}"


class Composed:
    """A batching rule in other words: the op as a function of other ops, ``fn(*arrays, **params)``.

    Its arrays are those of one example, as in a gradient rule.
    """

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn


class Shared:
    """What a batching rule returns in place of an array that is the same for all examples."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


def as_batched(x: Any, beside: Any) -> Any:
    """Return ``x``, the same for all examples, with a first axis as long as that of ``beside``."""
    return F.spread_like(x, beside)


def row_of(x: Any) -> Any:
    """Return an array of the shape and dtype of one example of a batch, which may be empty."""
    if x.shape and x.shape[0]:
        return F.getitem(x, index=(0,))
    return F.cast_like(F.sum(F.getitem(x, index=(("slice", 0, 1, None),)), axis=0), x)


def rank_of(x: Any, op: Op) -> int:
    """Return the number of axes that a batching rule has to know."""
    if x.shape is None:
        raise TraceError(
            f"{op.name}: vmap needs to know the number of axes; give the TensorSpec of "
            f"{x!r} a shape, with None for unknown sizes"
        )
    return len(x.shape)


def in_words(fn: Callable[..., Any], arrays: list[Any], batched: list[bool]) -> Any:
    """Return a batching rule's result by ``fn``, the op in terms of others, of one example."""
    level = new_level()
    result = fn(*[Batched(x, level) if b else x for x, b in zip(arrays, batched, strict=True)])
    return result.array if has_level(result, level) else Shared(result)


def elementwise(op: Op, arrays: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Run an op whose inputs broadcast: align the examples' axes at the right, as always."""
    if len(arrays) == 1:
        return op.raw(arrays[0], **params)
    ranks = [
        0 if type(x) in SCALARS else len(x.shape) - b if x.shape is not None else None
        for x, b in zip(arrays, batched, strict=True)
    ]
    known = [n for n in ranks if n is not None]
    most = max(known, default=0)
    if len(known) < len(ranks) and sum(type(x) not in SCALARS for x in arrays) > 1:
        for x in arrays:
            if type(x) not in SCALARS:
                rank_of(x, op)
    for i, rank in enumerate(ranks):
        if batched[i] and rank is not None and rank < most:
            arrays[i] = F.expand_dims(arrays[i], axis=tuple(range(1, 1 + most - rank)))
    return op.raw(*arrays, **params)


def by_loop(op: Op, arrays: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Run an op without a batching rule: one example after another."""
    sizes = {x.shape[0] for x, b in zip(arrays, batched, strict=True) if b and x.shape}
    size = next(iter(sizes), None)
    if size is None:
        raise TraceError(
            f"op {op.name!r} has no batching rule (batch=), and the batch size is unknown in "
            "this trace, so its examples cannot be run one by one"
        )
    if op not in _looped:
        _looped.add(op)
        warnings.warn(
            f"op {op.name!r} has no batching rule (batch=): vmap runs it once per example",
            stacklevel=2,
        )
    rows = []
    for i in range(size):
        example = [
            F.getitem(x, index=(i,)) if b else x for x, b in zip(arrays, batched, strict=True)
        ]
        rows.append(op.raw(*example, **params))
    if isinstance(rows[0], (list, tuple)):
        return [F.stack(*column, axis=0) for column in zip(*rows, strict=True)]
    return F.stack(*rows, axis=0)


_looped: set[Op] = set()


def _batch(op: Op) -> Callable[..., Any]:
    """Return what runs an op on batches."""
    apply = _applied(op)
    if op.batch == "elementwise" and isinstance(op, BinaryOp):
        apply = _pairwise(op, apply)

    def run(*arrays: Any, **params: Any) -> Any:
        graph = active_graph.get()
        if graph is not None and outermost(arrays) < graph.level:
            # a batch from around a branch: the branch takes it in as one example
            taken = [graph.adopt(x) if type(x) is Batched else x for x in arrays]
            return op.raw(*taken, **params)
        return apply(*arrays, **params)

    return run


def _applied(op: Op) -> Callable[..., Any]:
    if type(op.batch) is Composed:
        words, settings = op.batch.fn, op.defaults
        return lambda *arrays, **params: _alike(words(*arrays, **{**settings, **params}))
    rule: Rule = elementwise if op.batch == "elementwise" else op.batch or by_loop
    plain = rule is elementwise
    defaults = op.defaults

    if plain and len(op.inputs) == 1:
        return lambda x, **params: Batched(op.raw(x.array, **params), x.level)

    def run(*arrays: Any, **params: Any) -> Any:
        level = 0
        for x in arrays:
            if type(x) is Batched and x.level > level:
                level = x.level
        inner, batched = [], []
        for x in arrays:
            here = type(x) is Batched and x.level == level
            batched.append(here)
            inner.append(x.array if here else x)
        graph = active_graph.get()
        if graph is not None and any(map(_is_traced, inner)):
            # constants join the trace before a rule reshapes them, so that it knows what they were
            inner = [x if type(x) is Batched else graph.adopt(x) for x in inner]
        result = rule(op, inner, batched, params if plain else {**defaults, **params})
        if type(result) is list or type(result) is tuple:
            return _alike([_wrapped(part, level) for part in result])
        return _wrapped(result, level)

    return run


def _pairwise(op: Op, general: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same for two operands, quick where they broadcast as they are."""
    kernels = op._kernels

    def run(x: Any, y: Any) -> Any:
        a = x.array if type(x) is Batched else x
        b = y.array if type(y) is Batched else y
        if a is x:
            level, lined_up = y.level, type(a) in SCALARS or _rank(a) < _rank(b)
        elif b is y:
            level, lined_up = x.level, type(b) in SCALARS or _rank(b) < _rank(a)
        else:
            level, lined_up = x.level, x.level == y.level and _rank(a) == _rank(b)
        if not lined_up:
            return general(x, y)
        kernel = kernels.get((type(a), type(b))) or op.resolve((a, b))
        return Batched(kernel(a, b), level)

    return run


def _rank(array: Any) -> float:
    """Return the number of axes; one that is unknown compares with nothing."""
    shape = array.shape
    return len(shape) if shape is not None else nan


def _is_traced(array: Any) -> bool:
    while type(array) is Batched:
        array = array.array
    return type(array) is Symbol


def _wrapped(result: Any, level: int) -> Any:
    return result.array if type(result) is Shared else Batched(result, level)


def _alike(results: Any) -> Any:
    """Return an op's results, all of them batched if one is: they have one gradient rule."""
    if not isinstance(results, (list, tuple)):
        return results
    level = max((x.level for x in results if type(x) is Batched), default=0)
    like = next((x for x in results if type(x) is Batched and x.level == level), None)
    if like is None:
        return list(results)
    return [
        x if type(x) is Batched and x.level == level else Batched(as_batched(x, like.array), level)
        for x in results
    ]


register_array_type(Batched, 50, _batch)


# -- in and out of a batch -------------------------------------------------------------------------


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
        return x.array
    inner, beside = x.array, like
    if type(like) is Batched and like.level == x.level:
        beside = row_of(like.array)
    if not has_level(inner, level):
        return Batched(F.swapaxes(as_batched(inner, beside), axis1=0, axis2=1), x.level)
    return Batched(F.swapaxes(_unhide(inner, beside, level=level), axis1=0, axis2=1), x.level)


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


class _Hide(_Boundary):
    """In a trace, what becomes a batch joins the graph first.

    What is computed from it is then a part of the graph, and not of a trace's constants, which
    tapes could not follow through batches that have ended when the graph runs.
    """

    __slots__ = ()

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        if active_graph.get() is not None:
            inputs = tuple(_ENTER(x) for x in inputs)
        return super().__call__(*inputs, **params)


def in_trace(array: Any) -> Any:
    """Return an array as a value of the graph that is traced; itself, if there is none."""
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
#: Make the hidden axis of a level the first one; ``like`` says how long it is.
UNHIDE: Op = _Boundary(
    "vmap_unhide",
    _unhide,
    inputs=("x", "like"),
    params={"level": 0},
    jvp="linear",
    gradients={"x": lambda g, level: HIDE.raw(g, level=level), "like": None},
)


def outermost(arrays: Sequence[Any]) -> int:
    """Return the highest level among arrays, 0 if none of them is a batch."""
    return max((x.level for x in arrays if type(x) is Batched), default=0)


def over_examples(g: Any, level: int) -> Any:
    """Return a gradient (array or tensor) summed over the hidden axis of a level."""
    if not has_level(g.array if type(g) is Tensor else g, level):
        return g  # zeros, of which there is one for all
    return F.sum(UNHIDE.raw(g, g, level=level), axis=0, keepdims=False)


class InBatch:
    """A gradient function of one example as one of all examples of a level.

    Attributes
    ----------
    inputs, results
        The arrays that it goes between, with the hidden axis first; an input that all examples
        share has none, and its gradient is their sum.
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

    def __call__(self, upstream: Sequence[Tensor]) -> list[Tensor | None]:
        """Return the gradient of each input."""
        level = self.level
        grads = self.backward([HIDE(g, level=level) for g in upstream])
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
