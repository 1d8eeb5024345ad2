"""Graphs and traced functions from JSON, checked step by step."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.extend import (
    BeyondOrder,
    ConcreteFunction,
    CustomGradient,
    Formula,
    Graph,
    NotSaved,
    Op,
    Output,
    Read,
    Refusal,
    Registry,
    SharedRule,
    Size,
    StoredRule,
    Symbol,
    TensorSpec,
    Variable,
    Written,
    contains_instance,
    evaluated,
    flatten,
    is_differentiable,
    shapes_differ,
    tracing_into,
    without_expressions,
)
from ..errors import DamagedFile, MissingOp, UnsafeFile
from ..records.graphs import (
    DEFAULT,
    CustomRecord,
    GraphRecord,
    OpRecord,
    RuleRecord,
    Scalar,
    TracedRecord,
    VariableNode,
)
from ..records.schema import MAX_AXES, MAX_NODES, MAX_RULES, at, decode, read_spec, tagged
from .contents import known_op

_SIZES: tuple[Any, ...] = (int, np.integer, Size)


class GraphReader:
    """Build concrete functions from their records.

    Every node is built as in tracing: the op must be registered, accept these inputs and
    parameters, and give the shapes and dtypes that the file claims. Nothing is run.
    """

    def __init__(
        self,
        registry: Registry,
        variables: Sequence[Variable],
        constant: Callable[[str], np.ndarray[Any, Any]],
    ) -> None:
        self._registry = registry
        self._variables = variables
        self._number = {variable: i for i, variable in enumerate(variables)}
        self._constant = constant
        self._axes = self._nodes = 0
        self._rules: dict[int, tuple[StoredRule, RuleRecord]] = {}
        self._shared: dict[int, tuple[SharedRule, RuleRecord]] = {}
        # the graphs inside ops, and those of them that were checked with all that they refer to
        self._inside: list[tuple[Graph, str]] = []
        self._checked: set[Graph] = set()
        self._rules_are_read = False
        #: Ops that have the rule of this process in a graph, which is not their owner's: by whom.
        self.replaced: dict[str, str] = {}
        self._elsewhere: dict[Op, str] = {}

    def read_rules(self, records: Sequence[Any], allow_missing: bool = False) -> None:
        """Read the gradient rules that nodes refer to by number; rules may refer to each other."""
        if len(records) > MAX_RULES:
            raise UnsafeFile(f"{len(records):,} gradient rules are more than a file may hold")
        for i, text in enumerate(records):
            record = RuleRecord.read(text, f"rule {i}")
            if record.is_shared:
                self._shared[i] = SharedRule(record.label), record
                continue
            try:
                self._rules[i] = _stored_rule(self._registry, record), record
            except MissingOp:  # no node can have the rule either
                if not allow_missing:
                    raise
        for stored, record in self._rules.values():
            try:
                graph = self._built(record.graph, None)
            except MissingOp as error:
                if not allow_missing:
                    raise
                stored.attach(None, (), str(error))
            else:
                _attach_rule(stored, graph, record)
        for shared, record in self._shared.values():
            try:
                shared.graph = _shared_graph(self._built(record.graph, None), record)
            except MissingOp as error:
                if not allow_missing:
                    raise
                shared.graph = Refusal(shared.label, record.where, str(error))
        for stored, _ in self._rules.values():
            stored.settle_batches()
        self._rules_are_read = True
        for inner, where in self._inside:
            self._check_inside(inner, where)

    def _with_rule(self, op: Op, node: OpRecord, inputs: Sequence[Any]) -> Op:
        """Return an op with the gradient rule that a node names."""
        if node.rule == DEFAULT:
            if op not in self._elsewhere:
                self._elsewhere[op] = self._registry.rules.replacer_of_rules(op)
                if self._elsewhere[op]:
                    self.replaced[op.name] = self._elsewhere[op]
            return op
        if node.rule is None:
            return _without_rule(op)
        if node.rule not in self._rules:
            raise DamagedFile(f"{node.where}: no rule {node.rule}")
        stored, record = self._rules[node.rule]
        if not _rule_fits(stored, record, op, inputs, node):
            raise DamagedFile(
                f"{node.where}: rule {node.rule} is not for op {op.name!r} with these inputs"
            )
        return stored.twin

    def function(self, text: Any, where: str) -> ConcreteFunction:
        """Return the concrete function of a trace's JSON."""
        record = TracedRecord.read(text, where)
        graph = self._built(record.graph, None)
        arguments = _tree(record.arguments, where, None)
        results = _tree(record.results, where, len(graph.outputs))
        if not (type(arguments) is tuple and [type(x) for x in arguments] == [tuple, dict]):
            raise DamagedFile(
                f"{where}: 'arguments' is not a pair of positional and keyword arguments"
            )
        concrete = ConcreteFunction(record.name, graph, arguments, results)
        if concrete.specs != record.graph.inputs:
            raise DamagedFile(f"{where}: the arguments do not fit the graph's inputs")
        places = range(len(graph.outputs))
        if record.added is not None:
            concrete.added = tuple(at(places, number, "output", where) for number in record.added)
            if any(graph.outputs[number].shape != () for number in concrete.added):
                raise DamagedFile(f"{where}: a term of the loss is not a scalar")
        if record.masks is not None:
            if len(record.masks) != len(flatten(results)):
                raise DamagedFile(f"{where}: {len(record.masks)} masks do not fit the results")
            concrete.masks = tuple(
                None if number is None else at(places, number, "output", where)
                for number in record.masks
            )
            kinds = {graph.outputs[x].dtype.kind for x in concrete.masks if x is not None}
            if kinds - {"b"}:
                raise DamagedFile(f"{where}: a mask does not hold booleans")
        return concrete

    def graph(self, text: Any, where: str, parent: Graph | None = None) -> Graph:
        """Return the graph of its JSON."""
        return self._built(GraphRecord.read(text, where), parent)

    def _built(self, record: GraphRecord, parent: Graph | None) -> Graph:
        """Return the graph of a record."""
        where = record.where
        graph = Graph(record.name, parent)
        values = [graph.input(spec) for spec in record.inputs]
        for dataset, spec in record.constants:
            array = self._constant(dataset)
            if array.shape != spec.shape or array.dtype != spec.dtype:
                raise DamagedFile(f"{where}: a constant is not the {spec} that the graph expects")
            values.append(Symbol(graph, spec.shape, spec.dtype))
            graph.constants[values[-1]] = array
        seen: set[Variable] = set()
        self._nodes += len(record.nodes)
        if self._nodes > MAX_NODES:
            raise UnsafeFile(f"its graphs have more than {MAX_NODES:,} nodes together")
        # once, and not for each node: shape rules may compute, and warn of what comes out
        with tracing_into(graph), warnings.catch_warnings(action="ignore"):
            for node in record.nodes:
                inputs = [
                    x.value if type(x) is Scalar else _value(values, x, node.where)
                    for x in node.inputs
                ]
                if type(node) is OpRecord:
                    values += self._op_node(graph, node, inputs)
                elif type(node) is CustomRecord:
                    values += self._custom(graph, node, inputs)
                elif type(node) is VariableNode:
                    values.append(self._variable_node(graph, node, inputs, seen))
        graph.outputs = [_value(values, i, where) for i in record.outputs]
        # the nodes decide which variables end with which value; the file must agree
        number = {symbol: i for i, symbol in enumerate(values)}
        expected = [[self._number[v], number[symbol]] for v, symbol in graph.updates.items()]
        if not all(
            type(pair) is list and [type(n) for n in pair] == [int, int] for pair in record.updates
        ) or sorted(record.updates) != sorted(expected):
            raise DamagedFile(f"{where}: 'updates' does not follow from the nodes")
        return graph

    def _op_node(self, graph: Graph, node: OpRecord, inputs: list[Any]) -> Sequence[Symbol]:
        name, where = node.op, node.where
        op = known_op(name)
        if op is None:
            raise MissingOp(f"{where}: no installed plugin provides the op {name[:80]!r}")
        params = {
            key: self._inner(node.graphs[key]) if key in node.graphs else decode(value, sizes=True)
            for key, value in node.params.items()
        }
        for x in inputs:
            if type(x) is Symbol:
                self._axes += len(x.shape or ())
        # of the work of all shape rules together: text refers to large shapes in few bytes
        if self._axes > MAX_AXES:
            raise UnsafeFile(f"the inputs of all ops together have more than {MAX_AXES:,} axes")
        inputs, params = _without_witnesses(inputs, params, node)
        fits = _needed(op) <= params.keys() <= op.defaults.keys() and _takes(op, len(inputs))
        if not fits or Symbol not in map(type, inputs):
            raise DamagedFile(
                f"{where}: op {name!r} does not take {len(inputs)} inputs with "
                f"{str(sorted(params))[:300]}"
            )
        ruled = self._with_rule(op, node, inputs)
        before = len(graph.nodes)
        try:
            result = graph.add(ruled, inputs, params)
        except Exception as error:  # shape rules are not written for untrusted parameters
            raise DamagedFile(
                f"{where}: op {name!r} refuses its inputs: {str(error)[:300]}"
            ) from None
        if len(graph.nodes) != before + 1:
            raise DamagedFile(f"{where}: op {name!r} does not make one step")
        outputs = result if isinstance(result, list) else [result]
        _check_sizes(outputs, f"{where}: op {name!r}")
        if [x.dtype for x in outputs] != [x.dtype for x in node.outputs] or any(
            shapes_differ(x.shape, y.shape) for x, y in zip(outputs, node.outputs, strict=True)
        ):
            raise DamagedFile(
                f"{where}: op {name!r} gives {', '.join(map(str, outputs[:4]))}, "
                f"the file says {', '.join(map(str, node.outputs[:4]))}"
            )
        return outputs

    def _inner(self, record: GraphRecord) -> Graph:
        """Return a graph inside an op."""
        inner = self._built(record, None)
        if self._rules_are_read:
            self._check_inside(inner, record.where)
        else:
            self._inside.append((inner, record.where))
        return inner

    def _check_inside(self, inner: Graph, where: str) -> None:
        """Refuse a graph inside an op if it, or a graph or rule in it, uses a variable."""
        waiting = [inner]
        while waiting:
            graph = waiting.pop()
            if graph in self._checked:
                continue
            self._checked.add(graph)
            if graph.updates or any(isinstance(node.op, Read) for node in graph.nodes):
                raise DamagedFile(f"{where}: a graph inside an op uses a variable directly")
            for node in graph.nodes:
                rule = getattr(node.op, "backward", None)
                inside = [rule.graph] if type(rule) is SharedRule else node.graphs
                waiting += [x for x in inside if isinstance(x, Graph)]

    def _variable_node(
        self, graph: Graph, node: VariableNode, inputs: list[Any], seen: set[Variable]
    ) -> Symbol:
        where = node.where
        variable = at(self._variables, node.number, "variable", where)
        if len(inputs) != (1 if node.kind == Written.name else 0):
            raise DamagedFile(f"{where}: wrong number of inputs")
        if node.kind == Read.name:
            # its value on entry: read once, and not after an assignment
            if variable in seen:
                raise DamagedFile(f"{where}: variable {node.number} is read twice")
            seen.add(variable)
            return graph.read(variable)
        value = inputs[0]
        if (
            type(value) is not Symbol
            or value.dtype != variable.dtype
            or shapes_differ(value.shape, variable.shape)
        ):
            raise DamagedFile(f"{where}: a value of another shape or dtype is assigned")
        if graph.parent is not None:
            raise DamagedFile(f"{where}: a gradient assigns a variable")
        seen.add(variable)
        graph.assign(variable, value)
        return graph.updates[variable]

    def _custom(self, graph: Graph, node: CustomRecord, inputs: list[Any]) -> Sequence[Symbol]:
        n, m = node.results, node.results + node.arguments
        connected = tuple(node.connected)
        saved, targets = inputs[m:], [x for x, c in zip(inputs[n:m], connected, strict=True) if c]
        rule = self._backward(graph, node, [*saved, *inputs[:n]], targets)
        if isinstance(rule, Graph):
            rule.captures = list(saved)
        kind = CustomGradient(node.label, n, node.arguments, rule, connected, tuple(node.lost))
        return graph.custom(kind, inputs[:n], inputs[n:m], saved)

    def _backward(
        self, graph: Graph, node: CustomRecord, given: list[Symbol], targets: list[Symbol]
    ) -> Graph | SharedRule | Refusal:
        """Return a custom gradient's rule, which fits what it receives and its targets."""
        place, record = node.where, node.backward
        if record is None:
            return BeyondOrder(node.label) if node.beyond else NotSaved(node.label)
        if type(record) is int:
            if record not in self._shared:
                raise DamagedFile(f"{place}: no rule {record} for custom gradients")
            rule: Graph | SharedRule = self._shared[record][0]
            inputs: Sequence[Any] = self._shared[record][1].inputs
            outputs: Sequence[Any] = self._shared[record][1].gradients
        else:
            assert isinstance(record, GraphRecord)
            rule = self._built(record, graph)
            inputs, outputs = rule.inputs, rule.outputs
        if [(without_expressions(x.shape), x.dtype) for x in inputs] != [
            (without_expressions(x.shape), x.dtype) for x in given
        ]:
            raise DamagedFile(f"{place}: the inputs of its gradient do not match the node")
        if len(outputs) != len(targets) or any(
            shapes_differ(g.shape, x.shape) or (g.dtype != x.dtype and is_differentiable(x.dtype))
            for g, x in zip(outputs, targets, strict=True)
        ):
            raise DamagedFile(f"{place}: the outputs of its gradient do not fit its arguments")
        return rule


