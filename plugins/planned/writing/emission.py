"""Write a plan as the source of one Python function: its groups, flat updates and calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ....core.extend import (
    FirstRun,
    Symbol,
    begin_step,
    end_step,
    function_from,
    has_unknown_sizes,
    set_arrays,
)
from ..combining import Emitter, FlatUpdate, StackedSteps, grouped, packed, stacked
from ..lowering import Lowering
from ..memory import Arena, Packed, ViewStrides, lifetimes
from ..rules import cast_into
from ..steps import LoopGroup, PlanStep, Shape, StepKind, bytes_of, count_ops, shape_of
from .groups import arguments_of, in_blocks, placed_parts, write_group, write_parts
from .sharing import call_into, write_shared
from .short_sums import quickest

#: The kinds of steps that may write to a part of a larger array.
_PLACED = (StepKind.ELEMENTWISE, StepKind.KERNEL, StepKind.PRODUCT, StepKind.REDUCTION)
#: The kinds of steps whose results are C contiguous if their inputs are.
_ORDERED = (*_PLACED, StepKind.JOIN, StepKind.FRESH)
#: The size in bytes from which an array is deleted after its last use.
_DROPPED = 2**16


class Emission:
    """The source of a plan, and the objects that it refers to.

    Parameters
    ----------
    lowered
        The program in steps.
    emitter
        Runs groups.
    memory
        The packs of other sizes of the same program, by key.
    reporting
        Whether each step reports its start and end to watchers.
    loop_writer
        A function of an emission and a step that writes a loop.
    placed, carried
        In the body of a loop: the names of values that are computed in place, and the number of
        outputs that need their own arrays, if not all do; the others are copied.
    models
        In the body of a loop: arrays with the strides of inputs.

    Attributes
    ----------
    items
        The groups and the other steps, in order.
    packs
        The flat updates, with their memory.
    arena
        The buffers.
    strides
        The strides of values, until the function is compiled: it holds arrays.
    loops
        The groups that the emitter runs.
    bodies
        The bodies of loops over rows, each with the number of its steps.
    """

    def __init__(
        self,
        lowered: Lowering,
        emitter: Emitter,
        memory: dict[Any, Packed] | None = None,
        reporting: bool = False,
        loop_writer: Callable[[Emission, PlanStep], None] | None = None,
        placed: Mapping[Symbol, str] | None = None,
        carried: int | None = None,
        models: Mapping[Symbol, Any] | None = None,
    ) -> None:
        self.reporting = reporting
        self._loop_writer = loop_writer
        self.lowered = lowered
        self.emitter = emitter
        self.arena = Arena()
        # the name says that this is no user's code, for the lines of messages
        self.scope: dict[str, Any] = {"__name__": __name__, "empty": np.empty}
        self.scope.update(begin=begin_step, end=end_step)
        self.lines: list[str] = []
        #: The texts of functions that the lines call.
        self.functions: list[str] = []
        self.names: dict[Symbol, str] = dict(placed or {})
        self.loops: list[LoopGroup] = []
        self.bodies: list[tuple[int, Emission]] = []
        steps, packs = packed(lowered.steps, lowered.reads, lowered.updates, lowered.outputs)
        known = {} if memory is None else memory
        self.packs = [(pack, known.setdefault(pack.key, Packed(pack))) for pack in packs]
        self._sources = {v for pack in packs for v in pack.sources}
        needed = {
            *lowered.outputs[:carried],
            *(x for v, x in lowered.updates.items() if v not in self._sources),
        }.difference(self.names)
        given = {x for pack in packs for row in pack.given.values() for x in row}
        given.update(lowered.outputs)
        self.items = grouped(steps, needed | given, emitter.takes)
        self._kept = {*needed, *lowered.updates.values(), *lowered.known, *lowered.reads}
        self._run: dict[int, Callable[..., Any]] = {}
        self._parts: dict[tuple[Symbol, int], str] = {}
        self._source_of: dict[str, int] = {}
        self._stacks: dict[int, tuple[int, int]] = {}
        #: By a view that has all of a value's memory in the same order, that value.
        self._whole: dict[Symbol, Symbol] = {}
        self.strides = ViewStrides(steps, models)
        self._ordered = {x for s in steps if s.kind in _ORDERED for x in s.outputs}
        self._plan(needed, given)
        for x in self.fresh.intersection(self.names):
            del self.names[x]

    # -- the memory of values ------------------------------------------------------------------

    def _plan(self, needed: set[Symbol], given: set[Symbol]) -> None:
        """Find the values that need arrays of their own, and the last read of each value."""
        # groups, stacks and single steps, in the order in which they run; a group that gains
        # nothing by running in blocks becomes single steps; a moment is a position in this list
        self._moments: list[Any] = []
        for i, item in enumerate(self.items):
            if isinstance(item, LoopGroup):
                if not self._take_as_loop(item) and not in_blocks(item):
                    self._moments += item.members
                    continue
            elif self._may_be_alone(item) and self.emitter.reduces(item):
                alone = LoopGroup.of_reduction(item)
                if self._take_as_loop(alone):
                    self.items[i] = item = alone
            self._moments.append(item)
        self._moments = stacked(self._moments, needed | given | self._viewed())
        self.fresh, self.last = lifetimes(self._moments, needed, given)
        self._ends: dict[int, list[Symbol]] = {}
        for x, moment in self.last.items():
            self._ends.setdefault(moment, []).append(x)
        # the memory of current values, and memory that is free again, by its size
        self.slots: dict[Symbol, int] = {}
        self.free: dict[int, list[int]] = {}

    def _take_as_loop(self, group: LoopGroup) -> bool:
        """Let the emitter run a group; return whether it does."""
        group.strides = self.strides.of(group)
        loop = self.emitter.loop(group)
        if loop is None:
            return False
        self._run[id(group)] = loop
        self.loops.append(group)
        return True

    def _may_be_alone(self, step: PlanStep) -> bool:
        """Return whether a reduction to an array may be a group: its input must be C contiguous."""
        if step.kind is not StepKind.REDUCTION or step.out.shape == ():
            return False
        if any(has_unknown_sizes(x.shape) for x in (*step.symbols, *step.outputs)):
            return False
        return self.strides.source(step.inputs[0]) in self._ordered

    def buffer(self, symbol: Symbol) -> str:
        """Return the name of a buffer for the value that the current step computes."""
        size = bytes_of(symbol)
        free = self.free.get(size)
        slot = free.pop() if free else self.arena.slot(size)
        self.slots[symbol] = slot
        return self.array(self.arena.buffer(slot, shape_of(symbol), symbol.dtype))

    def array(self, number: int) -> str:
        """Return the name of an array of the arena."""
        name = f"b{number}"
        self._source_of[name] = number
        return name

    def number_of(self, x: Symbol) -> int | None:
        """Return the number of a value's array of the arena; None if it has another array."""
        return self._source_of.get(self.names.get(x, ""))

    def _expire(self, moment: int, before: PlanStep | None = None) -> None:
        """Free the buffers whose last read is in this step; ``before`` may overwrite some."""
        for x in self._ends.get(moment, ()):
            if x not in self.slots:
                continue
            if before is not None:
                out = before.out
                here = any(
                    x is self._whole.get(y, y) and y.shape == out.shape for y in before.symbols
                )
                if not here or x.dtype != out.dtype or bytes_of(x) != bytes_of(out):
                    continue
            self.free.setdefault(bytes_of(x), []).append(self.slots.pop(x))

    def bind(self, value: Any, letter: str = "c") -> str:
        """Return a name for an object that is the same in every run."""
        name = f"{letter}{len(self.scope)}"
        self.scope[name] = value
        if type(value) is FirstRun:
            value.note_lookup(self.scope, name)
        return name

    def name(self, x: Symbol) -> str:
        """Return the name of a value."""
        if x not in self.names:
            known = x in self.lowered.known
            self.names[x] = (
                self.bind(_contiguous(self.lowered.known[x])) if known else f"v{len(self.names)}"
            )
        return self.names[x]

    def arguments(self, step: PlanStep) -> list[str]:
        """Return the arguments of a step's function."""
        return step.arguments(self.name, self.bind_scalar)

    def bind_scalar(self, value: Any) -> str:
        """Return a name for a number among the arguments of steps."""
        return self.bind(value, "s")

    # -- the function ----------------------------------------------------------------------------

    def function(self) -> Callable[..., list[Any]]:
        """Write and compile the whole function."""
        lowered = self.lowered
        for symbol in lowered.inputs:
            self.names[symbol] = f"x{len(self.names)}"
        for pack, _ in self.packs:
            self._place_given(pack)
        self.run_moments()
        for pack, memory in self.packs:
            start = len(self.lines)
            self._pack(pack, memory)
            self._report_from(pack, start)
        self._commit()
        self.lines.append("give(arena)")
        self.lines.append(f"return [{', '.join(map(self.name, lowered.outputs))}]")
        return self.compiled([self.names[symbol] for symbol in lowered.inputs])

    def run_moments(self) -> None:
        """Write all steps except the flat updates."""
        for moment, item in enumerate(self._moments):
            if isinstance(item, StackedSteps):
                self._place_stack(item, moment)
        by_numpy = [
            item
            for item in self._moments
            if not isinstance(item, StackedSteps) and id(item) not in self._run
        ]
        loops = [item for item in self._moments if id(item) in self._run]
        self._joined = placed_parts(self, by_numpy, loops)
        for moment, item in enumerate(self._moments):
            start = len(self.lines)
            if isinstance(item, LoopGroup):
                self._group(item)
                self._drop((*item.inputs, *item.outputs), moment)
            elif isinstance(item, StackedSteps):
                self._stack(item)
            else:
                self._step(item, moment)
                self._drop((*item.symbols, *item.outputs), moment)
            self._report_from(item, start)
            self._expire(moment)

    def _report_from(self, item: Any, start: int) -> None:
        """Wrap the lines from ``start`` on in reports to watchers, if the plan has them."""
        if self.reporting and len(self.lines) > start:
            self.lines.insert(start, f"begin({self.bind(_label_of(item, item in self.loops))})")
            self.lines.append("end()")

    def compiled(self, inputs: Sequence[str]) -> Callable[..., list[Any]]:
        """Compile the lines written, as a function of inputs with these names."""
        lowered = self.lowered
        head = [
            f"{self.names[x]} = {self.bind(v, 'r')}.array{'[()]' if self._is_number(x) else ''}"
            for x, v in lowered.reads.items()
            if x in self.names
        ]
        if self.arena.count:
            names = ", ".join(f"b{i}" for i in range(self.arena.count))
            head = ["arena = take()", f"{names}, = arena", *head]
            self.arena.seal()
            self.scope.update(take=self.arena.take, give=self.arena.give)
        else:
            self.lines.remove("give(arena)")
        whole = "\n    ".join([f"def run({', '.join(inputs)}):", *head, *self.lines])
        self.source = "\n".join([*self.functions, whole])
        del self.strides
        return function_from(self.source, "run", "<plan>", self.scope)

    def _is_number(self, x: Symbol) -> bool:
        """Return whether a value may be a scalar: steps only compute with it, which is faster."""
        return x.shape == () and x not in self.fresh

    def _commit(self) -> None:
        left = {v: x for v, x in self.lowered.updates.items() if v not in self._sources}
        for variable, symbol in left.items():
            if has_unknown_sizes(symbol.shape) or symbol.shape != variable.shape:
                self.lines.append(
                    f"{self.bind(variable.check_shape, 'a')}({self.name(symbol)}.shape)"
                )
        # all at once, so that a signal comes before or after it
        names = [self.bind(memory, "p") for _, memory in self.packs]
        new = ", ".join([*map(self.name, left.values()), *(f"*{name}.new" for name in names)])
        variables = [*left, *(v for _, memory in self.packs for v in memory.variables)]
        if variables:
            commit, written = self.bind(set_arrays, "a"), self.bind(tuple(variables), "w")
            self.lines.append(f"{commit}({written}, ({new},))")
        self.lines += [f"{name}.end()" for name in names]

    # -- steps ---------------------------------------------------------------------------------

    def quickest(self, step: PlanStep) -> Callable[..., Any]:
        """Return the quickest function with NumPy's bits that runs a step."""
        number = self.number_of(step.inputs[0]) if step.kind is StepKind.REDUCTION else None
        return quickest(step, number is not None and self.arena.model(number).flags.c_contiguous)

    def _step(self, step: PlanStep, moment: int) -> None:
        call = f"{self.bind(self.quickest(step), 'k')}({', '.join(arguments_of(self, step))}"
        if step.kind is StepKind.VIEW and self._static(step):
            return
        if step.kind is StepKind.LOOP:
            assert self._loop_writer is not None
            self._loop_writer(self, step)
            return
        if step.kind is StepKind.JOIN and write_parts(self, step, self._joined):
            return
        if step.kind in (StepKind.VIEW, StepKind.CALL, StepKind.FRESH):
            targets = ", ".join(map(self.name, step.outputs)) + ("," if step.several else "")
            self.lines.append(f"{targets} = {call})")
            return
        out = step.out
        if step.kind is StepKind.ELEMENTWISE:
            self._expire(moment, step)
        if step.kind is StepKind.PRODUCT:
            call = self._product(step)
        target = self._target(out)
        if write_shared(self, step, target):
            return
        if step.kind is StepKind.JOIN:
            call = f"{self.bind(step.run, 'k')}(({', '.join(self.arguments(step))},)"
            call += f", {step.params['axis']}"
        if step.kind is StepKind.REDUCTION:
            call += f", {step.params['axis']!r}, None, {target}, {step.params['keepdims']}"
            self.lines.append(f"{call})" if target else f"{self.name(out)} = {call})")
        elif target:
            self.lines.append(call_into(step, call, target))
        elif step.run is cast_into:
            self.lines.append(f"{self.name(out)} = {self.empty(out)}")
            self.lines.append(call_into(step, call, self.name(out)))
        else:
            self.lines.append(f"{self.name(out)} = {call})")

    def _target(self, out: Symbol) -> str | None:
        """Return the array to which a value is written; None if its function makes one."""
        if out in self.fresh:
            return None
        if out not in self.names:
            if shape_of(out) == ():  # NumPy's scalars are faster to compute with
                return None
            self.names[out] = self.buffer(out)
        return self.names[out]

    def empty(self, out: Symbol) -> str:
        """Return an expression that makes an array for a value."""
        return f"empty({shape_of(out)}, {self.bind(out.dtype, 'd')})"

    def _static(self, step: PlanStep) -> bool:
        """Create a view of a buffer once, with the buffers, instead of in each call."""
        (source,) = step.inputs
        number = self.number_of(source)
        if number is None or step.out in self.fresh:
            return False
        array = self.arena.model(number)  # with its strides: a reshape may or may not copy
        if not np.may_share_memory(array, step.run(array)):
            return False
        self.names[step.out] = self.array(self.arena.view(number, step.run))
        if step.view == "reshape" and array.flags.c_contiguous:
            self._whole[step.out] = self._whole.get(source, source)
        return True

    def _product(self, step: PlanStep) -> str:
        names = []
        for name, side in zip(self.arguments(step), ("left", "right")):
            if step.params.get(side):
                number = self._source_of.get(name)
                name = (
                    f"{name}.T" if number is None else self.array(self.arena.view(number, _turned))
                )
            names.append(name)
        return f"{self.bind(step.run, 'k')}({', '.join(names)}"

    def _drop(self, values: Iterable[Symbol], moment: int) -> None:
        """Delete large arrays that are not buffers after their last use."""
        names = [
            self.names[x]
            for x in dict.fromkeys(values)
            if x not in self._kept and self.last.get(x, moment) <= moment
            if self.names.get(x, "b").startswith("v")
            and (has_unknown_sizes(x.shape) or bytes_of(x) >= _DROPPED)
        ]
        if names:
            self.lines.append(f"del {', '.join(names)}")

    # -- groups --------------------------------------------------------------------------------

    def _group(self, group: LoopGroup) -> None:
        loop = self._run.get(id(group))
        outputs = list(group.outputs)
        if loop is None:  # a reduction needs its whole input
            made = {step.out for step in group.steps}
            outputs += [x.inputs[0] for x in group.tails if x.inputs[0] in made]
            outputs = list(dict.fromkeys(outputs))
        for out in outputs:
            if out in self.fresh:
                self.lines.append(f"{self.name(out)} = {self.empty(out)}")
            elif out not in self.names:
                self.names[out] = self.buffer(out)
        if loop is not None:
            given = [self.name(x) for x in (*group.outputs, *group.inputs)]
            self.lines.append(f"{self.bind(loop, 'loop')}({', '.join(given)})")
        else:
            write_group(self, group, set(outputs))
            for step in group.tails:
                if write_shared(self, step, self.name(step.out)):
                    continue
                params = f"{step.params['axis']!r}, None, {self.name(step.out)}"
                call = f"{self.bind(self.quickest(step), 'k')}({self.arguments(step)[0]}, {params}"
                self.lines.append(f"{call}, {step.params['keepdims']})")

    @property
    def stacks(self) -> list[StackedSteps]:
        """The steps that run together as one call."""
        return [item for item in self._moments if isinstance(item, StackedSteps)]

    # -- stacks --------------------------------------------------------------------------------

    def _viewed(self) -> set[Symbol]:
        """Return the values that may share memory with views and may need new arrays."""
        return {
            x
            for step in self._moments
            if isinstance(step, PlanStep) and step.kind in (StepKind.VIEW, StepKind.CALL)
            for x in step.symbols
        }

    def _place_stack(self, stack: StackedSteps, moment: int) -> None:
        """Place the inputs of a stack next to each other; its results replace them if possible."""
        inputs = [step.inputs[0] for step in stack.members]
        outputs = [step.out for step in stack.members]
        over = inputs[0].dtype == outputs[0].dtype and all(self.last[x] == moment for x in inputs)
        number = self._rows(inputs)
        self._stacks[id(stack)] = number, self._rows(outputs, number if over else None)

    def _rows(self, values: Sequence[Symbol], number: int | None = None) -> int:
        first = values[0]
        shape = (len(values), *shape_of(first))
        if number is None:
            slot = self.arena.slot(len(values) * bytes_of(first))
            number = self.arena.buffer(slot, shape, first.dtype)
        for row, x in enumerate(values):
            self.names[x] = self.array(self.arena.row(number, row))
        return number

    def _stack(self, stack: StackedSteps) -> None:
        source, target = map(self.array, self._stacks[id(stack)])
        step = stack.members[0]
        self.lines.append(call_into(step, f"{self.bind(step.run, 'k')}({source}", target))

    # -- packs ---------------------------------------------------------------------------------

    def _place_given(self, pack: FlatUpdate) -> None:
        """Let steps write gradients directly into the arrays that the flat update reads."""
        made = {x: step for step in self.lowered.steps for x in step.outputs}
        for flat, row in pack.given.items():
            number = self.arena.buffer(self.arena.slot(bytes_of(flat)), shape_of(flat), flat.dtype)
            self.names[flat] = self.array(number)
            for i, (x, (a, b, shape)) in enumerate(zip(row, pack.bounds, strict=True)):
                part = self.array(self.arena.view(number, _part(a, b, shape)))
                kind = made[x].kind if x in made else None
                placed = kind in _PLACED
                if placed and x not in self.fresh and x not in self.names:
                    self.names[x] = part
                self._parts[flat, i] = part

    def _pack(self, pack: FlatUpdate, memory: Packed) -> None:
        for flat, row in pack.given.items():
            for i, x in enumerate(row):  # a value may be at several positions
                part = self._parts[flat, i]
                if self.name(x) != part:
                    self.lines.append(f"{part}[...] = {self.name(x)}")
        held, written = [*pack.held], [*pack.written]
        names = [f"f{len(self.scope)}_{i}" for i in range(len(held) + len(written))]
        self.names.update(zip([*held, *written], names, strict=True))
        self.lines.append(f"{', '.join(names)}, = {self.bind(memory.begin, 'p')}()")
        loop = self.emitter.loop(pack.group)
        if loop is None:
            write_group(self, pack.group, set(written))
            return
        self.loops.append(pack.group)
        given = [self.name(x) for x in (*pack.group.outputs, *pack.group.inputs)]
        self.lines.append(f"{self.bind(loop, 'loop')}({', '.join(given)})")


