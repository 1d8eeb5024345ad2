"""A plan: all work of a program on the device, in order, and the memory of its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....core.extend import Symbol, begin_step, end_step, has_unknown_sizes, set_arrays
from ...planned import (
    Emitter,
    FlatUpdate,
    Item,
    LoopGroup,
    PlanStep,
    StepKind,
    bytes_of,
    close_groups,
    count_ops,
    grouped,
    lifetimes,
    pack_line,
    packed,
    shape_of,
)
from ..writing.fusing import BlockKernel, Fused, fused
from ..writing.groups import launches, split
from ..writing.joins import has_kernels, joining, parts_of_joins
from ..writing.places import Places
from ..writing.source import BLOCK, KernelLaunch, Written, compiled
from .bfloat16 import SHORT, with_short_operands
from .lowering import DeviceLowering
from .products import Products, products, rounds, with_dense_operands
from .variables import State

#: The alignment of buffers, in bytes.
_ALIGNED = 512
#: The number of sets of buffers that are kept for the next calls.
_KEPT = 4

#: The address that means each thread's own default stream.
PER_THREAD = 2

#: A call's values, by number.
Values = list[Any]
Action = Callable[[Values], None]


class DevicePlan:
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
    updating
        The number of the first action that updates a pack; only others of these follow.
    calls, views
        The actions that call kernels of ops, and those that make views, with their steps.
    memory
        The actions that only allocate memory (true) or release it (false).
    numbers
        The positions of values among a call's values.
    products
        The object that multiplies matrices; None if it is not needed.
    has_singles
        Whether it multiplies matrices of float32, which may be rounded to TF32.
    """

    def __init__(self, lowered: DeviceLowering, memory: dict[Any, State]) -> None:
        self.lowered = lowered
        self.xp = lowered.owner.xp
        self.kernels: list[KernelLaunch] = []
        self.calls: dict[Action, PlanStep] = {}
        self.views: dict[Action, PlanStep] = {}
        self.memory: dict[Action, bool] = {}
        self.products: Products | None = None
        self.has_singles = False
        self._template: Values = []
        self.numbers: dict[Symbol, int] = {}
        self._actions: list[Action] = []
        #: By an action that computes, its name and the size of its results in bytes.
        self._steps: dict[Action, tuple[str, int]] = {}
        self._buffers: list[tuple[int, int, Symbol]] = []
        self._slots: list[int] = []
        self._free: dict[int, list[int]] = {}
        self._sets: dict[int, tuple[Any, list[Values]]] = {}
        steps, packs = packed(lowered.steps, lowered.reads, lowered.updates, lowered.outputs)
        steps = with_short_operands(lowered, steps, lambda: products(self.xp).has_bfloat16)
        made = {x: step for step in steps for x in step.outputs}
        steps = with_dense_operands(steps, Places(made, lowered.maps, set()).of)
        self.states = [(p, memory.setdefault(p.key, State(p, self.xp))) for p in packs]
        apart = {v for pack in packs for v in pack.sources}
        self.updates = {v: x for v, x in lowered.updates.items() if v not in apart}
        needed = {*lowered.outputs, *self.updates.values()}
        given = {x for pack in packs for row in pack.given.values() for x in row}
        for pack in packs:  # and the numbers that all its variables share
            given.update(x for x in pack.group.inputs if x not in pack.held and x not in pack.given)
        items = grouped(steps, needed | given, Emitter().takes)
        items = [part for item in items for part in split(item)]
        close_groups(items, needed | given)
        self._made = {x: step for step in steps for x in step.outputs}
        self._kept = {*needed, *given, *lowered.known, *lowered.reads, *lowered.inputs}
        self._wanted = _views_wanted(items, needed | given)
        self._place = Places(self._made, lowered.maps, self._wanted).of
        groups: list[Any] = [x for x in items if isinstance(x, LoopGroup) or has_kernels(x)]
        groups += [pack.group for pack in packs]
        #: The arrays that kernels read.
        self._homes = {self._place(x)[0] for group in groups for x in group.inputs}
        self.items: list[Fused] = fused(items, needed | given, self._wanted, self._place)
        self._stores = parts_of_joins(self.items, needed | given, self._place)
        self._fresh, self._last = lifetimes(self.items, needed, given)
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

    def own_values(self) -> tuple[Values, list[Any]]:
        """Return a call's values with all memory that they need, and the arrays in that memory."""
        values = self.new_values()
        for action, allocates in self.memory.items():
            if allocates:
                action(values)
        return values, [x for x, y in zip(values, self._template, strict=True) if x is not y]

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

    def forget(self, stream: Any) -> None:
        """Release the buffers that are kept for a stream."""
        self._sets.pop(stream.ptr, None)

    def memory_of(self, x: Symbol) -> Symbol:
        """Return the value whose memory a value is in, as far as views tell."""
        step = self._made.get(x)
        while step is not None and step.kind is StepKind.VIEW:
            (x,) = step.inputs
            step = self._made.get(x)
        return x

    def is_copy(self, view: PlanStep) -> bool:
        """Return whether a view is a copy, because no strides describe it."""
        return self._place(view.out)[0] is view.out

    # -- the order of all calls ------------------------------------------------------------------

    def _order(self, packs: Sequence[FlatUpdate]) -> None:
        self._parts: list[tuple[int, int, int, int, Any]] = []
        self._begun: set[Symbol] = set()
        ends: dict[int, list[Symbol]] = {}
        for x, moment in self._last.items():
            ends.setdefault(moment, []).append(x)
        placed: dict[Symbol, int] = {}
        for pack in packs:
            self._place_given(pack)
        for moment, item in enumerate(self.items):
            if isinstance(item, LoopGroup):
                for x in dict.fromkeys(self._home(x) for x in item.outputs):
                    self._target(x, placed)
                self._launch(launches(item, self._place, self._stores), item.outputs)
            elif isinstance(item, BlockKernel):
                for x in dict.fromkeys(self._home(x) for x in item.outputs):
                    self._target(x, placed)
                self._launch(item.launch(self._place, self._stores), item.outputs)
            elif item.kind is StepKind.JOIN and item.inputs[0] in self._stores:
                pass  # its parts are where they belong
            elif has_kernels(item):
                for x in item.outputs:
                    self._target(x, placed)
                write = item.params.get("write", joining)
                self._launch(write(item, self._place), item.outputs)
            elif item.kind is StepKind.PRODUCT:
                self._target(item.out, placed)
                self._product(item)
            elif item.kind is not StepKind.VIEW or item.out in self._wanted:
                self._call(item)
            for x in ends.get(moment, ()):
                if x in placed:
                    size = self._slots[placed[x]]
                    self._free.setdefault(size, []).append(placed.pop(x))
                elif x in self.numbers and x not in self._kept:
                    self._prepare(partial(_forget, self.numbers[x]), False)
        for pack in packs:
            for flat, row in pack.given.items():
                for i, x in enumerate(row):
                    if self._given.get((flat, i)) != self.number(x):
                        self._actions.append(partial(_copy, self.number(x), self._given[flat, i]))
        self.updating = len(self._actions)
        for pack in packs:
            self._launch(launches(pack.group, self._place), pack.group.outputs)
        held = {number for number, _, _ in self._buffers} | {n for _, n, *_ in self._parts}
        known = {self.numbers[x] for x in self.lowered.known if x in self.numbers}
        self._passing = [n for n in range(len(self._template)) if n not in held | known]

    def _place_given(self, pack: FlatUpdate) -> None:
        """Let steps write gradients directly into the arrays that the flat update reads."""
        self._given: dict[tuple[Symbol, int], int] = getattr(self, "_given", {})
        for flat, row in pack.given.items():
            self._buffer(flat)
            for i, (x, (a, b, shape)) in enumerate(zip(row, pack.bounds, strict=True)):
                made = self._made.get(x)
                kinds = (StepKind.ELEMENTWISE, StepKind.FRESH, StepKind.REDUCTION, StepKind.PRODUCT)
                alone = made is not None and made.kind in kinds and x not in self._fresh
                if not alone or x in self.numbers:
                    number = len(self._template)
                    self._template.append(None)
                else:
                    number = self.number(x)
                self._given[flat, i] = number
                self._parts.append((self.number(flat), number, a, b, shape))

    def _home(self, x: Symbol) -> Symbol:
        """Return the array that a result is written to."""
        return self._stores[x][0] if x in self._stores else x

    def _target(self, x: Symbol, placed: dict[Symbol, int]) -> None:
        """Decide where a value is computed: in a new array if other code may keep it."""
        if x in self._begun:  # by another part of it
            return
        self._begun.add(x)
        if x in self._fresh:
            make = partial(self.xp.empty, shape_of(x), x.dtype)
            self._prepare(partial(_assign, self.number(x), make), True)
        elif x not in self.numbers:
            placed[x] = self._buffer(x)

    def _launch(self, written: Written, outputs: Sequence[Symbol]) -> None:
        """Add kernels, with the memory that they use between them."""
        found, scratch = written
        slots = [self._buffer(x) for x in scratch]
        for slot in slots:
            self._free.setdefault(self._slots[slot], []).append(slot)
        for launch in found:
            self._add(launch, sum(map(bytes_of, outputs)))

    def _add(self, launch: KernelLaunch, size: int) -> None:
        """Add a kernel, whose results take ``size`` bytes."""
        kernel = compiled(self.xp, launch.name, launch.source)
        numbers = [*map(self.number, launch.arrays)]
        action = partial(_run_kernel, kernel, (launch.blocks,), (BLOCK,), numbers)
        self._step(launch.label, size, action)
        self.kernels.append(launch)

    def _step(self, name: str, size: int, action: Action) -> None:
        self._actions.append(action)
        self._steps[action] = name, size

    def _prepare(self, action: Action, allocates: bool) -> None:
        self._actions.append(action)
        self.memory[action] = allocates

    @property
    def actions(self) -> list[Action]:
        """All that a call does, in order."""
        return self._actions

    def is_launch(self, action: Action) -> bool:
        """Return whether an action launches a kernel or a product of matrices."""
        return action in self._steps and action not in self.calls and action not in self.views

    def _product(self, step: PlanStep) -> None:
        self.products = products(self.xp)
        kind = step.symbols[0].dtype
        self.has_singles = self.has_singles or kind == np.float32
        (a, b), out = map(self.number, step.inputs), self.number(step.out)
        multiply = self.products.multiply
        left, right = step.params.get("left"), step.params.get("right")

        def run(values: Values) -> None:
            x, y = values[a], values[b]
            multiply(x.T if left else x, y.T if right else y, values[out])

        self._step(step.op, bytes_of(step.out), run)

    def _call(self, step: PlanStep) -> None:
        given = step.arguments(lambda x: (self.number(x), None), lambda scalar: (None, scalar))
        numbers, run, several = [*map(self.number, step.outputs)], step.run, step.several

        def call(values: Values) -> None:
            results = run(*[scalar if n is None else values[n] for n, scalar in given])
            for number, result in zip(numbers, results if several else (results,), strict=True):
                values[number] = result

        size = sum(bytes_of(x) for x in step.outputs if not has_unknown_sizes(x.shape))
        self._step(step.op, size, call)
        (self.views if step.kind is StepKind.VIEW else self.calls)[call] = step
        self._actions += [self._checked(x) for x in step.outputs if x in self._homes]

    def _checked(self, x: Symbol) -> Action:
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
            if has_unknown_sizes(x.shape) or x.shape != variable.shape:
                variable.check_shape(array.shape)
        for _, state in self.states:
            variables += state.variables
            new += state.new
        set_arrays(variables, new)  # all in one step, so that a signal comes before or after it
        for _, state in self.states:
            state.end()
        return outputs

    def run(self, arrays: Sequence[Any], reporting: bool = False) -> list[Any]:
        """Run the program on its current stream, one kernel after another."""
        stream = self.xp.cuda.get_current_stream()
        values = self.take(stream)
        self.enter(values, arrays)
        if self.products is not None:
            self.products.begin(stream)
        (self.work_watched if reporting else self.work)(values)
        results = self.commit(lambda x: values[self.numbers[x]])
        self.give(stream, values)
        return results

    # -- as text ---------------------------------------------------------------------------------

    def explain(self) -> str:
        """Return a description of the plan."""
        lines = [
            f"  {item.explain()}" if isinstance(item, BlockKernel)
            else f"  kernel over {item.shape}: {count_ops(item.members)}"
            for item in self.items if not isinstance(item, PlanStep)
        ]  # fmt: skip
        for pack, _ in self.states:
            lines.append(f"  one update of {len(pack.shapes)} variables, {pack_line(pack)}")
        kinds = [
            i.symbols[0].dtype
            for i in self.items
            if isinstance(i, PlanStep) and i.kind is StepKind.PRODUCT
        ]
        told = [f"{kinds.count(SHORT)} of bfloat16"] if SHORT in kinds else []
        if self.has_singles:
            precise = "TF32 allowed" if rounds() else "full precision"
            told.append(f"{kinds.count(np.dtype(np.float32))} of float32: {precise}")
        lines.append(
            f"  {len(self.kernels)} launches of kernels, {len(kinds)} products of matrices"
            + (f" ({', '.join(told)})" if told else "")
        )
        lines += self.lowered.call_lines()
        lines.append(f"  memory: one block of {self.bytes} bytes for each call that runs")
        return "\n".join(lines)


def _views_wanted(items: Sequence[Item], needed: set[Symbol]) -> set[Symbol]:
    """Return the views that must be arrays: kernels read through all others."""
    wanted = set(needed)
    for item in reversed(items):
        if not isinstance(item, PlanStep) or has_kernels(item):
            continue
        if item.kind is not StepKind.VIEW or item.out in wanted:
            wanted.update(item.symbols)
    return wanted


# actions, by functools.partial: closures in a loop would share its last values


def _run_kernel(
    kernel: Any, grid: tuple[int], block: tuple[int], numbers: Sequence[int], values: Values
) -> None:
    kernel(grid, block, tuple([values[n] for n in numbers]))


def _assign(number: int, make: Callable[[], Any], values: Values) -> None:
    values[number] = make()


def _copy(source: int, target: int, values: Values) -> None:
    values[target][...] = values[source]


def _forget(number: int, values: Values) -> None:
    values[number] = None
