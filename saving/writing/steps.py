"""The dtypes of arguments for which a trace is correct: Python takes the same steps for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.extend import (
    AllRecords,
    ConcreteFunction,
    CustomGradient,
    Function,
    Graph,
    Node,
    Op,
    Output,
    Read,
    Recorder,
    SharedRule,
    Symbol,
    Tensor,
    TensorSpec,
    Variable,
    active_tapes,
    flatten,
    pack_like,
    recording_to,
    shape_in_run,
    to_numpy,
)
from ..proofs.samples import filled_in
from .traces import SavedFunction

Array = np.ndarray[Any, Any]


class SameTrace(Exception):
    """A trace for the sizes of a sample takes the steps of the one that is saved."""


class RecordedRun(Recorder):
    """Record every op of a run: its inputs, by the step that made them, and its parameters.

    Two runs with the same course have the same results and gradients, because ops have the same
    kernels and rules everywhere.

    Attributes
    ----------
    is_plain
        Whether only ops ran: no custom gradient, which has its own rules.
    steps
        The ops.
    returned
        The steps that made the results of the run.
    """

    def __init__(self) -> None:
        self.records = AllRecords()
        self.is_plain = True
        self.steps: list[Any] = []
        self.returned: list[Any] = []
        self._known: dict[int, Any] = {}

    def of(self, run: Any) -> Any:
        """Return a function that runs another one and records its course."""

        def noted(*args: Any, **kwargs: Any) -> Any:
            tensors = [x for x in flatten((args, kwargs)) if isinstance(x, Tensor)]
            self._known.update({x.id: ("input", i) for i, x in enumerate(tensors)})
            with recording_to((*active_tapes.get(), self)):
                result = run(*args, **kwargs)
            self.returned = [self._named(x) for x in flatten(result)]
            return result

        return noted

    def record(self, op: Op, inputs: Any, output: Tensor, params: dict[str, Any]) -> None:
        self._note(op.name, inputs, [output], params)

    def record_joint(
        self, op: Op, inputs: Any, outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        self._note(op.name, inputs, outputs, params)

    def record_call(self, name: str, inputs: Any, outputs: Any, backward: Any) -> None:
        self.is_plain = False

    def record_break(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], why: str) -> None:
        self._note(why, inputs, outputs, {})

    def accessed(self, variable: Variable, read: Tensor) -> None:
        self._known[read.id] = ("variable", id(variable))

    def _note(self, name: str, inputs: Any, outputs: Sequence[Tensor], params: Any) -> None:
        number = len(self.steps)
        given = [self._named(x) for x in inputs]
        self._known.update({y.id: (number, i) for i, y in enumerate(outputs)})
        self.steps.append((name, given, repr(params)))

    def _named(self, x: Any) -> Any:
        if isinstance(x, Variable):
            return ("variable", id(x))
        if not isinstance(x, Tensor):
            return repr(x)
        if x.id not in self._known:
            self._known[x.id] = _constant(x.array)
        return self._known[x.id]


def _constant(array: Any) -> Any:
    """Return a key that distinguishes an array from others that Python code may have made."""
    plain = np.asarray(to_numpy(array))
    return ("constant", plain.shape, plain.dtype, hash(plain.tobytes()))


class _Shaped(NamedTuple):
    """A placeholder for an array of which only the shape is known."""

    shape: tuple[int, ...]


def takes(recorded: RecordedRun, concrete: ConcreteFunction, inputs: Sequence[Array]) -> bool:
    """Return whether a trace at these inputs would repeat what a run has done."""
    return recorded.is_plain and (recorded.steps, recorded.returned) == _recorded_by(
        concrete, inputs
    )


def same_trace(python: Any, concrete: ConcreteFunction, inputs: Sequence[Array]) -> bool:
    """Return whether Python code, traced for the sizes of inputs, takes the steps of a trace."""
    args, kwargs = filled_in(concrete, [TensorSpec(x.shape, x.dtype) for x in inputs])
    recorded = _recorded_by(Function(python).get_concrete_function(*args, **kwargs), inputs)
    return recorded is not None and recorded == _recorded_by(concrete, inputs)


def _recorded_by(
    concrete: ConcreteFunction, inputs: Sequence[Array]
) -> tuple[list[Any], list[Any]] | None:
    """Return the course of a trace at inputs, as :class:`Course` notes it, without running it.

    It is None if there is more than ops and reads of variables, or if only a run can tell.
    """
    graph = concrete.graph
    arrays = {**dict(zip(graph.inputs, inputs, strict=True)), **graph.constants}
    known: dict[Symbol, Any] = {x: ("input", i) for i, x in enumerate(graph.inputs)}
    known.update({x: _constant(array) for x, array in graph.constants.items()})
    steps: list[Any] = []
    for node in graph.nodes:
        if type(node.op) is Read:
            known[node.outputs[0]] = ("variable", id(node.op.variable))
            continue
        settled = None if not isinstance(node.op, Op) or node.graphs else _settled(node, arrays)
        if settled is None:
            return None
        count, params = settled
        wired = [known[x] if type(x) is Symbol else repr(x) for x in node.inputs[:count]]
        known.update({y: (len(steps), i) for i, y in enumerate(node.outputs)})
        steps.append((node.op.name, wired, repr(params)))
    returned = [
        known[graph.outputs[x.index]] if isinstance(x, Output) else repr(x)
        for x in flatten(concrete.results)
    ]
    return steps, returned


def _settled(node: Node, arrays: Mapping[Symbol, Any]) -> tuple[int, dict[str, Any]] | None:
    """Return the number of an op's inputs, and its parameters, if input shapes determine them."""
    if not node.witnesses:
        return len(node.inputs), node.params
    values: list[Any] = []
    for x in node.inputs:
        shape = shape_in_run(x, arrays) if type(x) is Symbol else ()
        if shape is None or None in shape:
            return None
        values.append(_Shaped(shape))  # type: ignore[arg-type]
    try:
        given, params = node.settled(values)
    except AttributeError:  # the value of a tensor that serves as a size
        return None
    return len(given), params


