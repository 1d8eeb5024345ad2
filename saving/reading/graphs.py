"""Graphs and traced functions from JSON, checked step by step."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.extend import (
    SCALARS,
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
    blunt,
    evaluated,
    flatten,
    holds,
    is_differentiable,
    shapes_differ,
    tracing_into,
)
from ..errors import DamagedFile, MissingOp, UnsafeFile
from ..records.schema import (
    MAX_AXES,
    MAX_NODES,
    MAX_RULES,
    at,
    decode,
    tagged,
    take,
    take_label,
)
from ..records.specs import read_spec
from .contents import known_op


class DeclaredRule:
    """A rule that custom gradients share, whose graph is read after nodes that refer to it.

    Attributes
    ----------
    rule
        The rule. Its graph is attached later.
    record
        Its JSON.
    inputs, gradients
        The specs of what its graph receives and returns.
    """

    def __init__(self, record: Any, where: str) -> None:
        self.rule = SharedRule(take_label(record, "custom_gradient", where))
        self.record = record
        graph = take(record, "graph", dict, where)
        self.inputs = [read_spec(x, where) for x in take(graph, "inputs", list, where)]
        self.gradients = [read_spec(x, where) for x in take(record, "gradients", list, where)]

    def attach(self, graph: Graph, where: str) -> None:
        """Attach its graph, if this is what the record says."""
        if graph.updates:
            raise DamagedFile(f"{where}: a gradient assigns a variable")
        if len(graph.outputs) != len(self.gradients) or any(
            x.dtype != spec.dtype or shapes_differ(x.shape, spec.shape)
            for x, spec in zip(graph.outputs, self.gradients, strict=True)
        ):
            raise DamagedFile(f"{where}: its graph does not give the gradients that it declares")
        self.rule.graph = graph


def stored_rule(registry: Registry, record: Any, where: str) -> StoredRule:
    """Return what a rule's record is for; its graph is read later."""
    name = take(record, "op", str, where)
    op = registry.find(name)
    if op is None:
        raise MissingOp(f"{where}: no installed plugin provides the op {name[:80]!r}")
    inputs = [
        decode(take(x, "scalar", (bool, int, dict), where))
        if type(x) is dict and "scalar" in x
        else read_spec(x, where)
        for x in take(record, "inputs", list, where)
    ]
    outputs = [read_spec(x, where) for x in take(record, "outputs", list, where)]
    params = {k: decode(v) for k, v in take(record, "params", dict, where).items()}
    apart = take(record, "apart", bool, where)
    if not outputs or (apart and (len(outputs) > 1 or len(inputs) != len(op.inputs))):
        raise DamagedFile(f"{where}: it does not fit op {name!r}")
    return StoredRule(op, inputs, outputs, params, apart)


def attach_rule(stored: StoredRule, graph: Graph, record: Any, where: str) -> None:
    """Attach a rule's graph, if its inputs and outputs are those of a gradient rule."""
    connected = take(record, "connected", list, where)
    given = [stored.inputs[i] for i in stored.places]
    expected = [*given, *stored.outputs, *stored.outputs]
    if [(blunt(x.shape), x.dtype) for x in graph.inputs] != [(x.shape, x.dtype) for x in expected]:
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
    whole = stored.apart and stored.op.broadcasts  # they are summed to the input's shape afterwards
    for g, x in zip(graph.outputs, targets, strict=True):
        shape = stored.outputs[0].shape if whole else x.shape
        if shapes_differ(g.shape, shape) or not is_differentiable(g.dtype):
            raise DamagedFile(f"{where}: a gradient is {g}, of an input that is {x}")
    stored.attach(graph, connected)


