"""A plan: all work of a program on the device, in order, and the memory of its values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.extend import Symbol, begin_step, end_step, set_arrays, unsure
from ...planned.combining import Emitter, Item, Pack, close, grouped, packed
from ...planned.memory import lifetimes
from ...planned.report import called, counted, written
from ...planned.steps import Group, Kind, Step, bytes_of, shape_of
from .kernels import BLOCK, OPTIONS, Launch, Place, axes_of, joining, launches
from .lowering import DeviceLowering
from .products import Products, products
from .state import State

#: The maximum of steps and sums in a kernel: a compiler takes long over more, and a launch can have
#: up to 512 arrays.
_MOST_STEPS, _MOST_TAILS = 96, 32
#: The alignment of buffers, in bytes.
_ALIGNED = 512
#: The number of sets of buffers that are kept for the next calls.
_KEPT = 4

#: The address that means each thread's own default stream.
PER_THREAD = 2

#: A call's values, by number.
Values = list[Any]


class Plan:
    """Runs a program for inputs of given shapes, on one device.

    Parameters
    ----------
    lowered
        The program in steps.
    memory
        The packs of other shapes of the same program, by key.

    Attributes
    ----------
    items
        The groups and the other steps, in order.
    kernels
        All kernels that it launches, in order.
    states
        The packs, with their variables' memory.
    host
        The steps that call kernels of ops.
    numbers
        The positions of values among a call's values.
    products
        The object that multiplies matrices; None if it is not needed.
    """

    def __init__(self, lowered: DeviceLowering, memory: dict[Any, State]) -> None:
        self.lowered = lowered
        self.xp = lowered.owner.xp
        self.kernels: list[Launch] = []
        self.host: list[Step] = []
        self.products: Products | None = None
        self._template: Values = []
        self.numbers: dict[Symbol, int] = {}
        self._actions: list[Callable[[Values], None]] = []
        #: By an action that computes, its name and the size of its results in bytes.
        self._steps: dict[Callable[[Values], None], tuple[str, int]] = {}
        self._buffers: list[tuple[int, int, Symbol]] = []
        self._slots: list[int] = []
        self._free: dict[int, list[int]] = {}
        self._sets: dict[int, tuple[Any, list[Values]]] = {}
        self._models: dict[Symbol, tuple[Symbol, Any, int]] = {}
        steps, packs = packed(lowered.steps, lowered.reads, lowered.updates, lowered.outputs)
        self.states = [(p, memory.setdefault(p.key, State(p, self.xp))) for p in packs]
        apart = {v for pack in packs for v in pack.sources}
        self.updates = {v: x for v, x in lowered.updates.items() if v not in apart}
        needed = {*lowered.outputs, *self.updates.values()}
        given = {x for pack in packs for row in pack.given.values() for x in row}
        for pack in packs:  # and the numbers that all its variables share
            given.update(x for x in pack.group.inputs if x not in pack.held and x not in pack.given)
        items = grouped(steps, needed | given, Emitter().takes)
        self.items: list[Item] = [part for item in items for part in _split(item)]
        close(self.items, needed | given)
        self._made = {x: step for step in steps for x in step.outputs}
        self._fresh, self._last = lifetimes(self.items, needed, given)
        self._kept = {*needed, *given, *lowered.known, *lowered.reads, *lowered.inputs}
        self._wanted = self._views_wanted(needed | given)
        groups = [item for item in self.items if isinstance(item, Group)]
        groups += [pack.group for pack in packs]
        #: The inputs whose memory kernels read.
        reading: list[Sequence[Any]] = [group.inputs for group in groups]
        reading += [item.inputs for item in self.items if isinstance(item, Step) and _joins(item)]
        self._homes = {self._place(x)[0] for inputs in reading for x in inputs}
        for x, value in lowered.known.items():
            self._template[self.number(x)] = value
            if x in self._homes:
                self._checked(x)(self._template)
        for x in (*lowered.inputs, *lowered.reads):
            self.number(x)
            if x in self._homes:
                self._actions.append(self._checked(x))
        self._order(packs)

    # -- numbers and buffers ---------------------------------------------------------------------

    def number(self, x: Symbol) -> int:
        """Return a value's position among a call's values."""
        found = self.numbers.get(x)
        if found is None:
            found = self.numbers[x] = len(self._template)
            self._template.append(None)
        return found

    def _buffer(self, x: Symbol) -> int:
        """Give a value memory that is free when it is made; return the slot."""
        size = -(-bytes_of(x) // _ALIGNED) * _ALIGNED
        free = self._free.get(size)
        if free:
            slot = free.pop()
        else:
            slot = len(self._slots)
            self._slots.append(size)
        self._buffers.append((self.number(x), slot, x))
        return slot

    @property
    def bytes(self) -> int:
        """The size of a set of buffers."""
        return sum(self._slots)

    def new_values(self) -> Values:
        """Return a call's values, with constants and a set of buffers."""
        values = list(self._template)
        ends = np.cumsum([0, *self._slots]).tolist()
        block = self.xp.empty(ends[-1], np.uint8)
        for number, slot, x in self._buffers:
            part = block[ends[slot] : ends[slot] + bytes_of(x)]
            values[number] = part.view(x.dtype).reshape(shape_of(x))
        for source, number, a, b, shape in self._parts:
            values[number] = values[source][a:b].reshape(shape)
        return values

    def take(self, stream: Any) -> Values:
        """Return values that no other call uses, with buffers used only on this stream."""
        _, free = self._sets.get(stream.ptr, (None, []))
        try:
            return free.pop()
        except IndexError:
            return self.new_values()

    def give(self, stream: Any, values: Values) -> None:
        """Keep buffers for another call on the stream; forget values outside them."""
        if stream.ptr == PER_THREAD:
            return
        # the stream is kept, too: another one at its address would not wait for its work
        _, free = self._sets.setdefault(stream.ptr, (stream, []))
        if len(free) < _KEPT and len(self._sets) <= _KEPT:
            for number in self._passing:
                values[number] = None
            free.append(values)

    # -- views -----------------------------------------------------------------------------------

    def _views_wanted(self, needed: set[Symbol]) -> set[Symbol]:
        """Return the views that must be arrays: kernels read through all others."""
        wanted = set(needed)
        for item in reversed(self.items):
            if not isinstance(item, Step) or _joins(item):
                continue
            if item.kind is not Kind.VIEW or item.out in wanted:
                wanted.update(x for x in item.inputs if type(x) is Symbol)
        return wanted

    def _place(self, x: Symbol) -> Place:
        """Return a value's place for kernels: its C contiguous array, offset and strides."""
        home, model, origin = self._model(x)
        place = model.__array_interface__["data"][0] - origin
        return home, place, model.strides

    def _model(self, x: Symbol) -> tuple[Symbol, Any, int]:
        """Return an array of bytes with the offset and strides of a value in its array."""
        views, y = list[Symbol](), x  # from one view of a view to the next, however many there are
        while y not in self._models:
            step = self._made.get(y)
            if step is None or step.kind is not Kind.VIEW:
                self._models[y] = _own_model(y)
                break
            views.append(y)
            (y,) = step.inputs
        for y in reversed(views):
            step = self._made[y]
            home, model, origin = self._models[step.inputs[0]]
            view = self.lowered.maps.get(y, step.run)(model)
            if np.may_share_memory(view, model):
                self._models[y] = home, view, origin
                continue
            self._models[y] = _own_model(y)  # it must be an array, and so must its source
            while y in self._made and self._made[y].kind is Kind.VIEW:
                self._wanted.add(y)
                (y,) = self._made[y].inputs
        return self._models[x]

    # -- the order of all calls ------------------------------------------------------------------

    def _order(self, packs: Sequence[Pack]) -> None:
        self._parts: list[tuple[int, int, int, int, Any]] = []
        ends: dict[int, list[Symbol]] = {}
        for x, moment in self._last.items():
            ends.setdefault(moment, []).append(x)
        placed: dict[Symbol, int] = {}
        for pack in packs:
            self._place_given(pack)
        for moment, item in enumerate(self.items):
            if isinstance(item, Group):
                for x in item.outputs:
                    self._target(x, placed)
                self._launch(item)
            elif _joins(item):
                self._target(item.out, placed)
                self._add(joining(item, self._place), bytes_of(item.out))
            elif item.kind is Kind.PRODUCT:
                self._target(item.out, placed)
                self._product(item)
            elif item.kind is not Kind.VIEW or item.out in self._wanted:
                self._call(item)
            for x in ends.get(moment, ()):
                if x in placed:
                    size = self._slots[placed[x]]
                    self._free.setdefault(size, []).append(placed.pop(x))
                elif x in self.numbers and x not in self._kept:
                    self._actions.append(_forgetting(self.numbers[x]))
        for pack in packs:
            for flat, row in pack.given.items():
                for i, x in enumerate(row):
                    if self._given.get((flat, i)) != self.number(x):
                        self._actions.append(_copying(self.number(x), self._given[flat, i]))
            self._launch(pack.group)
        held = {number for number, _, _ in self._buffers} | {n for _, n, *_ in self._parts}
        known = {self.numbers[x] for x in self.lowered.known if x in self.numbers}
        self._passing = [n for n in range(len(self._template)) if n not in held | known]

    def _place_given(self, pack: Pack) -> None:
        """Make gradients be computed where the flat update reads them."""
        self._given: dict[tuple[Symbol, int], int] = getattr(self, "_given", {})
        for flat, row in pack.given.items():
            self._buffer(flat)
            for i, (x, (a, b, shape)) in enumerate(zip(row, pack.bounds, strict=True)):
                made = self._made.get(x)
                kinds = (Kind.ELEMENTWISE, Kind.FRESH, Kind.REDUCTION, Kind.PRODUCT)
                alone = made is not None and made.kind in kinds and x not in self._fresh
                if not alone or x in self.numbers:
                    number = len(self._template)
                    self._template.append(None)
                else:
                    number = self.number(x)
                self._given[flat, i] = number
                self._parts.append((self.number(flat), number, a, b, shape))

    def _target(self, x: Symbol, placed: dict[Symbol, int]) -> None:
        """Decide where a value is computed: in a new array if other code may keep it."""
        if x in self._fresh:
            number, empty, shape, dtype = self.number(x), self.xp.empty, shape_of(x), x.dtype

            def make(values: Values) -> None:
                values[number] = empty(shape, dtype)

            self._actions.append(make)
        elif x not in self.numbers:
            placed[x] = self._buffer(x)

    def _launch(self, group: Group) -> None:
        found, scratch = launches(group, self._place)
        slots = [self._buffer(x) for x in scratch]
        for slot in slots:
            self._free.setdefault(self._slots[slot], []).append(slot)
        for launch in found:
            self._add(launch, sum(map(bytes_of, group.outputs)))

    def _add(self, launch: Launch, size: int) -> None:
        """Add a kernel, whose results take ``size`` bytes."""
        kernel = _compiled(self.xp, launch.name, launch.source)
        numbers, grid, block = [*map(self.number, launch.arrays)], (launch.blocks,), (BLOCK,)
        self._step(launch.label, size, _launching(kernel, grid, block, numbers))
        self.kernels.append(launch)

    def _step(self, name: str, size: int, action: Callable[[Values], None]) -> None:
        self._actions.append(action)
        self._steps[action] = name, size

    def _product(self, step: Step) -> None:
        self.products = products(self.xp)
        (a, b), out = map(self.number, step.inputs), self.number(step.out)
        multiply = self.products.multiply
        left, right = step.params.get("left"), step.params.get("right")

        def run(values: Values) -> None:
            x, y = values[a], values[b]
            multiply(x.T if left else x, y.T if right else y, values[out])

        self._step(step.op, bytes_of(step.out), run)

    def _call(self, step: Step) -> None:
        if step.kind is not Kind.VIEW:
            self.host.append(step)
        scalars = iter(step.scalars)
        given = [
            (self.number(x), None) if type(x) is Symbol else (None, next(scalars))
            for x in step.inputs
        ]
        numbers, run, several = [*map(self.number, step.outputs)], step.run, step.several

        def call(values: Values) -> None:
            results = run(*[scalar if n is None else values[n] for n, scalar in given])
            for number, result in zip(numbers, results if several else (results,), strict=True):
                values[number] = result

        size = sum(bytes_of(x) for x in step.outputs if not unsure(x.shape))
        self._step(step.op, size, call)
        self._actions += [self._checked(x) for x in step.outputs if x in self._homes]

    def _checked(self, x: Symbol) -> Callable[[Values], None]:
        """Return an action that makes a value contiguous, because kernels see only its memory."""
        number, shape, dtype = self.number(x), shape_of(x), x.dtype
        ascontiguous, asarray, kind = self.xp.ascontiguousarray, self.xp.asarray, self.xp.ndarray

        def check(values: Values) -> None:
            array = values[number]
            if type(array) is not kind:  # a number on the host
                array = values[number] = asarray(array)
            if array.shape != shape or array.dtype != dtype:
                raise RuntimeError(
                    f"a value has shape {array.shape} and dtype {array.dtype}, but the plan needs "
                    f"shape {shape} and dtype {dtype}"
                )
            if not array.flags.c_contiguous:
                values[number] = ascontiguous(array)

        return check

    # -- running ---------------------------------------------------------------------------------

    def enter(self, values: Values, arrays: Sequence[Any]) -> None:
        """Put in a call's inputs, variables, and the variables' flat arrays."""
        lowered, numbers = self.lowered, self.numbers
        for x, array in zip(lowered.inputs, arrays, strict=True):
            values[numbers[x]] = array
        for x, variable in lowered.reads.items():
            values[numbers[x]] = variable.array
        for pack, state in self.states:
            flats = zip((*pack.held, *pack.written), state.begin(), strict=True)
            for x, flat in flats:
                values[self.number(x)] = flat

    def work(self, values: Values) -> None:
        """Do all work on the device."""
        for action in self._actions:
            action(values)

    def work_watched(self, values: Values) -> None:
        """Do the same, and report each kernel, product and call to watchers."""
        like = next((x for x in values if type(x) is self.xp.ndarray), None)
        for action in self._actions:
            name, size = self._steps.get(action, (None, 0))
            if name is None:
                action(values)
                continue
            begin_step((name, like, size))
            action(values)
            end_step()

    def commit(self, of: Callable[[Symbol], Any]) -> list[Any]:
        """Assign the new values of variables; return the results.

        Parameters
        ----------
        of
            A function that returns a value's array.
        """
        outputs = [of(x) for x in self.lowered.outputs]
        variables, new = list(self.updates), [of(x) for x in self.updates.values()]
        for (variable, x), array in zip(self.updates.items(), new, strict=True):
            if unsure(x.shape) or x.shape != variable.shape:
                variable.check_shape(array.shape)
        for _, state in self.states:
            variables += state.variables
            new += state.new
        set_arrays(variables, new)  # all in one step, so that a signal comes before or after it
        for _, state in self.states:
            state.end()
        return outputs

    def run(self, arrays: Sequence[Any], telling: bool = False) -> list[Any]:
        """Run the program on its current stream, one kernel after another."""
        stream = self.xp.cuda.get_current_stream()
        values = self.take(stream)
        self.enter(values, arrays)
        if self.products is not None:
            self.products.begin(stream)
        (self.work_watched if telling else self.work)(values)
        results = self.commit(lambda x: values[self.numbers[x]])
        self.give(stream, values)
        return results

    # -- as text ---------------------------------------------------------------------------------

    def explain(self) -> str:
        """Return a description of the plan."""
        groups = [item for item in self.items if isinstance(item, Group)]
        lines = [f"  kernel over {group.shape}: {counted(group.members)}" for group in groups]
        for pack, _ in self.states:
            lines.append(f"  one update of {len(pack.shapes)} variables, {written(pack)}")
        products = sum(isinstance(i, Step) and i.kind is Kind.PRODUCT for i in self.items)
        lines.append(f"  {len(self.kernels)} launches of kernels, {products} products of matrices")
        lines += called(self.lowered)
        lines.append(f"  memory: one block of {self.bytes} bytes for each call that runs")
        return "\n".join(lines)


