"""What a traced function does with tensors from outside: constants to its graph, not to tapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.context import active_tapes
from ..base.dtypes import is_differentiable
from ..base.handle import next_id
from ..base.recorder import Everything, Recorder
from ..batches.batched import Batched
from ..ops.dispatch import is_transformed
from ..tensors.tensor import Tensor
from .graph import Graph
from .nodes import Symbol

__all__ = ["Closure", "Observer"]


class Observer(Recorder):
    """Stands among the tapes and hears of every op; subclasses say what they make of it."""

    def __init__(self) -> None:
        self.records = Everything()

    def record(self, op: Any, inputs: Any, output: Tensor, params: dict[str, Any]) -> None:
        """Hear of an op with one output."""
        self._note("record", (op, inputs, output, params), inputs, [output])

    def record_joint(
        self, op: Any, inputs: Any, outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        """Hear of an op with several outputs, or with one rule for all of its inputs."""
        self._note("record_joint", (op, inputs, outputs, params), inputs, outputs)

    def record_call(
        self, name: str, inputs: list[Tensor], outputs: list[Tensor], backward: Any
    ) -> None:
        """Hear of a computation whose gradient is a function."""
        self._note("record_call", (name, inputs, outputs, backward), inputs, outputs)

    def _note(
        self,
        method: str,
        arguments: tuple[Any, ...],
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
    ) -> None:
        """Take note of what ``method`` of a recorder was told by ``arguments``."""
        raise NotImplementedError


class Closure(Observer):
    """Stands among the tapes while a function is traced.

    Python code may use tensors that it did not get as arguments. What it computes from them alone
    is computed once, while tracing, and is a constant of the graph. A tape that follows such a
    tensor must see it all the same when the graph runs: so each constant's tensor is kept, and
    tapes are told how it came about.

    Attributes
    ----------
    tensors
        Symbol of a constant -> the tensor that it was.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.tensors: dict[Symbol, Tensor] = {}
        self._symbols: dict[int, Symbol] = {}
        # what was there before the trace has a smaller id
        self._first = next_id()
        self._derived: set[int] = set()
        self._told: list[tuple[str, tuple[Any, ...]]] = []
        self._nodes_seen = 0

    def symbol(self, tensor: Any, symbol: Symbol) -> Symbol:
        """Return what stands for ``tensor`` in the graph, where ``symbol`` is its array."""
        if not self._is_outside(tensor):
            return symbol
        known = self._symbols.get(tensor.id)
        if known is None:
            if symbol in self.tensors:  # another tensor of the same array
                symbol = self.graph.another_constant(tensor.array)
            known = self._symbols[tensor.id] = symbol
            self.tensors[symbol] = tensor
        return known

    def tell(self) -> None:
        """Tell the active tapes how the constants were computed from tensors that they follow."""
        for tape in active_tapes.get():
            for method, arguments in self._told:
                getattr(tape, method)(*arguments)

    def _is_outside(self, x: Any) -> bool:
        return (
            type(x) is Tensor
            and (0 < x.id < self._first or x.id in self._derived)
            and not is_transformed(x.array)
            and is_differentiable(x.dtype)
        )

    def _note(
        self,
        method: str,
        arguments: tuple[Any, ...],
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
    ) -> None:
        # a custom gradient's node has the results before the arguments
        offset = len(outputs) if method == "record_call" else 0
        used = [(i, x) for i, x in enumerate(inputs, offset) if self._is_outside(x)]
        first, self._nodes_seen = self._nodes_seen, len(self.graph.nodes)
        if not used:
            return
        if not is_transformed(outputs[0].array):
            self._told.append((method, arguments))
            self._derived.update(y.id for y in outputs)
            return
        if type(outputs[0].array) is Batched:  # the op has become any number of nodes
            for _, x in used:
                self._replace(x, first)
            return
        node = self.graph.nodes[-1]
        given = list(node.inputs)
        for i, x in used:
            given[i] = self.symbol(x, given[i])
        node.inputs = tuple(given)

    def _replace(self, x: Tensor, first: int) -> None:
        """Let the nodes from ``first`` on take ``x`` for the constant that its array was."""
        constant = self.graph.constant(x.array)
        for node in self.graph.nodes[first:]:
            node.inputs = tuple(
                self.symbol(x, given) if given is constant else given for given in node.inputs
            )
