"""The records of a tape: one for each tensor that it follows, by the tensor's id.

Records are plain tuples and lists, because every op that runs makes one. The quick ops,
``RecordingTape.record``, the backward pass, and the loops over whole tapes in this module unpack
them by hand. All other code uses :func:`edges`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from ..ops.checks import Check
from ..ops.rule import op_of
from ..tensors.op import Op
from ..tensors.tensor import Tensor, arrays_of

#: The most common record, for one input: (input, rule, what the rule reads, like). The rule takes
#: no parameters of the op. It reads nothing (None), one value, or a tuple of input and output. Its
#: gradient is summed to the shape of ``like``, or must be as a :class:`Check` says.
SingleRecord: TypeAlias = "tuple[int, Callable[..., Any], Any, Tensor | Check | None]"
#: None marks a watched tensor, or a further output of the :class:`MultiOutputRecord` before it. A
#: list holds the fields of an :class:`Edge` per input. If ``keywords`` is None, ``values`` is the
#: one value that the rule reads, or None.
Record: TypeAlias = "SingleRecord | list[tuple[Any, ...]] | MultiOutputRecord | PickRecord | None"


class Edge(NamedTuple):
    """The edge from an output to an input, whose gradient is ``rule(g, *values, **keywords)``."""

    input: int
    rule: Callable[..., Any]
    #: The values that the rule reads.
    values: tuple[Any, ...]
    #: None if the rule takes no parameters of the op.
    keywords: dict[str, Any] | None
    #: The gradient is summed to this tensor's shape, because inputs broadcast; None if not needed.
    like: Tensor | None


class MultiOutputRecord(NamedTuple):
    """A record of several outputs, or of a rule that serves all inputs at once."""

    outputs: tuple[int, ...]
    #: None for an input that is not followed.
    inputs: tuple[int | None, ...]
    #: Takes upstream gradients (None for zero), and returns a gradient or None per input: tensors
    #: for tensors, and arrays for arrays.
    backward: Callable[[list[Any]], Sequence[Any]]
    name: str


class LostGradient:
    """A record's ``backward`` that passes no gradient, and the reason."""

    __slots__ = ("count", "reason")

    def __init__(self, count: int, reason: str) -> None:
        self.count = count
        self.reason = reason

    def __call__(self, gs: list[Any]) -> Sequence[Any]:
        """Return no gradient for any of the inputs."""
        return [None] * self.count


def is_lost(record: Any) -> bool:
    """Return whether a record passes no gradient."""
    return type(record) is MultiOutputRecord and type(record.backward) is LostGradient


class PickRecord(NamedTuple):
    """A record of an op that picked elements of its first input, the only one with a gradient."""

    input: int
    name: str
    #: The op's rule for many picks at once.
    together: Callable[..., Any]
    #: The op's inputs, the first replaced by a witness of its shape.
    values: tuple[Any, ...]
    params: dict[str, Any]


class PendingPicks:
    """Replaces the record of a tensor that was picked from, until the backward pass reaches it.

    The gradient of a pick is zero nearly everywhere. To add those of n rows one by one would take
    n² time. They are collected here instead, and go into one array when the pass reaches the
    tensor.
    """

    __slots__ = ("_waiting", "record")

    def __init__(self, record: Record) -> None:
        self.record = record
        self._waiting: dict[Callable[..., Any], list[tuple[Any, PickRecord]]] = {}

    def add(self, g: Any, pick: PickRecord) -> None:
        """Collect the gradient of a pick."""
        self._waiting.setdefault(pick.together, []).append((g, pick))

    def gradients(self, raw: bool) -> Iterator[Any]:
        """Yield gradients of the tensor's shape, one for all picks by the same op."""
        for together, waiting in self._waiting.items():
            yield together(
                [g for g, _ in waiting],
                [arrays_of(read.values) if raw else read.values for _, read in waiting],
                [read.params for _, read in waiting],
            )


#: The id of outputs that no tape sees; no tensor has it.
ELSEWHERE = 0


class PathBreak(NamedTuple):
    """The end of a gradient path: an op that does not pass gradients on."""

    output: int
    input: int
    why: Op | str  # an op that has no rule for the input, or a reason as text
    #: Whether floats depend on the input nevertheless.
    floats: bool = False
    #: Tensors with a larger id were made later.
    time: int = 0

    @property
    def is_read(self) -> bool:
        """Whether the value went where no tape sees what is computed from it."""
        return self.floats and isinstance(self.why, str)

    @property
    def reason(self) -> str:
        """The reason as text."""
        op = self.why
        if isinstance(op, str):
            return op
        if op.rules is None and op.vjp is None:
            return f"op {op.name!r} has no gradient rule"
        return f"op {op.name!r} does not pass gradients to this input"


