"""What a tape keeps: one record for each tensor that it follows, by the tensor's id.

Records are plain tuples and lists, since they are made for every op that runs. The quick ops,
``RecordingTape.record`` and the backward pass unpack them by hand, and so do the loops over whole
tapes in here; all others ask :func:`edges`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from ..ops.rule import op_of
from ..tensors.op import Op
from ..tensors.tensor import Tensor, arrays_of

__all__ = [
    "ELSEWHERE",
    "Break",
    "Edge",
    "Lost",
    "MultiOutputRecord",
    "Pick",
    "Picks",
    "Record",
    "SingleRecord",
    "edges",
    "is_lost",
    "is_read",
    "of_edges",
    "outputs_of",
    "pieces",
    "reachable",
    "read_of",
    "saved_tensors",
    "with_rules",
]

#: The commonest record, of one input and at most one value that the rule reads: (input, rule, value
#: or None, like).
SingleRecord: TypeAlias = "tuple[int, Callable[..., Any], Any, Tensor | None]"
#: None stands for a tensor that is watched, and for the further outputs of the
#: :class:`MultiOutputRecord` before it. A list holds the fields of an :class:`Edge` per input; with
#: ``keywords`` None, the one value that the rule reads (or None) stands in the place of ``values``.
Record: TypeAlias = "SingleRecord | list[tuple[Any, ...]] | MultiOutputRecord | Pick | None"


class Edge(NamedTuple):
    """From an output back to an input, whose gradient is ``rule(g, *values, **keywords)``."""

    input: int
    rule: Callable[..., Any]
    #: What the rule reads.
    values: tuple[Any, ...]
    #: None where the rule takes no parameters of the op.
    keywords: dict[str, Any] | None
    #: To whose shape the gradient is summed, because inputs broadcast; None if that is not needed.
    like: Tensor | None


class MultiOutputRecord(NamedTuple):
    """A record of several outputs, or of a rule that serves all inputs at once."""

    outputs: tuple[int, ...]
    #: None for an input that is not followed.
    inputs: tuple[int | None, ...]
    #: From upstream gradients (None for zero) to a gradient or None per input, in tensors if it is
    #: given tensors, and in arrays if it is given arrays.
    backward: Callable[[list[Any]], Sequence[Any]]
    name: str


class Lost:
    """In the place of a record's ``backward``: no gradient passes, and why."""

    __slots__ = ("count", "reason")

    def __init__(self, count: int, reason: str) -> None:
        self.count = count
        self.reason = reason

    def __call__(self, gs: list[Any]) -> Sequence[Any]:
        """Return no gradient for any of the inputs."""
        return [None] * self.count


def is_lost(record: Any) -> bool:
    """Return whether no gradient passes a record."""
    return type(record) is MultiOutputRecord and type(record.backward) is Lost


class Pick(NamedTuple):
    """A record of an op that picked elements of its first input, the only one with a gradient."""

    input: int
    name: str
    #: The op's rule for many picks at once.
    together: Callable[..., Any]
    #: The op's inputs, a witness of the first one's shape in its place.
    values: tuple[Any, ...]
    params: dict[str, Any]


class Picks:
    """Stands in a record's place while a backward pass comes closer, if its tensor was picked from.

    Each gradient of a pick is zero nearly everywhere. Added one by one, those of n rows would take
    n² time; so they wait here, and go into one array when the pass gets to the tensor.
    """

    __slots__ = ("_waiting", "record")

    def __init__(self, record: Record) -> None:
        self.record = record
        self._waiting: dict[Callable[..., Any], list[tuple[Any, Pick]]] = {}

    def add(self, g: Any, pick: Pick) -> None:
        """Let the gradient of a pick wait."""
        self._waiting.setdefault(pick.together, []).append((g, pick))

    def gradients(self, raw: bool) -> Iterator[Any]:
        """Yield gradients of the tensor's shape, one for all picks by the same op."""
        for together, waiting in self._waiting.items():
            yield together(
                [g for g, _ in waiting],
                [arrays_of(read.values) if raw else read.values for _, read in waiting],
                [read.params for _, read in waiting],
            )


#: Stands for the outputs of what no tape sees; no tensor has this id.
ELSEWHERE = 0


class Break(NamedTuple):
    """Where a gradient path ended: an op that does not pass gradients on."""

    output: int
    input: int
    why: Op | str  # an op that has no rule for the input, or a reason in words
    #: Whether floats depend on the input all the same.
    floats: bool = False
    #: Tensors with a larger id were made later.
    time: int = 0

    @property
    def is_read(self) -> bool:
        """Whether the value went where no tape sees what becomes of it."""
        return self.floats and isinstance(self.why, str)

    @property
    def reason(self) -> str:
        """Why, in words."""
        op = self.why
        if isinstance(op, str):
            return op
        if op.rules is None and op.vjp is None:
            return f"op {op.name!r} has no gradient rule"
        return f"op {op.name!r} does not pass gradients to this input"


def read_of(g: Any) -> Any:
    """Return the gradient of a variable: the rule of what was read of it."""
    return g


def is_read(record: Any) -> bool:
    """Return whether a record is of no op, but of a variable that was read."""
    return type(record) is tuple and record[1] is read_of


def edges(record: Record) -> Iterator[Edge]:
    """Yield what a record says of each of its inputs; a multi-output record has no edges."""
    if type(record) is tuple:
        input, rule, value, like = cast("SingleRecord", record)
        yield _edge(input, rule, value, None, like)
    elif type(record) is list:
        for fields in record:
            yield _edge(*fields)
    elif type(record) is Pick:
        yield Edge(record.input, _gradient_of(record), record.values, {}, None)


def _edge(
    input: int, rule: Any, value: Any, keywords: dict[str, Any] | None, like: Tensor | None
) -> Edge:
    if keywords is not None:
        return Edge(input, rule, value, keywords, like)
    return Edge(input, rule, () if value is None else (value,), None, like)


def _gradient_of(read: Pick) -> Callable[..., Any]:
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
    """Return a record with others in the place of its rules.

    Parameters
    ----------
    output
        Under what the record is kept.
    record
        A record, or picks that wait for theirs.
    around
        ``around(output, op, rule)`` returns the other one.
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
    if type(record) is Pick:  # the same rule for all: they are grouped by it
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

    Without ``lost``, through gradients alone.
    """
    reached = set(sources)
    for output, record in records.items():
        kind = type(record)
        if kind is tuple or kind is Pick:  # by hand, since this runs over whole tapes
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
    found = []
    for record in records.values():  # by hand, since this runs over whole tapes
        if type(record) is tuple:
            found.append(record[2])
        elif type(record) is list:
            for edge in record:
                if edge[3] is None:
                    found.append(edge[2])
                else:
                    found += edge[2]
    return [value for value in found if type(value) is Tensor]
