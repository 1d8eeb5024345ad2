"""``RecordingTape``: the half of a gradient tape that receives op runs and keeps records."""

from __future__ import annotations

import math
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from ..base.array_types import next_id
from ..base.context import active_batches, active_tapes, changing
from ..base.dtypes import is_differentiable, kind_of
from ..base.observers import Recorder
from ..base.sizes import same_shape
from ..base.table import F
from ..base.tree import flatten
from ..base.user_code import raise_hidden
from ..ops.dispatch import shape_witness, transforms
from ..tensors.op import Op
from ..tensors.tensor import Tensor, arrays_of, is_raw
from ..tensors.variable import Variable
from .missing_gradients import lost_inputs
from .reads import Reads, numbers_of
from .records import (
    ELSEWHERE,
    LostGradient,
    MultiOutputRecord,
    PathBreak,
    PickRecord,
    is_read,
    read_of,
)


class RecordingTape(Recorder):
    """Holds what a tape watches, and the records of the ops that ran."""

    def __init__(
        self,
        persistent: bool = False,
        watch_accessed_variables: bool = True,
        *,
        strict: bool = False,
    ) -> None:
        self._persistent = bool(persistent)
        self._strict = bool(strict)
        self.wants_ops = self._strict  # on the instance, because every op reads it
        self._watch_accessed = bool(watch_accessed_variables)
        # what is followed, by id; see the records module. Quick ops add records to it themselves
        self._all: dict[int, Any] = {}
        # what ops see: empty unless the tape is recording. A task that was started inside the with
        # block may outlive it, and still has the tape among its active ones
        self.records: dict[int, Any] = {}
        self.reads: dict[int, tuple[Any, int]] = {}
        # what is watched, by id. Tensors are weakly referenced: only messages look at them
        self._roots: dict[int, Variable | weakref.ref[Any]] = {}
        self._variables: dict[int, Variable] = {}
        self._breaks: list[PathBreak] = []
        # the reads of values after which constants matter
        self._read: Reads | None = None
        # whether a break may make a gradient incomplete, and whether a custom gradient does
        self._may_lack = self._lacks_calls = False
        self._warned: set[str] = set()
        self._stops: list[str] = []
        self._entered = self._recording = self._used = self._was_reset = False
        self._thread: int | None = None
        #: Tensors with a larger id were made after the block ended.
        self._ended: float = math.inf
        # the last tensor that was picked from, by id, as a witness of its shape
        self._picked_last: dict[int, Any] = {}
        # the levels of the batches in which the tape was opened, and whether it has seen others
        self.levels: frozenset[int] = frozenset()
        self.batched = False

    __init__.__qualname__ = "GradientTape.__init__"  # so errors name what users call

    def __repr__(self) -> str:
        state = "recording" if self._recording else "not recording"
        kind = "persistent, " if self._persistent else ""
        count = sum(not (record is None or is_read(record)) for record in self._all.values())
        return f"<GradientTape: {kind}{state}, {count} records, {len(self._roots)} watched>"

    def __enter__(self) -> Self:
        if self._recording:
            raise RuntimeError("GradientTape is already recording; open another tape to nest")
        if self._used and not self._persistent:
            self._forget()  # a used tape starts again from nothing
        self._entered, self._ended = True, math.inf
        self._thread = threading.get_ident()
        frame = sys._getframe(1)  # a persistent tape keeps what it recorded before
        self.opened_at = None if self._persistent else (id(frame), frame.f_lasti)
        self.levels = frozenset([batch.level for batch in active_batches.get()])
        self._resume()
        return self

    def __exit__(self, *exception: object) -> None:
        self._pause()
        self._ended = next_id()
        raise_hidden(exception[1])

    def _resume(self) -> None:
        self._recording, self.records, self.reads = True, self._all, {}
        active = active_tapes.get()
        if not any(map(self._is_in, active)):
            active_tapes.set((*active, self))

    def _pause(self) -> None:
        self._recording, self.records, self.reads = False, {}, {}
        # by identity, not by position: tapes may be closed in any order
        active_tapes.set(tuple([tape for tape in active_tapes.get() if tape is not self]))

    def _is_in(self, recorder: Any) -> bool:
        """Return whether an active recorder is this tape, or its adapter inside a batch."""
        return recorder is self or getattr(recorder, "root", None) is self

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Pause recording and automatic watching of this tape for a block; other tapes continue.

        Yields
        ------
        None
            To this tape, results from the block are constants.

        Raises
        ------
        RuntimeError
            If the tape is not recording.

        Examples
        --------
        >>> x = gt.constant(3.0)
        >>> with gt.GradientTape() as tape:
        ...     tape.watch(x)
        ...     with tape.stop_recording():
        ...         scale = x * x
        ...     y = scale * x
        >>> tape.gradient(y, x).item()
        9.0
        """
        if not self._recording:
            raise RuntimeError(
                "stop_recording: this tape is not recording; call it inside the with block"
            )
        frame = sys._getframe(2)
        self._stops.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        self._pause()
        try:
            yield
        finally:
            self._resume()

    def reset(self) -> None:
        """Forget everything recorded and watched, as if the tape had just been entered.

        Raises
        ------
        RuntimeError
            If the tape is not recording.
        """
        if not self._recording:
            raise RuntimeError("reset: this tape is not recording; call it inside the with block")
        self._forget()
        self._was_reset = True

    def _forget(self) -> None:
        self._all, self._roots, self.reads = {}, {}, {}
        self.records = self._all if self._recording else {}
        self._variables, self._breaks, self._stops = {}, [], []
        self._was_reset = self._used = self.checks_constants = False
        self._may_lack = self._lacks_calls = False
        self._warned = set()
        self._read, self.wants_ops = None, self._strict

    def watch(self, tensor: Any) -> None:
        """Watch a tensor or variable, or all those in a nested container.

        Parameters
        ----------
        tensor
            Tensors or variables, in any nested containers. Only floating and complex values are
            differentiable; others are accepted, and their gradient is ``None``.

        Raises
        ------
        TypeError
            If something is neither a tensor nor a variable.
        """
        for leaf in flatten(tensor):
            if isinstance(leaf, (Tensor, Variable)):
                if is_differentiable(leaf.dtype):
                    self._all.setdefault(leaf.id)
                    self._roots[leaf.id] = weakref.ref(leaf)
                if isinstance(leaf, Variable):
                    self._variables[leaf.id] = leaf
                    self.reads.pop(leaf.id, None)  # earlier reads are not followed
            else:
                raise TypeError(
                    f"watch: expected a Tensor or Variable, got {type(leaf).__name__}; "
                    "make one with gradtape.constant"
                )

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the watched variables, in the order of their creation.

        Reading a trainable variable adds it; :meth:`watch` adds any variable.

        Returns
        -------
        tuple of Variable
            The variables, each once.
        """
        return tuple(self._variables[id] for id in sorted(self._variables))

    def accessed(self, variable: Variable, read: Tensor) -> None:
        """Follow the value that was read from a watched variable (called by the variable)."""
        id, live = variable.id, self.records
        if id not in live:
            if not (variable.trainable and self._watch_accessed and self._recording):
                return
            self._variables[id] = variable
            if not is_differentiable(variable.dtype):
                return
            self._roots[id] = variable
            live[id] = None
        live[read.id] = (id, read_of, None, None)

    def changing(self, variable: Variable, before: Any) -> None:
        """Pass on that a variable is about to be assigned (called by the variable)."""
        changing(variable, before)

    def record(
        self, op: Op, inputs: tuple[Any, ...], output: Tensor, params: dict[str, Any]
    ) -> None:
        """Record a run of ``op`` with one output (called by the op)."""
        rules = op.rules
        if rules is None:
            self.record_joint(op, inputs, [output], params)
            return
        live = self.records
        edges: list[tuple[Any, ...]] = []
        array = output.array
        kind = kind_of(array.dtype)
        values = (*inputs, output)
        for x, rule in zip(inputs, rules):
            if type(x) is not Tensor or x.id not in live:
                continue
            if rule is None:
                self._breaks.append(PathBreak(output.id, x.id, op, kind in "fc"))
                continue
            fn, like = rule.fn_complex if kind == "c" else rule.fn, None
            pick, place = rule.pick, rule.single
            if rule.check is not None and kind != "c" and _alike(x.array, array):
                like = rule.check
                fn, pick, place = rule.plain
            elif rule.broadcasts:
                shape = x.array.shape
                # if these are equal in every run, there is nothing to sum and nothing to keep
                if x.array.dtype is not array.dtype or not same_shape(shape, array.shape):
                    like = shape_witness(x)
            if place is None:
                keywords = rule.settings({**op.defaults, **params}) if rule.keywords else {}
                edges.append((x.id, fn, pick(values), keywords, like))
            else:
                edges.append((x.id, fn, None if place < 0 else values[place], None, like))
        if self.checks_constants:
            self.look_at_numbers((*inputs, *params.values()), (output,), not edges)
        if self.wants_ops and self._strict:
            self._follow_lost(op, inputs, output, edges)
        if not edges:
            return
        if kind not in "fc":
            why = f"op {op.name!r} gives {output.dtype}, which has no gradient"
            self._breaks.extend(PathBreak(output.id, edge[0], why) for edge in edges)
            return
        if len(edges) == 1 and edges[0][3] is None:
            id, fn, saved, _, like = edges[0]
            live[output.id] = (id, fn, saved, like)
        else:
            live[output.id] = edges

    def _follow_lost(
        self, op: Op, inputs: tuple[Any, ...], output: Tensor, edges: list[tuple[Any, ...]]
    ) -> None:
        """Follow what depends on inputs without a gradient, for a strict tape."""
        lost = lost_inputs(op, inputs, output, self.records)
        if not is_differentiable(output.dtype):
            if output.dtype.kind != "b" and (lost or edges):
                reason = f"op {op.name!r} gives {output.dtype}, which has no gradient"
                self._mark_lost(output.id, [*lost, *(edge[0] for edge in edges)], reason)
        elif lost:
            reason = f"op {op.name!r} does not pass gradients to this input"
            if edges:  # in addition to the inputs that have one
                replacement = next_id()
                self._mark_lost(replacement, lost, reason)
                edges.append((replacement, read_of, None, None, None))
            else:
                self._mark_lost(output.id, lost, reason)

    def _mark_lost(self, output: int, inputs: list[int], reason: str) -> None:
        lost = LostGradient(len(inputs), reason)
        self.records[output] = MultiOutputRecord((output,), tuple(inputs), lost, "")
        self._may_lack = True

    def record_joint(
        self, op: Op, inputs: tuple[Any, ...], outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        """Record a run of an op with one rule for all of its inputs."""
        live = self.records
        if self.checks_constants:
            alone = not any(type(x) is Tensor and x.id in live for x in inputs)
            self.look_at_numbers((*inputs, *params.values()), outputs, alone)
        # followed integers only select here
        passes_over_integers = self.wants_ops or self.checks_constants
        together = op.together
        if together is not None:
            x = inputs[0]
            if x.id in live and (not passes_over_integers or is_differentiable(x.dtype)):
                settings = params if len(params) == len(op.defaults) else {**op.defaults, **params}
                if self._picked_last.get(x.id) is None:  # usually picked row by row
                    self._picked_last = {x.id: shape_witness(x)}
                values = (self._picked_last[x.id], *inputs[1:])
                live[outputs[0].id] = PickRecord(x.id, op.name, together, values, settings)
            return
        # lists cost half as much as generators, here and below
        ids = tuple([x.id if type(x) is Tensor and x.id in live else None for x in inputs])
        if passes_over_integers:
            ids = tuple(
                id if id and is_differentiable(x.dtype) else None
                for id, x in zip(ids, inputs, strict=True)
            )
        if not any(ids):
            return
        if op.vjp is None:
            for output in outputs:
                lost = [
                    PathBreak(output.id, id, op, is_differentiable(output.dtype))
                    for id in ids
                    if id is not None
                ]
                self._breaks += lost
                if lost[0].floats or self._strict:
                    self._mark_lost(output.id, [broken.input for broken in lost], lost[0].reason)
            return
        needed = tuple([id is not None for id in ids])
        settings = {**op.defaults, **params}
        vjp, takes_none = op.vjp, getattr(op.vjp, "takes_none", False)
        inputs, held = op.for_vjp(inputs, tuple(outputs))

        def backward(gs: list[Any]) -> Sequence[Any]:
            xs, ys = (arrays_of(inputs), arrays_of(held)) if is_raw(gs) else (inputs, held)
            if not takes_none:
                gs = [F.zeros_like(y) if g is None else g for g, y in zip(gs, ys, strict=True)]
            result: Sequence[Any] = vjp(gs, xs, ys, needed, **settings)
            return result

        made = tuple([y.id for y in outputs])
        self._join(outputs, MultiOutputRecord(made, ids, backward, op.name))

    def _join(self, outputs: list[Tensor], record: MultiOutputRecord) -> None:
        followed = [y.id for y in outputs if is_differentiable(y.dtype)]
        for id in followed:
            # the record comes first, so that a backward walk meets all of its outputs before it
            self.records[id] = record if id == followed[0] else None

    def record_call(
        self,
        name: str,
        inputs: list[Tensor],
        outputs: list[Tensor],
        backward: Callable[[list[Any]], Sequence[Any]],
    ) -> None:
        """Record a computation whose gradient is the function ``backward``."""
        ids = tuple(x.id if x.id in self.records else None for x in inputs)
        if any(ids):
            self._join(
                outputs, MultiOutputRecord(tuple(y.id for y in outputs), ids, backward, name)
            )

    def record_lost(
        self, inputs: Sequence[Tensor], places: Sequence[int], outputs: Sequence[Tensor], why: str
    ) -> None:
        """Record that the outputs of a call depend on inputs that get no gradient from it."""
        live = self.records
        lost = [inputs[i].id for i in places if inputs[i].id in live]
        made = [y.id for y in outputs if is_differentiable(y.dtype)]
        if not lost or not made:
            return
        self._lacks_calls = True
        replacement = next_id()
        self._mark_lost(replacement, lost, why)
        # the records of the outputs come after those of their inputs
        kept = {id: live.pop(id, None) for id in made}
        record = kept[made[0]]
        if not isinstance(record, MultiOutputRecord):
            record = MultiOutputRecord(tuple(made), (None,) * len(inputs), _none, "call")
        live.update(kept)
        live[made[0]] = _redirected(record, places, replacement)

    def record_read(self, x: Tensor, site: Any, frame: FrameType, value: Any, held: bool) -> None:
        """Record that a value was read, and look at all constants that enter from now on."""
        watches = held and self._recording and self._watch_accessed
        if x.id not in self.records and not watches:
            return
        if self._read is None:
            self._read = Reads(self._strict)
            self.checks_constants = True
        reason = self._read.note(x.id, site, frame, value, next_id())
        self.record_break((x,), (), reason)

    def _where_read(self) -> str:
        """Return the end of an error about a result that is not a tensor: who read it."""
        if self._read is None:
            return ""
        return f". It has no gradient with respect to a source: {self._read.told()}"

    def record_entry(self, x: Tensor, value: Any) -> None:
        """Follow a constant if it may have been computed from a value that was read."""
        if self._read is not None and self._read.array_enters(x.id, value, x.array):
            self.records.setdefault(x.id)

    def look_at_numbers(self, given: Sequence[Any], outputs: Sequence[Tensor], alone: bool) -> None:
        """Follow the results of an op if one of its numbers may come from a value that was read.

        Quick ops call this themselves when they add their record.
        """
        read, numbers = self._read, numbers_of(given)
        if read is None or not numbers:
            return
        for y in outputs:
            if read.numbers_enter(y.id, numbers) and alone and is_differentiable(y.dtype):
                self.records.setdefault(y.id)

    def record_break(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], why: str) -> None:
        """Record that gradients stop here, and why."""
        for x in inputs:
            if x.id in self.records:
                self._may_lack = True
                now = next_id()
                self._breaks.extend(PathBreak(y.id, x.id, why, True, now) for y in outputs)
                # later reads of a variable matter
                if self.checks_constants and not self._watch_accessed:
                    self.records.update({y.id: None for y in outputs if y.id not in self.records})
                if not outputs:
                    self._breaks.append(PathBreak(ELSEWHERE, x.id, why, floats=True))


def _alike(a: Any, b: Any) -> bool:
    """Return whether two backends' arrays have one shape and dtype."""
    return type(a) not in transforms and a.dtype is b.dtype and bool(a.shape == b.shape)


def _none(gs: list[Any]) -> Sequence[Any]:
    """Return no gradients."""
    return ()


def _redirected(
    record: MultiOutputRecord, places: Sequence[int], replacement: int
) -> MultiOutputRecord:
    """Return a record that follows another id instead of its inputs at some places."""
    outputs, inputs, backward, name = record
    kept = tuple([None if i in places else id for i, id in enumerate(inputs)])
    if not any(kept):
        return MultiOutputRecord(outputs, (replacement,), lambda gs: (None,), name)
    return MultiOutputRecord(outputs, (*kept, replacement), lambda gs: [*backward(gs), None], name)