def _label_of(
    item: PlanStep | StackedSteps | LoopGroup | FlatUpdate, loop: bool
) -> tuple[str, None, int]:
    """Return what watchers learn of an item: its name, no array, and the bytes of its results."""
    results: Sequence[Symbol]
    if isinstance(item, PlanStep):
        name, results = item.op, item.outputs
    elif isinstance(item, StackedSteps):
        results = [step.out for step in item.members]
        name = f"{item.members[0].op} of {len(results)} in a stack"
    elif isinstance(item, LoopGroup):
        how = "loop" if loop else "group"
        name, results = f"{how} over {item.shape}: {count_ops(item.members)}", item.outputs
    else:
        name = f"pack of {len(item.shapes)} updates: {count_ops(item.group.steps)}"
        results = item.group.outputs
    return name, None, sum(bytes_of(x) for x in results if not has_unknown_sizes(x.shape))


def _contiguous(value: Any) -> Any:
    """Return a small array as a contiguous one, as loops need it."""
    return np.ascontiguousarray(value) if value.ndim and value.nbytes < _DROPPED else value


def _part(a: int, b: int, shape: Shape) -> Callable[[Any], Any]:
    return lambda flat: flat[a:b].reshape(shape)


def _turned(x: Any) -> Any:
    return x.T
