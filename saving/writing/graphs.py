"""Graphs and traced functions as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    to_numpy,
)
from ..errors import SaveError, UntraceableGradient
from ..records.schema import MAX_NODES, encode
from ..records.specs import spec_record
from .rules import DEFAULT, KeptRules

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
    ) -> None:
        self._custom_gradients = custom_gradients
        self.left_out = False
        self._nodes = 0
        self._variable_index = variable_index
        self._add_constant = add_constant
        self.ops: dict[str, Op] = {}
        self.rules = KeptRules(custom_gradients)

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
            "apart": stored.apart,
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
