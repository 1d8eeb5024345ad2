"""The records of graphs, traces and gradient rules: what their JSON says, checked in one place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ...core.extend import SCALARS, TensorSpec
from ..errors import DamagedFile
from .schema import decode, read_spec, take, take_label

#: Instead of the number of a rule: the op has the one that its owner gives it.
DEFAULT = -1
# How numbers are encoded: as JSON's own, or tagged.
_SCALAR = (bool, int, dict)
_KINDS = ("op", "custom_gradient", "read", "written")


class Scalar(NamedTuple):
    """A number among the inputs of a node, whose other inputs are numbers of values."""

    value: Any


class OpRecord(NamedTuple):
    """A node that runs an op.

    Attributes
    ----------
    params
        The JSON of its parameters; those that are graphs are in ``graphs`` too.
    witnesses
        How many inputs only tell the sizes in parameters; None if there are none.
    rule
        The number of its gradient rule, None if that was left out, or ``DEFAULT``.
    """

    where: str
    op: str
    inputs: list[Any]
    params: dict[str, Any]
    graphs: dict[str, GraphRecord]
    outputs: list[TensorSpec]
    witnesses: int | None
    rule: int | None


class CustomRecord(NamedTuple):
    """A node with a custom gradient: a graph, the number of a shared rule, or None."""

    where: str
    label: str
    inputs: list[Any]
    results: int
    arguments: int
    connected: list[Any]
    lost: list[Any]
    beyond: bool
    backward: GraphRecord | int | None


class VariableNode(NamedTuple):
    """A node that reads or assigns a variable: ``kind`` is ``"read"`` or ``"written"``."""

    where: str
    kind: str
    number: Any
    inputs: list[Any]


class ConstantRecord(NamedTuple):
    """A constant of a graph: its dataset and spec."""

    dataset: str
    spec: TensorSpec


class GraphRecord(NamedTuple):
    """A graph; values are numbered: inputs, constants, then outputs of nodes."""

    where: str
    name: str
    inputs: list[TensorSpec]
    constants: list[ConstantRecord]
    nodes: list[OpRecord | CustomRecord | VariableNode]
    outputs: list[Any]
    updates: list[Any]

    @classmethod
    def read(cls, record: Any, where: str) -> GraphRecord:
        """Return the record of a graph's JSON."""
        name = take_label(record, "name", where)
        return cls(
            where,
            name,
            [read_spec(x, where) for x in take(record, "inputs", list, where)],
            [
                ConstantRecord(
                    take(x, "dataset", str, where), read_spec({**x, "name": None}, where)
                )
                for x in take(record, "constants", list, where)
            ],
            [
                _node(x, f"{where}: node {i}")
                for i, x in enumerate(take(record, "nodes", list, where))
            ],
            take(record, "outputs", list, where),
            take(record, "updates", list, where),
        )

    def inner(self) -> Iterator[tuple[str, GraphRecord]]:
        """Yield the graphs inside its nodes, each with its role."""
        for node in self.nodes:
            if isinstance(node, OpRecord):
                yield from node.graphs.items()
            elif isinstance(node, CustomRecord) and isinstance(node.backward, GraphRecord):
                yield "backward", node.backward

    def constant_datasets(self) -> Iterator[str]:
        """Yield the datasets of its constants, including those of graphs inside it."""
        yield from (constant.dataset for constant in self.constants)
        for _, graph in self.inner():
            yield from graph.constant_datasets()


def _input(x: Any, where: str) -> Any:
    if type(x) is not dict:
        return x
    value = decode(take(x, "scalar", _SCALAR, where))
    if type(value) not in SCALARS:
        raise DamagedFile(f"{where}: an input is neither a value nor a number")
    return Scalar(value)


def _node(record: Any, where: str) -> OpRecord | CustomRecord | VariableNode:
    inputs = [
        x if type(x) is int else _input(x, where) for x in take(record, "inputs", list, where)
    ]
    kinds = [key for key in _KINDS if key in record]
    if len(kinds) != 1:
        raise DamagedFile(f"{where} has no single kind: {kinds}")
    (kind,) = kinds
    if kind == "op":
        return _op(record, inputs, where)
    if kind == "custom_gradient":
        return _custom(record, inputs, where)
    return VariableNode(where, kind, take(record, kind, int, where), inputs)


