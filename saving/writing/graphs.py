"""Graphs and traced functions as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.extend import (
    BeyondOrder,
    ConcreteFunction,
    CustomGradient,
    Graph,
    Node,
    Op,
    Output,
    Read,
    Refusal,
    SharedRule,
    StoredRule,
    Symbol,
    TensorSpec,
    Variable,
    is_differentiable,
    line_of,
    nodes_within,
    registry,
    to_numpy,
    trace_rule,
)
from ..errors import SaveError, UntraceableGradient
from ..records.graphs import DEFAULT
from ..records.schema import MAX_NODES, MAX_RULES, encode, spec_record

# Gradients of how many orders a file keeps where rules use other inputs at each order.
_ORDERS = 4
# How far rules of rules are followed to see whether they use an op with another rule.
_FAR = 8
# Backward passes and loops apply these themselves, in addition to the rules.
_OF_PASSES = frozenset({"add", "identity", "stack", "unbroadcast_like", "unstack", "zeros_like"})


class _Entry:
    """The rule of an op for inputs of one kind."""

    def __init__(self, key: Any, node: Node, stored: StoredRule | None, elsewhere: str) -> None:
        self.key = key
        self.name = node.op.name
        self.stored = stored
        self.elsewhere = elsewhere  # who replaced it
        graph = None if stored is None else stored.graph
        self.nodes = [] if graph is None else [*op_nodes(graph)]
        self.number: int | None = None


class KeptRules:
    """The gradient rules that go into a file.

    Parameters
    ----------
    keep
        Whether to store rules; without them, functions have no gradients through such ops.
    """

    def __init__(self, keep: bool) -> None:
        self._keep = keep
        known = registry()
        self.active = not all(
            op.has_own_forward_rule and not known.rules.replacer_of_rules(op)
            for op in known.ops.values()
        )
        self._entries: dict[Any, _Entry] = {}
        self._differs: dict[Any, bool] = {}
        self._kept: list[tuple[StoredRule | SharedRule, str]] = []
        self._shared: dict[SharedRule, int] = {}
        self._order = 1

    def number(self, node: Node, where: str) -> int | None:
        """Return the number of the rule that a node has in the file.

        Returns
        -------
        int or None
            ``DEFAULT`` for a node with the rule that every reader has; None if the rule is not
            kept.

        Raises
        ------
        SaveError
            If the rule cannot be stored.
        """
        if not self.differs(node, where):
            return DEFAULT
        entry = self._entries[_key(node)]
        stored = entry.stored
        if not self._keep or stored is None or stored.graph is None:
            return None
        if node.witnesses:
            raise SaveError(
                f"{where}: the gradient of op {entry.name!r} uses a rule that was replaced here, "
                "and its parameters are computed from sizes: such a rule cannot be stored. Give "
                "the sizes in an input_signature, or write a gradtape.custom_gradient"
            )
        if entry.number is None and self._order <= _ORDERS:
            entry.number = self._keep_one(stored, f"the gradient rule of op {entry.name!r}", where)
        return entry.number

    def number_of_shared(self, rule: SharedRule, where: str) -> int:
        """Return the number of a rule that custom gradients share.

        Raises
        ------
        SaveError
            If there are too many rules.
        """
        if rule not in self._shared:
            label = f"the gradient of {rule.label!r}"
            self._shared[rule] = self._keep_one(rule, label, where)
        return self._shared[rule]

    def _keep_one(self, rule: StoredRule | SharedRule, label: str, where: str) -> int:
        number = len(self._kept)
        self._kept.append((rule, label))
        if number >= MAX_RULES:
            raise SaveError(
                f"{where}: its gradients use more than {MAX_RULES:,} rules that were replaced "
                "here or that call their own functions, which readers refuse"
            )
        return number

    def kept(self) -> Iterator[tuple[StoredRule | SharedRule, str]]:
        """Yield the rules by number, each with a name for messages; writing one may add more."""
        done = 0
        while done < len(self._kept):
            self._order += 1
            level = self._kept[done:]
            done = len(self._kept)
            yield from level

    def differs(self, node: Node, where: str) -> bool:
        """Return whether a node's gradients, of any order, differ from those of a reader.

        Raises
        ------
        SaveError
            If they do and the rule cannot be stored.
        """
        op = node.op
        if not isinstance(op, Op) or not (self.active or op.stored is not None):
            return False
        first = self._explored(node, where)
        if first is None:
            return False
        known = self._differs.get(first.key)
        if known is None:
            known = self._differs[first.key] = self._uses_another(first, where)
        return known

    def _uses_another(self, first: _Entry, where: str) -> bool:
        seen = {first.key: first}
        level = [first]
        for _ in range(_FAR):
            if any(x.elsewhere for x in level):
                return True
            found: dict[Any, _Entry] = {}
            for entry in level:
                for node in entry.nodes:
                    used = self._explored(node, where)
                    if used is None or used.key in seen or self._differs.get(used.key) is False:
                        continue
                    found[used.key] = used
            seen |= found
            level = list(found.values())
            if not level:
                self._differs.update(dict.fromkeys(seen, False))
                return False
        # endless rules, of x**3, x**2, x**1, x**0 ..., differ only in numbers
        alike = {_but_for_numbers(key) for key in seen.keys() - {x.key for x in level}}
        return any(x.elsewhere or _but_for_numbers(x.key) not in alike for x in level)

    def _explored(self, node: Node, where: str) -> _Entry | None:
        """Return what is known about a node's rule; None if no gradient passes the node."""
        op = node.op
        assert isinstance(op, Op)
        given = node.inputs[: len(node.inputs) - node.witnesses]
        followed = any(type(x) is Symbol and is_differentiable(x.dtype) for x in given)
        if not followed or not any(is_differentiable(y.dtype) for y in node.outputs):
            return None
        elsewhere = self._elsewhere(op, bool(node.graphs), where)
        if node.graphs and not elsewhere:  # what they hold is looked at by itself
            return None
        key = _key(node)
        entry = self._entries.get(key)
        if entry is None:
            stored = op.stored or self._traced(node, elsewhere, where)
            entry = self._entries[key] = _Entry(key, node, stored, elsewhere)
        return entry

    def _elsewhere(self, op: Op, runs_graphs: bool, where: str) -> str:
        """Return who replaced a rule of an op; refuse replacements that no file can hold."""
        if op.stored is not None:
            return "the file that it comes from"
        elsewhere = registry().rules.replacer_of_rules(op)
        reason = ""
        if not op.has_own_forward_rule:
            elsewhere = f"the module {getattr(op.jvp, '__module__', '?')!r} (register_jvp)"
            reason = "files hold no forward rules"
        elif elsewhere and runs_graphs:
            reason = "the op runs graphs"
        elif elsewhere and op.name in _OF_PASSES:
            reason = "backward passes and loops use the op by themselves"
        if reason and self._keep:
            raise SaveError(
                f"{where}: the gradient rule of op {op.name!r} was replaced by {elsewhere}, and "
                f"the new one cannot be stored ({reason}). Use a gradtape.custom_gradient instead, "
                "or save with custom_gradients=False, without gradients through the op"
            )
        return elsewhere

    def _traced(self, node: Node, elsewhere: str, where: str) -> StoredRule | None:
        if node.graphs:
            return None
        try:
            return trace_rule(node)
        except Exception as error:
            if not elsewhere or not self._keep:
                return None  # a rule that is not written in ops uses none
            raise UntraceableGradient(
                f"{where}: op {node.op.name!r} has a gradient rule of {elsewhere}, which cannot be "
                f"traced for the file: {str(error).rstrip('.')} ({line_of(error)}). "
                "Write it with gradtape ops, or save with custom_gradients=False, without "
                "gradients through the op"
            ) from error