def _own_model(x: Symbol) -> tuple[Symbol, Any, int]:
    """Return the model of a value that is an array itself."""
    model = np.empty(shape_of(x), np.int8)
    return x, model, model.__array_interface__["data"][0]


def _joins(item: Item) -> bool:
    return isinstance(item, Step) and item.kind is Kind.JOIN


def _split(item: Item) -> list[Item]:
    """Split a group into parts that can be kernels: few steps each, and sums over equal axes."""
    if not isinstance(item, Group):
        return [item]
    parts: list[Group] = []
    for start in range(0, len(item.steps), _MOST_STEPS):
        parts.append(Group(item.shape))
        parts[-1].steps = item.steps[start : start + _MOST_STEPS]
    tails: dict[tuple[int, ...], list[Step]] = {}
    for step in item.tails:
        tails.setdefault(axes_of(step), []).append(step)
    for alike in tails.values():
        for start in range(0, len(alike), _MOST_TAILS):
            if not parts or parts[-1].tails:
                parts.append(Group(item.shape))
            parts[-1].tails = alike[start : start + _MOST_TAILS]
    return list(parts)


# functions, because closures in a loop would share its last values


def _launching(
    kernel: Any, grid: tuple[int], block: tuple[int], numbers: Sequence[int]
) -> Callable[[Values], None]:
    def launch(values: Values) -> None:
        kernel(grid, block, tuple([values[n] for n in numbers]))

    return launch


def _copying(source: int, target: int) -> Callable[[Values], None]:
    def copy(values: Values) -> None:
        values[target][...] = values[source]

    return copy


def _forgetting(number: int) -> Callable[[Values], None]:
    def forget(values: Values) -> None:
        values[number] = None

    return forget


@functools.lru_cache(maxsize=4096)
def _compiled(xp: Any, name: str, source: str) -> Any:
    """Return a kernel; CuPy caches compiled kernels in files, by their source."""
    kernel = xp.RawKernel(source, name, OPTIONS)
    kernel.compile()
    return kernel
