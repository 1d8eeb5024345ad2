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

from .....core.extend import (
    Symbol,
    active_tapes,
    has_unknown_sizes,
    set_arrays,
)
from ....packing import FlatArrays
from ....planned import PlanStep, bytes_of
from ..plan import Action, DevicePlan, Values
from .homes import Home
from .memory import GraphMemory, NotCaptured

#: Copying this many bytes takes as long as launching a kernel.
_PER_LAUNCH = 2**21
#: The number of launches that are worth a graph next to others.
_SEVERAL = 3
#: What a call adds for which other code holds values, and how much makes a graph copy them.
_HELD, HELD_TOO_OFTEN = 8, 24
_clock = count()


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
    names = list(dict.fromkeys(step.op for step in plan.calls.values()))
    text = "the kernel of {} is called" if len(names) == 1 else "the kernels of {} are called"
    return f"{text.format(', '.join(names))}, which may use the host"


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


class Captured(GraphMemory):
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
        A function that makes the object that keeps it release it.
    """

    release: Callable[[], None]

    def __init__(
        self, plan: DevicePlan, homes: dict[Any, Home], least: int, shared: bool, copied: bool
    ) -> None:
        super().__init__(plan, homes, shared, copied)
        self.used, self.held, self.missed = next(_clock), 0, 0
        self._alone = RLock()
        self._parts = Part.all_of(plan)
        self._graphed = self._worth_capturing(least)

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

    # -- capturing -------------------------------------------------------------------------------

    def first(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the call before the capture, kernel by kernel, and keep what the check needs."""
        plan, stream = self.plan, self.xp.cuda.get_current_stream()
        self._before = [home.others() for home in self.homes]
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
        self._handle = plan.products and plan.products.handle()
        side = self.xp.cuda.Stream(non_blocking=True)
        if plan.products is not None:
            plan.products.begin_capture(side, self._scratch)
        try:
            for part in self._parts:
                if part in self._graphed:
                    part.graph = self._captured(part, side)
                elif part.call is None:
                    for action in filter(plan.views.__contains__, part.actions):
                        action(self.values)
        finally:
            if plan.products is not None:  # the caller may have more products to compute
                plan.products.begin(stream)
        self._forget_variables()
        if not all(home.is_alone() for home in self.homes):
            raise NotNow
        self._check(arrays, results)
        self.bytes = self.measured()
        plan.forget(stream)

    def _captured(self, part: Part, side: Any) -> Any:
        with side, self.xp.cuda.using_allocator(self.pool.malloc):
            side.begin_capture()
            try:
                for action in part.actions:
                    action(self.values)
                if part is self._parts[-1]:
                    self.finish(self.values)
            except BaseException:
                with suppress(Exception):  # it ends a failed capture, and so fails itself
                    side.end_capture()
                raise
            return side.end_capture()

    def _forget_variables(self) -> None:
        """Release the arrays of variables: other graphs that change them count references."""
        plan, values = self.plan, self.values
        arrays = [x for home in self.homes for x in home.flats.arrays]
        memory = {id(x.data.mem) for x in (*arrays, *[v.array for v, _ in self.read])}
        outside = set()
        for number, x in enumerate(values):
            if type(x) is self.xp.ndarray and id(x.data.mem) in memory:
                outside.add(number)
                values[number] = None
        views = plan.views.items()
        self.views = [action for action, x in views if plan.numbers[x.out] in outside]

    def _check(self, arrays: Sequence[Any], results: Sequence[Any]) -> None:
        for home, others in zip(self.homes, self._before, strict=True):
            home.fill(others)
        new, called = self.new_arrays(), self._called
        self._before, self._called = [], {}
        for x in (*self.own, *self.fixed.values(), *new):  # they may have the numbers by chance
            x.reshape(-1).view(np.uint8)[...] = 255
        self.send(arrays, new)
        values = self.with_variables()
        for part in self._parts:
            self._run_part(part, values, called)
        found = dict(zip(self.moved, new, strict=False))
        wanted = zip(self.plan.lowered.outputs, results, strict=True)
        pairs = [(found[x], y) for x, y in wanted if x in found]
        for home, (_, state) in zip(self.homes, self.plan.states, strict=False):
            pairs += zip(home.flats.arrays, state.current(), strict=True)
        for home in self.homes[len(self.plan.states) :]:
            pairs += zip(home.flats.parts, [v.array for v in home.variables], strict=True)
        if not all(map(bool, [self._same_bits(x, y) for x, y in pairs])):
            raise NotCaptured("the graph gave other numbers than its kernels")
        if self.shared:
            for home in self.homes:
                set_arrays(home.variables, home.flats.parts)
            self._hold([home.flats for home in self.homes])

    def _same_bits(self, x: Any, y: Any) -> Any:
        # results may be views that leave elements out
        mine, theirs = (self.xp.ascontiguousarray(z).reshape(-1).view(np.uint8) for z in (x, y))
        return (mine == theirs).all()

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
            new = self.new_arrays()
            self.send(arrays, new)
            split = len(self._parts) > 1
            values = self.with_variables() if split else self.values
            called: dict[Action, list[Any]] = {}
            for part in self._parts[:-1]:
                self._run_part(part, values, called)
            results = self._results(arrays, new, called)
            if self.shared and self.homes:
                if split:
                    values.clear()  # they include arrays of variables
                if not self._launch_if_alone():
                    self.held += _HELD
                    if not split:
                        return None
                    self._finish_separately(called)
            else:
                self._launch_and_hand_out(values, new)
            return results

    def _is_ready(self) -> bool:
        """Return whether variables are where the graph reads them, and may be changed there."""
        for variable, address in self.read:
            array = variable.array
            if array.data.ptr != address or not array.flags.c_contiguous:
                self.missed += 1
                return False
        if not self.homes:
            return True
        known = [state.last for _, state in self.plan.states]
        known += [None] * (len(self.homes) - len(known))
        if not self.shared:
            for home, flats in zip(self.homes, known, strict=True):
                home.restore(flats)
            return True
        for tape in active_tapes.get():  # one may keep what variables hold
            for home in self.homes:
                for variable in home.variables:
                    tape.changing(variable, variable.array)
        if not all(map(Home.take_in, self.homes, known)):
            self.held += _HELD
            return False
        self._hold([home.flats for home in self.homes])
        return True

    def _hold(self, flats: Sequence[FlatArrays]) -> None:
        for (_, state), mine in zip(self.plan.states, flats, strict=False):
            state.hold(mine)

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
                self.finish(values)

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
            fixed = self.fixed.get(number)
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
        found.update(zip(self.moved, new, strict=False))
        reads = lowered.reads
        return [found[x] if x in found else reads[x].array for x in lowered.outputs]

    def _launch_if_alone(self) -> bool:
        """Launch the last graph if no other code holds what it changes; return whether."""
        with Home.hidden(self.homes):
            alone = all(home.is_alone() for home in self.homes)
            if alone:
                self._parts[-1].graph.launch()
        return alone

    def _finish_separately(self, called: dict[Action, list[Any]]) -> None:
        """Run the last graph's kernels, and let them write to new arrays."""
        plan, xp, homes, values = self.plan, self.xp, self.homes, self.with_variables()
        for action in called:
            self._call(action, plan.calls[action], values, called)
        new = [
            FlatArrays.of(home.flats.bounds, [xp.empty_like(x) for x in home.flats.arrays])
            for home in homes
        ]
        self.put_flats(values, new)
        if plan.products is not None:
            plan.products.begin(xp.cuda.get_current_stream())
        for action in self._parts[-1].actions:
            action(values)
        self.finish(values, [x.arrays[0] for x in new[len(plan.states) :]])
        variables = [v for home in homes for v in home.variables]
        set_arrays(variables, [x for flats in new for x in flats.parts])
        self._hold(new)

    def _launch_and_hand_out(self, values: Values, new: Sequence[Any]) -> None:
        """Launch the last part; let variables hold parts of the copies that it makes."""
        for home in self.homes:
            home.last = None  # invalid until the variables have the new values
        self._run_part(self._parts[-1], values, {})
        if not self.homes:
            return
        flats, given = [], list(new[len(self.moved) :])
        for home in self.homes:
            count = len(home.flats.arrays)
            flats.append(FlatArrays.of(home.flats.bounds, given[:count]))
            del given[:count]
        variables = [v for home in self.homes for v in home.variables]
        set_arrays(variables, [x for mine in flats for x in mine.parts])
        for home, mine in zip(self.homes, flats, strict=True):
            home.last = mine
        self._hold(flats)

    # -- as text ---------------------------------------------------------------------------------

    def explain(self) -> list[str]:
        """Return a description."""
        graphs = len(self._graphed)
        inside = sum(part.launches for part in self._graphed)
        outside = self.launches_outside + sum(
            part.launches for part in self._parts if part not in self._graphed
        )
        some = "a graph has" if graphs == 1 else f"{graphs} graphs have"
        lines = [f"  {some} {inside} of these launches; {outside} besides for each call"]
        lines[0] += f"; {self.bytes} bytes"
        if self.homes:
            how = "which variables hold" if self.shared else "which variables hold copies of, "
            how += "" if self.shared else "because other code kept holding their values"
            lines[0] += f", and {self.bytes_of_variables} of variables, {how}"
        for part in self._parts:
            if part.call is not None:
                why = f"the kernel of {part.call.op} is called, which may use the host"
                lines.append(f"  split: {why}")
        return lines