def _op(record: Any, inputs: list[Any], where: str) -> OpRecord:
    op = take(record, "op", str, where)
    params = take(record, "params", dict, where)
    graphs = {
        key: GraphRecord.read(value["graph"], f"{where}: {key[:40]!r}")
        for key, value in params.items()
        if type(value) is dict and set(value) == {"graph"}
    }
    rule = take(record, "rule", (int, type(None)), where) if "rule" in record else DEFAULT
    if "rule" in record and rule is not None and rule < 0:
        raise DamagedFile(f"{where}: no rule {rule}")
    return OpRecord(
        where,
        op,
        inputs,
        params,
        graphs,
        [read_spec(x, where) for x in take(record, "outputs", list, where)],
        take(record, "witnesses", int, where) if "witnesses" in record else None,
        rule,
    )


def _custom(record: Any, inputs: list[Any], where: str) -> CustomRecord:
    label = take_label(record, "custom_gradient", where)
    place = f"{where}: custom gradient {label[:80]!r}"
    results, arguments = take(record, "results", int, where), take(record, "arguments", int, where)
    connected = take(record, "connected", list, where)
    if (
        not 0 < results <= len(inputs)
        or not 0 <= arguments <= len(inputs) - results
        or len(connected) != arguments
        or any(type(x) is not bool for x in connected)
        or any(type(x) is Scalar for x in inputs)
    ):
        raise DamagedFile(f"{place}: the counts do not fit")
    lost = take(record, "lost", list, where) if "lost" in record else []
    if any(type(i) is not int or not 0 <= i < arguments or connected[i] for i in lost):
        raise DamagedFile(f"{place}: 'lost' does not fit its arguments")
    backward = take(record, "backward", (dict, int, type(None)), place)
    if type(backward) is dict:
        backward = GraphRecord.read(backward, place)
    beyond = "beyond" in record and take(record, "beyond", bool, place)
    return CustomRecord(place, label, inputs, results, arguments, connected, lost, beyond, backward)


class TracedRecord(NamedTuple):
    """A trace: its graph, and JSON of its arguments and results.

    ``added`` and ``masks`` say which outputs are terms of the loss and masks of the results.
    """

    where: str
    name: str
    arguments: Any
    results: Any
    graph: GraphRecord
    added: list[Any] | None
    masks: list[Any] | None

    @classmethod
    def read(cls, record: Any, where: str) -> TracedRecord:
        """Return the record of a trace's JSON."""
        return cls(
            where,
            take_label(record, "name", where),
            record.get("arguments"),
            record.get("results"),
            GraphRecord.read(take(record, "graph", dict, where), where),
            take(record, "added", list, where) if "added" in record else None,
            take(record, "masks", list, where) if "masks" in record else None,
        )


class RuleRecord(NamedTuple):
    """A gradient rule: of an op for inputs of one kind, or one that custom gradients share.

    Attributes
    ----------
    label
        The op, or the label of the custom gradients.
    is_shared
        Whether custom gradients share it: then ``gradients`` are the specs of what it returns.
        Otherwise the other fields say what it is for.
    """

    where: str
    label: str
    is_shared: bool
    gradients: list[TensorSpec]
    inputs: list[Any]
    params: dict[str, Any]
    outputs: list[TensorSpec]
    apart: bool
    connected: list[Any]
    graph: GraphRecord

    @classmethod
    def read(cls, record: Any, where: str) -> RuleRecord:
        """Return the record of a rule's JSON."""
        graph = GraphRecord.read(take(record, "graph", dict, where), where)
        if "custom_gradient" in record:
            label = take_label(record, "custom_gradient", where)
            gradients = [read_spec(x, where) for x in take(record, "gradients", list, where)]
            return cls(where, label, True, gradients, [*graph.inputs], {}, [], False, [], graph)
        return cls(
            where,
            take(record, "op", str, where),
            False,
            [],
            [
                Scalar(decode(take(x, "scalar", _SCALAR, where)))
                if type(x) is dict and "scalar" in x
                else read_spec(x, where)
                for x in take(record, "inputs", list, where)
            ],
            take(record, "params", dict, where),
            [read_spec(x, where) for x in take(record, "outputs", list, where)],
            take(record, "apart", bool, where),
            take(record, "connected", list, where),
            graph,
        )
