"""Hoisting: what a scan's step computes without the carry is computed before the loop.

What depends on scanned values is computed for all steps at once: one product of all rows takes less
time than one for each step, and a ufunc of a small array takes longer to call than to run. In the
gradient of a recurrent layer, these are the slopes of all activations. What depends on captured
values alone is computed once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.extend import (
    Graph,
    Node,
    Op,
    Symbol,
    batched_graph,
    forward_only,
    has_unknown_sizes,
)
from .steps import PlanStep

if TYPE_CHECKING:
    from .lowering import Lowering

#: The minimum number of steps, and the maximum size in bytes of a value for all steps.
_SEVERAL, _LARGEST = 3, 2**22


class Hoisting:
    """A scan as a loop, and what runs before it.

    Parameters
    ----------
    node
        The scan.
    settings
        The parameters of its loop, as returned by ``scan_body``.

    Attributes
    ----------
    inputs, outputs
        Those of the loop.
    settings
        The parameters of the loop.
    """

    def __init__(self, node: Node, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.inputs: list[Any] = list(node.inputs)
        self.outputs = list(node.outputs)
        self._program: Graph = settings["program"]
        self._carried = settings["carried"]
        end = self._carried + settings["scanned"]
        pairs = list(zip(self._program.inputs, node.inputs, strict=True))
        #: By a value of a step, that of the program around: for all steps, and for each of them.
        self._rows: dict[Symbol, Symbol] = dict(pairs[self._carried : end])
        self._fixed: dict[Symbol, Symbol] = dict(pairs[end:])

    def lower(self, lowering: Lowering) -> None:
        """Add the steps that run before the loop, and leave the others to it.

        Parameters
        ----------
        lowering
            The lowering of the program that the scan is part of.
        """
        by_row, once = self._moved()
        if self.settings["length"] < _SEVERAL or all(map(_is_view, (*by_row, *once))):
            return
        moved = {*by_row, *once}
        left = [node for node in self._program.nodes if node not in moved]
        used = _read(left) | {*self._program.outputs}
        alone = self._part(once, used | _read(by_row))
        stacks = self._part(by_row, used)
        flags = [x in self._rows for x in stacks.inputs]
        wide = stacks
        if stacks.outputs:
            wide = forward_only(batched_graph(stacks, self.settings["length"], flags))
        for x, stack in zip(stacks.outputs, wide.outputs, strict=True):
            if (stack.shape, stack.dtype) != ((self.settings["length"], *(x.shape or ())), x.dtype):
                return
        for values, part, new in ((self._fixed, alone, _copied(alone)), (self._rows, stacks, wide)):
            known = {**self._rows, **self._fixed}
            found = lowering.inlined(new, [known[x] for x in part.inputs])
            values.update(zip(part.outputs, found, strict=True))
        self._leave(lowering, left)

    def _moved(self) -> tuple[list[Node], list[Node]]:
        """Return the nodes that depend on scanned values, and on captured ones alone."""
        rows, fixed = set(self._rows), {*self._fixed, *self._program.constants}
        by_row, once = list[Node](), list[Node]()
        for node in self._program.nodes:
            given = _read([node])
            if not given <= rows | fixed or not self._fits(node):
                continue
            nodes, known = (by_row, rows) if given & rows else (once, fixed)
            nodes.append(node)
            known.update(node.outputs)
        return by_row, once

    def _fits(self, node: Node) -> bool:
        """Return whether a node can run before the loop, and needs little memory there."""
        if not isinstance(node.op, Op) or node.op.random or node.acts or node.graphs:
            return False
        if not _read([node]) or node.witnesses:
            return False
        if any(has_unknown_sizes(x.shape) for x in node.outputs):
            return False
        sizes = [prod(x.shape or ()) * np.dtype(x.dtype).itemsize for x in node.outputs]
        return bool(self.settings["length"] * sum(sizes) <= _LARGEST)

    def _part(self, nodes: Sequence[Node], read: set[Symbol]) -> Graph:
        """Return a graph of some nodes, whose outputs are those results that others read."""
        part = Graph(self._program.name)
        made = {y: None for node in nodes for y in node.outputs}
        given = [x for x in _ordered(nodes) if x not in made]
        constants = self._program.constants
        part.constants = {x: constants[x] for x in given if x in constants}
        part.inputs = [x for x in given if x not in constants]
        part.nodes, part.outputs = list(nodes), [x for x in made if x in read]
        return part

    def _leave(self, lowering: Lowering, left: list[Node]) -> None:
        """Make the loop that remains."""
        program, carried = self._program, self._carried
        rows, stacks = program.outputs[carried:], self.outputs[carried:]
        kept = []
        for x, stack in zip(rows, stacks, strict=True):
            if x in self._rows:  # not computed in the loop
                lowering.same(stack, self._rows[x])
            else:
                kept.append((x, stack))
        loop = Graph(program.name)
        loop.nodes, loop.constants = left, program.constants
        loop.outputs = [*program.outputs[:carried], *(x for x, _ in kept)]
        used = _read(left) | {*loop.outputs}
        scanned = [x for x in self._rows if x in used]
        fixed = [x for x in self._fixed if x in used]
        loop.inputs = [*program.inputs[:carried], *scanned, *fixed]
        self.inputs = self.inputs[:carried]
        self.inputs += [*(self._rows[x] for x in scanned), *(self._fixed[x] for x in fixed)]
        self.outputs = [*self.outputs[:carried], *(stack for _, stack in kept)]
        self.settings = {**self.settings, "program": loop, "scanned": len(scanned)}


def trimmed(step: PlanStep, needed: Container[Symbol]) -> PlanStep:
    """Return a loop that computes only what is read after it; itself if all of it is, or nothing.

    The gradient of a scan has a result for each input, of which a program may use a few.

    Parameters
    ----------
    step
        The loop.
    needed
        The values that are read after it.
    """
    settings, program = step.params, step.params["program"]
    carried, count = settings["carried"], settings["carried"] + settings["scanned"]
    live = {i for i, out in enumerate(step.outputs) if out in needed}
    before = -1
    while len(live) > before and live:
        before = len(live)
        used = {program.outputs[i] for i in live}
        for node in reversed(program.nodes):
            if not used.isdisjoint(node.outputs):
                used.update(_read([node]))
        live.update(i for i in range(carried) if program.inputs[i] in used)
    if len(live) in (0, len(step.outputs)):
        return step
    places = sorted(live)
    kept = [i for i in places if i < carried]
    given = [*kept, *(i for i, x in enumerate(program.inputs) if i >= carried and x in used)]
    loop = Graph(program.name)
    loop.inputs = [program.inputs[i] for i in given]
    loop.nodes = [node for node in program.nodes if not used.isdisjoint(node.outputs)]
    loop.constants = program.constants
    loop.outputs = [program.outputs[i] for i in places]
    scanned = sum(carried <= i < count for i in given)
    params = {**settings, "program": loop, "carried": len(kept), "scanned": scanned}
    inputs, outputs = [step.inputs[i] for i in given], [step.outputs[i] for i in places]
    return PlanStep(step.kind, step.op, step.run, inputs, outputs, params)


def _is_view(node: Node) -> bool:
    return bool(getattr(node.op, "view", None))


def _ordered(nodes: Iterable[Node]) -> list[Symbol]:
    """Return the symbols that nodes read, in the order of first use."""
    return list(dict.fromkeys(x for node in nodes for x in node.inputs if type(x) is Symbol))


def _read(nodes: Iterable[Node]) -> set[Symbol]:
    return set(_ordered(nodes))


def _copied(graph: Graph) -> Graph:
    """Return a graph with symbols of its own: two scans may have one body."""
    new = Graph(graph.name)
    values = {x: Symbol(new, x.shape, x.dtype) for x in (*graph.inputs, *graph.constants)}
    for node in graph.nodes:
        values.update({y: Symbol(new, y.shape, y.dtype) for y in node.outputs})
        inputs = tuple(values[x] if type(x) is Symbol else x for x in node.inputs)
        outputs = tuple(values[y] for y in node.outputs)
        new.nodes.append(Node(node.op, inputs, node.params, outputs, node.several))
    new.inputs = [values[x] for x in graph.inputs]
    new.constants = {values[x]: array for x, array in graph.constants.items()}
    new.outputs = [values[x] for x in graph.outputs]
    return new
