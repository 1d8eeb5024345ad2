"""The steps of a run, and those of a trace, which are known without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.extend import (
    ConcreteFunction,
    Everything,
    Function,
    Node,
    Op,
    Output,
    Read,
    Recorder,
    Symbol,
    Tensor,
    TensorSpec,
    Variable,
    active_tapes,
    flatten,
    recording_to,
    shape_in_run,
    to_numpy,
)
from ..proofs.samples import filled_in

Array = np.ndarray[Any, Any]


class SameTrace(Exception):
    """A trace for the sizes of a sample takes the steps of the one that is saved."""


class Course(Recorder):
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
        self.records = Everything()
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
    held = np.asarray(to_numpy(array))
    return ("constant", held.shape, held.dtype, hash(held.tobytes()))


class _Shaped(NamedTuple):
    """A placeholder for an array of which only the shape is known."""

    shape: tuple[int, ...]


def takes(course: Course, concrete: ConcreteFunction, inputs: Sequence[Array]) -> bool:
    """Return whether a trace at these inputs would repeat what a run has done."""
    return course.is_plain and (course.steps, course.returned) == _course_of(concrete, inputs)


def same_trace(python: Any, concrete: ConcreteFunction, inputs: Sequence[Array]) -> bool:
    """Return whether Python code, traced for the sizes of inputs, takes the steps of a trace."""
    args, kwargs = filled_in(concrete, [TensorSpec(x.shape, x.dtype) for x in inputs])
    course = _course_of(Function(python).get_concrete_function(*args, **kwargs), inputs)
    return course is not None and course == _course_of(concrete, inputs)


def _course_of(
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