def _tree(tree: Any, where: str, outputs: int | None) -> Any:
    """Return arguments (``outputs`` is None) or results, which hold indices of outputs."""
    if type(tree) is list:
        return [_tree(item, where, outputs) for item in tree]
    if type(tree) is not dict:
        return decode(tree)
    tag, content = tagged(tree, where)
    if tag == "spec" and outputs is None:
        return read_spec(content, where)
    if tag == "output" and outputs is not None:
        if type(content) is not int or not 0 <= content < outputs:
            raise DamagedFile(f"{where}: no output {str(content)[:40]!r}")
        return Output(content)
    if tag == "tuple" and type(content) is list:
        return tuple(_tree(item, where, outputs) for item in content)
    if tag == "dict" and type(content) is dict:
        return {key: _tree(item, where, outputs) for key, item in content.items()}
    return decode(tree)


def _value(values: Sequence[Symbol], index: Any, where: str) -> Symbol:
    if type(index) is not int or not 0 <= index < len(values):
        raise DamagedFile(f"{where}: value {str(index)[:40]} is used before it is made")
    return values[index]


@lru_cache(1024)
def _needed(op: Op) -> frozenset[str]:
    """Return the required parameters of an op."""
    return frozenset(k for k, value in op.defaults.items() if value is inspect.Parameter.empty)


