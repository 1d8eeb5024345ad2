"""Plans of ops in several steps: kernels, products and concatenations, one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....core.extend import Symbol
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
from ..compiled.products import TF32, layout_of, products, rounds
from ..launching import PreparedKernel
from ..writing.groups import split
from ..writing.places import Places
from ..writing.source import BLOCK, blocks_for
from .plans import Lowered, Plan, one_launch, strides_of
from .texts import Place, Writer, Written, is_dense, joining

#: The maximum of launches of an op.
_MOST_LAUNCHES = 8


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
    matrices
        The number of matrices.
    layouts
        Those of the factors, from ``layout_of``.
    """

    char: str
    arrays: list[Symbol]
    sizes: tuple[int, int, int]
    matrices: int
    layouts: list[tuple[int, int, int]]


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
                after = items[0] if items else None
                if not isinstance(after, LoopGroup) or not self._ends(item, after):
                    after = None
                else:
                    items.pop(0)
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

    def _ends(self, group: LoopGroup, after: LoopGroup) -> bool:
        """Return whether the steps after a group's reductions belong to its kernel's end."""
        if not group.tails or after.tails:
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
            strides = strides_of(shape_of(x), array)
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
            for x in item.inputs if isinstance(item, LoopGroup) else item.symbols:
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
                return one_launch(self._xp, work, self._numbers, out, shape, len(self._given))
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


def _multiplying(xp: Any, product: Product) -> Callable[[Any, Any, Any], None]:
    """Return a function that multiplies matrices into an array, on the current stream."""
    found = products(xp)
    if found.missing is not None:
        raise NotImplementedError
    current = found.current
    char, _, sizes, count, (x_layout, y_layout) = product
    # row-major matrices are transposed column-major ones, so factors change places
    turned, key = (y_layout[0], x_layout[0]), object()
    singles = char == np.dtype(np.float32).char
    apart = y_layout[1:], x_layout[1:], (sizes[0], sizes[0] * sizes[1])

    def multiply(x: Any, y: Any, out: Any) -> None:
        handle = current()
        kind = TF32 if singles and rounds() else char
        call = handle.calls.get((key, kind))
        if call is None:
            call = handle.prepared((key, kind), kind, turned, sizes, count, apart)
        call(y, x, out)

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
