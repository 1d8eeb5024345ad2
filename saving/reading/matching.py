"""Where a graph calls a part: the nodes that the part's own call makes are found in the graph."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.extend import (
    ConcreteFunction,
    CustomGradient,
    Formula,
    Function,
    Graph,
    Module,
    Output,
    Read,
    Stream,
    Symbol,
    TensorSpec,
    contains_instance,
    flatten,
    prune,
    shapes_differ,
    to_numpy,
)
from ...layers import takes_training

# What a search may cost, as nodes that it compares: files may hold graphs in which it never ends.
_MOST = 2_000_000
# What tracing a call costs for each module inside, and comparing so many bytes.
_CALL, _BYTES = 100, 2**16


class Effort:
    """Bounds what the search for the calls of a part takes, over all graphs of a model.

    Parameters
    ----------
    path
        The part's name in messages.
    """

    def __init__(self, path: str) -> None:
        self.path, self._left = path, _MOST
        self._digests: dict[int, tuple[Any, bytes]] = {}  # with the array, which keeps its id

    def spend(self, work: int) -> None:
        """Raise if the search has become too long."""
        self._left -= work
        if self._left < 0:
            raise ValueError(
                f"features: the graphs of the model have too many places where {self.path!r} might "
                "be called; name another part, such as a single layer"
            )

    def same_arrays(self, x: Any, y: Any) -> bool:
        """Return whether two constants have the same dtype, shape and bytes."""
        return (x.dtype, x.shape) == (y.dtype, y.shape) and self._digest(x) == self._digest(y)

    def _digest(self, array: Any) -> bytes:
        known = self._digests.get(id(array))
        if known is None:
            data = np.ascontiguousarray(to_numpy(array))
            self.spend(data.nbytes // _BYTES)
            digest = hashlib.blake2b(data.reshape(-1).view(np.uint8).data, digest_size=16).digest()
            known = self._digests[id(array)] = array, digest
        return known[1]


def dependents(graph: Graph, symbols: Iterable[Symbol]) -> set[Symbol]:
    """Return the values of a graph that depend on others, without these."""
    found = set(symbols)
    given = set(found)
    for node in graph.nodes:
        if any(type(x) is Symbol and x in found for x in node.inputs):
            found.update(node.outputs)
    return found - given


def input_of(trace: ConcreteFunction, part: Module, effort: Effort) -> Symbol:
    """Return the value in a trace of a whole model that a part of it is called with.

    Parameters
    ----------
    trace
        The trace.
    part
        The part.
    effort
        Bounds the search, and has the part's name in messages.

    Raises
    ------
    ValueError
        If no call of the part is found, or several, or the model also uses its weights otherwise.
    """
    graph, path = trace.graph, effort.path
    reads = set(reads_of(graph, part))
    if not reads:
        raise ValueError(
            f"features: the model does not use weights of {path!r}, by which its call is found; "
            "name a part with weights"
        )
    found: dict[Symbol, tuple[Symbol, set[Any]]] = {}  # the results of calls
    calls: dict[Any, list[Graph]] = {}
    index, moving = _Index(graph), {*graph.inputs, *dependents(graph, graph.inputs)}
    size, by_size = 1 + len(part.submodules), False
    for x in (x for x in _values(graph) if x in moving):
        key = (str(x.shape), x.dtype)
        if key not in calls:
            effort.spend(_CALL * size)
            with warnings.catch_warnings(action="ignore"):  # most values are not for the part
                spec = TensorSpec(x.shape, x.dtype)
                traced = list(_traced(part, spec, trace.arguments))
            calls[key] = [call for call in traced if _takes_values(call)]
            by_size = by_size or len(calls[key]) < len(traced)
        for call in calls[key]:
            if (match := _Match(call, index, effort).call_with(x)) is not None:
                known, _ = found.setdefault(match[0], (x, match[1]))
                if shapes_differ(known.shape, x.shape):
                    raise ValueError(
                        f"features: it is not clear what comes before {path!r}: it may have got "
                        f"{TensorSpec(known.shape, known.dtype)} and changed the shape itself, or "
                        f"{TensorSpec(x.shape, x.dtype)}; name a part inside it or before it"
                    )
                break  # without training, a call may be the beginning of this one
    if by_size and not found:
        raise ValueError(
            f"features: the result of {path!r} depends on its input's shape only, so that its call "
            "could be that of many values; name a part before or after it"
        )
    if not found:
        raise ValueError(
            f"features: the call of {path!r} is not found in the graphs of the model; name another "
            "part, such as a single layer whose call takes one tensor"
        )
    results = [x for i, x in enumerate(graph.outputs) if i not in trace.added]
    users = {id(node) for node in _needed(graph, results) if not reads.isdisjoint(node.inputs)}
    if len(found) > 1 or not users <= next(iter(found.values()))[1]:
        raise ValueError(
            f"features: the model calls {path!r} several times, or uses its weights otherwise, so "
            "that it is not clear what comes before it"
        )
    return next(iter(found.values()))[0]


def _needed(graph: Graph, results: Iterable[Symbol]) -> list[Any]:
    """Return the nodes on which results depend."""
    needed, nodes = set(results), []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            nodes.append(node)
            needed.update(x for x in node.inputs if type(x) is Symbol)
    return nodes


def reads_of(graph: Graph, part: Module) -> Iterator[Symbol]:
    """Yield the values on entry of a part's weights, as far as a graph reads them."""
    own = {v for v in part.variables if not isinstance(v, Stream)}
    for node in graph.nodes:
        if type(node.op) is Read and node.op.variable in own:
            yield from node.outputs


