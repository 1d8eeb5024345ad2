"""CUDA graphs: the work of a plan on the device, captured and launched as a whole.

A graph reads and writes the same memory in every run. So one kernel copies a call's inputs there,
and notes where the results go; the last kernels of the graph copy them to these new arrays. The
variables that a step changes hold parts of the graph's memory (see ``homes``), or copies if other
code holds their values again and again. Large variables that it only reads are read where they are,
as long as they stay there.

During the capture, no data may go to or from the host, and a copy of a host array would be captured
by its address. So only kernels of the plan are captured, and products by cuBLAS itself, because
CuPy refuses to. A call of an op's kernel splits the plan: it runs between two graphs, and its
results are copied to where the next one reads them. All that a step changes for others is changed
by the last graph, with one launch.

The first call is run kernel by kernel too; the graphs must give its results, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from threading import RLock
from typing import Any

import numpy as np

from ....core.extend import (
    Symbol,
    Variable,
    active_tapes,
    has_unknown_sizes,
    set_arrays,
)
from ...packing import FlatArrays
from ...planned import PlanStep, bytes_of, shape_of
from .homes import Home
from .moving import Moves
from .plan import Action, DevicePlan, Values

#: The size in bytes from which variables that are only read are not copied.
_LARGE = 2**16
#: Copying this many bytes takes as long as launching a kernel.
_PER_LAUNCH = 2**21
#: The number of launches that are worth a graph beside others.
_SEVERAL = 3
#: What a call adds for which other code holds values, and how much makes a graph copy them.
_HELD, HELD_TOO_OFTEN = 8, 24
_clock = count()


class NotCaptured(Exception):
    """A plan cannot be a graph; the message says why."""


class NotNow(Exception):
    """A plan cannot be captured in this call, but perhaps in a later one."""


def obstacle(plan: DevicePlan, least: int) -> str | None:
    """Return why a plan cannot be captured, or None if it can.

    Parameters
    ----------
    plan
        The plan.
    least
        The number of launches that are worth a graph.
    """
    for step in (*plan.calls.values(), *plan.views.values()):
        if any(has_unknown_sizes(x.shape) for x in step.outputs):
            return f"the sizes of the results of {step.op} depend on values"
    if not plan.kernels:
        return "it launches no kernels"
    if plan.products is not None and plan.products.missing is not None:
        return f"CuPy's products cannot be captured, and {plan.products.missing}"
    changed = {v.id for _, state in plan.states for v in state.variables}
    for pack, _ in plan.states:
        for x in pack.group.inputs:
            variable = plan.lowered.reads.get(plan.memory_of(x))
            if x not in pack.held and variable is not None and variable.id in changed:
                return f"an update reads a part of {variable.name}, which another one changes"
    launches = sum(map(plan.is_launch, plan.actions))
    if not plan.calls and launches < least:
        return f"it has only {launches} launches"
    copied = sum(map(bytes_of, {*plan.lowered.inputs, *plan.lowered.outputs}))
    if least > 1 and copied > launches * _PER_LAUNCH:
        return f"copying its inputs and results, {copied} bytes, takes longer than the launches"
    return None


def called(plan: DevicePlan) -> str:
    """Return which kernels a plan calls, and why that matters."""
    names = ", ".join(dict.fromkeys(step.op for step in plan.calls.values()))
    return f"the kernel of {names} is called, which may use the host"


class Part:
    """A part of a plan: one call, or what is between calls, which may be a graph.

    Attributes
    ----------
    actions
        The actions, in order.
    launches
        The number of launches.
    call
        The step that is called.
    graph
        The CUDA graph.
    """

    __slots__ = ("actions", "call", "graph", "launches")

    def __init__(self, actions: list[Action], launches: int, call: PlanStep | None = None) -> None:
        self.actions, self.launches, self.call = actions, launches, call
        self.graph: Any = None

    @classmethod
    def all_of(cls, plan: DevicePlan) -> list[Part]:
        """Return the parts of a plan; the last one is not a call, and also updates packs."""
        parts: list[Part] = []
        now: list[Action] = []
        for action in plan.actions[: plan.updating]:
            step = plan.calls.get(action)
            if step is not None:
                if now:
                    parts.append(cls(now, sum(map(plan.is_launch, now))))
                    now = []
                parts.append(cls([action], 0, step))
            elif action not in plan.memory:
                now.append(action)
        updates = len(plan.actions) - plan.updating
        return [*parts, cls(now, sum(map(plan.is_launch, now)) + updates)]


class Captured:
    """A plan as CUDA graphs, for one stream.

    Parameters
    ----------
    plan
        The plan, which has run before.
    homes
        The memory of variables that the plan's program changes, by key; it may grow.
    least
        The number of launches that are worth a graph.
    shared
        Whether variables hold parts of that memory.
    copied
        Whether large variables that are only read are copied, too.

    Attributes
    ----------
    used
        A number that is higher the later it ran.
    held
        How often and how recently other code held values that it would have written to.
    missed
        How often a variable was somewhere else.
    bytes
        The size of its memory, apart from that of variables that it changes.
    release
        A function that makes whoever keeps it release it.
    """

    release: Callable[[], None]

    def __init__(
        self, plan: DevicePlan, homes: dict[Any, Home], least: int, shared: bool, copied: bool
    ) -> None:
        self.plan, self.xp = plan, plan.xp
        self.shared, self._copies_all = shared, copied
        self.used, self.held, self.missed = next(_clock), 0, 0
        self._alone = RLock()
        self._pool = self.xp.cuda.MemoryPool()
        self._parts = Part.all_of(plan)
        self._graphed = self._worth_capturing(least)
        self._homes = self._found_homes(homes)
        with self.xp.cuda.using_allocator(self._pool.malloc):
            self._values, self._own = plan.own_values()
            self._place_variables()
            self._place_others()
            self._place_results()
        self.bytes = self._size()

    # -- memory ----------------------------------------------------------------------------------

    def _worth_capturing(self, least: int) -> list[Part]:
        """Return the parts that become graphs."""
        plan, last = self.plan, self._parts[-1]
        least = max(least, _SEVERAL) if plan.calls else least
        large = [x for x in self._parts if x.call is None and x.launches >= least]
        if not large:
            few = f"no part of it has {least} launches"
            raise NotCaptured(f"{called(plan)}, and {few}" if plan.calls else few)
        if plan.lowered.updates and last not in large:
            large.append(last)  # one launch changes all variables
        for part in self._parts:
            copies = (plan.is_copy(plan.views[x]) for x in part.actions if x in plan.views)
            if part not in large and any(copies):
                large.append(part)  # the copies have fixed memory
        return large

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
        plan, values, numbers, xp = self.plan, self._values, self.plan.numbers, self.xp
        parts: dict[int, Any] = {}
        for home in self._homes:
            parts.update(zip([v.id for v in home.variables], home.flats.parts, strict=True))
        self._put_flats(values)
        #: Variables that are copied in each call, and those that are read where they are.
        self._copied: list[tuple[Variable, Any]] = []
        self._read: list[tuple[Variable, int]] = []
        for x, variable in plan.lowered.reads.items():
            array = variable.array
            if variable.id in parts:
                array = parts[variable.id]
            elif self._copies_all or array.nbytes < _LARGE or not array.flags.c_contiguous:
                array = xp.empty(array.shape, array.dtype)
                self._copied.append((variable, array))
            else:
                self._read.append((variable, array.data.ptr))
            values[numbers[x]] = array

    def _put_flats(self, values: Values, new: Sequence[FlatArrays] | None = None) -> None:
        """Put in the flat arrays of packs, or new ones to write to."""
        plan = self.plan
        for k, (pack, state) in enumerate(plan.states):
            old = self._homes[k].flats.arrays
            both = state.of(old, old if new is None else new[k].arrays)
            for x, flat in zip((*pack.held, *pack.written), both, strict=True):
                values[plan.number(x)] = flat

    def _place_others(self) -> None:
        """Give memory to inputs, to values outside buffers, and to results of calls."""
        plan, values, numbers = self.plan, self._values, self.plan.numbers
        self._inputs = [self._empty(x) for x in plan.lowered.inputs]
        for x, fixed in zip(plan.lowered.inputs, self._inputs, strict=True):
            values[numbers[x]] = fixed
        read = self._read_by_graphs()
        found = [x for step in plan.calls.values() for x in step.outputs if x in read]
        self._fixed = {numbers[x]: self._empty(x) for x in found}
        for number, fixed in self._fixed.items():
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
        changed = {v.id for home in self._homes for v in home.variables}
        #: The results that are given out as they are: the others may be in the graph's memory.
        self._kept = {*lowered.inputs, *lowered.known}
        self._kept.update(x for x, v in lowered.reads.items() if v.id not in changed)
        for step in plan.calls.values():
            if step.view is False:
                self._kept.update(step.outputs)
        self._moved = [x for x in dict.fromkeys(lowered.outputs) if x not in self._kept]
        flats = [] if self.shared else [x for home in self._homes for x in home.flats.arrays]
        self._targets = [*self._inputs, *[fixed for _, fixed in self._copied]]
        results = len(self._moved)
        self._enter = Moves(xp, self._targets, notes=results + len(flats))
        self._leave = Moves(xp, self._moved, first=0)
        self._give = Moves(xp, flats, first=results)
        self._table = xp.zeros(results + len(flats) + 1, np.uint64)
        #: The new values that are in memory that updates change, and are copied before.
        self._staged = {
            x: self._empty(x) for x in plan.updates.values() if plan.memory_of(x) in lowered.reads
        }
        self._stage = Moves(xp, [*self._staged])
        self._set = Moves(xp, [*plan.updates.values()])
        self._tight: dict[int, Any] = {}

    def _size(self) -> int:
        arrays = [*self._targets, *self._fixed.values(), *self._staged.values(), self._table]
        fresh = {*self._moved, *self.plan.updates.values()}
        return self.plan.bytes + sum(map(bytes_of, fresh)) + sum(int(x.nbytes) for x in arrays)

    @property
    def bytes_of_variables(self) -> int:
        """The size of the memory of variables that it changes."""
        return sum(home.bytes for home in self._homes)

    # -- capturing -------------------------------------------------------------------------------

    def first(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the call before the capture, kernel by kernel, and keep what the check needs."""
        plan, stream = self.plan, self.xp.cuda.get_current_stream()
        self._before = [home.others() for home in self._homes]
        self._called: dict[Action, list[Any]] = {}
        values = plan.take(stream)
        plan.enter(values, arrays)
        if plan.products is not None:
            plan.products.begin(stream)
        for action in plan.actions:
            action(values)
            if action in plan.calls:
                found = [values[plan.numbers[x]] for x in plan.calls[action].outputs]
                self._called[action] = found
        return plan.commit(lambda x: values[plan.numbers[x]])

    def capture(self, arrays: Sequence[Any], results: Sequence[Any]) -> None:
        """Capture the graphs, and check that they give the results of the first call.

        Raises
        ------
        NotCaptured
            If they do not.
        NotNow
            If other code holds values of variables.
        """
        plan, stream = self.plan, self.xp.cuda.get_current_stream()
        # of the stream that will run the graph: nothing else computes there at the same time
        self._scratch = plan.products and plan.products.scratch(stream)
        side = self.xp.cuda.Stream(non_blocking=True)
        if plan.products is not None:
            plan.products.begin_capture(side, self._scratch)
        try:
            for part in self._parts:
                if part in self._graphed:
                    part.graph = self._captured(part, side)
                elif part.call is None:
                    for action in filter(plan.views.__contains__, part.actions):
                        action(self._values)
        finally:
            if plan.products is not None:  # the caller may have more products to compute
                plan.products.begin(stream)
        self._forget_variables()
        if not all(home.is_alone() for home in self._homes):
            raise NotNow
        self._check(arrays, results)
        plan.forget(stream)

    def _captured(self, part: Part, side: Any) -> Any:
        with side, self.xp.cuda.using_allocator(self._pool.malloc):
            side.begin_capture()
            try:
                for action in part.actions:
                    action(self._values)
                if part is self._parts[-1]:
                    self._finish(self._values)
            except BaseException:
                with suppress(Exception):  # it ends a failed capture, and so fails itself
                    side.end_capture()
                raise
            return side.end_capture()

    def _forget_variables(self) -> None:
        """Release the arrays of variables: whoever changes them must know of all references."""
        plan, values = self.plan, self._values
        arrays = [x for home in self._homes for x in home.flats.arrays]
        memory = {id(x.data.mem) for x in (*arrays, *[v.array for v, _ in self._read])}
        outside = set()
        for number, x in enumerate(values):
            if type(x) is self.xp.ndarray and id(x.data.mem) in memory:
                outside.add(number)
                values[number] = None
        views = plan.views.items()
        self._views = [action for action, x in views if plan.numbers[x.out] in outside]

    def _check(self, arrays: Sequence[Any], results: Sequence[Any]) -> None:
        for home, others in zip(self._homes, self._before, strict=True):
            home.fill(others)
        new, called = self._new_arrays(), self._called
        self._before, self._called = [], {}
        for x in (*self._own, *self._fixed.values(), *new):  # they may have the numbers by chance
            x.reshape(-1).view(np.uint8)[...] = 255
        self._send(arrays, new)
        values = self._with_variables()
        for part in self._parts:
            self._run_part(part, values, called)
        found = dict(zip(self._moved, new, strict=False))
        pairs = zip(self.plan.lowered.outputs, results, strict=True)
        same = all(self._same_bits(found[x], y) for x, y in pairs if x in found)
        for home in self._homes:
            pairs = zip(home.flats.parts, [v.array for v in home.variables], strict=True)
            same = same and all(self._same_bits(x, y) for x, y in pairs)
        if not same:
            raise NotCaptured("the graph gave other numbers than its kernels")
        if self.shared:
            for home in self._homes:
                set_arrays(home.variables, home.flats.parts)
            self._hold([home.flats for home in self._homes])

    def _same_bits(self, x: Any, y: Any) -> bool:
        # results may be views that leave elements out
        mine, theirs = (self.xp.ascontiguousarray(z).reshape(-1).view(np.uint8) for z in (x, y))
        return bool((mine == theirs).all())

    # -- running ---------------------------------------------------------------------------------

    def run(self, arrays: Sequence[Any]) -> list[Any] | None:
        """Run the program on the stream that it was captured for.

        Returns
        -------
        list or None
            The results; None, and nothing has happened, if this call must run kernel by kernel.
        """
        with self._alone:
            if not self._is_ready():
                return None
            self.used, self.held = next(_clock), max(0, self.held - 1)
            new = self._new_arrays()
            self._send(arrays, new)
            split = len(self._parts) > 1
            values = self._with_variables() if split else self._values
            called: dict[Action, list[Any]] = {}
            for part in self._parts[:-1]:
                self._run_part(part, values, called)
            results = self._results(arrays, new, called)
            if self.shared and self._homes:
                if split:
                    values.clear()  # they include arrays of variables
                if not self._launch_if_alone():
                    self.held += _HELD
                    if not split:
                        return None
                    self._finish_apart(called)
            else:
                self._launch_and_hand_out(values, new)
            return results

    def _is_ready(self) -> bool:
        """Return whether variables are where the graph reads them, and may be changed there."""
        for variable, address in self._read:
            array = variable.array
            if array.data.ptr != address or not array.flags.c_contiguous:
                self.missed += 1
                return False
        if not self._homes:
            return True
        if not self.shared:
            for home in self._homes:
                home.restore()
            return True
        for tape in active_tapes.get():  # one may keep what variables hold
            for home in self._homes:
                for variable in home.variables:
                    tape.changing(variable, variable.array)
        if not all(home.take_in() for home in self._homes):
            self.held += _HELD
            return False
        self._hold([home.flats for home in self._homes])
        return True

    def _hold(self, flats: Sequence[FlatArrays]) -> None:
        for (_, state), mine in zip(self.plan.states, flats, strict=False):
            state.hold(mine)

    def _new_arrays(self) -> list[Any]:
        """Return new arrays for results, and for variables if they hold copies."""
        new = [self._empty(x) for x in self._moved]
        if not self.shared:
            new += [self.xp.empty_like(x) for home in self._homes for x in home.flats.arrays]
        return new

    def _send(self, arrays: Sequence[Any], new: Sequence[Any]) -> None:
        """Copy inputs and variables to the graph's memory, and note where results go."""
        given = [*arrays, *[v.array for v, _ in self._copied]]
        given = [x if x.flags.c_contiguous else self.xp.ascontiguousarray(x) for x in given]
        self._enter(given, self._targets, self._table, new)

    def _with_variables(self) -> Values:
        """Return the values for what runs outside graphs, with those of variables."""
        plan, values = self.plan, list(self._values)
        for x, variable in plan.lowered.reads.items():
            if values[plan.numbers[x]] is None:
                values[plan.numbers[x]] = variable.array
        for action in self._views:
            action(values)
        return values

    def _run_part(self, part: Part, values: Values, called: dict[Action, list[Any]]) -> None:
        """Run a graph, a call, or kernels; note a call's results, or use those noted."""
        if part.graph is not None:
            part.graph.launch()
        elif part.call is not None:
            self._call(part.actions[0], part.call, values, called)
        else:
            for action in part.actions:
                if action not in self.plan.views:
                    action(values)
            if part is self._parts[-1]:
                self._finish(values)

    def _call(
        self, action: Action, step: PlanStep, values: Values, called: dict[Action, list[Any]]
    ) -> None:
        numbers = [self.plan.numbers[x] for x in step.outputs]
        if action in called:
            for number, array in zip(numbers, called[action], strict=True):
                values[number] = array
        else:
            action(values)
            called[action] = [values[number] for number in numbers]
        for number, x in zip(numbers, step.outputs, strict=True):
            fixed = self._fixed.get(number)
            if fixed is not None:
                array = values[number]
                if array.shape != fixed.shape or array.dtype != x.dtype:
                    raise RuntimeError(
                        f"{step.op} gave shape {array.shape} and dtype {array.dtype}, but the plan "
                        f"needs shape {fixed.shape} and dtype {x.dtype}"
                    )
                fixed[...] = array
                values[number] = fixed

    def _results(
        self, arrays: Sequence[Any], new: Sequence[Any], called: Mapping[Action, list[Any]]
    ) -> list[Any]:
        """Return the results, some of which are not computed yet."""
        lowered = self.plan.lowered
        found: dict[Symbol, Any] = dict(lowered.known)
        found.update(zip(lowered.inputs, arrays, strict=True))
        for action, made in called.items():
            found.update(zip(self.plan.calls[action].outputs, made, strict=True))
        found.update(zip(self._moved, new, strict=False))
        reads = lowered.reads
        return [found[x] if x in found else reads[x].array for x in lowered.outputs]

    def _finish(self, values: Values, targets: Sequence[Any] | None = None) -> None:
        """Copy results, then change variables: in their homes, unless there are other targets."""
        plan = self.plan
        if self._moved:
            self._leave([self._dense(values, x) for x in self._moved], [], self._table)
        if self._staged:
            given = [self._dense(values, x) for x in self._staged]
            self._stage(given, list(self._staged.values()), self._table)
        for action in plan.actions[plan.updating :]:
            action(values)
        if plan.updates:
            staged, sources = self._staged, plan.updates.values()
            given = [staged[x] if x in staged else self._dense(values, x) for x in sources]
            if targets is None:
                targets = [home.flats.arrays[0] for home in self._homes[len(plan.states) :]]
            self._set(given, targets, self._table)
        if not self.shared:
            flats = [x for home in self._homes for x in home.flats.arrays]
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

    def _launch_if_alone(self) -> bool:
        """Launch the last graph if no other code holds what it changes; return whether."""
        with Home.hidden(self._homes):
            alone = all(home.is_alone() for home in self._homes)
            if alone:
                self._parts[-1].graph.launch()
        return alone

    def _finish_apart(self, called: dict[Action, list[Any]]) -> None:
        """Run the last graph's kernels, and let them write to new arrays."""
        plan, xp, homes, values = self.plan, self.xp, self._homes, self._with_variables()
        for action in called:
            self._call(action, plan.calls[action], values, called)
        new = [
            FlatArrays.of(home.flats.bounds, [xp.empty_like(x) for x in home.flats.arrays])
            for home in homes
        ]
        self._put_flats(values, new)
        if plan.products is not None:
            plan.products.begin(xp.cuda.get_current_stream())
        for action in self._parts[-1].actions:
            action(values)
        self._finish(values, [x.arrays[0] for x in new[len(plan.states) :]])
        variables = [v for home in homes for v in home.variables]
        set_arrays(variables, [x for flats in new for x in flats.parts])
        self._hold(new)

    def _launch_and_hand_out(self, values: Values, new: Sequence[Any]) -> None:
        """Launch the last part; let variables hold parts of the copies that it makes."""
        for home in self._homes:
            home.last = None  # invalid until the variables have the new values
        self._run_part(self._parts[-1], values, {})
        if not self._homes:
            return
        flats, given = [], list(new[len(self._moved) :])
        for home in self._homes:
            count = len(home.flats.arrays)
            flats.append(FlatArrays.of(home.flats.bounds, given[:count]))
            del given[:count]
        variables = [v for home in self._homes for v in home.variables]
        set_arrays(variables, [x for mine in flats for x in mine.parts])
        for home, mine in zip(self._homes, flats, strict=True):
            home.last = mine
        self._hold(flats)

    # -- as text ---------------------------------------------------------------------------------

    def explain(self) -> list[str]:
        """Return a description."""
        graphs = len(self._graphed)
        inside = sum(part.launches for part in self._graphed)
        outside = self._enter.launches + sum(
            part.launches for part in self._parts if part not in self._graphed
        )
        some = "a graph has" if graphs == 1 else f"{graphs} graphs have"
        lines = [f"  {some} {inside} of these launches; {outside} besides for each call"]
        lines[0] += f"; {self.bytes} bytes"
        if self._homes:
            how = "which variables hold" if self.shared else "which variables hold copies of, "
            how += "" if self.shared else "because other code kept holding their values"
            lines[0] += f", and {self.bytes_of_variables} of variables, {how}"
        for part in self._parts:
            if part.call is not None:
                why = f"the kernel of {part.call.op} is called, which may use the host"
                lines.append(f"  split: {why}")
        return lines
