"""Plans: functions that run a program on NumPy, for the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from threading import RLock
from typing import Any, TypeAlias

from ...core.extend import (
    Backend,
    Graph,
    by_backend,
    compiling,
    excluded,
    joined_pulls,
    node_by_node,
    registry,
    stage,
)
from .combining import Emitter, FlatUpdate
from .lowering import Lowering
from .memory import Packed
from .steps import LoopGroup, PlanStep, count_ops
from .tiers import Plan, TieredPlan, loops_of_plugins
from .tracing import has_dtypes, retraced
from .writing import Emission, write_loop

Run: TypeAlias = Callable[[Sequence[Any]], list[Any]]
#: The maximum number of input shapes that are planned for; with others, each node is a call.
_SHAPES = 16


def planned(graph: Graph) -> Run:
    """Return a function that runs ``graph`` by plans on NumPy, and node by node elsewhere.

    Parameters
    ----------
    graph
        A traced graph.
    """
    return planned_by(graph, Emitter())


def planned_by(graph: Graph, emitter: Emitter) -> Run:
    """Return a function that runs ``graph`` by plans on NumPy, with groups run by an emitter."""

    def compiler(program: Graph, owner: Backend, arrays: Sequence[Any]) -> Run | None:
        return Plans(program, emitter) if owner is registry().host_backend else None

    return by_backend(graph, compiler)


class Plans:
    """Runs one program on NumPy arrays: by plans, which depend on the shapes of its inputs.

    Parameters
    ----------
    program
        The graph, as returned by ``forward_only``.
    emitter
        Runs groups as loops; by default, NumPy runs all groups.
    tiered
        Whether plans change to the loops of a plugin when they have run for long enough.
    """

    def __init__(
        self, program: Graph, emitter: Emitter | None = None, tiered: bool = False
    ) -> None:
        self.program = program
        self.emitter = emitter or Emitter()
        self._tiered = tiered
        self._plans: dict[Any, Plan] = {}
        #: By shapes, what became of the loops.
        self._told: dict[Any, str] = {}
        self._telling: dict[Any, Plan] = {}
        self._others: Run | None = None
        self._memory: dict[Any, Packed] = {}
        # two calls at once would write to the same packs
        self._alone = RLock() if program.updates else None

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the program."""
        # vmap runs a graph on larger arrays than it was traced for
        key = tuple([(x.shape, x.dtype) for x in arrays])
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= _SHAPES or not has_dtypes(self.program, arrays):
                return self._by_nodes(arrays)
            with stage(f"planning {self.program.name}"):
                found = self._plans[key] = self._begun(key, self._plan(arrays))
        if self._alone is None:
            return found[0](*arrays)
        with self._alone:
            return found[0](*arrays)

    def watched(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the program by plans that report their steps to watchers."""
        key = tuple([(x.shape, x.dtype) for x in arrays])
        if key not in self._plans:
            return self(arrays)  # the first call plans, and is reported as a whole
        found = self._telling.get(key)
        if found is None:
            emission = self._plans[key][1]
            emitter = self.emitter if emission is None else emission.emitter
            with excluded():
                found = self._telling[key] = self._plan(arrays, emitter, reporting=True)
        with self._alone or nullcontext():
            return found[0](*arrays)

    def _begun(self, key: Any, plan: Plan) -> Plan:
        """Return a plan as it starts: one that changes to loops later, if there are any."""
        emission = plan[1]
        if not self._tiered or emission is None or not may_have_loops(emission):
            return plan
        source = loops_of_plugins()
        if source is None or isinstance(source, str):
            self._told[key] = source or ""
            return plan
        return TieredPlan(self, key, plan, source), emission

    def with_emitter(self, plan: Plan, emitter: Emitter) -> Plan | None:
        """Return a plan with groups that an emitter runs; None if it runs none of them.

        Parameters
        ----------
        plan
            One of the plans.
        emitter
            The emitter.
        """
        assert plan[1] is not None
        emission = Emission(plan[1].lowered, emitter, self._memory, False, write_loop)
        function = emission.function()
        return (function, emission) if has_loops(emission) else None

    def settle(self, key: Any, plan: Plan, text: str) -> None:
        """Replace a plan.

        Parameters
        ----------
        key
            Its place.
        plan
            The new one.
        text
            What to say of its loops.
        """
        self._plans[key] = plan
        self._told[key] = text
        self._telling.pop(key, None)

    def _plan(
        self, arrays: Sequence[Any], emitter: Emitter | None = None, reporting: bool = False
    ) -> Plan:
        """Return a plan for arrays of these shapes."""
        program = self.program
        try:
            program = retraced(program, arrays)
            if program is not self.program:
                program = joined_pulls(program)
        except Exception:  # if a shape rule refuses, the kernel gives a better message
            return (lambda *arrays: self._by_nodes(arrays)), None
        with compiling():
            lowered = Lowering(program, registry().host_backend, arrays)
            emitter = emitter or self.emitter
            emission = Emission(lowered, emitter, self._memory, reporting, write_loop)
            return emission.function(), emission

    def _by_nodes(self, arrays: Sequence[Any]) -> list[Any]:
        if self._others is None:
            self._others = node_by_node(self.program, registry().host_backend, arrays)
        return self._others(arrays)

    def explain(self) -> str:
        """Return a description of how the program runs."""
        plans = list(self._plans.items())
        parts = []
        for key, (run, emission) in plans:
            if emission is None:
                continue
            parts.append(_report(self.program, [shape for shape, _ in key], emission))
            told = run.told if isinstance(run, TieredPlan) else self._told.get(key)
            if told:
                parts.append(f"  loops: {told}")
        if self._others is not None:
            parts.append(
                f"node by node: more than {_SHAPES} shapes, other dtypes than in the trace, or "
                "shapes that its shape rules cannot determine"
            )
        return "\n".join(parts) or "it has not run yet; it is planned by the shapes of the inputs"


def may_have_loops(plan: Emission) -> bool:
    """Return whether a plan has groups, so that an emitter may run some of them."""
    inner = (body for _, body in plan.bodies)
    groups = any(isinstance(item, LoopGroup) for item in plan.items)
    return groups or bool(plan.packs) or any(map(may_have_loops, inner))


def has_loops(plan: Emission) -> bool:
    """Return whether an emitter runs some of a plan's groups."""
    return bool(plan.loops) or any(has_loops(body) for _, body in plan.bodies)


def _report(program: Graph, shapes: Any, plan: Emission) -> str:
    """Return a description of the groups, packs, buffers and calls of a plan."""
    lowered = plan.lowered
    head = f"planned, {len(program.nodes)} nodes in {len(lowered.steps)} steps"
    if shapes:
        head += f", for inputs of shapes {', '.join(map(str, shapes))}"
    lines = [head]
    for item in plan.items:
        if isinstance(item, LoopGroup):
            reason = plan.emitter.reason(item)
            how = "one loop" if item in plan.loops else f"ufuncs{f' ({reason})' if reason else ''}"
            lines.append(f"  group over {item.shape}, {how}: {count_ops(item.members)}")
    for stack in plan.stacks:
        step = stack.members[0]
        lines.append(f"  stack of {len(stack.members)} {step.op} over {step.out.shape}, one call")
    for pack, _ in plan.packs:
        lines.append(f"  pack of {len(pack.shapes)} updates, {pack_line(pack)}")
    beside = [item for item in plan.items if isinstance(item, PlanStep)]
    if beside:
        lines.append(f"  outside groups: {count_ops(beside)}")
    lines += lowered.call_lines()
    for length, inside in plan.bodies:
        body = _report(inside.lowered.program, None, inside).splitlines()
        lines += [f"  loop of {length} steps, each {body[0]}", *(f"  {line}" for line in body[1:])]
    packs = sum(memory.bytes for _, memory in plan.packs)
    lines.append(
        f"  memory: {plan.arena.count} buffers and views of {plan.arena.bytes} bytes for each call "
        f"that runs, {packs} bytes in packs, {len(lowered.known)} values computed once"
    )
    return "\n".join(lines)


def pack_line(pack: FlatUpdate) -> str:
    """Return a description of a pack's computation and of the variables that it writes."""
    variables = [v.name for column in pack.written.values() for v in column]
    computed = count_ops(pack.group.steps)
    return f"{pack.group.shape[0]} elements: {computed}; writes {', '.join(variables)}"
