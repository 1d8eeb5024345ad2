"""CUDA graphs: what a plan does on the device, captured once and launched as a whole.

A graph reads and writes the same memory in every run. So what a call begins with is copied there,
and what it gives is copied from there: what anybody may hold is no part of a graph. Memory that is
allocated while a graph is captured comes from a pool of its own, which lives as long as the graph.

Nothing may go to the host or come from it meanwhile, and a copy of an array of the host would be
captured by its address. A plan is captured only if it does nothing but launch its own kernels and
multiply matrices, by cuBLAS itself, as CuPy refuses to; then the graph is launched once and must
give what the plan gave, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from threading import RLock
from typing import Any

import numpy as np

from ....core.extend import Symbol
from .plan import Plan
from .state import State

__all__ = ["Captured", "NotCaptured", "obstacle"]


class NotCaptured(Exception):
    """A plan cannot be a graph; the message says why."""


def obstacle(plan: Plan) -> str | None:
    """Return why a plan cannot be captured, or None if it can.

    Parameters
    ----------
    plan
        The plan.
    """
    if plan.host:
        return f"the kernel of {plan.host[0].op} is called, which may ask the host"
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
        If the graph does not give what the plan gives.
    """

    def __init__(self, plan: Plan, arrays: Sequence[Any]) -> None:
        self.plan, self.xp = plan, plan.xp
        self._alone = RLock()
        self._values = plan.new_values()
        numbers = plan.numbers
        self._inputs = [x.copy() for x in arrays]
        #: What variables hold that are not packed, and their arrays that were copied there last.
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
        """Run the plan once, capture it, and check that the graph does the same."""
        cuda, products = self.xp.cuda, self.plan.products
        self._enter(arrays)
        # that of the stream that it is for, where nothing else is computed at the same time
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
            if products is not None:  # whoever called may have products left to do
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
                with suppress(Exception):  # it ends what has failed, and fails for that reason
                    stream.end_capture()
                raise
            graph = stream.end_capture()
            graph.launch(stream)
            same = all(map(self._same_bits, self._results(), wanted))
            stream.synchronize()
        if not same:
            raise NotCaptured("launched as a graph, it gave other numbers than its kernels")
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
        """Put in what a call begins with."""
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
                flats.last = None  # until the variables have what is written now, it is nothing
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
        #: Which flat arrays of the variables hold what ``new`` holds.
        self.last: Any = None

    def begin(self) -> None:
        """Begin with what was written last."""
        for old, new in zip(self.old, self.new, strict=True):
            old[...] = new

    def enter(self) -> None:
        """Bring in what the variables hold, if that is not what was written last."""
        arrays = self.state.current()
        if self.last is not arrays:
            for new, array in zip(self.new, arrays, strict=True):
                new[...] = array
