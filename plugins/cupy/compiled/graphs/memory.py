"""The memory of a plan's CUDA graphs: what they read, where they write, and what is copied.

Inputs and results are copied, because other code may hold them. Variables that the plan changes are
in their homes. Large variables that it only reads are read where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .....core.extend import Symbol, Variable
from ....packing import FlatArrays
from ....planned import bytes_of, shape_of
from ..plan import Action, DevicePlan, Values
from .homes import Home
from .moving import Moves

#: The size in bytes from which variables that are only read are not copied.
_LARGE = 2**16


class NotCaptured(Exception):
    """A plan cannot be a graph; the message says why."""


class GraphMemory:
    """The memory of a plan's graphs, on one device.

    Parameters
    ----------
    plan
        The plan.
    homes
        The memory of variables that the plan's program changes, by key; it may grow.
    shared
        Whether variables hold parts of that memory.
    copied
        Whether large variables that are only read are copied, too.

    Attributes
    ----------
    homes
        The memory of variables, that of packs first.
    values
        The arrays that graphs read and write, by the plan's numbers.
    own
        The arrays among them that have memory of their own.
    fixed
        By number, the arrays that graphs read results of calls from.
    read
        The variables that are read where they are, with the addresses.
    moved
        The results that graphs copy to new arrays, in order.
    views
        The actions that make views of variables.
    bytes
        The size of the memory, apart from that of variables that the plan changes.
    """

    def __init__(
        self, plan: DevicePlan, homes: dict[Any, Home], shared: bool, copied: bool
    ) -> None:
        self.plan, self.xp, self.shared = plan, plan.xp, shared
        self._copies_all = copied
        self.views: list[Action] = []
        self.pool = self.xp.cuda.MemoryPool()
        self.homes = self._found_homes(homes)
        with self.xp.cuda.using_allocator(self.pool.malloc):
            self.values, self.own = plan.own_values()
            self._place_variables()
            self._place_others()
            self._place_results()
        self.bytes = self.measured()

    def _found_homes(self, homes: dict[Any, Home]) -> list[Home]:
        plan = self.plan
        for variable, x in plan.updates.items():
            if x.shape != variable.shape:
                raise NotCaptured(f"{variable.name} gets a value of another shape")
        wanted: list[tuple[Any, Any]] = [(p.key, s.columns) for p, s in plan.states]
        wanted += [(v.id, [[v]]) for v in plan.updates]
        for key, columns in wanted:
            if key not in homes:
                homes[key] = Home(columns, self.xp, plan.lowered.owner.to_numpy)
        return [homes[key] for key, _ in wanted]

    def _place_variables(self) -> None:
        """Give memory to variables, or read them where they are."""
        plan, values, numbers, xp = self.plan, self.values, self.plan.numbers, self.xp
        parts = self._parts_by_variable()
        self.put_flats(values)
        #: Variables that are copied in each call, and those that are read where they are.
        self._copied: list[tuple[Variable, Any]] = []
        self.read: list[tuple[Variable, int]] = []
        for x, variable in plan.lowered.reads.items():
            array = variable.array
            if variable.id in parts:
                array = parts[variable.id]
            elif self._copies_all or array.nbytes < _LARGE or not array.flags.c_contiguous:
                array = xp.empty(array.shape, array.dtype)
                self._copied.append((variable, array))
            else:
                self.read.append((variable, array.data.ptr))
            values[numbers[x]] = array

    def _parts_by_variable(self) -> dict[int, Any]:
        return {
            variable.id: part
            for home in self.homes
            for variable, part in zip(home.variables, home.flats.parts, strict=True)
        }

    def put_flats(self, values: Values, new: Sequence[FlatArrays] | None = None) -> None:
        """Put in the flat arrays of packs, or new ones to write to."""
        plan = self.plan
        for k, (pack, state) in enumerate(plan.states):
            old = self.homes[k].flats.arrays
            both = state.of(old, old if new is None else new[k].arrays)
            for x, flat in zip((*pack.held, *pack.written), both, strict=True):
                values[plan.number(x)] = flat

    def _place_others(self) -> None:
        """Give memory to inputs, to values outside buffers, and to results of calls."""
        plan, values, numbers = self.plan, self.values, self.plan.numbers
        self._inputs = [self._empty(x) for x in plan.lowered.inputs]
        for x, fixed in zip(plan.lowered.inputs, self._inputs, strict=True):
            values[numbers[x]] = fixed
        read = self._read_by_graphs()
        found = [x for step in plan.calls.values() for x in step.outputs if x in read]
        self.fixed = {numbers[x]: self._empty(x) for x in found}
        for number, fixed in self.fixed.items():
            values[number] = fixed

    def _empty(self, x: Symbol) -> Any:
        return self.xp.empty(shape_of(x), x.dtype)

    def _read_by_graphs(self) -> set[Symbol]:
        """Return the values that kernels, products, views or updates read."""
        plan, calls = self.plan, set(map(id, self.plan.calls.values()))
        steps = [step for item in plan.items for step in item.members if id(step) not in calls]
        read = {x for step in steps for x in step.symbols}
        for pack, _ in plan.states:
            read.update(pack.group.inputs, *pack.given.values())
        read.update(plan.updates.values())
        return read | {plan.memory_of(x) for x in read}

    def _place_results(self) -> None:
        """Decide how each result is given out, and prepare the kernels that copy."""
        plan, lowered, xp = self.plan, self.plan.lowered, self.xp
        changed = {v.id for home in self.homes for v in home.variables}
        #: The results that are given out as they are: the others may be in the graph's memory.
        kept = {*lowered.inputs, *lowered.known}
        kept.update(x for x, v in lowered.reads.items() if v.id not in changed)
        for step in plan.calls.values():
            if step.view is False:
                kept.update(step.outputs)
        self.moved = [x for x in dict.fromkeys(lowered.outputs) if x not in kept]
        flats = [] if self.shared else [x for home in self.homes for x in home.flats.arrays]
        self._targets = [*self._inputs, *[fixed for _, fixed in self._copied]]
        results = len(self.moved)
        self._enter = Moves(xp, self._targets, notes=results + len(flats))
        self._leave = Moves(xp, self.moved, first=0)
        self._give = Moves(xp, flats, first=results)
        self._table = xp.zeros(results + len(flats) + 1, np.uint64)
        #: The new values that are in memory that updates change, and are copied before.
        self._staged = {
            x: self._empty(x) for x in plan.updates.values() if plan.memory_of(x) in lowered.reads
        }
        self._stage = Moves(xp, [*self._staged])
        self._set = Moves(xp, [*plan.updates.values()])
        self._tight: dict[int, Any] = {}

    @property
    def launches_outside(self) -> int:
        """The launches of a call to send arrays and to fix the results of calls."""
        return self._enter.launches + len(self.fixed)

    def measured(self) -> int:
        """Return the size of the memory now: a capture may take some for copies of operands."""
        arrays = [*self._targets, *self.fixed.values(), *self._staged.values(), self._table]
        fresh = {*self.moved, *self.plan.updates.values()}
        known = self.plan.bytes + sum(map(bytes_of, fresh)) + sum(int(x.nbytes) for x in arrays)
        return max(known, int(self.pool.total_bytes()))

    @property
    def bytes_of_variables(self) -> int:
        """The size of the memory of variables that it changes."""
        return sum(home.bytes for home in self.homes)

    # -- a call ----------------------------------------------------------------------------------

    def new_arrays(self) -> list[Any]:
        """Return new arrays for results, and for variables if they hold copies."""
        new = [self._empty(x) for x in self.moved]
        if not self.shared:
            new += [self.xp.empty_like(x) for home in self.homes for x in home.flats.arrays]
        return new

    def send(self, arrays: Sequence[Any], new: Sequence[Any]) -> None:
        """Copy inputs and variables to the graph's memory, and note where results go."""
        given = [*arrays, *[v.array for v, _ in self._copied]]
        given = [x if x.flags.c_contiguous else self.xp.ascontiguousarray(x) for x in given]
        self._enter(given, self._targets, self._table, new)

    def with_variables(self) -> Values:
        """Return the values for what runs outside graphs, with those of variables."""
        plan, values, parts = self.plan, list(self.values), self._parts_by_variable()
        for x, variable in plan.lowered.reads.items():
            if values[plan.numbers[x]] is None:
                values[plan.numbers[x]] = parts.get(variable.id, variable.array)
        for action in self.views:
            action(values)
        return values

    def finish(self, values: Values, targets: Sequence[Any] | None = None) -> None:
        """Copy results, then change variables: in their homes, unless there are other targets."""
        plan = self.plan
        if self.moved:
            self._leave([self._dense(values, x) for x in self.moved], [], self._table)
        if self._staged:
            given = [self._dense(values, x) for x in self._staged]
            self._stage(given, list(self._staged.values()), self._table)
        for action in plan.actions[plan.updating :]:
            action(values)
        if plan.updates:
            staged, sources = self._staged, plan.updates.values()
            given = [staged[x] if x in staged else self._dense(values, x) for x in sources]
            if targets is None:
                targets = [home.flats.arrays[0] for home in self.homes[len(plan.states) :]]
            self._set(given, targets, self._table)
        if not self.shared:
            flats = [x for home in self.homes for x in home.flats.arrays]
            self._give(flats, [], self._table)

    def _dense(self, values: Values, x: Symbol) -> Any:
        number = self.plan.numbers[x]
        array = values[number]
        if array.flags.c_contiguous:
            return array
        if number not in self._tight:
            self._tight[number] = self._empty(x)
        self._tight[number][...] = array
        return self._tight[number]
