"""Programs on CuPy: plans by the shapes of inputs, and CUDA graphs of those that run often."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from threading import RLock
from typing import Any

from ....core.extend import Backend, Graph, batch_rows, by_backend, compiling, node_by_node
from ...planned import Run, has_dtypes, retraced
from .graphs.captured import HELD_TOO_OFTEN, Captured, NotNow, obstacle
from .graphs.homes import Home, shows_references
from .graphs.memory import NotCaptured
from .graphs.room import estimate, keep, make_room
from .lowering import DeviceLowering
from .plan import PER_THREAD, DevicePlan
from .products import rounds
from .variables import State

#: The maximum of shapes that are planned for, and of graphs: one for each stream and precision.
_SHAPES, _GRAPHS = 16, 4
#: How often a plan runs before it is captured, and how many launches are worth a graph: by
#: default, and if graphs were asked for.
_RUNS, _LEAST = 2, 4
_RUNS_IF_ASKED, _LEAST_IF_ASKED = 1, 1
#: How often a variable may be elsewhere before a graph is captured again, and how often it is.
_MISSES, _AGAIN = 3, 2
#: How often a plan runs before it is captured again: if its graph made room for another, and if
#: other code held values of variables.
_PAUSE, _SOON = 16, 4


def cuda_graphs(graph: Graph) -> Run:
    """Return a function that runs ``graph`` on CuPy as CUDA graphs; other backends compile it.

    Parameters
    ----------
    graph
        A traced graph.
    """
    return _on_cupy(graph, runs=_RUNS_IF_ASKED, least=_LEAST_IF_ASKED)


def kernels(graph: Graph) -> Run:
    """Return a function that runs ``graph`` on CuPy without CUDA graphs; others compile it.

    Parameters
    ----------
    graph
        A traced graph.
    """
    return _on_cupy(graph, runs=None)


def _on_cupy(graph: Graph, **options: Any) -> Run:
    def compiler(program: Graph, owner: Backend, arrays: Sequence[Any]) -> Run | None:
        if owner.name != "cupy":
            return owner.compile(program, arrays)
        return Programs(program, owner, **options)

    return by_backend(graph, compiler)


#: A stream's address, and whether products round to TF32.
_Key = tuple[int, bool]


class _PlanForShape:
    """The plan and graphs for one shape of the inputs."""

    def __init__(
        self, plan: DevicePlan | None, reason: str | None = None, runs: int = 0, least: int = 1
    ) -> None:
        self.plan = plan
        #: Why there is no plan or, with a plan, no graph.
        self.reason = reason if plan is None else obstacle(plan, least)
        #: The number of runs before the plan is captured, and the last pause after that.
        self.left, self.pause = runs, 0
        #: By the stream's address, and whether products round to TF32: the stream and its graph.
        self.captured: dict[_Key, tuple[Any, Captured]] = {}
        #: How often other code held values at the capture, and variables had moved.
        self.postponed = self.moved = 0

    def key(self, stream: Any) -> _Key:
        """Return what a graph for the current stream is kept by."""
        return stream.ptr, self.plan is not None and self.plan.has_singles and rounds()

    def drop(self, key: _Key) -> None:
        """Release a graph, to make room for another, and wait before it is captured again."""
        self.captured.pop(key, None)
        self.left = self.pause = max(_PAUSE, 4 * self.pause)


class Programs:
    """Runs one program on CuPy arrays.

    Parameters
    ----------
    program
        The graph, as returned by ``forward_only``.
    owner
        The CuPy backend.
    runs
        The number of runs with a shape before its plan is captured in a CUDA graph; None for no
        graphs.
    least
        The number of launches that are worth a graph.
    """

    def __init__(
        self, program: Graph, owner: Backend, runs: int | None = _RUNS, least: int = _LEAST
    ) -> None:
        self.program = program
        self.owner = owner
        self._runs, self._least = runs, least
        self._shaped: dict[Any, _PlanForShape] = {}
        self._others: dict[int, Run] = {}
        self._memory: dict[int, dict[Any, State]] = {}
        self._homes: dict[int, dict[Any, Home]] = {}
        #: Whether variables hold the memory of graphs.
        self._shared = shows_references(owner.xp)
        self._variables = list(program.variables)
        self._several = owner.xp.cuda.runtime.getDeviceCount() > 1
        # two calls at once would assign the same variables
        self._alone: Any = RLock() if program.updates else nullcontext()

    def __call__(self, arrays: Sequence[Any], reporting: bool = False) -> list[Any]:
        """Run the program; if ``reporting`` is true, report its steps to watchers."""
        devices = self._devices(arrays)
        if devices is None:
            return self._by_nodes(0, arrays, reporting)
        if len(devices) != 1:  # the kernels report which array is on which device
            return self._by_nodes(-1, arrays, reporting)
        (device,) = devices
        with self.owner.xp.cuda.Device(device), self._alone:
            return self._run(device, arrays, reporting)

    def _devices(self, arrays: Sequence[Any]) -> set[int] | None:
        """Return the devices of a call's arrays, none if some are elsewhere; None without any."""
        held = [v.array for v in self._variables]  # not longer than here: graphs count references
        if not arrays and not held:
            return None
        if not all(map(self.owner.owns, {type(x) for x in (*arrays, *held)})):
            return set()
        if self._several:
            return {x.device.id for x in (*arrays, *held)}
        return {0}  # a check of each array takes longer than most kernels

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
        if found.left > 0 or self._runs is None:
            found.left -= 1
            return plan.run(arrays)
        stream = self.owner.xp.cuda.get_current_stream()
        known = found.captured.get(found.key(stream))
        if known is not None:
            results = known[1].run(arrays)
            if results is None:
                results = plan.run(arrays)
                plan.forget(stream)  # the graph has its own buffers
                self._reconsider(found, stream, known[1])
            return results
        several = stream.ptr == PER_THREAD  # one address for the streams of all threads
        if found.reason or several or len(found.captured) >= _GRAPHS:
            return plan.run(arrays)
        return self._first(device, found, plan, stream, arrays)

    def _plan(self, device: int, arrays: Sequence[Any]) -> _PlanForShape:
        """Return a plan for arrays of these shapes, or the reason why there is none."""
        try:
            program = retraced(self.program, arrays)
        except Exception as error:  # if a shape rule refuses, the kernel gives a better message
            return _PlanForShape(None, _text_of(error))
        with compiling():
            lowered = DeviceLowering(program, self.owner, arrays)
            plan = DevicePlan(lowered, self._memory.setdefault(device, {}))
            return _PlanForShape(plan, None, self._runs or 0, self._least)

    def _first(
        self,
        device: int,
        found: _PlanForShape,
        plan: DevicePlan,
        stream: Any,
        arrays: Sequence[Any],
    ) -> list[Any]:
        """Run kernel by kernel, and capture a graph for the stream of this call, if possible."""
        homes = self._homes.setdefault(device, {})
        try:
            make_room(self.owner.xp, device, estimate(plan))
            copied = found.moved > _AGAIN
            captured = Captured(plan, homes, self._least, self._shared, copied)
        except Exception as error:
            found.reason = _text_of(error)
            return plan.run(arrays)
        results = captured.first(arrays)
        try:
            captured.capture(arrays, results)
        except NotNow:
            found.left, found.postponed = _SOON, found.postponed + 1
            if found.postponed > _AGAIN:
                self._use_copies()
        except Exception as error:  # the driver refuses what it cannot capture
            found.reason = _text_of(error)
        else:
            # the stream is kept, too: another one at its address would not wait for its work
            key = found.key(stream)
            found.captured[key] = stream, captured
            keep(device, captured, found, key)
        return results

    def _reconsider(self, found: _PlanForShape, stream: Any, captured: Captured) -> None:
        """Capture again, after a graph could not run too often."""
        if captured.held >= HELD_TOO_OFTEN:
            self._use_copies()
        elif captured.missed >= _MISSES:
            found.captured.pop(found.key(stream), None)
            found.moved += 1

    def _use_copies(self) -> None:
        """Let variables hold copies from now on, because other code keeps holding their values."""
        self._shared = False
        self._homes.clear()
        for found in list(self._shaped.values()):
            found.captured.clear()
            found.left = found.postponed = 0

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
            told.append(f"{where}: {self._how(found)}\n{found.plan.explain()}")
            told += [line for _, x in list(found.captured.values())[:1] for line in x.explain()]
        if self._others and not all(found.plan is None for found in self._shaped.values()):
            told.append("others node by node: further shapes, or other dtypes and devices")
        return "\n".join(told) or "it has not run yet; it is planned by the shapes of the inputs"

    def _how(self, found: _PlanForShape) -> str:
        how = "kernels made for these shapes"
        if found.captured:
            streams = len({address for address, _ in found.captured})
            precise = " and each precision" if len(found.captured) > streams else ""
            return f"{how}; a CUDA graph for each of {streams} streams{precise}"
        if self._runs is None:
            return how
        if found.reason:
            return f"{how}; no CUDA graph: {found.reason}"
        return f"{how}; a CUDA graph after {max(found.left, 0)} further runs"


def _text_of(error: Exception) -> str:
    """Return a reason as one line."""
    if isinstance(error, NotCaptured):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
