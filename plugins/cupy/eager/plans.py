"""Plans of ops: which kernels compute an op for arrays of some dtypes and shapes.

An elementwise op is lowered once for the dtypes of its arrays, and is one kernel whatever their
shapes. Any other op is lowered for the shapes. A plan is a function of the op's arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

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
    Emitter,
    Item,
    LoopGroup,
    PlanStep,
    Shape,
    StepKind,
    close_groups,
    grouped,
    shape_of,
)
from ..compiled.kernels import BLOCK, Places, split
from ..compiled.lowering import DeviceLowering
from ..compiled.products import layout_of, products
from ..launching import PreparedKernel, blocks_for
from .texts import Place, Writer, Written, filling, is_dense, joining

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
    other = op.effect or op.host or op.random or op.view or op.identity
    return not other and op.infer is not None


def _strides(shape: Shape, x: Any) -> tuple[int, ...]:
    """Return the strides of an array, in elements, along the axes of a shape that it spreads to."""
    size, own = x.dtype.itemsize, x.strides
    if any(step % size for step in own):
        raise NotImplementedError("elements that are not aligned")
    short = len(shape) - len(own)
    kept = [0 if n == 1 else step // size for n, step in zip(x.shape, own, strict=True)]
    return (*[0] * short, *kept)


def elementwise(
    op: Op, lowered: Lowered, weak: bool, xp: Any, given: Sequence[Any], params: Mapping[str, Any]
) -> Plan:
    """Return a plan of one kernel, for arrays that broadcast.

    Parameters
    ----------
    op
        The op.
    lowered
        Its steps for the dtypes of the arrays.
    weak
        Whether numbers among the op's arguments differ from call to call.
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
        places[x] = Place(x, 0, _strides(shape, array))
    writer = Writer(group, shape, places, weak=weak)
    if not writer.fits:
        raise NotImplementedError
    return _one_launch(xp, writer.write(), numbers, out, shape, len(given))


def _one_launch(
    xp: Any, written: Written, numbers: Mapping[Symbol, int], out: Symbol, shape: Shape, count: int
) -> Plan:
    """Return a plan of one kernel with one result."""
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

    if not written.weak:
        return (
            one
            if order == [0] and count == 1
            else two
            if order == [0, 1] == [*range(count)]
            else some
        )
    (convert,) = written.weak

    def before(number: Any, x: Any) -> Any:
        weak = convert(number)
        result = new(shape, dtype)
        launch(grid, block, (x, result, weak, *tail))
        return result

    def after(x: Any, number: Any) -> Any:
        return before(number, x)

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


# -- ops in several steps --------------------------------------------------------------------------


def in_kernels(lowered: Lowered, xp: Any, given: Sequence[Any]) -> Plan:
    """Return a plan of some kernels, for arrays of the shapes that an op was lowered for.

    Parameters
    ----------
    lowered
        Its steps.
    xp
        CuPy.
    given
        The arrays and numbers of a call.

    Raises
    ------
    NotImplementedError
        If kernels cannot do it, or not in few launches.
    """
    return _Kernels(lowered, xp, given).plan()


