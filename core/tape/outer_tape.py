"""``OuterTape``: how a tape that was opened outside a batch records what runs inside it.

A gradient rule of one example, such as that of a custom gradient, runs for blocks of examples.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

from ..base.context import (
    Batching,
    Setting,
    active_batches,
    active_graph,
    active_tapes,
    recording_to,
)
from ..base.observers import Recorder
from ..base.sizes import known_size
from ..base.table import F
from ..batches.batched import (
    HIDE,
    UNHIDE,
    Batched,
    has_level,
    levels_of,
    outermost,
    over_examples,
    running_levels,
    seen_rows,
    some_examples,
    whole_shape,
)
from ..ops.dispatch import shape_witness
from ..tensors.op import Op
from ..tensors.tensor import Tensor, is_raw
from .recording import RecordingTape
from .records import Edge, MultiOutputRecord, edges, is_lost, of_edges

# -- blocks of examples ----------------------------------------------------------------------------


# The rule of a custom gradient returns one gradient for each example, also for what all examples
# share. These gradients are added up, and together can take much more memory than the batch. So if
# they are large, the rule runs on one block of examples after another, and only the sums are kept.
# It need not know: the arrays from the forward pass that it holds are whole, and ops see the
# block's rows of them.

#: Bytes of the gradients of one block, and of all for which blocks are worth their calls.
_BLOCK, _LARGE = 2**20, 2**21


def bytes_of(x: Tensor) -> int:
    """Return the size of an array in bytes; 0 if a trace does not know it."""
    shape = whole_shape(x.array)
    known = shape is not None and all(map(known_size, shape))
    return prod(shape) * x.dtype.itemsize if known else 0


def in_blocks(
    run: Callable[[], list[Any]], shared: Sequence[bool], gs: Sequence[Any], size: int
) -> list[Any] | None:
    """Run a gradient rule for one block of examples after another.

    Parameters
    ----------
    run
        Returns the gradient of each input, or None: for an input that all examples share, summed
        over the examples that ops see.
    shared
        For each input, whether all examples share it.
    gs
        The upstream gradients.
    size
        The size in bytes of the gradients of one example with respect to what is shared.

    Returns
    -------
    list or None
        What ``run`` returns for all examples. None if it should run for all at once: the gradients
        are small, something records what the rule does, or the rule does not run on blocks.
    """
    if not size or active_graph.get() is not None or active_tapes.get():
        return None
    level = outermost(gs)
    if not level or level in running_levels:
        return None
    n = next(g.array.shape[0] for g in gs if type(g) is Batched and g.level == level)
    rows = max(2, _BLOCK // size)  # one row would be broadcast where it does not fit
    if n * size <= _LARGE or n < 2 * rows:
        return None
    count = n // rows
    sums: list[Any] = [None] * len(shared)
    parts: list[list[Any]] = [[] for _ in shared]
    for start, stop in pairwise(n * i // count for i in range(count + 1)):
        with some_examples(level, slice(start, stop), n):
            try:
                grads = run()
            except Exception:
                return None  # all at once, the rule raises an error about all
            for i, g in enumerate(grads):
                if g is None:
                    continue
                if shared[i]:
                    sums[i] = g if sums[i] is None else F.add(sums[i], g)
                elif type(g) is Batched and g.level == level:
                    parts[i].append(seen_rows(g))
                else:
                    return None
    return [
        Batched(F.concatenate(*rows, axis=0), level) if rows else total
        for rows, total in zip(parts, sums, strict=True)
    ]


# -- the tape --------------------------------------------------------------------------------------


class OuterTape(Recorder):
    """Adapts a tape that was opened outside ``vmap``: sums shared inputs' gradients over examples.

    To this tape, a value that all examples share has one gradient, the sum over the examples. A
    tape that was opened for one example keeps the examples separate. So if an op combines a batched
    input and a shared one, this class sums the shared one's gradient over the hidden axis.
    """

    def __init__(self, tape: RecordingTape) -> None:
        self.root = tape

    @property
    def records(self) -> dict[int, Any]:  # type: ignore[override]
        """The records of the tape."""
        return self.root.records

    @classmethod
    def of(cls, recorder: Recorder) -> Recorder:
        """Return the adapter of a tape, or any other recorder itself."""
        return cls(recorder) if isinstance(recorder, RecordingTape) else recorder

    @property
    def levels(self) -> frozenset[int]:  # type: ignore[override]
        """The levels of the batches in which the tape was opened."""
        return self.root.levels

    def sums_over(self, level: int, inputs: Sequence[Any]) -> bool:
        records = self.root.records
        return level not in self.root.levels and any(
            type(x) is Tensor and x.id in records and not has_level(x.array, level) for x in inputs
        )

    def accessed(self, variable: Any, read: Tensor) -> None:
        self.root.accessed(variable, read)

    def record(
        self, op: Op, inputs: tuple[Any, ...], output: Tensor, params: dict[str, Any]
    ) -> None:
        self.root.record(op, inputs, output, params)
        if op is not HIDE:  # its input holds all examples
            self._sum_shared(inputs, [output])

    def record_joint(
        self, op: Op, inputs: tuple[Any, ...], outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        self.root.record_joint(op, inputs, outputs, params)
        self._sum_shared(inputs, outputs)

    def record_call(
        self, name: str, inputs: list[Tensor], outputs: list[Tensor], backward: Any
    ) -> None:
        levels = frozenset().union(*(levels_of(y.array) for y in outputs)) - self.root.levels
        if levels:
            backward = partial(backward, ended=levels)
        self.root.record_call(name, inputs, outputs, backward)
        self._sum_shared(inputs, outputs)

    def record_lost(
        self, inputs: Sequence[Tensor], places: Sequence[int], outputs: Sequence[Tensor], why: str
    ) -> None:
        self.root.record_lost(inputs, places, outputs, why)

    def record_break(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], why: str) -> None:
        self.root.record_break(inputs, outputs, why)

    def record_read(self, *read: Any) -> None:
        self.root.record_read(*read)

    def record_entry(self, x: Tensor, value: Any) -> None:
        self.root.record_entry(x, value)

    @property
    def checks_constants(self) -> bool:  # type: ignore[override]
        """Whether the tape looks at constants."""
        return self.root.checks_constants

    def _sum_shared(self, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        levels = frozenset().union(*(levels_of(y.array) for y in outputs)) - self.root.levels
        if not levels:
            return
        self.root.batched = True
        records = self.root.records
        shared: dict[int, list[int]] = {}  # id -> the levels over which its gradient is summed
        for x in inputs:
            if type(x) is Tensor and x.id in records:
                missing = sorted(levels - levels_of(x.array), reverse=True)
                if missing:
                    shared[x.id] = missing
        if not shared:
            return
        for y in outputs:
            record = records.get(y.id)
            if record is None:
                continue
            if is_lost(record):
                continue
            if type(record) is MultiOutputRecord:
                size = 0  # blocks would draw other random numbers than a whole batch
                if all(batch.randomness == "error" for batch in active_batches.get()):
                    size = sum(bytes_of(x) for x in inputs if type(x) is Tensor and x.id in shared)
                records[y.id] = _summed_outputs(record, shared, outputs, levels, size)
                continue
            records[y.id] = of_edges(
                [_summed(e, shared[e.input]) if e.input in shared else e for e in edges(record)]
            )


def _summed(edge: Edge, levels: list[int]) -> Edge:
    """Return an edge whose rule also sums the gradient over the examples of ``levels``."""
    rule, values, like = edge.rule, edge.values, edge.like
    n = len(values)

    def summed(g: Any, *given: Any, **settings: Any) -> Any:
        gx = rule(g, *given[:n], **settings)
        if like is not None:
            gx = F.unbroadcast_like(gx, given[n])
        return _over(gx, levels)

    read = values if like is None else (*values, like)
    return Edge(edge.input, summed, read, edge.keywords, None)


def _over(g: Any, levels: Sequence[int]) -> Any:
    for level in levels:
        g = over_examples(g, level)
    return g


def _summed_outputs(
    record: MultiOutputRecord,
    shared: dict[int, list[int]],
    results: Sequence[Tensor],
    levels: Collection[int],
    size: int,
) -> MultiOutputRecord:
    """Return a record whose rule also sums gradients.

    ``size`` is that of one example's in bytes; 0 to run the rule for all examples at once.
    """
    outputs, inputs, backward, name = record
    # for each level: a result that has it, and which results do not
    spread = [
        (
            level,
            next(shape_witness(y) for y in results if has_level(y.array, level)),
            [not has_level(y.array, level) for y in results],
        )
        for level in sorted(levels)
    ]

    def summed(gs: list[Any]) -> list[Any]:
        raw = is_raw(gs)
        for level, like, alike in spread:
            # divide the upstream gradient of a result that all examples share among them
            gs = [
                _share(g, like, level, raw) if every and g is not None else g
                for g, every in zip(gs, alike, strict=True)
            ]

        def run() -> list[Any]:
            found = list(backward(gs))
            for i, id in enumerate(inputs):
                if id in shared and found[i] is not None:
                    for level in shared[id]:
                        found[i] = over_examples(found[i], level)
            return found

        blocks = in_blocks(run, [id in shared for id in inputs], gs, size) if raw else None
        return run() if blocks is None else blocks

    return MultiOutputRecord(outputs, inputs, summed, name)


def _share(g: Any, like: Tensor, level: int, raw: bool) -> Any:
    """Return a gradient as a batch whose examples sum to it."""
    rows = UNHIDE.raw(*((like.array, like.array) if raw else (like, like)), level=level)
    return HIDE.raw(F.spread_like(g / F.size_over(rows, axis=0), rows), level=level)


@contextmanager
def summing_over_examples() -> Iterator[None]:
    """Run a block in which the active tapes are outside any batch that they were not opened in."""
    recorders = tuple(OuterTape.of(recorder) for recorder in active_tapes.get())
    for recorder in recorders:
        if type(recorder) is OuterTape:
            recorder.root.batched = True
    with recording_to(recorders):
        yield


@contextmanager
def batching(level: int, like: Tensor, randomness: str = "error") -> Iterator[None]:
    """Run a block for one example of a batch; outer tapes sum gradients over the examples."""
    batch = Batching(level, shape_witness(like), randomness)
    summing = summing_over_examples() if active_tapes.get() else nullcontext()
    with Setting(active_batches, (*active_batches.get(), batch)), summing:
        yield