def read_of(g: Any) -> Any:
    """Return the gradient of a variable: the rule for the value that was read from it."""
    return g


def is_read(record: Any) -> bool:
    """Return whether a record is that of a variable's value, not of an op."""
    return type(record) is tuple and record[1] is read_of


def edges(record: Record) -> Iterator[Edge]:
    """Yield a record's edge for each of its inputs; a multi-output record has no edges."""
    if type(record) is tuple:
        input, rule, value, like = cast("SingleRecord", record)
        yield _edge(input, rule, value, None, like)
    elif type(record) is list:
        for fields in record:
            yield _edge(*fields)
    elif type(record) is PickRecord:
        yield Edge(record.input, _gradient_of(record), record.values, {}, None)


def _edge(
    input: int, rule: Any, value: Any, keywords: dict[str, Any] | None, like: Tensor | Check | None
) -> Edge:
    if isinstance(like, Check):
        rule, like = like.around(rule), None
    if keywords is not None:
        return Edge(input, rule, value, keywords, like)
    values = value if type(value) is tuple else () if value is None else (value,)
    return Edge(input, rule, values, None, like)


def _gradient_of(read: PickRecord) -> Callable[..., Any]:
    """Return the rule of one pick."""

    def rule(g: Any, *values: Any) -> Any:
        return read.together([g], [values], [read.params])

    rule.__qualname__ = read.name
    return rule


def of_edges(found: Sequence[Edge]) -> Record:
    """Return the record of some edges."""
    return [(e.input, e.rule, e.values, e.keywords or {}, e.like) for e in found]


def with_rules(
    output: int, record: Any, around: Callable[[int, str, Callable[..., Any]], Callable[..., Any]]
) -> Any:
    """Return a record with its rules replaced.

    Parameters
    ----------
    output
        The id under which the record is kept.
    record
        A record, or the :class:`PendingPicks` that replace one.
    around
        ``around(output, op, rule)`` returns the replacement.
    """
    if is_read(record):
        return record
    if type(record) is tuple:
        input, rule, value, like = record
        return input, around(output, op_of(rule), rule), value, like
    if type(record) is list:
        return [(e[0], around(output, op_of(e[1]), e[1]), *e[2:]) for e in record]
    if type(record) is MultiOutputRecord and not is_lost(record):
        return record._replace(backward=around(output, record.name, record.backward))
    if type(record) is PickRecord:  # the same rule for all: they are grouped by it
        return record._replace(together=around(0, record.name, record.together))
    return record


def pieces(record: Record) -> Iterator[tuple[int, str, Record]]:
    """Yield ``(input, name of the op, a record of that input alone)`` for each input."""
    if type(record) is MultiOutputRecord:
        yield from ((id, record.name, record) for id in record.inputs if id is not None)
    else:
        yield from ((e.input, op_of(e.rule), of_edges([e])) for e in edges(record))


def outputs_of(output: int, record: Record) -> tuple[int, ...]:
    """Return the outputs of a record that is kept under ``output``."""
    return record.outputs if type(record) is MultiOutputRecord else (output,)


def reachable(records: dict[int, Any], sources: set[int], lost: bool = True) -> set[int]:
    """Return the ids of all tensors that the sources influence.

    Without ``lost``, only paths that pass gradients count.
    """
    reached = set(sources)
    for output, record in records.items():
        kind = type(record)
        if kind is tuple or kind is PickRecord:  # by hand, since this runs over whole tapes
            if record[0] in reached:
                reached.add(output)
        elif kind is MultiOutputRecord:
            if not reached.isdisjoint(record.inputs) and (lost or not is_lost(record)):
                reached.update(record.outputs)
        elif record is not None:
            for edge in record:
                if edge[0] in reached:
                    reached.add(output)
                    break
    return reached


def saved_tensors(records: dict[int, Any]) -> list[Tensor]:
    """Return the tensors that records keep for rules."""
    found: list[Any] = []
    for record in records.values():  # by hand, since this runs over whole tapes
        if type(record) is tuple:
            found += record[2] if type(record[2]) is tuple else (record[2],)
        elif type(record) is list:
            for edge in record:
                if edge[3] is None:
                    found.append(edge[2])
                else:
                    found += edge[2]
    return [value for value in found if type(value) is Tensor]