class _Kernels:
    """The kernels of an op, and the memory of its values."""

    def __init__(self, lowered: Lowered, xp: Any, given: Sequence[Any]) -> None:
        self._xp, self._given, self._lowered = xp, given, lowered
        self._numbers = {x: i for i, x in enumerate(lowered.inputs) if type(x) is Symbol}
        self._constants = list(lowered.constants.values())
        if self._constants:
            # they are of one device, and later calls may be on other streams
            if xp.cuda.runtime.getDeviceCount() > 1:
                raise NotImplementedError
            xp.cuda.get_current_stream().synchronize()
        self._numbers.update((x, len(given) + i) for i, x in enumerate(lowered.constants))
        needed = set(lowered.outputs)
        items: list[Item] = grouped(lowered.steps, needed, Emitter().takes)
        items = [part for item in items for part in split(item)]
        close_groups(items, needed)
        self._items = items
        self._copies: set[Symbol] = set()
        self._place = Places(lowered.made, lowered.low.maps, self._copies).of
        self._made: list[tuple[Symbol, Shape]] = []
        self._written: list[Written | Product] = []

    def plan(self) -> Plan:
        """Return the plan."""
        views = [x for x in self._items if isinstance(x, PlanStep) and x.kind is StepKind.VIEW]
        items = [item for item in self._items if item not in views]
        results = {home: shape_of(x) for x in self._lowered.outputs for home in [self._home(x)]}
        while items:
            item = items.pop(0)
            if isinstance(item, LoopGroup):
                after = items.pop(0) if items and self._ends(item, items[0]) else None
                self._add(item, after, results)
            elif isinstance(item, PlanStep) and item.kind is StepKind.PRODUCT:
                self._add_product(item, results)
            elif isinstance(item, PlanStep) and item.kind is StepKind.JOIN:
                self._add_join(item, results)
            else:
                raise NotImplementedError
        if self._copies or len(self._written) > _MOST_LAUNCHES:
            raise NotImplementedError
        return self._function([self._home(x) for x in self._lowered.outputs])

    def _home(self, x: Symbol) -> Symbol:
        """Return the array of a result, which has its elements in their order."""
        home, offset, strides = self._place(x)
        shape = shape_of(x)
        whole = is_dense(shape, strides) and prod(shape_of(home)) == prod(shape)
        if home in self._numbers or offset or not whole:
            raise NotImplementedError
        return home

    def _ends(self, group: LoopGroup, after: Item) -> bool:
        """Return whether the steps after a group's reductions belong to its kernel's end."""
        if not group.tails or not isinstance(after, LoopGroup) or after.tails:
            return False
        made = {step.out for step in group.tails}
        elements = prod(shape_of(group.tails[0].out))
        for x in after.inputs:
            home, offset, strides = self._place(x)
            shape, elsewhere = shape_of(x), home not in made or offset
            if elsewhere or not is_dense(shape, strides) or prod(shape) != elements:
                return False
        return prod(after.shape) == elements

    def _place_of(self, x: Symbol) -> Place:
        """Return the place of a value, with the strides that an array has in this call."""
        home, offset, strides = self._place(x)
        number = self._numbers.get(home)
        array = None if number is None else (*self._given, *self._constants)[number]
        if array is not None and not array._c_contiguous:
            if x is not home:
                raise NotImplementedError
            strides = _strides(shape_of(x), array)
        spread = [0 if n == 1 else s for n, s in zip(shape_of(x), strides, strict=True)]
        return Place(home, offset, tuple(spread))

    def _add_join(self, step: PlanStep, results: Mapping[Symbol, Shape]) -> None:
        shape, axis = shape_of(step.out), step.params["axis"]
        places = [self._place_of(x) for x in step.inputs]
        for x, place in zip(step.inputs, places, strict=True):
            if not is_dense(shape_of(x), place.strides):
                raise NotImplementedError
        lengths = [prod(shape_of(x)[axis:]) for x in step.inputs]
        self._written.append(joining(step, places, lengths, prod(shape[:axis])))
        self._made.append((step.out, results.get(step.out, shape)))

    def _add_product(self, step: PlanStep, results: Mapping[Symbol, Shape]) -> None:
        (m, n), stack = shape_of(step.out)[-2:], shape_of(step.out)[:-2]
        arrays, layouts = [], []
        for x, turned in zip(step.inputs, ("left", "right"), strict=True):
            place, shape = self._place_of(x), shape_of(x)
            strides = place.strides
            if step.params.get(turned):
                shape, strides = shape[::-1], strides[::-1]
            layout = layout_of(shape, strides, stack)
            if layout is None or place.offset:
                raise NotImplementedError
            arrays.append(place.array)
            layouts.append(layout)
        x, left = step.inputs[0], step.params.get("left")
        sizes = n, m, shape_of(x)[-2 if left else -1]
        product = Product(step.out.dtype.char, [*arrays, step.out], sizes, prod(stack), layouts)
        self._written.append(product)
        self._made.append((step.out, results.get(step.out, shape_of(step.out))))

    def _add(
        self, group: LoopGroup, after: LoopGroup | None, results: Mapping[Symbol, Shape]
    ) -> None:
        places = {}
        for x in group.inputs:
            place = self._place_of(x)
            short = len(group.shape) - len(place.strides)
            places[x] = place._replace(strides=(*[0] * short, *place.strides))
        steps, ends = self._after(group, after)
        writer = Writer(group, group.shape, places, (steps, ends))
        if not writer.fits:
            raise NotImplementedError
        self._written.append(writer.write())
        made = [step.out for step in group.steps if step.out in set(group.outputs)]
        self._made += [(x, results.get(x, shape_of(x))) for x in (*made, *ends)]

    def _after(
        self, group: LoopGroup, after: LoopGroup | None
    ) -> tuple[list[PlanStep], list[Symbol]]:
        """Return the steps at the end of a group's kernel, and the results that are stored."""
        if after is None:
            return [], [step.out for step in group.tails]
        # each input is the result of a reduction, perhaps in another shape
        homes = {x: self._place(x)[0] for x in after.inputs}
        steps = [
            PlanStep(
                step.kind, step.op, step.run, [homes.get(x, x) if type(x) is Symbol else x
                                               for x in step.inputs], step.outputs, step.params,
            )
            for step in after.steps
        ]  # fmt: skip
        inside = {step.out for step in group.tails}
        wanted = set(self._lowered.outputs)
        for item in self._items:
            if item is group or item is after:
                continue
            for x in item.inputs if isinstance(item, LoopGroup) else item.symbols:  # type: ignore[union-attr]
                wanted.add(x)
        homes_wanted = {self._place(x)[0] for x in wanted if x in inside or x in self._lowered.made}
        kept = [step.out for step in group.tails if step.out in homes_wanted]
        return steps, [*kept, *after.outputs]

    def _function(self, outputs: Sequence[Symbol]) -> Plan:
        simple = not self._constants and not self._lowered.several
        simple = simple and len(self._written) == len(self._made) == 1
        if simple:
            ((out, shape),), work = self._made, self._written[0]
            if isinstance(work, Written):
                return _one_launch(self._xp, work, self._numbers, out, shape, len(self._given))
            return _one_product(self._xp, work, self._numbers, shape, len(self._given))
        constants, positions = self._constants, dict(self._numbers)
        begin = len(self._given) + len(constants)
        positions.update((x, begin + i) for i, (x, _) in enumerate(self._made))
        new, several = self._xp.ndarray, self._lowered.several
        made = [(shape, np.dtype(x.dtype)) for x, shape in self._made]
        calls = []
        for work in self._written:
            call = _call_of(self._xp, work)
            calls.append((call, [positions[x] for x in work.arrays]))
        ends = [positions[x] for x in outputs]

        def run(*given: Any) -> Any:
            values = [*given, *constants, *[new(shape, dtype) for shape, dtype in made]]
            for call, order in calls:
                call(*[values[i] for i in order])
            found = [values[i] for i in ends]
            return tuple(found) if several else found[0]

        return run


