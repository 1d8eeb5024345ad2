"""Captured tensors: how a trace notices them, and how a traced function stores them.

Python code may use tensors that are not among its arguments. To the graph, the array of such a
tensor is like any other, but a tape may follow the tensor.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import FrameType
from typing import Any, Generic, TypeVar

from ..base.array_types import next_id
from ..base.dtypes import is_differentiable
from ..base.observers import AllRecords, Recorder
from ..base.user_code import Site
from ..ops.dispatch import is_transformed
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .graph import Graph
from .nodes import CustomGradient, Node, Symbol

G = TypeVar("G", bound=Graph)


class Capture(Recorder, Generic[G]):
    """A recorder that receives every op run while a graph is traced.

    If an op uses a tensor from outside, its node uses the tensor's symbol. Values that Python
    computes only from outside tensors are computed once, and count as outside too.
    """

    def __init__(self, graph: G) -> None:
        self.records = AllRecords()
        self.graph = graph
        # tensors from before the trace have smaller ids
        self._first = next_id()
        self._derived: set[int] = set()
        self._nodes_seen = 0

    def symbol(self, x: Tensor) -> Symbol:
        """Return the symbol of a tensor in the graph."""
        raise NotImplementedError

    def is_outside(self, x: Any) -> bool:
        """Return whether ``x`` is a tensor from outside, or computed only from such tensors."""
        return type(x) is Tensor and (0 < x.id < self._first or x.id in self._derived)

    def _computed(self, method: str, arguments: tuple[Any, ...], inputs: Sequence[Any]) -> bool:
        """Return whether to follow the results of a run reported to ``method`` of a recorder."""
        raise NotImplementedError

    def _is_reported(self, node: Node) -> bool:
        """Return whether a node comes from an op that is reported to this recorder."""
        return True

    # -- what ops report -------------------------------------------------------------------------

    def record(self, op: Any, inputs: Any, output: Tensor, params: dict[str, Any]) -> None:
        self._note("record", (op, inputs, output, params), inputs, [output])

    def record_joint(
        self, op: Any, inputs: Any, outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        self._note("record_joint", (op, inputs, outputs, params), inputs, outputs)

    def record_call(
        self, name: str, inputs: list[Tensor], outputs: list[Tensor], backward: Any
    ) -> None:
        self._note("record_call", (name, inputs, outputs, backward), inputs, outputs)

    def record_lost(
        self, inputs: Sequence[Tensor], places: Sequence[int], outputs: Sequence[Tensor], why: str
    ) -> None:
        if not is_transformed(outputs[0].array):  # otherwise, the node says it
            self._computed("record_lost", (inputs, places, outputs, why), inputs)

    def _note(
        self,
        method: str,
        arguments: tuple[Any, ...],
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
    ) -> None:
        nodes = list(filter(self._is_reported, self.graph.nodes[self._nodes_seen :]))
        self._nodes_seen = len(self.graph.nodes)
        array = outputs[0].array
        if not is_transformed(array):
            if self._computed(method, arguments, inputs):
                self._derived.update(y.id for y in outputs)
            return
        outside = [x for x in inputs if self.is_outside(x)]
        if not outside:
            return
        places = _places(method, nodes[-1], inputs, outputs) if nodes else None
        again = places is None and method != "record_call" and _share_arrays(outside)
        if again and not any(node.acts for node in nodes):
            op, params = arguments[0], arguments[-1]
            self._run_again(op, inputs, outputs, params)
            return
        for i, x in enumerate(inputs):
            if not self.is_outside(x):
                continue
            known, symbol = self.graph.adopt(x.array), self.symbol(x)
            for node in nodes if places is None else nodes[-1:]:
                node.inputs = tuple(
                    symbol if given is known and (places is None or k == places[i]) else given
                    for k, given in enumerate(node.inputs)
                )

    def _run_again(
        self, op: Any, inputs: Sequence[Any], outputs: Sequence[Tensor], params: dict[str, Any]
    ) -> None:
        """Run an op with a symbol for each tensor from outside; the nodes so far are not needed."""
        given = [
            self.symbol(x) if self.is_outside(x) else x.array if type(x) is Tensor else x
            for x in inputs
        ]
        found = op.raw(*given, **params)
        for y, array in zip(outputs, found if isinstance(found, list) else [found], strict=True):
            y.array = array
        self._nodes_seen = len(self.graph.nodes)


def _share_arrays(tensors: Sequence[Tensor]) -> bool:
    """Return whether tensors that tapes distinguish have one array, so that nodes do not."""
    ids = {x.id: id(x.array) for x in tensors}
    return len(set(ids.values())) < len(ids)


def _places(
    method: str, node: Node, inputs: Sequence[Any], outputs: Sequence[Tensor]
) -> Sequence[int] | None:
    """Return where a node has the inputs that were reported; None if it is only a part of the run.

    Inside a batch an op becomes any number of nodes.
    """
    if method == "record_call":  # results come before the arguments
        kind = node.op
        whole = isinstance(kind, CustomGradient) and kind.arguments == len(inputs)
        return range(len(outputs), len(outputs) + len(inputs)) if whole else None
    whole = any(y is outputs[0].array for y in node.outputs) and len(node.inputs) >= len(inputs)
    return range(len(inputs)) if whole else None


class Closure(Capture[Graph]):
    """Turns tensors from outside into constants of a traced function's graph.

    A tape that follows such a tensor must see it when the graph runs. The closure therefore keeps
    each constant's tensor, and reports to tapes how it was computed.

    Parameters
    ----------
    graph
        The graph.
    around
        For a gradient function inside a branch: what captures values for the branch.

    Attributes
    ----------
    tensors
        Symbol of a constant -> its tensor.
    """

    def __init__(self, graph: Graph, around: Capture[Any] | None = None) -> None:
        super().__init__(graph)
        self._around = around
        self.tensors: dict[Symbol, Tensor] = {}
        self._symbols: dict[int, Symbol] = {}
        self._reports: list[tuple[str, tuple[Any, ...]]] = []
        #: Tensors from outside whose values Python read, and the reasons for messages.
        self._reads: list[tuple[Tensor, str]] = []

    @property
    def matters(self) -> bool:
        """Whether tapes need to hear of it when the graph runs."""
        return bool(self.tensors or self._reads)

    def record_read(self, x: Tensor, site: Site, frame: FrameType, value: Any, held: bool) -> None:
        """Note that a value was read: what Python computes from it is a constant of the graph.

        Nobody can see which of the graph's results depend on it, so they all count, unless it is
        only stored, as for a log.
        """
        if not site.use and self.is_outside(x):
            self._reads.append((x, site.reason))

    def accessed(self, variable: Variable, read: Tensor) -> None:
        """Report a read inside a branch, which takes the variable as an input."""
        if self._around is not None:
            self._around.accessed_by_rule(variable, read)

    def symbol(self, x: Tensor) -> Symbol:
        symbol: Symbol = self.graph.adopt(x.array)
        if not self.is_outside(x):
            return symbol
        if self._around is not None and is_transformed(x.array):
            self._around.symbol(x)  # gradients of the branch's op reach this tensor
            return symbol
        known = self._symbols.get(x.id)
        if known is None:
            if symbol in self.tensors:  # another tensor of the same array
                symbol = self.graph.another_constant(x.array)
            known = self._symbols[x.id] = symbol
            self.tensors[symbol] = x
        return known

    def report_constants(self, recorders: Sequence[Recorder]) -> None:
        """Report to recorders how the constants were computed from tensors that they may follow."""
        for recorder in recorders:
            for method, arguments in self._reports:
                getattr(recorder, method)(*arguments)

    def report_lost_reads(
        self, outputs: Sequence[Tensor], recorders: Sequence[Recorder]
    ) -> list[Tensor]:
        """Return a graph's outputs, and tell recorders that they lack the part of what was read."""
        if not self._reads or not recorders:
            return list(outputs)
        found = [Tensor(y.array) for y in outputs]
        given = [*outputs, *(x for x, _ in self._reads)]
        for recorder in recorders:
            recorder.record_call("read", given, found, self._of_outputs)
            for i, (_, why) in enumerate(self._reads):
                recorder.record_lost(given, [len(found) + i], found, why)
        return found

    def _of_outputs(self, gs: list[Any], ended: Collection[int] = ()) -> list[Any]:
        """Return the gradients of the outputs, and none of what was read."""
        return [*gs, *[None] * len(self._reads)]

    def is_outside(self, x: Any) -> bool:
        if not super().is_outside(x):
            return False
        if is_transformed(x.array):  # a value of a trace or batch around the branch
            own = type(x.array) is Symbol and x.array.graph is self.graph
            return self._around is not None and not own and self._around.is_outside(x)
        return is_differentiable(x.dtype)

    def _computed(self, method: str, arguments: tuple[Any, ...], inputs: Sequence[Any]) -> bool:
        followed = any(map(self.is_outside, inputs))
        if followed:
            self._reports.append((method, arguments))
        return followed