# What callers have at hand: NumPy's floats and integers, indices, pictures, masks.
_TRIED = ("float32", "float64", "int64", "int32", "uint8", "bool")


def other_dtypes(function: SavedFunction, concrete: ConcreteFunction) -> list[list[str]]:
    """Return the dtypes of the tensor arguments for which the same graph is correct.

    The Python code is traced for them, and the steps are compared one by one; nothing is computed.
    A function with an ``input_signature`` takes no other dtypes.

    Parameters
    ----------
    function
        The function, and its Python code if there is any.
    concrete
        One of its traces.
    """
    original = function.original
    if function.python is None:
        return [list(dtypes) for dtypes in concrete.also]
    if isinstance(original, Function) and original.input_signature is not None:
        return []
    own = [spec.dtype.name for spec in concrete.specs]
    floats = any(spec.dtype.kind == "f" for spec in concrete.specs)
    kinds = "f" if floats else "iu"
    found = []
    for name in _TRIED:
        dtypes = [name if spec.dtype.kind in kinds else spec.dtype.name for spec in concrete.specs]
        if dtypes == own:
            continue
        if _same_steps(function, concrete, dtypes):
            found.append(dtypes)
        elif name == "int64":  # what casts these does so with the other integers
            break
    return found


def _same_steps(function: SavedFunction, concrete: ConcreteFunction, dtypes: Sequence[str]) -> bool:
    specs = iter(
        [TensorSpec(x.dims, d, x.name) for x, d in zip(concrete.specs, dtypes, strict=True)]
    )
    leaves = [next(specs) if isinstance(x, TensorSpec) else x for x in flatten(concrete.arguments)]
    args, kwargs = pack_like(concrete.arguments, leaves)
    try:
        other = Function(function.python, name=concrete.name).get_concrete_function(*args, **kwargs)
    except Exception:  # what Python refuses, the trace need not take
        return False
    same = _described(other.results) == _described(concrete.results)
    return same and _alike(concrete.graph, other.graph, {})


def _described(results: Any) -> Any:
    leaves = [getattr(leaf, "index", repr(leaf)) for leaf in flatten(results)]
    return repr(pack_like(results, leaves))


def _alike(a: Graph, b: Graph, paired: dict[SharedRule, SharedRule]) -> bool:
    """Return whether two graphs are the same steps on the same constants and variables.

    ``paired`` holds pairs of rules that are compared already, or are being compared.
    """
    if [len(x) for x in _parts(a)] != [len(x) for x in _parts(b)]:
        return False
    partner: dict[Any, Any] = dict(zip(a.inputs, b.inputs, strict=True))
    for (x, array), (y, other) in zip(a.constants.items(), b.constants.items(), strict=True):
        left, right = np.asarray(to_numpy(array)), np.asarray(to_numpy(other))
        if (
            left.dtype != right.dtype
            or left.shape != right.shape
            or left.tobytes() != right.tobytes()
        ):
            return False
        partner[x] = y

    def match(x: Any, y: Any) -> bool:
        if type(x) is Symbol:
            return partner.get(x) is y
        return type(x) is type(y) and repr(x) == repr(y)

    for node, other_node in zip(a.nodes, b.nodes, strict=True):
        inputs = (node.inputs, other_node.inputs)
        if len(inputs[0]) != len(inputs[1]) or not all(map(match, *inputs)):
            return False
        if not _same_op(node, other_node, paired) or len(node.outputs) != len(other_node.outputs):
            return False
        partner.update(zip(node.outputs, other_node.outputs, strict=True))
    ends: list[Any] = [*zip(a.outputs, b.outputs, strict=True)]
    ends += [(x, b.updates.get(variable)) for variable, x in a.updates.items()]
    return all(match(x, y) for x, y in ends)


def _parts(graph: Graph) -> tuple[Any, ...]:
    return graph.inputs, graph.constants, graph.nodes, graph.outputs, graph.updates


def _same_op(a: Any, b: Any, paired: dict[SharedRule, SharedRule]) -> bool:
    if type(a.op) is not type(b.op) or a.witnesses != b.witnesses or set(a.params) != set(b.params):
        return False
    if any(isinstance(value, Graph) for value in a.params.values()):
        return False  # a graph inside is made for its dtypes
    if isinstance(a.op, Op):
        return a.op is b.op and all(repr(a.params[key]) == repr(b.params[key]) for key in a.params)
    if isinstance(a.op, CustomGradient):
        shape = [(x.label, x.results, x.arguments, x.connected) for x in (a.op, b.op)]
        backward = (a.op.backward, b.op.backward)
        if isinstance(backward[0], SharedRule) and isinstance(backward[1], SharedRule):
            if backward[0] in paired:
                return shape[0] == shape[1] and paired[backward[0]] is backward[1]
            paired[backward[0]] = backward[1]
            backward = (a.op.rule, b.op.rule)
        both = isinstance(backward[0], Graph) and isinstance(backward[1], Graph)
        return shape[0] == shape[1] and both and _alike(*backward, paired)
    return a.op.variable is b.op.variable