@lru_cache(1024)
def _takes(op: Op, count: int) -> bool:
    fixed = sum(not name.startswith("*") for name in op.inputs)
    return count >= fixed if op.variadic else count == fixed


# -- gradient rules --------------------------------------------------------------------------------


def _stored_rule(registry: Registry, record: RuleRecord) -> StoredRule:
    """Return what a rule's record is for; its graph is built later."""
    where, name = record.where, record.label
    op = registry.find(name)
    if op is None:
        raise MissingOp(f"{where}: no installed plugin provides the op {name[:80]!r}")
    inputs = [x.value if type(x) is Scalar else x for x in record.inputs]
    params = {k: decode(v) for k, v in record.params.items()}
    outputs, apart = record.outputs, record.apart
    if not outputs or (apart and (len(outputs) > 1 or len(inputs) != len(op.inputs))):
        raise DamagedFile(f"{where}: it does not fit op {name!r}")
    return StoredRule(op, inputs, outputs, params, apart)


def _attach_rule(stored: StoredRule, graph: Graph, record: RuleRecord) -> None:
    """Attach a rule's graph, if its inputs and outputs are those of a gradient rule."""
    where, connected = record.where, record.connected
    given = [stored.inputs[i] for i in stored.places]
    expected = [*given, *stored.outputs, *stored.outputs]
    if [(without_expressions(x.shape), x.dtype) for x in graph.inputs] != [
        (x.shape, x.dtype) for x in expected
    ]:
        raise DamagedFile(f"{where}: the inputs of its graph do not match the rule")
    if (
        len(connected) != len(stored.inputs)
        or any(type(x) is not bool for x in connected)
        or any(c and i not in stored.places for i, c in enumerate(connected))
    ):
        raise DamagedFile(f"{where}: 'connected' does not fit its inputs")
    targets = [x for x, c in zip(stored.inputs, connected, strict=True) if c]
    if graph.updates or len(graph.outputs) != len(targets):
        raise DamagedFile(f"{where}: its graph does not give the gradients of its inputs")
    # they are summed to the input's shape afterwards
    whole = stored.by_input and stored.op.broadcasts
    for g, x in zip(graph.outputs, targets, strict=True):
        shape = stored.outputs[0].shape if whole else x.shape
        if shapes_differ(g.shape, shape) or not is_differentiable(g.dtype):
            raise DamagedFile(f"{where}: a gradient is {g}, of an input that is {x}")
    stored.attach(graph, connected)


