"""Gradient rules from JSON, checked against the ops and nodes that they are for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.extend import (
    Graph,
    Op,
    Registry,
    SharedRule,
    StoredRule,
    Symbol,
    TensorSpec,
    blunt,
    is_differentiable,
    shapes_differ,
)
from ..errors import DamagedFile, MissingOp
from ..records.schema import decode, take, take_label
from ..records.specs import read_spec


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