def rule_fits(stored: StoredRule, record: Any, op: Op, inputs: Sequence[Any], item: Any) -> bool:
    """Return whether a rule was made for an op's inputs and parameters in a node."""
    return (
        stored.op is op
        and len(inputs) == len(stored.inputs)
        and "witnesses" not in item
        and record["params"] == item["params"]
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


def without_rule(op: Op) -> Op:
    """Return an op whose gradient was replaced when the file was saved, but not stored."""
    absent = StoredRule(op, [], [], {}, apart=False)
    absent.attach(None, [])
    return absent.twin


_SIZES: tuple[Any, ...] = (int, np.integer, Size)


def without_witnesses(
    inputs: list[Any], params: dict[str, Any], item: Any, where: str
) -> tuple[list[Any], dict[str, Any]]:
    """Return an op's inputs, and its parameters with sizes instead of formulas."""
    if "witnesses" not in item and not holds(params, Formula):
        return inputs, params
    count = take(item, "witnesses", int, where) if "witnesses" in item else 0
    kept = len(inputs) - count
    if not 0 <= count <= len(inputs) or any(type(x) is not Symbol for x in inputs[kept:]):
        raise DamagedFile(f"{where}: 'witnesses' does not fit the inputs")
    witnesses = inputs[kept:]
    try:
        found = evaluated(
            params, [x.shape for x in witnesses], lambda k: witnesses[k].as_size("a size")
        )
    except Exception as error:  # any error of an untrusted expression
        raise DamagedFile(f"{where}: {error}") from None
    return inputs[:kept], found


def check_sizes(outputs: Sequence[Symbol], where: str) -> None:
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


# How numbers are encoded: as JSON's own, or tagged.
_SCALAR_RECORDS = (bool, int, dict)


class GraphReader:
    """Build concrete functions from JSON.

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
        self._rules: dict[int, tuple[StoredRule, dict[str, Any]]] = {}
        self._shared: dict[int, DeclaredRule] = {}
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
        for i, record in enumerate(records):
            if type(record) is dict and "custom_gradient" in record:
                self._shared[i] = DeclaredRule(record, f"rule {i}")
                continue
            try:
                stored = stored_rule(self._registry, record, f"rule {i}")
            except MissingOp:  # no node can have the rule either
                if not allow_missing:
                    raise
            else:
                self._rules[i] = stored, record
        for i, (stored, record) in self._rules.items():
            where = f"rule {i}"
            try:
                graph = self.graph(take(record, "graph", dict, where), where, None)
            except MissingOp as error:
                if not allow_missing:
                    raise
                stored.attach(None, (), str(error))
            else:
                attach_rule(stored, graph, record, where)
        for i, declared in self._shared.items():
            where = f"rule {i}"
            try:
                declared.attach(self.graph(declared.record["graph"], where, None), where)
            except MissingOp as error:
                if not allow_missing:
                    raise
                declared.rule.graph = Refusal(declared.rule.label, where, str(error))
        for stored, _ in self._rules.values():
            stored.settle_batches()
        self._rules_are_read = True
        for inner, where in self._inside:
            self._check_inside(inner, where)

    def _with_rule(self, op: Op, item: Any, inputs: Sequence[Any], where: str) -> Op:
        """Return an op with the gradient rule that a node names."""
        if "rule" not in item:
            if op not in self._elsewhere:
                self._elsewhere[op] = self._registry.rules.from_elsewhere(op)
                if self._elsewhere[op]:
                    self.replaced[op.name] = self._elsewhere[op]
            return op
        number = take(item, "rule", (int, type(None)), where)
        if number is None:
            return without_rule(op)
        if number not in self._rules:
            raise DamagedFile(f"{where}: no rule {number}")
        stored, record = self._rules[number]
        if not rule_fits(stored, record, op, inputs, item):
            raise DamagedFile(f"{where}: rule {number} is not for op {op.name!r} with these inputs")
        return stored.twin

    def function(self, record: Any, where: str) -> ConcreteFunction:
        """Return the concrete function of a JSON record."""
        name = take_label(record, "name", where)
        graph = self.graph(take(record, "graph", dict, where), where, None)
        arguments = self._tree(record.get("arguments"), where, None)
        results = self._tree(record.get("results"), where, len(graph.outputs))
        if not (type(arguments) is tuple and [type(x) for x in arguments] == [tuple, dict]):
            raise DamagedFile(
                f"{where}: 'arguments' is not a pair of positional and keyword arguments"
            )
        concrete = ConcreteFunction(name, graph, arguments, results)
        inputs = take(record["graph"], "inputs", list, where)
        if concrete.specs != [read_spec(x, where) for x in inputs]:
            raise DamagedFile(f"{where}: the arguments do not fit the graph's inputs")
        places = range(len(graph.outputs))
        if "added" in record:
            added = take(record, "added", list, where)
            concrete.added = tuple(at(places, number, "output", where) for number in added)
            if any(graph.outputs[number].shape != () for number in concrete.added):
                raise DamagedFile(f"{where}: a term of the loss is not a scalar")
        if "masks" in record:
            masks = take(record, "masks", list, where)
            if len(masks) != len(flatten(results)):
                raise DamagedFile(f"{where}: {len(masks)} masks do not fit the results")
            concrete.masks = tuple(
                None if number is None else at(places, number, "output", where) for number in masks
            )
            kinds = {graph.outputs[x].dtype.kind for x in concrete.masks if x is not None}
            if kinds - {"b"}:
                raise DamagedFile(f"{where}: a mask does not hold booleans")
        return concrete

    def _tree(self, tree: Any, where: str, outputs: int | None) -> Any:
        """Return arguments (``outputs`` is None) or results, which hold indices of outputs."""
        if type(tree) is list:
            return [self._tree(item, where, outputs) for item in tree]
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
            return tuple(self._tree(item, where, outputs) for item in content)
        if tag == "dict" and type(content) is dict:
            return {key: self._tree(item, where, outputs) for key, item in content.items()}
        return decode(tree)

    def graph(self, record: Any, where: str, parent: Graph | None) -> Graph:
        """Return the graph of a JSON record."""
        graph = Graph(take_label(record, "name", where), parent)
        inputs, constants = (
            take(record, "inputs", list, where),
            take(record, "constants", list, where),
        )
        values = [graph.input(read_spec(item, where)) for item in inputs]
        values += [self._read_constant(graph, item, where) for item in constants]
        seen: set[Variable] = set()
        nodes = take(record, "nodes", list, where)
        self._nodes += len(nodes)
        if self._nodes > MAX_NODES:
            raise UnsafeFile(f"its graphs have more than {MAX_NODES:,} nodes together")
        # once, and not for each node: shape rules may compute, and warn of what comes out
        with tracing_into(graph), warnings.catch_warnings(action="ignore"):
            for i, item in enumerate(nodes):
                values += self._node(graph, item, values, seen, f"{where}: node {i}")
        graph.outputs = [_value(values, i, where) for i in take(record, "outputs", list, where)]
        # the nodes decide which variables end with which value; the file must agree
        number = {symbol: i for i, symbol in enumerate(values)}
        expected = [[self._number[v], number[symbol]] for v, symbol in graph.updates.items()]
        updates = take(record, "updates", list, where)
        if not all(
            type(pair) is list and [type(n) for n in pair] == [int, int] for pair in updates
        ) or sorted(updates) != sorted(expected):
            raise DamagedFile(f"{where}: 'updates' does not follow from the nodes")
        return graph

    def _read_constant(self, graph: Graph, item: Any, where: str) -> Symbol:
        array = self._constant(take(item, "dataset", str, where))
        spec = read_spec({**item, "name": None}, where)
        if array.shape != spec.shape or array.dtype != spec.dtype:
            raise DamagedFile(f"{where}: a constant is not the {spec} that the graph expects")
        symbol = Symbol(graph, spec.shape, spec.dtype)
        graph.constants[symbol] = array
        return symbol

    def _node(
        self, graph: Graph, item: Any, values: Sequence[Symbol], seen: set[Variable], where: str
    ) -> Sequence[Symbol]:
        inputs = [
            decode(take(x, "scalar", _SCALAR_RECORDS, where))
            if type(x) is dict
            else _value(values, x, where)
            for x in take(item, "inputs", list, where)
        ]
        for x in inputs:
            if type(x) is not Symbol and type(x) not in SCALARS:
                raise DamagedFile(f"{where}: an input is neither a value nor a number")
        kinds = [key for key in ("op", "custom_gradient", "read", "written") if key in item]
        if len(kinds) != 1:
            raise DamagedFile(f"{where} has no single kind: {kinds}")
        if kinds == ["op"]:
            return self._op_node(graph, item, inputs, where)
        if kinds == ["custom_gradient"]:
            return self._custom(graph, item, inputs, where)
        kind = Read if kinds == ["read"] else Written
        return [self._variable_node(graph, kind, item, inputs, seen, where)]

    def _op_node(self, graph: Graph, item: Any, inputs: list[Any], where: str) -> Sequence[Symbol]:
        name = take(item, "op", str, where)
        op = known_op(name)
        if op is None:
            raise MissingOp(f"{where}: no installed plugin provides the op {name[:80]!r}")
        params = {
            key: self._param(value, f"{where}: {key[:40]!r}")
            for key, value in take(item, "params", dict, where).items()
        }
        self._count_axes(inputs)
        inputs, params = without_witnesses(inputs, params, item, where)
        fits = _needed(op) <= params.keys() <= op.defaults.keys() and _takes(op, len(inputs))
        if not fits or Symbol not in map(type, inputs):
            raise DamagedFile(
                f"{where}: op {name!r} does not take {len(inputs)} inputs with "
                f"{str(sorted(params))[:300]}"
            )
        claimed = [read_spec(x, where) for x in take(item, "outputs", list, where)]
        ruled = self._with_rule(op, item, inputs, where)
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
        check_sizes(outputs, f"{where}: op {name!r}")
        if [x.dtype for x in outputs] != [x.dtype for x in claimed] or any(
            shapes_differ(x.shape, y.shape) for x, y in zip(outputs, claimed, strict=True)
        ):
            raise DamagedFile(
                f"{where}: op {name!r} gives {', '.join(map(str, outputs[:4]))}, "
                f"the file says {', '.join(map(str, claimed[:4]))}"
            )
        return outputs

    def _count_axes(self, inputs: list[Any]) -> None:
        """Limit the work of all shape rules together: text refers to large shapes in few bytes."""
        for x in inputs:
            if type(x) is Symbol:
                self._axes += len(x.shape or ())
        if self._axes > MAX_AXES:
            raise UnsafeFile(f"the inputs of all ops together have more than {MAX_AXES:,} axes")

    def _param(self, value: Any, where: str) -> Any:
        if type(value) is dict and set(value) == {"graph"}:
            inner = self.graph(take(value, "graph", dict, where), where, None)
            if self._rules_are_read:
                self._check_inside(inner, where)
            else:
                self._inside.append((inner, where))
            return inner
        return decode(value, sizes=True)

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
        self,
        graph: Graph,
        kind: type[Read],
        item: Any,
        inputs: list[Any],
        seen: set[Variable],
        where: str,
    ) -> Symbol:
        index = take(item, kind.name, int, where)
        variable = at(self._variables, index, "variable", where)
        if len(inputs) != (1 if kind is Written else 0):
            raise DamagedFile(f"{where}: wrong number of inputs")
        if kind is Read:
            # its value on entry: read once, and not after an assignment
            if variable in seen:
                raise DamagedFile(f"{where}: variable {index} is read twice")
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

    def _custom(self, graph: Graph, item: Any, inputs: list[Any], where: str) -> Sequence[Symbol]:
        label = take_label(item, "custom_gradient", where)
        results, arguments = take(item, "results", int, where), take(item, "arguments", int, where)
        connected = take(item, "connected", list, where)
        place = f"{where}: custom gradient {label[:80]!r}"
        if (
            not 0 < results <= len(inputs)
            or not 0 <= arguments <= len(inputs) - results
            or len(connected) != arguments
            or any(type(x) is not bool for x in connected)
            or any(type(x) is not Symbol for x in inputs)
        ):
            raise DamagedFile(f"{place}: the counts do not fit")
        n, m = results, results + arguments
        lost = take(item, "lost", list, where) if "lost" in item else []
        if any(type(i) is not int or not 0 <= i < arguments or connected[i] for i in lost):
            raise DamagedFile(f"{place}: 'lost' does not fit its arguments")
        saved, targets = inputs[m:], [x for x, c in zip(inputs[n:m], connected, strict=True) if c]
        rule = self._backward(graph, item, label, [*saved, *inputs[:n]], targets, place)
        if isinstance(rule, Graph):
            rule.captures = list(saved)
        kind = CustomGradient(label, results, arguments, rule, tuple(connected), tuple(lost))
        return graph.custom(kind, inputs[:n], inputs[n:m], saved)

    def _backward(
        self,
        graph: Graph,
        item: Any,
        label: str,
        given: list[Symbol],
        targets: list[Symbol],
        place: str,
    ) -> Graph | SharedRule | Refusal:
        """Return a custom gradient's rule, which fits what it receives and its targets."""
        record = take(item, "backward", (dict, int, type(None)), place)
        if record is None:
            beyond = "beyond" in item and take(item, "beyond", bool, place)
            return BeyondOrder(label) if beyond else NotSaved(label)
        if type(record) is int:
            declared = self._shared.get(record)
            if declared is None:
                raise DamagedFile(f"{place}: no rule {record} for custom gradients")
            inputs: Sequence[Any] = declared.inputs
            outputs: Sequence[Any] = declared.gradients
            rule: Graph | SharedRule = declared.rule
        else:
            rule = self.graph(record, place, graph)
            inputs, outputs = rule.inputs, rule.outputs
        if [(blunt(x.shape), x.dtype) for x in inputs] != [
            (blunt(x.shape), x.dtype) for x in given
        ]:
            raise DamagedFile(f"{place}: the inputs of its gradient do not match the node")
        if len(outputs) != len(targets) or any(
            shapes_differ(g.shape, x.shape) or (g.dtype != x.dtype and is_differentiable(x.dtype))
            for g, x in zip(outputs, targets, strict=True)
        ):
            raise DamagedFile(f"{place}: the outputs of its gradient do not fit its arguments")
        return rule


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
