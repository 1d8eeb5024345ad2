"""The description of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...core.extend import Graph, unsure
from .combining import Stack
from .steps import Group, Step, bytes_of

if TYPE_CHECKING:
    from .combining import Pack
    from .emission import Emission
    from .lowering import Lowering


def report(program: Graph, shapes: Any, plan: Emission) -> str:
    """Return a description of the groups, packs, buffers and calls of a plan."""
    lowered = plan.lowered
    head = f"planned, {len(program.nodes)} nodes in {len(lowered.steps)} steps"
    if shapes:
        head += f", for inputs of shapes {', '.join(map(str, shapes))}"
    lines = [head]
    for item in plan.items:
        if isinstance(item, Group):
            how = "one loop" if item in plan.loops else "ufuncs"
            lines.append(f"  group over {item.shape}, {how}: {counted(item.members)}")
    for stack in plan.stacks:
        step = stack.members[0]
        lines.append(f"  stack of {len(stack.members)} {step.op} over {step.out.shape}, one call")
    for pack, _ in plan.packs:
        lines.append(f"  pack of {len(pack.shapes)} updates, {written(pack)}")
    beside = Counter(item.op for item in plan.items if isinstance(item, Step))
    if beside:
        lines.append(f"  outside groups: {_words(beside)}")
    lines += called(lowered)
    for length, inside in plan.bodies:
        body = report(inside.lowered.program, None, inside).splitlines()
        lines += [f"  loop of {length} steps, each {body[0]}", *(f"  {line}" for line in body[1:])]
    packs = sum(memory.bytes for _, memory in plan.packs)
    lines.append(
        f"  memory: {plan.arena.count} buffers and views of {plan.arena.bytes} bytes for each call "
        f"that runs, {packs} bytes in packs, {len(lowered.known)} values computed once"
    )
    return "\n".join(lines)


def told(item: Any, loop: bool) -> tuple[str, None, int]:
    """Return the name of a part of a plan, and the size of its results in bytes.

    Parameters
    ----------
    item
        A step, a stack, a group or a pack.
    loop
        Whether it runs as one loop.
    """
    if isinstance(item, Step):
        return item.op, None, sum(map(_bytes_of, item.outputs))
    if isinstance(item, Stack):
        step = item.members[0]
        size = len(item.members) * _bytes_of(step.out)
        return f"{step.op} of {len(item.members)} in a stack", None, size
    how = "loop" if loop else "group"
    if isinstance(item, Group):
        name = f"{how} over {item.shape}: {counted(item.members)}"
        return name, None, sum(map(_bytes_of, item.outputs))
    group = item.group
    name = f"pack of {len(item.shapes)} updates: {counted(group.steps)}"
    return name, None, sum(map(_bytes_of, group.outputs))


def _bytes_of(x: Any) -> int:
    return 0 if unsure(x.shape) else bytes_of(x)


def written(pack: Pack) -> str:
    """Return a description of a pack's computation and of the variables that it writes."""
    variables = [v.name for column in pack.written.values() for v in column]
    computed = counted(pack.group.steps)
    return f"{pack.group.shape[0]} elements: {computed}; writes {', '.join(variables)}"


def called(lowered: Lowering) -> list[str]:
    """Return a line for each op that runs as a call of its kernel, with the reason."""
    return [
        f"  a call of the kernel of {op}, {times} times: {why}"
        for (op, why), times in lowered.calls.items()
    ]


def counted(steps: Iterable[Step]) -> str:
    """Return a description of how often each op occurs among steps."""
    return _words(Counter(step.op for step in steps))


def _words(counts: Counter[str]) -> str:
    return ", ".join(op if n == 1 else f"{n} {op}" for op, n in counts.items())