def _shared_graph(graph: Graph, record: RuleRecord) -> Graph:
    """Return the graph of a rule that custom gradients share, if it is what the record says."""
    if graph.updates:
        raise DamagedFile(f"{record.where}: a gradient assigns a variable")
    if len(graph.outputs) != len(record.gradients) or any(
        x.dtype != spec.dtype or shapes_differ(x.shape, spec.shape)
        for x, spec in zip(graph.outputs, record.gradients, strict=True)
    ):
        raise DamagedFile(f"{record.where}: its graph does not give the gradients that it declares")
    return graph


def _rule_fits(
    stored: StoredRule, record: RuleRecord, op: Op, inputs: Sequence[Any], node: OpRecord
) -> bool:
    """Return whether a rule was made for an op's inputs and parameters in a node."""
    return (
        stored.op is op
        and len(inputs) == len(stored.inputs)
        and node.witnesses is None
        and record.params == node.params
        and all(_is_like(x, want) for x, want in zip(inputs, stored.inputs, strict=True))
    )


def _is_like(x: Any, want: Any) -> bool:
    if type(x) is not Symbol:
        return type(x) is type(want) and repr(x) == repr(want)
    return (
        isinstance(want, TensorSpec)
        and x.dtype == want.dtype
        and not shapes_differ(x.shape, want.shape)
    )


