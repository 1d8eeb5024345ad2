"""Plans of ops: which kernels compute an op for arrays of some dtypes and shapes.

An elementwise op is lowered once for the dtypes of its arrays, and is one kernel whatever their
shapes. Any other op is lowered for the shapes. A plan is a function of the op's arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ....core.extend import (
    SCALARS,
    Backend,
    Graph,
    Op,
    Symbol,
    TensorSpec,
    compiling,
    inferred,
    registry,
)
from ...planned import (
    LoopGroup,
    Shape,
    StepKind,
)
from ..compiled.lowering import DeviceLowering
from ..launching import PreparedKernel
from ..writing.source import BLOCK, blocks_for
from .texts import Place, Writer, Written, filling

#: The shape that elementwise ops are lowered for.
_ANY: Shape = (7,)
#: The maximum of steps of an op, and of its launches.
_MOST_STEPS, _MOST_LAUNCHES = 64, 8

#: The maximum of elements of a result that is found to be one number everywhere.
_MOST_FILLED = 2**22
_TAKEN = {
    *(StepKind.ELEMENTWISE, StepKind.FRESH, StepKind.REDUCTION, StepKind.VIEW, StepKind.PRODUCT),
    StepKind.JOIN,
}

#: A function of an op's arrays.
Plan = Callable[..., Any]


class Lowered:
    """An op's steps for some arrays.

    Parameters
    ----------
    op
        The op.
    owner
        The CuPy backend.
    given
        A shape with a dtype for each array, and numbers.
    like
        An array of the backend.
    params
        The op's parameters.

    Raises
    ------
    NotImplementedError
        If it needs other steps than kernels can compute.
    """

    def __init__(
        self, op: Op, owner: Backend, given: Sequence[Any], like: Any, params: Mapping[str, Any]
    ) -> None:
        graph = Graph(op.name)
        with compiling():
            values = [x if type(x) in SCALARS else graph.input(TensorSpec(*x)) for x in given]
            result = graph.add(op, values, dict(params))
            self.several = isinstance(result, list)
            graph.outputs = list(result) if self.several else [result]
            self.low = DeviceLowering(graph, owner, [like])
        self.inputs = values
        self.steps, self.outputs = self.low.steps, self.low.outputs
        kinds = {step.kind for step in self.steps}
        if not self.steps or not kinds <= _TAKEN or len(self.steps) > _MOST_STEPS:
            raise NotImplementedError(op.name)
        self.made = {step.out: step for step in self.steps}
        used, given_symbols = {x: None for step in self.steps for x in step.symbols}, set(values)
        #: The arrays that the op has computed from nothing, by symbol.
        self.constants = {
            x: self.low.known[x] for x in used if x not in given_symbols and x not in self.made
        }

    def group(self) -> LoopGroup:
        """Return the steps as one group, which has the only output."""
        group = LoopGroup(_ANY)
        group.steps = list(self.steps)
        group.close(set(self.outputs).__contains__)
        (out,) = self.outputs
        if self.constants:
            raise NotImplementedError
        if not all(step.elementwise for step in group.steps) or group.outputs != [out]:
            raise NotImplementedError
        return group


def is_elementwise(op: Op) -> bool:
    """Return whether the elements of an op's result depend on those at their positions only."""
    return op.batch == "elementwise"


def may_have_plan(op: Op) -> bool:
    """Return whether an op computes something on the device from its arrays alone."""
    other = op.effect or op.random or op.view or op.identity
    return not other and op.infer is not None


