"""Gradient rules as graphs: how a file stores a rule that its reader does not have.

A node's op is then a twin of the registered one, whose rules run a graph. Nodes in that graph may
use the same twin, so a rule that uses its own op is stored to every order.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ..base.array_types import TensorSpec
from ..base.context import tracing_into
from ..base.dtypes import is_differentiable
from ..errors import GradientError, TraceError
from ..ops.dispatch import is_transformed
from ..ops.rule import Composed, Rule
from ..tensors.convert import as_tensor
from ..tensors.op import Op
from ..tensors.tensor import Tensor
from .capture import Closure
from .executors import compiled
from .graph import Graph
from .nodes import Node, Symbol
from .optimize import prune
from .replay import replay

_NOT_KEPT = (
    "its gradient rule, or one that it uses, was replaced before the file was saved, and the file "
    "does not keep it (to this order)"
)
_ONE_EXAMPLE = (
    "the gradient rule in its file is for one example; inside gradtape.function, take the "
    "gradient inside vmap"
)


class StoredRule:
    """The gradient rule of one op for inputs of one kind, as a graph.

    Parameters
    ----------
    op
        The registered op.
    inputs
        The op's inputs: a spec for each array, and Python numbers.
    outputs
        A spec for each result.
    params
        The op's parameters.
    by_input
        Whether each input has a separate rule; otherwise, one rule serves all.

    Attributes
    ----------
    graph
        Takes the arrays among the inputs, the outputs and the upstream gradients. Returns a
        gradient for each connected input. None if it was not stored.
    connected
        For each input, whether it has a gradient.
    twin
        The op with this rule.
    """

    def __init__(
        self,
        op: Any,  # an Op; the registry has them as Primitive
        inputs: Sequence[Any],
        outputs: Sequence[TensorSpec],
        params: dict[str, Any],
        by_input: bool,
    ) -> None:
        self.op = op
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.params = params
        self.by_input = by_input
        self.graph: Graph | None = None
        self.why = ""
        self.connected: Sequence[bool] = (True,) * len(self.inputs)
        self.places = [i for i, x in enumerate(inputs) if isinstance(x, TensorSpec)]
        self.twin = op.twin(self)
        self._single: dict[int, tuple[Graph, list[int]]] = {}

    def attach(self, graph: Graph | None, connected: Sequence[bool], why: str = "") -> None:
        """Set the rule; without one, computing a gradient raises an error that says ``why``."""
        self.graph, self.connected, self.why = graph, tuple(connected), why
        twin = self.twin
        twin.vjp = None
        twin.rules = None
        if graph is None:

            def refuse(*args: Any, **params: Any) -> Any:
                raise GradientError(f"op {self.op.name!r}: {why or _NOT_KEPT}")

            twin.vjp = twin.jvp = refuse
        elif self.by_input:
            twin.rules = tuple(
                _InputRule(self, i) if wanted else None for i, wanted in enumerate(connected)
            )
        elif any(connected):
            twin.vjp = self._pull

    def settle_batches(self) -> None:
        """Choose how the op runs on batches, after all rules that this one uses are attached.

        A tape inside ``vmap`` runs the rule for one example. A tape around a trace of ``vmap``
        would run it on arrays of another rank, which not every traced rule accepts.
        """
        if not _is_pointwise(self):
            self._of_one_example()

    def _of_one_example(self) -> None:
        whole = StoredRule(self.op, self.inputs, self.outputs, self.params, by_input=False)
        whole.attach(None, self.connected, _ONE_EXAMPLE)
        self.twin.batch = Composed(whole.twin.raw)

    def __deepcopy__(self, memo: dict[int, Any]) -> StoredRule:
        copied = StoredRule(self.op, self.inputs, self.outputs, self.params, self.by_input)
        memo[id(self)] = copied  # before its graph, which may refer to it
        copied.attach(copy.deepcopy(self.graph, memo), self.connected, self.why)
        if self.twin.batch is not self.op.batch:
            copied._of_one_example()
        return copied

    def _pull(
        self, gs: Any, inputs: Sequence[Any], outputs: Sequence[Any], needed: Any, **params: Any
    ) -> list[Any]:
        assert self.graph is not None
        given = [inputs[i] for i in self.places]
        found = iter(_run(self.graph, [*given, *outputs, *gs]))
        return [next(found) if wanted else None for wanted in self.connected]

    def for_input(self, i: int) -> tuple[Graph, list[int]]:
        """Return the graph of the gradient of input ``i``, and which of its inputs it reads."""
        found = self._single.get(i)
        if found is None:
            assert self.graph is not None
            graph = Graph(self.graph.name)
            graph.inputs = list(self.graph.inputs)
            graph.constants, graph.nodes = dict(self.graph.constants), list(self.graph.nodes)
            graph.homes = self.graph.homes
            graph.outputs = [self.graph.outputs[sum(self.connected[:i])]]
            prune(graph)
            read = {x for node in graph.nodes for x in node.inputs} | set(graph.outputs)
            used = [k for k, x in enumerate(graph.inputs[:-1]) if x in read]
            graph.inputs = [*(graph.inputs[k] for k in used), graph.inputs[-1]]
            found = self._single[i] = graph, used
        return found


class _InputRule(Rule):
    """The rule of one input, run from a graph."""

    __slots__ = ()

    def __init__(self, stored: StoredRule, i: int) -> None:
        count = len(stored.places)

        def pick(values: tuple[Any, ...]) -> tuple[Any, ...]:
            _, used = stored.for_input(i)
            return tuple([values[stored.places[k] if k < count else -1] for k in used])

        def fn(g: Any, *values: Any) -> Any:
            graph, _ = stored.for_input(i)
            return _run(graph, [*values, g])[0]

        self.fn = self.fn_complex = fn
        self.broadcasts = stored.op.broadcasts
        self.checked = True
        self.keywords = ()
        self.pick = pick
        self.single = self.quick = self.check = None
        self.plain = fn, pick, None


def _run(graph: Graph, given: Sequence[Any]) -> list[Any]:
    """Run a rule on tensors, for recorders to see, or on arrays."""
    if any(type(x) is Tensor for x in given):
        return replay(graph, [as_tensor(x) for x in given])
    if any(is_transformed(x) for x in given):
        return [y.array for y in replay(graph, [Tensor(x) for x in given])]
    return compiled(graph)(given)


def _is_pointwise(stored: StoredRule) -> bool:
    """Return whether a rule computes each element separately, so that it takes any rank."""
    seen = {stored: None}
    waiting = [stored]
    while waiting:
        rule = waiting.pop()
        if rule.graph is None:
            continue
        if rule.op.batch != "elementwise" or any(x.shape != () for x in rule.graph.constants):
            return False
        for node in rule.graph.nodes:
            op = node.op
            if not isinstance(op, Op) or node.graphs or node.witnesses:
                return False
            if not op.original.pointwise:
                return False
            if op.stored is not None and op.stored not in seen:
                seen[op.stored] = None
                waiting.append(op.stored)
    return True


def trace_rule(node: Node) -> StoredRule:
    """Trace the current gradient rule of a node's op.

    Raises
    ------
    Exception
        What the rule raises if it cannot be traced.
    """
    op = node.op
    assert isinstance(op, Op)
    names: dict[Any, str] = {}
    inputs = [_spec(x, names) for x in node.inputs]
    outputs = [_spec(x, names) for x in node.outputs]
    count = len(node.inputs) - node.witnesses
    stored = StoredRule(
        op.original, inputs[:count], outputs, node.params, by_input=op.rules is not None
    )
    graph = Graph(f"{op.name}_gradient")
    closure = Closure(graph)
    with tracing_into(graph, closure):
        given = [Tensor(graph.input(x)) if isinstance(x, TensorSpec) else x for x in inputs]
        results = [Tensor(graph.input(x)) for x in outputs]
        upstream = [Tensor(graph.input(x)) for x in outputs]
        values, params = node.settled(given)
        settings = {**op.defaults, **params}
        needed = tuple(type(x) is Tensor and is_differentiable(x.dtype) for x in values)
        if op.rules is not None:
            found: list[Any] = [
                rule.apply(upstream[0], (*values, results[0]), settings, _is_complex(results[0]))
                if wanted and rule is not None
                else None
                for rule, wanted in zip(op.rules, needed, strict=True)
            ]
        elif op.vjp is not None:
            found = list(op.vjp(upstream, tuple(values), tuple(results), needed, **settings))
        else:
            found = [None] * len(values)
        found = [
            None if g is None or not wanted else as_tensor(g)
            for g, wanted in zip(found, needed, strict=True)
        ]
        graph.outputs = [closure.symbol(g) for g in found if g is not None]
    if graph.updates:
        (variable, *_) = graph.updates
        raise TraceError(f"it assigns the variable {variable.name!r}")
    prune(graph)
    stored.attach(graph, [g is not None for g in found])
    return stored


def _is_complex(x: Tensor) -> bool:
    return bool(x.dtype.kind == "c")


def _spec(x: Any, names: dict[Any, str]) -> Any:
    """Return a spec in which equal sizes have one name."""
    if type(x) is not Symbol:
        return x
    if x.shape is None:
        return TensorSpec(None, x.dtype)
    sizes = [n if type(n) is int else names.setdefault(n.key, f"n{len(names)}") for n in x.shape]
    return TensorSpec(sizes, x.dtype)
