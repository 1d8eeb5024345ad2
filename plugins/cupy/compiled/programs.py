"""Programs on CuPy: plans by the shapes of inputs, and CUDA graphs of them on request."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from threading import RLock
from typing import Any

from ....core.extend import Backend, Graph, by_backend, compiling, node_by_node
from ...planned import Run, has_dtypes, retraced
from .graphs import Captured, NotCaptured, obstacle
from .lowering import DeviceLowering
from .plan import PER_THREAD, DevicePlan, State

#: The maximum of shapes that are planned for, and of streams that are captured for.
_SHAPES, _STREAMS = 16, 4


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
        self.captured: dict[int, tuple[Any, Captured]] = {}


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
        key = (device, *[(x.shape, x.dtype) for x in arrays])
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
        known = found.captured.get(stream.ptr)
        if known is not None:
            return known[1]
        several = stream.ptr == PER_THREAD  # one address for the streams of all threads
        if found.reason or several or len(found.captured) >= _STREAMS:
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
        found.captured[stream.ptr] = stream, captured
        return captured

    def _by_nodes(self, device: int, arrays: Sequence[Any], reporting: bool) -> list[Any]:
        run = self._others.get(device)
        if run is None:
            run = self._others[device] = node_by_node(self.program, self.owner, arrays)
        return getattr(run, "watched", run)(arrays) if reporting else run(arrays)

    def explain(self) -> str:
        """Return a description of how the program runs."""
        told = []
        for (device, *inputs), found in list(self._shaped.items()):
            shapes = ", ".join(str(shape) for shape, _ in inputs)
            where = f"on device {device}" + (f", for inputs of shapes {shapes}" if shapes else "")
            if found.plan is None:
                told.append(f"{where}: node by node, because planning failed: {found.reason}")
                continue
            how = "kernels made for these shapes"
            if found.captured:
                how += f"; a CUDA graph for each of {len(found.captured)} streams"
            elif self.graphs and found.reason:
                how += f"; no CUDA graph: {found.reason}"
            elif self.graphs:
                how += "; a CUDA graph from the second run on"
            told.append(f"{where}: {how}\n{found.plan.explain()}")
        if self._others and not all(found.plan is None for found in self._shaped.values()):
            told.append("others node by node: further shapes, or other dtypes and devices")
        return "\n".join(told) or "it has not run yet; it is planned by the shapes of the inputs"
