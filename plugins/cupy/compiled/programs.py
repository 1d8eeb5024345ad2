"""Programs on CuPy: plans by the shapes of inputs, and CUDA graphs of them on request.

A CUDA graph is the work of a plan on the device, captured once and launched as a whole. It reads
and writes the same memory in every run. So a call's inputs are copied there, and its results are
copied from there: arrays that other code may hold are not part of a graph. Memory allocated during
the capture comes from its own pool, which lives as long as the graph.

During the capture, no data may go to or from the host, and a copy of a host array would be captured
by its address. So a plan is captured only if it just launches its own kernels and multiplies
matrices (with cuBLAS itself, because CuPy refuses to). Then the graph is launched once, and must
give the plan's results, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from threading import RLock
from typing import Any

import numpy as np

from ....core.extend import (
    Backend,
    Graph,
    Symbol,
    batch_rows,
    by_backend,
    compiling,
    node_by_node,
)
from ...planned import Run, has_dtypes, retraced
from .lowering import DeviceLowering
from .plan import PER_THREAD, DevicePlan, State
from .products import rounds

# -- CUDA graphs -----------------------------------------------------------------------------------


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


# -- programs --------------------------------------------------------------------------------------


#: The maximum of shapes that are planned for, and of graphs: one for each stream and precision.
_SHAPES, _GRAPHS = 16, 4


def cuda_graphs(graph: Graph) -> Run:
    """Return a function that runs ``graph`` on CuPy as CUDA graphs; other backends compile it.

    Parameters
    ----------
    graph
        A traced graph.
    """

    def compiler(program: Graph, owner: Backend, arrays: Sequence[Any]) -> Run | None:
        if owner.name != "cupy":
            return owner.compile(program, arrays)
        return Programs(program, owner, graphs=True)

    return by_backend(graph, compiler)


class _PlanForShape:
    """The plan and graphs for one shape of the inputs."""

    def __init__(self, plan: DevicePlan | None, reason: str | None = None) -> None:
        self.plan = plan
        #: Why there is no plan or, with a plan, no graph.
        self.reason = reason if plan is None else obstacle(plan)
        self.runs = 0
        #: By the stream's address, and whether products round to TF32: the stream and its graph.
        self.captured: dict[tuple[int, bool], tuple[Any, Captured]] = {}


class Programs:
    """Runs one program on CuPy arrays.

    Parameters
    ----------
    program
        The graph, as returned by ``forward_only``.
    owner
        The CuPy backend.
    graphs
        Whether to capture plans in CUDA graphs; false by default.
    """

    def __init__(self, program: Graph, owner: Backend, graphs: bool = False) -> None:
        self.program = program
        self.owner = owner
        self.graphs = graphs
        self._shaped: dict[Any, _PlanForShape] = {}
        self._others: dict[int, Run] = {}
        self._memory: dict[int, dict[Any, State]] = {}
        self._variables = list(program.variables)
        self._several = owner.xp.cuda.runtime.getDeviceCount() > 1
        # two calls at once would assign the same variables
        self._alone: Any = RLock() if program.updates else nullcontext()

    def __call__(self, arrays: Sequence[Any], reporting: bool = False) -> list[Any]:
        """Run the program; if ``reporting`` is true, report its steps to watchers."""
        held = [v.array for v in self._variables]
        if not arrays and not held:
            return self._by_nodes(0, arrays, reporting)
        mine = all(map(self.owner.owns, {type(x) for x in (*arrays, *held)}))
        if not mine:
            devices = set()
        elif self._several:
            devices = {x.device.id for x in (*arrays, *held)}
        else:  # a check of each array takes longer than most kernels
            devices = {0}
        if len(devices) != 1:  # the kernels report which array is on which device
            return self._by_nodes(-1, arrays, reporting)
        (device,) = devices
        with self.owner.xp.cuda.Device(device), self._alone:
            return self._run(device, arrays, reporting)

    def watched(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the program kernel by kernel, without CUDA graphs, and report each to watchers."""
        return self(arrays, reporting=True)

    def _run(self, device: int, arrays: Sequence[Any], reporting: bool) -> list[Any]:
        # in a data-parallel step, draws are of a rank's rows, which are known when it runs
        key = (device, batch_rows.get() is None, *[(x.shape, x.dtype) for x in arrays])
        found = self._shaped.get(key)
        if found is None:
            if len(self._shaped) >= _SHAPES or not has_dtypes(self.program, arrays):
                return self._by_nodes(device, arrays, reporting)
            found = self._shaped[key] = self._plan(device, arrays)
        plan = found.plan
        if plan is None:
            return self._by_nodes(device, arrays, reporting)
        if reporting:
            return plan.run(arrays, reporting)
        found.runs += 1
        captured = self._captured(found, plan, arrays) if self.graphs and found.runs > 1 else None
        return plan.run(arrays) if captured is None else captured.run(arrays)

    def _plan(self, device: int, arrays: Sequence[Any]) -> _PlanForShape:
        """Return a plan for arrays of these shapes, or the reason why there is none."""
        try:
            program = retraced(self.program, arrays)
        except Exception as error:  # if a shape rule refuses, the kernel gives a better message
            return _PlanForShape(None, f"{type(error).__name__}: {' '.join(str(error).split())}")
        with compiling():
            lowered = DeviceLowering(program, self.owner, arrays)
            return _PlanForShape(DevicePlan(lowered, self._memory.setdefault(device, {})))

    def _captured(
        self, found: _PlanForShape, plan: DevicePlan, arrays: Sequence[Any]
    ) -> Captured | None:
        """Return a graph for the stream of this call; None if there is none."""
        stream = self.owner.xp.cuda.get_current_stream()
        key = stream.ptr, plan.has_singles and rounds()
        known = found.captured.get(key)
        if known is not None:
            return known[1]
        several = stream.ptr == PER_THREAD  # one address for the streams of all threads
        if found.reason or several or len(found.captured) >= _GRAPHS:
            return None
        try:
            captured = Captured(plan, arrays)
        except NotCaptured as error:
            found.reason = str(error)
            return None
        except Exception as error:  # the driver refuses what it cannot capture
            found.reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return None
        # the stream is kept, too: another one at its address would not wait for its work
        found.captured[key] = stream, captured
        return captured

    def _by_nodes(self, device: int, arrays: Sequence[Any], reporting: bool) -> list[Any]:
        run = self._others.get(device)
        if run is None:
            run = self._others[device] = node_by_node(self.program, self.owner, arrays)
        return getattr(run, "watched", run)(arrays) if reporting else run(arrays)

    def explain(self) -> str:
        """Return a description of how the program runs."""
        told = []
        for (device, _, *inputs), found in list(self._shaped.items()):
            shapes = ", ".join(str(shape) for shape, _ in inputs)
            where = f"on device {device}" + (f", for inputs of shapes {shapes}" if shapes else "")
            if found.plan is None:
                told.append(f"{where}: node by node, because planning failed: {found.reason}")
                continue
            how = "kernels made for these shapes"
            if found.captured:
                streams = len({address for address, _ in found.captured})
                how += f"; a CUDA graph for each of {streams} streams"
                if len(found.captured) > streams:
                    how += " and each precision"
            elif self.graphs and found.reason:
                how += f"; no CUDA graph: {found.reason}"
            elif self.graphs:
                how += "; a CUDA graph from the second run on"
            told.append(f"{where}: {how}\n{found.plan.explain()}")
        if self._others and not all(found.plan is None for found in self._shaped.values()):
            told.append("others node by node: further shapes, or other dtypes and devices")
        return "\n".join(told) or "it has not run yet; it is planned by the shapes of the inputs"
