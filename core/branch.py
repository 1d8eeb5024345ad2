"""``trace_branch``: a function as a graph of its own, for ops that run graphs (``cond``, ``scan``).

A branch is self-contained: whatever it takes from its surroundings, be it a tensor that is traced,
batched or watched by a tape, or a variable, becomes an input of it, and of the op that runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .batched import new_level
from .closure import Listener
from .convert import as_tensor
from .dtypes import is_differentiable
from .errors import TraceError
from .graph import Graph, Symbol, user_line
from .op import SCALARS, is_transformed
from .optimize import prune
from .spec import TensorSpec
from .state import Recorder, active_tapes, tracing_into
from .tensor import Tensor, next_id
from .tree import flatten
from .variable import Variable

__all__ = ["Branch", "trace_branch"]


class Branch(Graph):
    """A graph that takes what it finds around it as further inputs.

    Attributes
    ----------
    taken
        The tensors that its inputs after the first ones stand for.
    result
        What the function returned, in its structure; outputs are its leaves.
    """

    def __init__(self, name: str, parent: Graph | None) -> None:
        super().__init__(name, parent)
        self.level = new_level()
        self.taken: list[Tensor] = []
        self.result: Any = None
        self._inside: dict[int, Symbol] = {}  # by the id of an array taken

    def adopt(self, array: Any) -> Any:
        if type(array) in SCALARS or (type(array) is Symbol and array.graph is self):
            return array
        return self.take(Tensor(array)) if is_transformed(array) else self.constant(array)

    def take(self, tensor: Tensor) -> Symbol:
        """Return the input that stands for a tensor from outside."""
        array = tensor.array
        known = self._inside.get(id(array))
        if known is None:
            known = self._inside[id(array)] = self.input(TensorSpec(array.shape, array.dtype))
            self.taken.append(tensor)
        return known

    def read(self, variable: Variable) -> Symbol:
        symbol = self._reads.get(variable)
        if symbol is None:
            array = variable.array if self.parent is None else self.parent.read(variable)
            symbol = self._reads[variable] = self.take(Tensor.with_id(array, variable.id))
        return symbol

    def assign(self, variable: Variable, array: Any) -> None:
        raise TraceError(
            f"{user_line()}: variable {variable.name!r} is assigned inside {self.name}, whose "
            "functions may run any number of times, or never; return the value and assign it after"
        )


class _Taker(Listener):
    """Stands among the tapes and makes inputs of the tensors from outside that ops are given."""

    def __init__(self, branch: Branch, around: tuple[Recorder, ...]) -> None:
        super().__init__()
        self._branch = branch
        self._around = around
        self._first = next_id()
        self._derived: set[int] = set()

    def _note(
        self, method: str, arguments: Any, inputs: Sequence[Any], outputs: Sequence[Tensor]
    ) -> None:
        if is_transformed(outputs[0].array):
            self.look(inputs)
            return
        # of constants alone: computed here and now, once, and outside for those who look on there
        for recorder in self._around:
            getattr(recorder, method)(*arguments)
        self._derived.update(y.id for y in outputs)

    def look(self, inputs: Sequence[Any]) -> None:
        """Give inputs from outside the identity that tapes know them by."""
        branch = self._branch
        for x in inputs:
            if type(x) is not Tensor or not (0 < x.id < self._first or x.id in self._derived):
                continue
            if is_transformed(x.array):
                self._name(branch.adopt(x.array), x)
            elif is_differentiable(x.dtype) and id(x.array) not in branch._inside:
                constant = branch._constant_of.pop(id(x.array), None)
                symbol = branch.take(x)
                if constant is not None:  # the op has taken it for a constant
                    del branch.constants[constant]
                    for node in branch.nodes:
                        node.inputs = tuple(
                            symbol if given is constant else given for given in node.inputs
                        )

    def _name(self, symbol: Symbol, x: Tensor) -> None:
        taken = self._branch.taken
        own = self._branch.inputs[len(self._branch.inputs) - len(taken) :]
        for i, known in enumerate(own):
            if known is symbol:
                taken[i] = Tensor.with_id(taken[i].array, x.id)


def trace_branch(
    name: str, fn: Callable[..., Any], inputs: Sequence[TensorSpec], parent: Graph | None
) -> Branch:
    """Return a function of tensors (flat) as a graph; its results are the graph's outputs."""
    branch = Branch(name, parent)
    taker = _Taker(branch, active_tapes.get())
    with tracing_into(branch, taker):
        given = [Tensor(branch.input(spec)) for spec in inputs]
        branch.result = fn(*given)
        leaves = [as_tensor(leaf) for leaf in flatten(branch.result)]
        taker.look(leaves)
        branch.outputs = [
            branch._inside[id(leaf.array)]
            if id(leaf.array) in branch._inside
            else branch.adopt(leaf.array)
            for leaf in leaves
        ]
    return prune(branch)  # type: ignore[return-value]


def joined(branches: Sequence[Branch], explicit: int) -> tuple[list[Graph], list[Tensor]]:
    """Give branches the same inputs after the explicit ones; return them, and what those are."""
    taken: dict[int, Tensor] = {}
    for branch in branches:
        for tensor in branch.taken:
            known = taken.get(id(tensor.array))
            if known is None or not known.id:
                taken[id(tensor.array)] = tensor
    graphs: list[Graph] = []
    for branch in branches:
        graph = Graph(branch.name)
        graph.nodes, graph.outputs, graph.constants = (
            branch.nodes,
            branch.outputs,
            branch.constants,
        )
        graph.inputs = branch.inputs[:explicit]
        for key, tensor in taken.items():
            symbol = branch._inside.get(key)
            if symbol is None:
                symbol = Symbol(graph, tensor.array.shape, tensor.array.dtype)
            graph.inputs.append(symbol)
        graphs.append(graph)
    return graphs, list(taken.values())
