"""CUDA graphs: the work of a plan on the device, captured once and launched as a whole.

A graph reads and writes the same memory in every run. So a call's inputs are copied there, and its
results are copied from there: arrays that other code may hold are not part of a graph. Memory
allocated during the capture comes from its own pool, which lives as long as the graph.

During the capture, no data may go to or from the host, and a copy of a host array would be captured
by its address. So a plan is captured only if it just launches its own kernels and multiplies
matrices (with cuBLAS itself, because CuPy refuses to). Then the graph is launched once, and must
give the plan's results, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from threading import RLock
from typing import Any

import numpy as np

from ....core.extend import Symbol
from .plan import DevicePlan, State


class NotCaptured(Exception):
    """A plan cannot be a graph; the message says why."""


def obstacle(plan: DevicePlan) -> str | None:
    """Return why a plan cannot be captured, or None if it can.

    Parameters
    ----------
    plan
        The plan.
    """
    if plan.host:
        return f"the kernel of {plan.host[0].op} is called, which may use the host"
    if not plan.kernels:
        return "it launches no kernels"
    if plan.products is not None and plan.products.missing is not None:
        return f"CuPy's products cannot be captured, and {plan.products.missing}"
    return None


class Captured:
    """A plan as a CUDA graph, for one stream.

    Parameters
    ----------
    plan
        The plan, which has run before.
    arrays
        Inputs of the first call.

    Raises
    ------
    NotCaptured
        If the graph does not give the results of the plan.
    """

    def __init__(self, plan: DevicePlan, arrays: Sequence[Any]) -> None:
        self.plan, self.xp = plan, plan.xp
        self._alone = RLock()
        self._values = plan.new_values()
        numbers = plan.numbers
        self._inputs = [x.copy() for x in arrays]
        #: The values of variables that are not packed, and the arrays last copied there.
        self._reads: dict[Symbol, Any] = {}
        self._seen: dict[Symbol, Any] = {}
        self._flats = [_Flats(state) for _, state in plan.states]
        places: dict[int, Any] = {}
        for (pack, state), flats in zip(plan.states, self._flats, strict=True):
            packed = [v.id for column in state.columns for v in column]
            places.update(zip(packed, state.parts(flats.old), strict=True))
            both = state.of(flats.old, flats.new)
            for x, flat in zip((*pack.held, *pack.written), both, strict=True):
                self._values[numbers[x]] = flat
        for x, fixed in zip(plan.lowered.inputs, self._inputs, strict=True):
            self._values[numbers[x]] = fixed
        for x, variable in plan.lowered.reads.items():
            if variable.id not in places:
                self._seen[x] = variable.array
                self._reads[x] = places[variable.id] = variable.array.copy()
            self._values[numbers[x]] = places[variable.id]
        self._pool = self.xp.cuda.MemoryPool()
        self._graph = self._capture(arrays)

    def _capture(self, arrays: Sequence[Any]) -> Any:
        """Run the plan once, capture it, and check that the graph has the same results."""
        cuda, products = self.xp.cuda, self.plan.products
        self._enter(arrays)
        # of the stream that will run the graph: nothing else computes there at the same time
        self._scratch = products and products.scratch(cuda.get_current_stream())
        cuda.get_current_stream().synchronize()
        stream = cuda.Stream(non_blocking=True)
        if products is not None:
            products.begin_capture(stream, self._scratch)
        try:
            graph = self._captured(stream, arrays)
        finally:
            for flats in self._flats:
                flats.last = None
            if products is not None:  # the caller may have more products to compute
                products.begin(cuda.get_current_stream())
        return graph

    def _captured(self, stream: Any, arrays: Sequence[Any]) -> Any:
        cuda = self.xp.cuda
        with stream, cuda.using_allocator(self._pool.malloc):
            self._work()
            wanted = [x.copy() for x in self._results()]
            for flats in self._flats:
                flats.last = None
            self._enter(arrays)
            stream.synchronize()
            stream.begin_capture()
            try:
                self._work()
            except BaseException:
                with suppress(Exception):  # it ends a failed capture, and so fails itself
                    stream.end_capture()
                raise
            graph = stream.end_capture()
            graph.launch(stream)
            same = all(map(self._same_bits, self._results(), wanted))
            stream.synchronize()
        if not same:
            raise NotCaptured("the graph gave other numbers than its kernels")
        return graph

    def _same_bits(self, x: Any, y: Any) -> bool:
        # results may be views that leave elements out
        mine, theirs = (self.xp.ascontiguousarray(z).reshape(-1).view(np.uint8) for z in (x, y))
        return bool((mine == theirs).all())

    def _work(self) -> None:
        for flats in self._flats:
            flats.begin()
        self.plan.work(self._values)

    def _results(self) -> list[Any]:
        lowered = self.plan.lowered
        wanted = dict.fromkeys([*lowered.outputs, *self.plan.updates.values()])
        arrays = [self._values[self.plan.numbers[x]] for x in wanted]
        return [*arrays, *(flat for flats in self._flats for flat in flats.new)]

    def _enter(self, arrays: Sequence[Any]) -> None:
        """Copy a call's inputs to the graph's memory."""
        for fixed, array in zip(self._inputs, arrays, strict=True):
            fixed[...] = array
        for x, fixed in self._reads.items():
            array = self.plan.lowered.reads[x].array
            if array is not self._seen[x]:
                fixed[...] = array
                self._seen[x] = array
        for flats in self._flats:
            flats.enter()

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the program on the stream that it was captured for."""
        plan, numbers = self.plan, self.plan.numbers
        with self._alone:
            begun = dict(zip(plan.lowered.inputs, arrays, strict=True))
            begun.update((x, variable.array) for x, variable in plan.lowered.reads.items())
            self._enter(arrays)
            for flats in self._flats:
                flats.last = None  # invalid until the variables have the new values
            self._graph.launch()
            copies: dict[Symbol, Any] = {}

            def of(x: Symbol) -> Any:
                if x in begun:
                    return begun[x]
                if x in plan.lowered.known:
                    return plan.lowered.known[x]
                if x not in copies:
                    copies[x] = self._values[numbers[x]].copy()
                return copies[x]

            for (_, state), flats in zip(plan.states, self._flats, strict=True):
                state.adopt([flat.copy() for flat in flats.new])
            results = plan.commit(of)
            for flats in self._flats:
                flats.last = flats.state.latest
            return results


class _Flats:
    """The memory of packed variables in a graph: what an update reads, and what it writes."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.old, self.new = state.empty(), state.empty()
        #: The flat arrays of the variables whose values ``new`` has.
        self.last: Any = None

    def begin(self) -> None:
        """Start from the values written last."""
        for old, new in zip(self.old, self.new, strict=True):
            old[...] = new

    def enter(self) -> None:
        """Copy the variables' values, unless they are the values written last."""
        arrays = self.state.current()
        if self.last is not arrays:
            for new, array in zip(self.new, arrays, strict=True):
                new[...] = array