def strides_of(shape: Shape, x: Any) -> tuple[int, ...]:
    """Return the strides of an array, in elements, along the axes of a shape that it spreads to.

    Parameters
    ----------
    shape
        The shape.
    x
        The array.
    """
    size, own = x.dtype.itemsize, x.strides
    if any(step % size for step in own):
        raise NotImplementedError("elements that are not aligned")
    short = len(shape) - len(own)
    kept = [0 if n == 1 else step // size for n, step in zip(x.shape, own, strict=True)]
    return (*[0] * short, *kept)


def elementwise(
    op: Op,
    lowered: Lowered,
    other: Plan | None,
    xp: Any,
    given: Sequence[Any],
    params: Mapping[str, Any],
) -> Plan:
    """Return a plan of one kernel, for arrays that broadcast.

    Parameters
    ----------
    op
        The op.
    lowered
        Its steps for the dtypes of the arrays.
    other
        If a number among the arguments differs from call to call: what runs the op for numbers that
        are not of its dtype.
    xp
        CuPy.
    given
        The arrays and numbers of a call.
    params
        The op's parameters.

    Raises
    ------
    NotImplementedError
        If a kernel cannot do it.
    """
    group = lowered.group()
    (out,) = group.outputs
    shape, dtype = inferred(op, given, params)
    if dtype != out.dtype or 0 in shape:
        raise NotImplementedError
    numbers = {x: i for i, x in enumerate(lowered.inputs) if type(x) is Symbol}
    places = {}
    for x in group.inputs:
        array = given[numbers[x]]
        joined = np.broadcast_shapes(array.shape, shape)
        if joined != shape:
            raise NotImplementedError
        places[x] = Place(x, 0, strides_of(shape, array))
    writer = Writer(group, shape, places, weak=other is not None)
    if not writer.fits:
        raise NotImplementedError
    return one_launch(xp, writer.write(), numbers, out, shape, len(given), other)


def one_launch(
    xp: Any,
    written: Written,
    numbers: Mapping[Symbol, int],
    out: Symbol,
    shape: Shape,
    count: int,
    other: Plan | None = None,
) -> Plan:
    """Return a plan of one kernel with one result.

    Parameters
    ----------
    xp
        CuPy.
    written
        The kernel.
    numbers
        The positions of its arrays among the op's arguments.
    out, shape
        The result, and its shape.
    count
        The number of the op's arguments.
    other
        What runs the op for a number that is not of its dtype, if one is among the arguments.
    """
    kernel = PreparedKernel(xp, written.label, written.text)
    launch, new, dtype = kernel.function, xp.ndarray, np.dtype(out.dtype)
    grid, block = (blocks_for(written.threads), 1, 1), (BLOCK, 1, 1)
    tail = kernel.numbers(*written.numbers)
    order = [numbers[x] for x in written.arrays if x is not out]
    assert written.arrays[-1] is out
    shape = tuple(map(int, shape))

    def one(x: Any) -> Any:
        result = new(shape, dtype)
        launch(grid, block, (x, result, *tail))
        return result

    def two(x: Any, y: Any) -> Any:
        result = new(shape, dtype)
        launch(grid, block, (x, y, result, *tail))
        return result

    def some(*given: Any) -> Any:
        result = new(shape, dtype)
        launch(grid, block, (*[given[i] for i in order], result, *tail))
        return result

    if other is None:
        in_order = order == list(range(count))
        return some if not in_order or count > 2 else one if count == 1 else two
    (convert,) = written.weak

    def after(x: Any, number: Any) -> Any:
        try:
            weak = convert(number)
        except OverflowError:
            return other(x, number)
        result = new(shape, dtype)
        launch(grid, block, (x, result, weak, *tail))
        return result

    def before(number: Any, x: Any) -> Any:
        try:
            weak = convert(number)
        except OverflowError:
            return other(number, x)
        result = new(shape, dtype)
        launch(grid, block, (x, result, weak, *tail))
        return result

    return after if order == [0] else before


def filled(op: Op, xp: Any, given: Sequence[Any], params: Mapping[str, Any]) -> Plan:
    """Return a plan of an op that reads shapes only, and gives one number everywhere.

    Parameters
    ----------
    op
        The op.
    xp
        CuPy.
    given
        The arrays and numbers of a call.
    params
        The op's parameters.

    Raises
    ------
    NotImplementedError
        If its result is something else.
    """
    shape, dtype = inferred(op, given, params)
    if prod(shape) > _MOST_FILLED or 0 in shape:
        raise NotImplementedError
    run = op.kernel_for(registry().host_backend)
    like = [
        x if type(x) in SCALARS else np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in given
    ]
    found = np.asarray(run(*like, **params))
    number = found.flat[0]
    if found.dtype != dtype or found.shape != shape or not (found == number).all():
        raise NotImplementedError
    out = Symbol(Graph(op.name), shape, found.dtype)
    written = filling(out, number.item())
    kernel = PreparedKernel(xp, written.label, written.text)
    launch, new, dtype = kernel.function, xp.ndarray, found.dtype
    grid, block = (blocks_for(written.threads), 1, 1), (BLOCK, 1, 1)
    tail = kernel.numbers(*written.numbers)

    def run_filling(*arrays: Any) -> Any:
        result = new(shape, dtype)
        launch(grid, block, (result, *tail))
        return result

    return run_filling
