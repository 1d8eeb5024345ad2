"""Inputs to run a function on: random numbers in shapes that its traces accept."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.extend import (
    ConcreteFunction,
    CustomGradient,
    Graph,
    TensorSpec,
    flatten,
    is_differentiable,
    pack_like,
    shape_in_run,
)

# Sizes used for unknown ones. Gradients for the first are computed whatever they cost.
_SIZES = (3, 2, 1)
# Shapes used for an unknown rank, each with the size used for unknown ones next to it.
_STORED_RANKS: tuple[tuple[tuple[int, ...], int], ...] = (((), 3), ((3,), 3), ((2, 3), 3))
_OTHER_RANKS: tuple[tuple[tuple[int, ...], int], ...] = (((1,), 1), ((1, 2), 2))
# Of inputs that are larger, one sample is stored at most, and of a size that was seen, none.
_MOST_STORED = 2**16

# The shapes of the tensors among a function's arguments, in order.
Shapes = tuple[tuple[int, ...], ...]


class Sample(NamedTuple):
    """Inputs to compare a function and its trace at.

    Attributes
    ----------
    stored
        Whether they also go into the file.
    ordinary
        Whether they differ from past calls, or from each other, only in the batch size. Other
        unknown sizes of a signature are tried, and the trace may refuse them when it runs.
    """

    inputs: list[np.ndarray[Any, Any]]
    stored: bool
    ordinary: bool

    @property
    def is_small(self) -> bool:
        """Whether the file has room for it next to another one, or it has sizes that were seen."""
        return sum(x.size for x in self.inputs) <= _MOST_STORED


def sample_inputs(
    concrete: ConcreteFunction, seed: int, seen: Sequence[Shapes] = ()
) -> Iterator[Sample]:
    """Yield sets of inputs for a concrete function: one, or several if its sizes are unknown.

    Unknown sizes are 3, 2 and 1, and those of ``seen``: shapes of the tensors of past calls. Only
    the first axis is the batch if the other sizes are known.
    """
    found = _shapes_for(concrete.specs, seen)
    for i, (shapes, (stored, ordinary)) in enumerate(found.items()):
        random = np.random.default_rng([seed, i])
        inputs = [
            _random(shape, spec.dtype, random)
            for shape, spec in zip(shapes, concrete.specs, strict=True)
        ]
        yield Sample(inputs, stored, ordinary)


def _shapes_for(
    specs: Sequence[TensorSpec], seen: Sequence[Shapes]
) -> dict[Shapes, tuple[bool, bool]]:
    """Return shapes that fit the specs, each with the flags of :class:`Sample`."""

    def filled(size: int, rank: tuple[int, ...] = (), like: Sequence[Any] = ()) -> Shapes:
        others = like or [None] * len(specs)
        named = {spec.names[0]: size for spec in specs if spec.names is not None}
        return tuple(
            _filled(spec, size, rank, other, named)
            for spec, other in zip(specs, others, strict=True)
        )

    if any(spec.shape is None for spec in specs):
        found = {filled(size, rank): (True, False) for rank, size in _STORED_RANKS}
        return found | {filled(size, rank): (False, False) for rank, size in _OTHER_RANKS}
    like = seen[0] if seen else ()
    found = {filled(size, like=like): (True, True) for size in _SIZES}
    for shapes in seen:
        found.setdefault(shapes, (False, True))
    if not seen:  # axes of several lengths
        found.setdefault(filled(2, like=[range(2, 100)] * len(specs)), (False, False))
    return found


def _filled(
    spec: TensorSpec,
    size: int,
    rank: tuple[int, ...],
    like: Sequence[int] | None,
    named: dict[str | None, int],
) -> tuple[int, ...]:
    """Return a shape without unknown sizes: ``size`` is the batch, ``like`` has the others.

    ``named`` holds the sizes of names, and receives new ones.
    """
    if spec.shape is None:
        return rank
    found: list[int] = []
    for i, n in enumerate(spec.dims or ()):
        other = n if type(n) is int else size if i == 0 or like is None else like[i]
        found.append(named.setdefault(n, other) if type(n) is str else other)
    return tuple(found)


def _random(
    shape: tuple[int, ...], dtype: np.dtype[Any], random: np.random.Generator
) -> np.ndarray[Any, Any]:
    value: Any
    if dtype.kind == "f":
        value = random.standard_normal(shape)
    elif dtype.kind == "c":
        value = random.standard_normal(shape) + 1j * random.standard_normal(shape)
    else:
        value = random.integers(0, 2, shape)
    return np.asarray(value).astype(dtype)


def filled_in(concrete: ConcreteFunction, values: Iterable[Any]) -> Any:
    """Return the arguments ``(args, kwargs)`` of a trace with these tensors."""
    rest = iter(values)
    leaves = flatten(concrete.arguments)
    leaves = [next(rest) if isinstance(leaf, TensorSpec) else leaf for leaf in leaves]
    return pack_like(concrete.arguments, leaves)


def described(
    signature: inspect.Signature, concrete: ConcreteFunction, inputs: Sequence[Any]
) -> str:
    """Return a description of a function's inputs, such as ``x (3, 8), training=False``."""
    args, kwargs = filled_in(concrete, [_Shape(x.shape) for x in inputs])
    try:
        named = signature.bind(*args, **kwargs).arguments
    except TypeError:  # the file's parameters do not fit its trace: it can be checked all the same
        named = {f"{i}": value for i, value in enumerate(args)} | kwargs
    return ", ".join(
        f"{name} {value!r}" if isinstance(value, _Shape) else f"{name}={value!r}"
        for name, value in named.items()
    )


class _Shape:
    """A tensor's shape instead of the tensor."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def __repr__(self) -> str:
        return str(self.shape)


# What gradients of gradients, and gradients at several batches, are taken of: arrays of so many
# elements in all. Of larger ones than the second there is one sample.
_MOST_WEIGHED, _MOST_REPEATED = 2**16, 2**22


def is_light(concrete: ConcreteFunction, inputs: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Return whether inputs and variables are so small that all their gradients cost little.

    They must not make saving much slower.
    """
    return _elements(concrete, inputs) <= _MOST_WEIGHED


def is_heavy(concrete: ConcreteFunction, inputs: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Return whether inputs and variables are so large that even one more run costs too much."""
    return _elements(concrete, inputs) > _MOST_REPEATED


def _elements(concrete: ConcreteFunction, inputs: Sequence[np.ndarray[Any, Any]]) -> int:
    read = sum(math.prod(v.shape) for v in concrete.graph.variables if is_differentiable(v.dtype))
    return read + sum(x.size for x in inputs)


def output_bytes(concrete: ConcreteFunction, inputs: Sequence[np.ndarray[Any, Any]]) -> int:
    """Return the total size in bytes of the results of all steps of a trace, at least.

    A tape keeps most of them. Sizes that only a run knows count as nothing, and a graph inside an
    op counts as if it ran once.
    """
    graph = concrete.graph
    return _bytes_of(graph, {**dict(zip(graph.inputs, inputs, strict=True)), **graph.constants})


def _bytes_of(graph: Graph, arrays: Mapping[Any, Any]) -> int:
    total = 0
    for node in graph.nodes:
        for symbol in node.outputs:
            shape = shape_in_run(symbol, arrays) or ()
            total += math.prod(n or 0 for n in shape) * symbol.dtype.itemsize
        inner = [x for x in node.params.values() if isinstance(x, Graph)]
        if isinstance(node.op, CustomGradient) and isinstance(node.op.backward, Graph):
            inner.append(node.op.backward)
        total += sum(_bytes_of(x, {**arrays, **x.constants}) for x in inner)
    return total
