"""``RecordingTape``: the half of a gradient tape that hears of ops and keeps records."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from ..base.context import active_batches, active_tapes
from ..base.dtypes import is_differentiable
from ..base.recorder import Recorder
from ..base.spec import unsure
from ..base.table import F
from ..base.tree import flatten
from ..ops.backend import shape_witness
from ..tensors.op import Op
from ..tensors.tensor import Tensor, arrays_of, is_raw
from ..tensors.variable import Variable
from .records import ELSEWHERE, Break, MultiOutputRecord, Read

__all__ = ["RecordingTape"]


class RecordingTape(Recorder):
    """What a tape watches, and the records of the ops that ran on it."""

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = bool(persistent)
        self.wants_ops = False  # an instance's own: every op reads it
        self._watch_accessed = bool(watch_accessed_variables)
        # what is followed, by id; see the records module. Ops add to it themselves where that is
        # worth it
        self._all: dict[int, Any] = {}
        # what ops see of it: nothing unless the tape is recording (a task that was started inside
        # the with block may outlive it, and still has the tape among its active ones)
        self.records: dict[int, Any] = {}
        # what is watched, by id; tensors are free to go, since only messages look at them
        self._roots: dict[int, Variable | weakref.ref[Any]] = {}
        self._variables: dict[int, Variable] = {}
        self._breaks: list[Break] = []
        self._stops: list[str] = []
        self._entered = self._recording = self._used = self._was_reset = False
        self._thread: int | None = None
        # the tensor that was read last, by id, as a witness of its shape
        self._read_last: dict[int, Any] = {}
        # the levels of the batches in which the tape was opened, and whether it has seen others
        self.levels: frozenset[int] = frozenset()
        self.batched = False

    __init__.__qualname__ = "GradientTape.__init__"  # so errors name what users call

    def __repr__(self) -> str:
        state = "recording" if self._recording else "not recording"
        kind = "persistent, " if self._persistent else ""
        count = sum(record is not None for record in self._all.values())
        return f"<GradientTape: {kind}{state}, {count} records, {len(self._roots)} watched>"

    def __enter__(self) -> Self:
        if self._recording:
            raise RuntimeError("GradientTape is already recording; open another tape to nest")
        if self._used and not self._persistent:
            self.reset()  # a tape that has answered starts afresh
            self._was_reset = False
        self._entered = True
        self._thread = threading.get_ident()
        self.levels = frozenset(batch.level for batch in active_batches.get())
        self._resume()
        return self

    def __exit__(self, *exception: object) -> None:
        self._pause()

    def _resume(self) -> None:
        self._recording, self.records = True, self._all
        active = active_tapes.get()
        if not any(map(self._is_in, active)):
            active_tapes.set((*active, self))

    def _pause(self) -> None:
        # by identity, not by position: tapes may be closed in any order
        self._recording, self.records = False, {}
        active_tapes.set(tuple(tape for tape in active_tapes.get() if tape is not self))

    def _is_in(self, recorder: Any) -> bool:
        """Return whether an active recorder is this tape, or stands for it inside a batch."""
        return recorder is self or getattr(recorder, "root", None) is self

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Pause this tape (and its watching of variables) for a block; other tapes go on.

        Yields
        ------
        None
            What runs in the block is a constant to this tape.

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
            raise RuntimeError("stop_recording: this tape is not recording")
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
            If the tape has not been entered.
        """
        if not self._entered:
            raise RuntimeError("reset: this tape has not been entered; use it in a with statement")
        self._all, self._roots = {}, {}
        self.records = self._all if self._recording else {}
        self._variables, self._breaks, self._stops = {}, [], []
        self._was_reset, self._used = True, False

    def watch(self, tensor: Any) -> None:
        """Follow a tensor or variable (or those of a nested container).

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
            else:
                raise TypeError(
                    f"watch: expected a Tensor or Variable, got {type(leaf).__name__}; "
                    "make one with gradtape.constant"
                )

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the variables watched by being read, in the order of their creation.

        As in TensorFlow, :meth:`watch` does not add to them.

        Returns
        -------
        tuple of Variable
            The variables, each once.
        """
        return tuple(self._variables[id] for id in sorted(self._variables))

    def accessed(self, variable: Variable) -> None:
        """Take note that a trainable variable was read (called by the variable)."""
        if self._watch_accessed and self._recording and variable.id not in self._variables:
            self._variables[variable.id] = variable
            if is_differentiable(variable.dtype):
                self._all.setdefault(variable.id)
                self._roots[variable.id] = variable

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
        for x, rule in zip(inputs, rules):
            if type(x) is not Tensor or x.id not in live:
                continue
            if rule is None:
                self._breaks.append(Break(output.id, x.id, op))
                continue
            fn, like = rule.fn, None
            if array.dtype.kind == "c":
                fn = rule.fn_complex
            if rule.broadcasts:
                shape = x.array.shape
                # equal and fully known: nothing to sum back to, and nothing to keep
                if shape != array.shape or x.array.dtype is not array.dtype or unsure(shape):
                    like = shape_witness(x)
            place = rule.single
            if place is None:
                keywords = rule.settings({**op.defaults, **params}) if rule.keywords else {}
                edges.append((x.id, fn, rule.pick((*inputs, output)), keywords, like))
            else:
                saved = None if place < 0 else (*inputs, output)[place]
                edges.append((x.id, fn, saved, None, like))
        if not edges:
            return
        if array.dtype.kind not in "fc":
            why = f"op {op.name!r} gives {output.dtype}, which has no gradient"
            self._breaks.extend(Break(output.id, edge[0], why) for edge in edges)
            return
        if len(edges) == 1 and edges[0][3] is None:
            id, fn, saved, _, like = edges[0]
            live[output.id] = (id, fn, saved, like)
        else:
            live[output.id] = edges

    def record_joint(
        self, op: Op, inputs: tuple[Any, ...], outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        """Record a run of an op with one rule for all of its inputs."""
        live = self.records
        together = op.together
        if together is not None:
            x = inputs[0]
            if x.id in live:
                settings = params if len(params) == len(op.defaults) else {**op.defaults, **params}
                if self._read_last.get(x.id) is None:  # rows are read one after the other
                    self._read_last = {x.id: shape_witness(x)}
                values = (self._read_last[x.id], *inputs[1:])
                live[outputs[0].id] = Read(x.id, op.name, together, values, settings)
            return
        ids = tuple(x.id if type(x) is Tensor and x.id in live else None for x in inputs)
        if not any(ids):
            return
        if op.vjp is None:
            for id in ids:
                if id is not None:
                    for output in outputs:
                        self._breaks.append(Break(output.id, id, op))
            return
        needed = tuple(id is not None for id in ids)
        settings = {**op.defaults, **params}
        vjp = op.vjp
        inputs, held = op.for_vjp(inputs, tuple(outputs))

        def backward(gs: list[Any]) -> Sequence[Any]:
            xs, ys = (arrays_of(inputs), arrays_of(held)) if is_raw(gs) else (inputs, held)
            full = [F.zeros_like(y) if g is None else g for g, y in zip(gs, ys, strict=True)]
            result: Sequence[Any] = vjp(full, xs, ys, needed, **settings)
            return result

        self._join(outputs, MultiOutputRecord(tuple(y.id for y in outputs), ids, backward, op.name))

    def _join(self, outputs: list[Tensor], record: MultiOutputRecord) -> None:
        followed = [y.id for y in outputs if is_differentiable(y.dtype)]
        for id in followed:
            # the record comes first, so that going backwards all of its outputs are before it
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

    def record_break(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], why: str) -> None:
        """Take note that gradients stop here, and why."""
        for x in inputs:
            if x.id in self.records:
                self._breaks.extend(Break(y.id, x.id, why) for y in outputs)
                if not outputs:
                    self._breaks.append(Break(ELSEWHERE, x.id, why))