def _call_of(xp: Any, work: Written | Product) -> Callable[..., None]:
    """Return what launches a kernel or a product, as a function of its arrays."""
    if isinstance(work, Product):
        return _multiplying(xp, work)
    kernel = PreparedKernel(xp, work.label, work.text)
    launch, grid, block = kernel.function, (blocks_for(work.threads), 1, 1), (BLOCK, 1, 1)
    tail = kernel.numbers(*work.numbers)

    def call(*arrays: Any) -> None:
        launch(grid, block, arrays + tail)

    return call


# -- products --------------------------------------------------------------------------------------


class Product(NamedTuple):
    """A product of matrices, or of stacks of them.

    Attributes
    ----------
    char
        The dtype's character.
    arrays
        The symbols of the factors and of the product.
    sizes
        The product's columns and rows, and the number of products that each element sums.
    count
        The number of matrices.
    layouts
        Those of the factors, from ``layout_of``.
    """

    char: str
    arrays: list[Symbol]
    sizes: tuple[int, int, int]
    count: int
    layouts: list[tuple[int, int, int]]


def _multiplying(xp: Any, product: Product) -> Callable[[Any, Any, Any], None]:
    """Return a function that multiplies matrices into an array, on the current stream."""
    found = products(xp)
    if found.missing is not None:
        raise NotImplementedError
    current = found.current
    char, _, sizes, count, ((turn_x, *x_apart), (turn_y, *y_apart)) = product
    # row-major matrices are transposed column-major ones, so factors change places
    turned, out_apart = (turn_y, turn_x), (sizes[0], sizes[0] * sizes[1])

    def multiply(x: Any, y: Any, out: Any) -> None:
        current().multiply(
            char, turned, sizes, count, (y, *y_apart), (x, *x_apart), (out, *out_apart)
        )

    return multiply


def _one_product(
    xp: Any, product: Product, numbers: Mapping[Symbol, int], shape: Shape, count: int
) -> Plan:
    """Return a plan of one product."""
    multiply, new, dtype = _multiplying(xp, product), xp.ndarray, np.dtype(product.char)
    first, second = (numbers[x] for x in product.arrays[:2])

    def two(x: Any, y: Any) -> Any:
        out = new(shape, dtype)
        multiply(x, y, out)
        return out

    def some(*given: Any) -> Any:
        out = new(shape, dtype)
        multiply(given[first], given[second], out)
        return out

    return two if (first, second, count) == (0, 1, 2) else some