def _values(graph: Graph) -> Iterator[Symbol]:
    yield from graph.inputs
    for node in graph.nodes:
        yield from node.outputs


def _traced(part: Any, spec: TensorSpec, arguments: Any) -> Iterator[Graph]:
    """Yield the graphs of a part's call, first with ``training`` as in the arguments of a trace."""
    training = any(type(x) in (bool, np.bool_) and x for x in flatten(arguments))
    for mode in (training, not training) if takes_training(part) else (None,):
        told = {} if mode is None else {"training": mode}
        try:
            call = Function(lambda x, told=told: part(x, **told)).get_concrete_function(spec)
        except Exception:  # it takes something else, which its code may notice in any way
            continue
        if isinstance(call.results, Output):
            yield _forward(call.graph)


def _forward(graph: Graph) -> Graph:
    """Return a graph with only what its result needs."""
    short = Graph(graph.name)
    short.inputs, short.nodes = list(graph.inputs), list(graph.nodes)
    short.constants, short.outputs = dict(graph.constants), graph.outputs[:1]
    return prune(short)


def _takes_values(call: Graph) -> bool:
    """Return whether the result of a call depends on its input, and not only on the shape."""
    reached = set(call.inputs)
    for node in call.nodes:
        if not reached.isdisjoint([x for x in _inputs(node) if type(x) is Symbol]):
            reached.update(node.outputs)
    return not reached.isdisjoint(call.outputs)


class _Index:
    """The nodes of a graph, by what they take and do."""

    def __init__(self, graph: Graph) -> None:
        self.constants = graph.constants
        self.users: dict[Symbol, list[Any]] = {}
        self.makers: dict[str, list[Any]] = {}  # of nodes without symbols among the inputs
        self.reads: dict[Any, Symbol] = {}
        for node in graph.nodes:
            if type(node.op) is Read:
                self.reads[node.op.variable] = node.outputs[0]
            inputs = [x for x in _inputs(node) if type(x) is Symbol and x not in graph.constants]
            for x in dict.fromkeys(inputs):
                self.users.setdefault(x, []).append(node)
            if not inputs:
                self.makers.setdefault(_kind(node), []).append(node)