def op_nodes(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph that are ops, those of graphs inside it too."""
    return (node for node in nodes_within(graph) if isinstance(node.op, Op))


def _key(node: Node) -> tuple[Any, ...]:
    op = node.op
    assert isinstance(op, Op)
    if op.stored is not None:
        return (id(op.stored),)
    names: dict[str, int] = {}

    def spec(x: Any) -> Any:
        if type(x) is not Symbol:
            return type(x).__name__, repr(x)
        if x.shape is None:
            return None, x.dtype
        # equal sizes by their first place
        sizes = tuple(
            n if type(n) is int else (names.setdefault(n.key, len(names)),) for n in x.shape
        )
        return sizes, x.dtype

    arrays = tuple(map(spec, (*node.inputs, *node.outputs)))
    return op.name, arrays, repr(sorted(node.params.items())), node.witnesses


def _but_for_numbers(key: tuple[Any, ...]) -> Any:
    if len(key) == 1:
        return key
    name, arrays, *rest = key
    return name, tuple(x[0] if type(x[0]) is str else x for x in arrays), *rest


#: What to do about graphs that are too large.
UNROLLED = "loops that gradtape.scan or while_loop runs are stored once, unrolled ones step by step"


class GraphWriter:
    """Turn concrete functions into JSON.

    Parameters
    ----------
    variable_index
        Gives a variable its number in the file.
    add_constant
        Stores an array and returns the path of its dataset.
    custom_gradients
        Whether to write the backward graphs of custom gradients.
    rules
        The gradient rules that are known already; none by default.

    Attributes
    ----------
    left_out : bool
        Whether one was left out of the last function.
    rules
        The gradient rules that go into the file and that nodes refer to by number.
    """

    def __init__(
        self,
        variable_index: Callable[[Variable], int],
        add_constant: Callable[[np.ndarray[Any, Any]], str],
        custom_gradients: bool = True,
        rules: KeptRules | None = None,
    ) -> None:
        self._custom_gradients = custom_gradients
        self.left_out = False
        self._nodes = 0
        self._variable_index = variable_index
        self._add_constant = add_constant
        self.ops: dict[str, Op] = {}
        self.rules = KeptRules(custom_gradients) if rules is None else rules

    def rule(self, stored: StoredRule | SharedRule, where: str) -> dict[str, Any]:
        """Return the gradient rule of an op, or that custom gradients share, as JSON."""
        assert stored.graph is not None
        if isinstance(stored, SharedRule):
            return {
                "custom_gradient": stored.label,
                "gradients": [spec_record(x.shape, x.dtype) for x in stored.graph.outputs],
                "graph": self.graph(stored.graph),
            }
        specs = [*(stored.inputs[i] for i in stored.places), *stored.outputs, *stored.outputs]
        return {
            "op": stored.op.name,
            "inputs": [
                spec_record(x.dims, x.dtype)
                if isinstance(x, TensorSpec)
                else {"scalar": encode(x, where)}
                for x in stored.inputs
            ],
            "params": {key: encode(value, where) for key, value in stored.params.items()},
            "outputs": [spec_record(x.dims, x.dtype) for x in stored.outputs],
            "apart": stored.by_input,
            "connected": list(stored.connected),
            "graph": self.graph(stored.graph, specs),
        }

    def function(self, concrete: ConcreteFunction) -> dict[str, Any]:
        """Return a concrete function as JSON."""
        self.left_out = False
        return {
            "name": concrete.name,
            "arguments": self._tree(concrete.arguments, concrete.name),
            "results": self._tree(concrete.results, concrete.name),
            "graph": self.graph(concrete.graph, concrete.specs),
            **({"added": list(concrete.added)} if concrete.added else {}),
            **({"masks": list(concrete.masks)} if concrete.masks else {}),
        }

    def _tree(self, tree: Any, name: str) -> Any:
        if isinstance(tree, TensorSpec):
            return {"spec": spec_record(tree.dims, tree.dtype, tree.name)}
        if isinstance(tree, Output):
            return {"output": tree.index}
        if isinstance(tree, tuple):  # a namedtuple comes back as a tuple: its class is code
            return {"tuple": [self._tree(item, name) for item in tree]}
        if type(tree) is list:
            return [self._tree(item, name) for item in tree]
        if type(tree) is dict and all(type(key) is str for key in tree):
            return {"dict": {key: self._tree(item, name) for key, item in tree.items()}}
        return encode(tree, f"function {name!r}: an argument or result")

    def graph(self, graph: Graph, specs: Sequence[TensorSpec] = ()) -> dict[str, Any]:
        """Return a graph as JSON; values are numbered: inputs, constants, then outputs of nodes.

        ``specs`` are those of a function's arguments; their sizes may have names.
        """
        shapes = [x.dims for x in specs] or [x.shape for x in graph.inputs]
        inputs = zip(shapes, graph.inputs, strict=True)
        number: dict[Symbol, int] = {}
        for symbol in (*graph.inputs, *graph.constants):
            number[symbol] = len(number)
        constants = [
            {
                "dataset": self._add_constant(to_numpy(array)),
                **spec_record(symbol.shape, symbol.dtype),
            }
            for symbol, array in graph.constants.items()
        ]
        nodes = []
        self._nodes += len(graph.nodes)
        if self._nodes > MAX_NODES:
            raise SaveError(
                f"function {graph.name!r}: the graphs have more than {MAX_NODES:,} nodes together, "
                f"which readers refuse; {UNROLLED}"
            )
        for node in graph.nodes:
            nodes.append(self._node(node, number, graph.name))
            for symbol in node.outputs:
                number[symbol] = len(number)
        return {
            "name": graph.name,
            "inputs": [spec_record(shape, x.dtype, x.name) for shape, x in inputs],
            "constants": constants,
            "nodes": nodes,
            "outputs": [number[symbol] for symbol in graph.outputs],
            "updates": [
                [self._variable_index(variable), number[symbol]]
                for variable, symbol in graph.updates.items()
            ],
        }

    def _node(self, node: Node, number: Mapping[Symbol, int], name: str) -> dict[str, Any]:
        op = node.op
        inputs = [
            number[x] if type(x) is Symbol else {"scalar": encode(x, f"function {name!r}")}
            for x in node.inputs
        ]
        if isinstance(op, CustomGradient):
            return {
                "custom_gradient": op.label,
                "inputs": inputs,
                "results": op.results,
                "arguments": op.arguments,
                "connected": list(op.connected),
                **({"lost": list(op.lost)} if op.lost else {}),
                **({"beyond": True} if isinstance(op.rule, BeyondOrder) else {}),
                "backward": self._backward(op, name),
            }
        if isinstance(op, Read):
            return {op.name: self._variable_index(op.variable), "inputs": inputs}
        self.ops[op.name] = op.original
        what = f"function {name!r}: op {op.name!r}"
        rule = self.rules.number(node, f"function {name!r}")
        self.left_out = self.left_out or rule is None
        return {
            "op": op.name,
            "inputs": inputs,
            **({} if rule == DEFAULT else {"rule": rule}),
            **({"witnesses": node.witnesses} if node.witnesses else {}),
            "params": {
                key: {"graph": self.graph(value)}
                if isinstance(value, Graph)
                else encode(value, what)
                for key, value in node.params.items()
            },
            "outputs": [spec_record(x.shape, x.dtype) for x in node.outputs],
        }

    def _backward(self, kind: CustomGradient, name: str) -> Any:
        """Return the gradient of a custom gradient: a graph, the number of a rule, or None."""
        if not self._custom_gradients:
            self.left_out = True
            return None
        if isinstance(kind.rule, BeyondOrder):
            return None
        if isinstance(kind.rule, Refusal):
            raise UntraceableGradient(
                f"{kind.rule}. Write it with gradtape ops, or keep that function out of "
                "what is saved."
            )
        if isinstance(kind.backward, SharedRule):
            return self.rules.number_of_shared(kind.backward, f"function {name!r}")
        return self.graph(kind.backward)