def _without_rule(op: Op) -> Op:
    """Return an op whose gradient was replaced when the file was saved, but not stored."""
    absent = StoredRule(op, [], [], {}, by_input=False)
    absent.attach(None, [])
    return absent.twin


# -- sizes -----------------------------------------------------------------------------------------


def _without_witnesses(
    inputs: list[Any], params: dict[str, Any], node: OpRecord
) -> tuple[list[Any], dict[str, Any]]:
    """Return an op's inputs, and its parameters with sizes instead of formulas."""
    if node.witnesses is None and not contains_instance(params, Formula):
        return inputs, params
    kept = len(inputs) - (node.witnesses or 0)
    if not 0 <= kept <= len(inputs) or any(type(x) is not Symbol for x in inputs[kept:]):
        raise DamagedFile(f"{node.where}: 'witnesses' does not fit the inputs")
    witnesses = inputs[kept:]
    try:
        found = evaluated(
            params, [x.shape for x in witnesses], lambda k: witnesses[k].as_size("a size")
        )
    except Exception as error:  # any error of an untrusted expression
        raise DamagedFile(f"{node.where}: {error}") from None
    return inputs[:kept], found


def _check_sizes(outputs: Sequence[Symbol], where: str) -> None:
    """Refuse shapes with entries that are not sizes, or are below 0 in every run."""
    shapes: list[Any] = [() if x.shape is None else x.shape for x in outputs]
    checked: set[int] = set()  # many parts of one array have the same unknown sizes
    for shape in shapes:
        if not isinstance(shape, tuple):  # a rule passed on what a file says is a shape
            raise DamagedFile(f"{where}: not a shape: {str(shape)[:80]}")
        for n in shape:
            if id(n) in checked:
                continue
            checked.add(id(n))
            if type(n) is bool or not isinstance(n, _SIZES) or (n < 0) is True:
                raise DamagedFile(f"{where}: not a size: {str(n)[:80]}")