class _Match:
    """The nodes of a call in another graph.

    Parameters
    ----------
    call
        The graph of the call alone, with one input and one output.
    index
        The other graph.
    """

    def __init__(self, call: Graph, index: _Index, effort: Effort) -> None:
        self._call, self._index, self._effort = call, index, effort

    def call_with(self, given: Symbol) -> tuple[Symbol, set[int]] | None:
        """Return the result of a call with a value of the other graph, and the call's nodes there.

        The nodes are given by their ids. None if the other graph has no such call.
        """
        nodes = self._call.nodes
        if not nodes:
            return None
        known = {self._call.inputs[0]: given}
        met: dict[int, int] = {}
        others: list[tuple[int, list[Any]]] = []  # nodes that fit as well, to try if these do not
        i = 0
        # what is known of later nodes is replaced before it is used, when earlier ones change
        while i < len(nodes):
            node = nodes[i]
            if type(node.op) is Read:
                read = self._index.reads.get(node.op.variable)
                if read is None:
                    return None
                known[node.outputs[0]] = read
                i += 1
                continue
            candidates = self._candidates(node, known)
            fitting = [x for x in candidates if self._fits(node, x, known)][::-1]
            if not fitting:
                if not others:
                    return None
                i, fitting = others.pop()
            chosen = fitting.pop()
            if fitting:
                others.append((i, fitting))
            known.update(zip(nodes[i].outputs, chosen.outputs, strict=True))
            met[i] = id(chosen)
            i += 1
        end = known.get(self._call.outputs[0])
        return None if end is None else (end, set(met.values()))

    def _candidates(self, node: Any, known: dict[Symbol, Symbol]) -> Sequence[Any]:
        for x in _inputs(node):
            if type(x) is Symbol and x not in self._call.constants:
                return self._index.users.get(known[x], ())
        return self._index.makers.get(_kind(node), ())

    def _fits(self, node: Any, other: Any, known: Mapping[Symbol, Symbol]) -> bool:
        constants = self._call.constants, self._index.constants
        return _same_nodes(node, other, known, constants, self._effort)


def _same_nodes(
    node: Any,
    other: Any,
    known: Mapping[Symbol, Symbol],
    constants: tuple[Mapping[Symbol, Any], Mapping[Symbol, Any]],
    effort: Effort,
) -> bool:
    """Return whether a node of another graph computes the same, where ``known`` are its values."""
    effort.spend(1)
    mine, theirs = _inputs(node), _inputs(other)
    return (
        _kind(node) == _kind(other)
        and len(mine) == len(theirs)
        and len(node.outputs) == len(other.outputs)
        and all(_same(x, y, known, constants, effort) for x, y in zip(mine, theirs, strict=True))
        and node.params.keys() == other.params.keys()
        and all(_alike(value, other.params[key], effort) for key, value in node.params.items())
    )


def _same(
    x: Any,
    y: Any,
    known: Mapping[Symbol, Symbol],
    constants: tuple[Mapping[Symbol, Any], Mapping[Symbol, Any]],
    effort: Effort,
) -> bool:
    if type(x) is not Symbol or type(y) is not Symbol:
        return type(x) is type(y) and bool(x == y or (x != x and y != y))
    mine, theirs = constants
    if x in mine:
        return y in theirs and effort.same_arrays(mine[x], theirs[y])
    return known.get(x) is y


def _inputs(node: Any) -> Sequence[Any]:
    """Return the inputs of a node without those that only tell sizes."""
    return node.inputs[: len(node.inputs) - node.witnesses]


def _kind(node: Any) -> str:
    op = node.op
    if isinstance(op, CustomGradient):
        return f"custom {op.label} {op.results} {op.arguments}"
    return str(op.name)


def _alike(x: Any, y: Any, effort: Effort) -> bool:
    """Return whether two parameters say the same, as far as it is known before a run."""
    if isinstance(x, Graph) and isinstance(y, Graph):
        return _same_graphs(x, y, effort)
    if contains_instance([x], Formula) or contains_instance([y], Formula):
        return True
    return type(x) is type(y) and repr(x) == repr(y)


def _same_graphs(x: Graph, y: Graph, effort: Effort) -> bool:
    """Return whether two graphs inside nodes have the same nodes, in the same order."""
    sizes = [(len(g.inputs), len(g.nodes), len(g.outputs)) for g in (x, y)]
    if sizes[0] != sizes[1]:
        return False
    known = dict(zip(x.inputs, y.inputs, strict=True))
    for node, other in zip(x.nodes, y.nodes, strict=True):
        if not _same_nodes(node, other, known, (x.constants, y.constants), effort):
            return False
        known.update(zip(node.outputs, other.outputs, strict=True))
    both = zip(x.outputs, y.outputs, strict=True)
    return all(_same(a, b, known, (x.constants, y.constants), effort) for a, b in both)
