"""``trace_branch``: a function as a separate graph, for ops that run graphs (``cond``, ``scan``).

A branch is self-contained. Every captured variable, and every captured tensor that is traced,
batched or watched by a tape, becomes an input of the branch and of the op that runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from ..base.array_types import next_id
from ..base.context import active_tapes, tracing_into
from ..base.dtypes import SCALARS, is_differentiable
from ..base.observers import Recorder
from ..base.spec import TensorSpec
from ..base.table import ops
from ..base.tree import flatten
from ..batches.batched import new_level
from ..graphs.capture import Capture
from ..graphs.graph import Graph
from ..graphs.nodes import Node, Symbol
from ..graphs.optimize import prune
from ..ops.dispatch import is_transformed
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable


class Branch(Graph):
    """A graph that takes captured tensors and variables as further inputs.

    Attributes
    ----------
    taken
        The captured tensors, by the symbols of the inputs that come after the explicit ones.
    result
        What the function returned, in its structure; outputs are its leaves that are not None.
    assigned
        The variables that the function assigns.
    """

    def __init__(self, name: str, parent: Graph | None) -> None:
        super().__init__(name, parent)
        self.level = new_level()
        self.taken: dict[Symbol, Tensor] = {}
        self.result: Any = None
        self.assigned: dict[Variable, None] = {}
        self._inside: dict[int, Symbol] = {}  # by the id of a captured array
        self._held: dict[Variable, Symbol] = {}
        self.assignments: set[Node] = set()

    def adopt(self, array: Any) -> Any:
        if type(array) in SCALARS or (type(array) is Symbol and array.graph is self):
            return array
        if not is_transformed(array):
            return self.constant(array)
        known = self._inside.get(id(array))
        if known is None:
            known = self._inside[id(array)] = self.take(Tensor.with_id(array, 0))
        return known

    def take(self, tensor: Tensor) -> Symbol:
        """Add an input for a tensor from outside."""
        array = tensor.array
        symbol = self.input(TensorSpec(array.shape, array.dtype))
        symbol.integers = getattr(array, "integers", None)
        self.taken[symbol] = tensor
        return symbol

    def read(self, variable: Variable) -> Symbol:
        symbol = self._reads.get(variable)
        if symbol is None:
            array = variable.array if self.parent is None else self.parent.read(variable)
            symbol = self._reads[variable] = self.take(Tensor.with_id(array, variable.id))
        return symbol

    def hold(self, variable: Variable) -> None:
        """Add an input for the value of a variable that the function assigns."""
        symbol = self.input(TensorSpec(variable.shape, variable.dtype))
        self._reads[variable] = self._held[variable] = symbol

    def assign(self, variable: Variable, array: Any) -> None:
        # from here on, reads give the new value; gradients go to the variable, not to that value
        self.assigned[variable] = None
        before = self._held.get(variable)
        if before is None:
            self._reads[variable] = self.add(ops["stop_gradient"], (array,), {})
        else:
            self._reads[variable] = self.add(ops["assigned"], (array, before), {})
        self.assignments.add(self.nodes[-1])


class _Taker(Capture[Branch]):
    """Turns tensors from outside into inputs of a branch, if tapes may follow them."""

    def __init__(self, branch: Branch, around: tuple[Recorder, ...]) -> None:
        super().__init__(branch)
        self._around = around
        self._outside = copy_context()
        self._symbols: dict[int, Symbol] = {}  # by a tensor's id: tensors may share an array

    def accessed(self, variable: Variable, read: Tensor) -> None:
        """Report to the outer recorders that a variable is read."""
        for recorder in self._around:
            recorder.accessed(variable, read)

    def accessed_by_rule(self, variable: Variable, read: Tensor) -> None:
        for recorder in self._around:
            recorder.accessed_by_rule(variable, read)

    def record_read(self, *read: Any) -> None:
        """Report to the outer recorders that a value is read."""
        for recorder in self._around:
            recorder.record_read(*read)

    def _is_told(self, node: Node) -> bool:
        return node not in self.graph.assignments

    def _computed(self, method: str, arguments: tuple[Any, ...], inputs: Sequence[Any]) -> bool:
        # from constants only: computed here, once, and reported to the outer recorders, which may
        # compute too (tangents): outside the branch
        for recorder in self._around:
            self._outside.run(getattr(recorder, method), *arguments)
        return True

    def symbol(self, x: Tensor) -> Symbol:
        branch = self.graph
        if not self.is_outside(x) or (type(x.array) is Symbol and x.array.graph is branch):
            own: Symbol = branch.adopt(x.array)
            return own
        symbol = self._symbols.get(x.id)
        if symbol is not None:
            return symbol
        symbol = branch.adopt(x.array)
        if symbol in branch.taken and not branch.taken[symbol].id:
            branch.taken[symbol] = x  # itself: what is known of it may live only as long
        elif symbol in branch.taken or is_differentiable(x.dtype):
            symbol = branch.take(x)
        self._symbols[x.id] = symbol
        return symbol


def trace_branch(
    name: str,
    fn: Callable[..., Any],
    inputs: Sequence[TensorSpec],
    parent: Graph | None,
    held: Sequence[Variable] = (),
) -> Branch:
    """Trace a function of a flat list of tensors; its results are the graph's outputs.

    Each variable in ``held`` has an input after the explicit ones, and an output after the results:
    its assigned value.
    """
    branch = Branch(name, parent)
    taker = _Taker(branch, active_tapes.get())
    with tracing_into(branch, taker):
        given = [Tensor(branch.input(spec)) for spec in inputs]
        for variable in held:
            branch.hold(variable)
        branch.result = fn(*given)
        leaves = [as_tensor(leaf) for leaf in flatten(branch.result) if leaf is not None]
        branch.outputs = [taker.symbol(leaf) for leaf in leaves]
        branch.outputs += [branch.read(variable) for variable in held]
    return prune(branch)  # type: ignore[return-value]


def holding(trace: Callable[[list[Variable]], Sequence[Branch]]) -> tuple[Any, list[Variable]]:
    """Trace branches, and trace them again with the variables that they assign."""
    held: dict[Variable, None] = {}
    again = False
    while True:
        first = next_id()
        branches = trace(list(held))
        # a variable that each trace creates belongs to the branch
        found = {
            v: None for branch in branches for v in branch.assigned if v.id < first or not again
        }
        if found.keys() == held.keys():
            return branches, list(held)
        held, again = found, True


def joined(branches: Sequence[Branch], explicit: int) -> tuple[list[Graph], list[Tensor]]:
    """Give branches the same inputs after the explicit ones; return them and these inputs."""
    taken: dict[tuple[int, int], Tensor] = {}
    for branch in branches:
        for tensor in branch.taken.values():
            taken.setdefault((id(tensor.array), tensor.id), tensor)
    graphs: list[Graph] = []
    for branch in branches:
        graph = Graph(branch.name)
        graph.nodes, graph.outputs, graph.constants = (
            branch.nodes,
            branch.outputs,
            branch.constants,
        )
        graph.homes = branch.homes
        graph.inputs = branch.inputs[:explicit]
        own = {(id(x.array), x.id): symbol for symbol, x in branch.taken.items()}
        for key, tensor in taken.items():
            symbol = own.get(key)
            if symbol is None:
                symbol = Symbol(graph, tensor.array.shape, tensor.array.dtype)
            graph.inputs.append(symbol)
        graphs.append(graph)
    return graphs, list(taken.values())
