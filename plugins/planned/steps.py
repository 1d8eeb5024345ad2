"""What planned programs are made of: steps, groups of them, and packed updates.

A program is first *lowered* to steps, which are smaller than ops. Steps over one shape are then
*grouped*; whoever emits code is given one group after another, and may run each as a loop of its
own: :class:`Group` has all that an emitter needs.

Values are symbols: those of the traced graph, and new ones for what stands between the steps of an
op. A symbol has a shape and a dtype. Everything else that a step may be given is a Python scalar,
whose dtype is weak, as in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from ...core.extend import SCALARS, Symbol

__all__ = ["Group", "Kind", "Shape", "Step", "symbols"]

Shape = tuple[int, ...]


class Kind(Enum):
    """What a step is, and with it how it is run."""

    #: A ufunc of one output: ``run(*inputs, out)``. Inputs broadcast to the output's shape.
    ELEMENTWISE = "elementwise"
    #: As a ufunc, but without ``out``: ``run(*inputs)`` returns an array of its own.
    FRESH = "fresh"
    #: ``run(x, axis, None, out, keepdims)``, a ufunc's ``reduce``; params ``axis``, ``keepdims``.
    REDUCTION = "reduction"
    #: ``matmul(x, y, out)`` of matrices; params ``left``, ``right``: which of them is transposed.
    PRODUCT = "product"
    #: ``run(x)`` is a view of ``x``.
    VIEW = "view"
    #: ``run(*inputs)`` is whatever it is: a kernel as the plain executor calls it.
    CALL = "call"
    #: ``run(*inputs, out)`` puts arrays of one dtype beside each other; params ``axis``.
    JOIN = "join"
    #: The body of a scan, run step by step; params are the op's. See ``looping``.
    LOOP = "loop"


class Step:
    """One operation.

    Attributes
    ----------
    kind
        How it is run.
    op
        A name, which says what it computes: a ufunc's for elementwise steps and reductions
        (``"add"``, ``"maximum"``), ``"where"`` or ``"cast"``; an op's for views and calls.
    run
        The function that computes it on NumPy; see :class:`Kind`.
    inputs
        Symbols, and weak Python scalars. In an elementwise step, a scalar is of the dtype of the
        symbols beside it.
    outputs
        A symbol for each result; several for calls alone.
    params
        What is said at the kinds.
    several
        Whether a call returns a sequence.
    scalars
        What ``run`` is given for the scalars among its inputs, in order.
    """

    __slots__ = ("inputs", "kind", "op", "outputs", "params", "run", "scalars", "several")

    def __init__(
        self,
        kind: Kind,
        op: str,
        run: Callable[..., Any],
        inputs: Iterable[Any],
        outputs: Iterable[Symbol],
        params: Mapping[str, Any] | None = None,
        several: bool = False,
        scalars: Iterable[Any] | None = None,
    ) -> None:
        self.kind = kind
        self.op = op
        self.run = run
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.params = dict(params or {})
        self.several = several
        weak = [x for x in self.inputs if type(x) in SCALARS]
        self.scalars = tuple(weak if scalars is None else scalars)

    @property
    def out(self) -> Symbol:
        """The only result."""
        (symbol,) = self.outputs
        return symbol

    @property
    def elementwise(self) -> bool:
        """Whether each element of the result depends on the elements at its place alone."""
        return self.kind is Kind.ELEMENTWISE or self.kind is Kind.FRESH

    @property
    def space(self) -> Shape:
        """What an elementwise step or a reduction runs over."""
        return shape_of(self.inputs[0] if self.kind is Kind.REDUCTION else self.out)

    def __repr__(self) -> str:
        return f"<{self.kind.value} {self.op}>"


class Group:
    """Elementwise steps over one shape, and reductions of what they compute: one loop.

    Each input is of the group's shape or broadcasts to it. Outputs are arrays of their own, C
    contiguous, which overlap with nothing.

    Attributes
    ----------
    shape
        What all steps run over.
    steps
        Elementwise steps, in order.
    tails
        Reductions of values of ``steps`` or of inputs; they sum in NumPy's order.
    inputs
        The symbols that it reads, in the order of first use.
    outputs
        The symbols that others read, in the order in which they are computed; of ``steps`` first.
    """

    __slots__ = ("inputs", "outputs", "shape", "steps", "tails")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.steps: list[Step] = []
        self.tails: list[Step] = []
        self.inputs: list[Symbol] = []
        self.outputs: list[Symbol] = []

    @property
    def members(self) -> list[Step]:
        """All steps, the tails last."""
        return [*self.steps, *self.tails]

    def close(self, read: Callable[[Symbol], bool]) -> None:
        """Say what goes in and out, once all steps are there.

        Parameters
        ----------
        read
            Whether somebody outside reads a value of a step.
        """
        made = {step.out for step in self.members}
        self.inputs = [x for x in symbols(self.members) if x not in made]
        self.outputs = [step.out for step in self.steps if read(step.out)]
        self.outputs += [step.out for step in self.tails]

    def __repr__(self) -> str:
        return f"<group over {self.shape}: {', '.join(step.op for step in self.members)}>"


def symbols(steps: Iterable[Step]) -> list[Symbol]:
    """Return the symbols that steps read, in the order of first use."""
    return list(dict.fromkeys(x for step in steps for x in step.inputs if type(x) is Symbol))


def shape_of(x: Symbol) -> Shape:
    """Return a shape that is known."""
    assert x.shape is not None
    return x.shape


def size_of(x: Symbol) -> int:
    """Return how many elements a value has."""
    return prod(shape_of(x))


def bytes_of(x: Symbol) -> int:
    """Return how many bytes a value takes."""
    return size_of(x) * np.dtype(x.dtype).itemsize
