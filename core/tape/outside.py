"""``Outside``: how a tape that was opened outside a batch records what runs inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..base.table import F
from ..batches.batched import HIDE, UNHIDE, has_level, levels_of, over_examples
from ..ops.backend import shape_witness
from ..tensors.tensor import Tensor
from .backward import Joint
from .tape import GradientTape

if TYPE_CHECKING:
    from ..base.context import Recorder
    from ..ops.op import Op

__all__ = ["Outside"]


class _View(dict[int, Any]):
    """A tape's records as ops see them; of a type that sends the quick paths to ``record``."""

    def __init__(self, tape: GradientTape) -> None:
        self.tape = tape

    def __contains__(self, id: object) -> bool:
        return id in self.tape.records


class Outside:
    """Stands for a tape where values may differ from example to example of batches inside it.

    What all examples share has one gradient for the tape, the sum over the examples; a tape opened
    for one example keeps them apart. So where an op joins a batched input and a shared one, the
    shared one's gradient is summed over the hidden axis here.
    """

    def __init__(self, tape: GradientTape) -> None:
        self.root = tape
        self.records = _View(tape)

    @classmethod
    def of(cls, recorder: Recorder) -> Any:
        """Return what stands for a recorder; itself, if it is no tape."""
        return cls(recorder) if isinstance(recorder, GradientTape) else recorder

    def accessed(self, variable: Any) -> None:
        """Pass on that a variable was read."""
        self.root.accessed(variable)

    def record(
        self, op: Op, inputs: tuple[Any, ...], output: Tensor, params: dict[str, Any]
    ) -> None:
        """Record a run of ``op`` with one output."""
        self.root.record(op, inputs, output, params)
        if op is not HIDE:  # whose input is all examples
            self._sum_shared(inputs, [output])

    def record_joint(
        self, op: Op, inputs: tuple[Any, ...], outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        """Record a run of an op with one rule for all of its inputs."""
        self.root.record_joint(op, inputs, outputs, params)
        self._sum_shared(inputs, outputs)

    def record_call(
        self, name: str, inputs: list[Tensor], outputs: list[Tensor], backward: Any
    ) -> None:
        """Record a computation whose gradient is a function."""
        self.root.record_call(name, inputs, outputs, backward)
        self._sum_shared(inputs, outputs)

    def record_break(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], why: str) -> None:
        """Pass on that gradients stop here."""
        self.root.record_break(inputs, outputs, why)

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
            if type(record) is Joint:
                records[y.id] = _summed_joint(record, shared, outputs, levels)
                continue
            edges = [(*record[:3], None, record[3])] if type(record) is tuple else record
            records[y.id] = [
                (id, *_summed(rule, saved, keywords, like, shared[id]))
                if id in shared
                else (id, rule, saved, keywords, like)
                for id, rule, saved, keywords, like in edges
            ]


def _summed(
    rule: Callable[..., Any],
    saved: Any,
    keywords: dict[str, Any] | None,
    like: Any,
    levels: list[int],
) -> tuple[Any, Any, Any, Any]:
    """Return a record's edge with the gradient summed over the examples of levels."""
    values: tuple[Any, ...] = (saved,) if saved is not None else ()
    if keywords is not None:
        values = saved
    n = len(values)

    def summed(g: Any, *given: Any, **settings: Any) -> Any:
        gx = rule(g, *given[:n], **settings)
        if like is not None:
            gx = F.unbroadcast_like(gx, given[n])
        return _over(gx, levels)

    return summed, (values if like is None else (*values, like)), keywords or {}, None


def _over(g: Any, levels: Sequence[int]) -> Any:
    for level in levels:
        g = over_examples(g, level)
    return g


def _summed_joint(
    record: Joint, shared: dict[int, list[int]], results: Sequence[Tensor], levels: Any
) -> Joint:
    outputs, inputs, backward, name = record
    # for each level a result that has it, and which results do not
    spread = [
        (
            level,
            next(shape_witness(y) for y in results if has_level(y.array, level)),
            [not has_level(y.array, level) for y in results],
        )
        for level in sorted(levels)
    ]

    def summed(gs: list[Any], raw: bool) -> list[Any]:
        for level, like, alike in spread:
            # the upstream gradient of a result that all examples share is shared out among them
            gs = [
                _share(g, like, level, raw) if every and g is not None else g
                for g, every in zip(gs, alike, strict=True)
            ]
        return [
            _over(gx, shared[id]) if id in shared and gx is not None else gx
            for id, gx in zip(inputs, backward(gs, raw), strict=True)
        ]

    return Joint(outputs, inputs, summed, name)


def _share(g: Any, like: Tensor, level: int, raw: bool) -> Any:
    """Return a gradient as a batch whose examples sum to it."""
    rows = UNHIDE.raw(*((like.array, like.array) if raw else (like, like)), level=level)
    return HIDE.raw(F.spread_like(g / F.size_over(rows, axis=0), rows), level=level)
