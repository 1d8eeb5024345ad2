"""The parts of planned programs: steps, groups of steps, and packed updates.

A program is first *lowered* to steps, which are smaller than ops. Steps over one shape are then
*grouped*. Code that emits loops receives one group after another, and may run each as its own loop:
a :class:`LoopGroup` has all that an emitter needs.

Values are symbols: those of the traced graph, and new ones for intermediate values of an op. A
symbol has a shape and a dtype. Any other input of a step is a Python scalar, whose dtype is weak,
as in the graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from ...core.extend import SCALARS, Symbol

Shape = tuple[int, ...]


class StepKind(Enum):
    """The kind of a step, which decides how it runs."""

    #: A ufunc of one output: ``run(*inputs, out)``. Inputs broadcast to the output's shape.
    ELEMENTWISE = "elementwise"
    #: Like a ufunc, but without ``out``: ``run(*inputs)`` returns a new array.
    FRESH = "fresh"
    #: ``run(x, axis, None, out, keepdims)``, a ufunc's ``reduce``; params ``axis``, ``keepdims``.
    REDUCTION = "reduction"
    #: ``matmul(x, y, out)`` of matrices; params ``left``, ``right``: which of them to transpose.
    PRODUCT = "product"
    #: ``run(x)`` is a view of ``x``.
    VIEW = "view"
    #: ``run(*inputs)`` is anything else: a kernel, called as in the plain executor.
    CALL = "call"
    #: ``run(*inputs, out=out)``: a kernel that can write its result to an array that it receives.
    KERNEL = "kernel"
    #: ``run(*inputs, out)`` concatenates arrays of one dtype; params ``axis``.
    JOIN = "join"
    #: Kernels that a rule for a device writes itself: params ``write``, a function of the step and
    #: of the places of its inputs. May have several results.
    WRITTEN = "written"
    #: The body of a scan, run step by step; params are those of the op. See ``looping``.
    LOOP = "loop"


class PlanStep:
    """One operation.

    Attributes
    ----------
    kind
        How it runs.
    op
        The name of its computation: that of a ufunc for elementwise steps and reductions
        (``"add"``, ``"maximum"``), ``"where"`` or ``"cast"``; that of an op for views and calls.
    run
        The function that computes it on NumPy; see :class:`StepKind`.
    inputs
        Symbols, and weak Python scalars. In an elementwise step, a scalar has the dtype of the
        symbols.
    outputs
        A symbol for each result; only calls and written kernels may have several.
    params
        The parameters listed with each kind.
    several
        Whether a call returns a sequence.
    scalars
        The arguments of ``run`` for the scalars among its inputs, in order.
    view
        As in an op's record: whether the result may be a view, of a call; whether elements keep
        their order (``"reshape"``), of a view.
    """

    __slots__ = (
        "__weakref__",
        *("inputs", "kind", "op", "outputs", "params", "run", "scalars", "several", "view"),
    )

    def __init__(
        self,
        kind: StepKind,
        op: str,
        run: Callable[..., Any],
        inputs: Iterable[Any],
        outputs: Iterable[Symbol],
        params: Mapping[str, Any] | None = None,
        several: bool = False,
        scalars: Iterable[Any] | None = None,
        view: bool | str | None = None,
    ) -> None:
        self.kind = kind
        self.op = op
        self.run = run
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.params = dict(params or {})
        self.several = several
        self.view = view
        weak = [x for x in self.inputs if type(x) in SCALARS]
        self.scalars = tuple(weak if scalars is None else scalars)

    @property
    def out(self) -> Symbol:
        """The only result."""
        (symbol,) = self.outputs
        return symbol

    @property
    def members(self) -> list[PlanStep]:
        """Itself, as a group of one."""
        return [self]

    @property
    def symbols(self) -> list[Symbol]:
        """The symbols among its inputs."""
        return [x for x in self.inputs if type(x) is Symbol]

    def arguments(
        self, of: Callable[[Symbol], Any], of_scalar: Callable[[Any], Any] | None = None
    ) -> list[Any]:
        """Return the arguments of ``run``, or what stands for them.

        Parameters
        ----------
        of
            A function that returns the argument for a symbol.
        of_scalar
            The same for one of ``scalars``, which stand for themselves by default.
        """
        scalars = iter(self.scalars if of_scalar is None else map(of_scalar, self.scalars))
        return [of(x) if type(x) is Symbol else next(scalars) for x in self.inputs]

    @property
    def elementwise(self) -> bool:
        """Whether each element of the result depends only on the elements at its position."""
        return self.kind is StepKind.ELEMENTWISE or self.kind is StepKind.FRESH

    @property
    def space(self) -> Shape:
        """The shape that an elementwise step or a reduction runs over."""
        return shape_of(self.inputs[0] if self.kind is StepKind.REDUCTION else self.out)

    def __repr__(self) -> str:
        return f"<{self.kind.value} {self.op}>"


class LoopGroup:
    """Elementwise steps over one shape, and reductions of their results: one loop.

    Each input has the group's shape or broadcasts to it. Outputs are new C contiguous arrays, which
    overlap with nothing.

    Attributes
    ----------
    shape
        The shape that all steps run over.
    steps
        Elementwise steps, in order.
    tails
        Reductions of values of ``steps`` or of inputs; they sum in NumPy's order.
    inputs
        The symbols that it reads, in the order of first use.
    outputs
        The symbols that other items read, in the order of computation; those of ``steps`` first.
    strides
        The strides in bytes of the inputs that will hardly be C contiguous.
    """

    __slots__ = ("inputs", "outputs", "shape", "steps", "strides", "tails")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.steps: list[PlanStep] = []
        self.tails: list[PlanStep] = []
        self.inputs: list[Symbol] = []
        self.outputs: list[Symbol] = []
        self.strides: dict[Symbol, tuple[int, ...]] = {}

    @classmethod
    def of_reduction(cls, step: PlanStep) -> LoopGroup:
        """Return a group of one reduction.

        Parameters
        ----------
        step
            The reduction.
        """
        group = cls(step.space)
        group.tails.append(step)
        group.close(lambda x: True)
        return group

    @property
    def members(self) -> list[PlanStep]:
        """All steps, the tails last."""
        return [*self.steps, *self.tails]

    def close(self, read: Callable[[Symbol], bool]) -> None:
        """Set the inputs and outputs, once all steps are there.

        Parameters
        ----------
        read
            A function that returns whether a value of a step is read outside the group.
        """
        made = {step.out for step in self.members}
        self.inputs = [x for x in symbols(self.members) if x not in made]
        self.outputs = [step.out for step in self.steps if read(step.out)]
        self.outputs += [step.out for step in self.tails]

    def signature(self) -> Any:
        """Return a hashable description of the loop; equal ones take the same time."""
        numbers = {x: i for i, x in enumerate(self.inputs)}
        steps = []
        for step in self.members:
            given = tuple(numbers[x] if type(x) is Symbol else None for x in step.inputs)
            numbers.update((x, len(numbers) + i) for i, x in enumerate(step.outputs))
            results = tuple((shape_of(x), np.dtype(x.dtype).name) for x in step.outputs)
            steps.append((step.op, given, results, repr(step.params)))
        inputs = tuple(
            (shape_of(x), np.dtype(x.dtype).name, self.strides.get(x)) for x in self.inputs
        )
        return self.shape, inputs, tuple(steps), tuple(numbers[x] for x in self.outputs)

    def by_numpy(self, *arrays: Any) -> None:
        """Run the group step by step on NumPy.

        Parameters
        ----------
        arrays
            The arrays of ``outputs``, which are written, and of ``inputs``.
        """
        values: dict[Symbol, Any] = dict(zip((*self.outputs, *self.inputs), arrays, strict=True))
        targets = {x: values[x] for x in self.outputs}
        for step in self.steps:
            given = step.arguments(values.__getitem__)
            target = targets.get(step.out)
            if target is None:
                target = np.empty(shape_of(step.out), step.out.dtype)
            if step.kind is StepKind.FRESH:
                target[...] = step.run(*given)
            else:
                step.run(*given, out=target)
            values[step.out] = target
        for step in self.tails:
            axis, keepdims = step.params["axis"], step.params["keepdims"]
            reduce_into(step.run, values[step.inputs[0]], axis, None, targets[step.out], keepdims)

    def __repr__(self) -> str:
        return f"<group over {self.shape}: {', '.join(step.op for step in self.members)}>"


def reduce_into(reduce: Any, x: Any, axis: Any, dtype: Any, out: Any, keepdims: bool) -> Any:
    """Reduce an array as without ``out``, whose order in memory may change the order of sums.

    Parameters
    ----------
    reduce
        The method of a ufunc.
    x, axis, dtype, out, keepdims
        Its arguments.
    """
    if out is None or x.flags.c_contiguous:
        return reduce(x, axis, dtype, out, keepdims)
    out[...] = reduce(x, axis, dtype, None, keepdims)
    return out


def symbols(steps: Iterable[PlanStep]) -> list[Symbol]:
    """Return the symbols that steps read, in the order of first use."""
    return list(dict.fromkeys(x for step in steps for x in step.symbols))


def symbol_like(x: Symbol, shape: Shape | None = None, dtype: Any = None) -> Symbol:
    """Return a new symbol with the shape and dtype of another one, or with those given."""
    return Symbol(x.graph, x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def count_ops(steps: Iterable[PlanStep]) -> str:
    """Return a description of how often each op occurs among steps."""
    counts = Counter(step.op for step in steps)
    return ", ".join(op if n == 1 else f"{n} {op}" for op, n in counts.items())


def shape_of(x: Symbol) -> Shape:
    """Return a shape, which must be known."""
    assert x.shape is not None
    return x.shape


def size_of(x: Symbol) -> int:
    """Return the number of elements of a value."""
    return prod(shape_of(x))


def bytes_of(x: Symbol) -> int:
    """Return the size of a value in bytes."""
    return size_of(x) * np.dtype(x.dtype).itemsize
