"""Forward mode: tangents computed together with the values, op by op."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..base.array_types import TensorSpec, next_id
from ..base.context import Setting, active_batches, active_tapes, changing, recording_to, strictness
from ..base.dtypes import is_differentiable
from ..base.lifetimes import KERNEL_CACHES
from ..base.observers import Recorder
from ..base.sizes import same_shape
from ..base.table import F, registry
from ..base.tree import flatten, outline, pack_like, structure
from ..base.user_code import raise_hidden
from ..tape.backward import UnconnectedGradients, unconnected_kind
from ..tape.missing_gradients import lost_inputs, raise_or_warn
from ..tape.reads import ReadReason, Reads, numbers_of
from ..tensors.convert import as_tensor
from ..tensors.op import Op
from ..tensors.tensor import Tensor
from ..tensors.value_holder import ValueHolder
from ..tensors.variable import Variable
from .forward_rules import check_linear, push_forward, transposed


class ForwardAccumulator(Recorder):
    """Compute Jacobian-vector products while a function runs: forward-mode differentiation.

    Parameters
    ----------
    primals
        Distinct tensors or variables, in any nested containers.
    tangents
        A tensor for each, of its shape, in the same structure: the direction of the derivative.
    strict
        Make :meth:`jvp` raise ``GradientError`` if a tangent lacks a part, or is ``None``, because
        a path is broken; see :class:`GradientTape`.

    Raises
    ------
    ValueError
        If a primal is repeated, or structures or shapes differ.
    TypeError
        If a primal is not a tensor or a variable, or not floating.

    Notes
    -----
    The semantics are those of ``tf.autodiff.ForwardAccumulator``. Accumulators and tapes can be
    nested in any order: one that was opened earlier records the tangents of one opened later.
    Assignments to variables do not pass tangents, just as they do not pass gradients: a variable
    keeps its initial tangent.

    Examples
    --------
    >>> x = gt.constant([2.0, 3.0])
    >>> with gt.ForwardAccumulator(x, gt.constant([1.0, 0.0])) as acc:
    ...     y = gt.sum(x * x)
    >>> acc.jvp(y).item()
    4.0
    """

    _gradtape_internal = "lacking"

    def __init__(self, primals: Any, tangents: Any, *, strict: bool = False) -> None:
        if structure(primals) != structure(tangents):
            raise ValueError(
                "ForwardAccumulator: primals and tangents do not have the same structure: "
                f"{outline(primals)} and {outline(tangents)}"
            )
        self.records: dict[int, Any] = {}  # tangents by id
        self._recording = False
        self._strict = bool(strict)
        # the reason why a tensor's tangent lacks a part, by id; and the ways in which values were
        # read
        self._lost: dict[int, str] = {}
        self._reads: list[str] = []
        # the reads of values after which constants matter
        self._read: Reads | None = None
        for primal, tangent in zip(flatten(primals), flatten(tangents), strict=True):
            if not isinstance(primal, (Tensor, Variable)):
                raise TypeError(
                    "ForwardAccumulator: a primal must be a Tensor or Variable, got "
                    f"{type(primal).__name__}"
                )
            if primal.id in self.records:
                raise ValueError("ForwardAccumulator: the same primal is given twice")
            if not is_differentiable(primal.dtype):
                raise TypeError(
                    f"ForwardAccumulator: a primal of dtype {primal.dtype} has no tangent"
                )
            self.records[primal.id] = _fitting(as_tensor(tangent), primal)
        # keeps the primals alive even if the caller's container no longer holds them
        self._primals = flatten(primals)

    def __enter__(self) -> ForwardAccumulator:
        if self._recording:
            raise RuntimeError("ForwardAccumulator is already recording; open another to nest")
        self._recording = True
        self.levels = frozenset(batch.level for batch in active_batches.get())
        active_tapes.set((*active_tapes.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        self._recording = False
        active_tapes.set(tuple(tape for tape in active_tapes.get() if tape is not self))
        raise_hidden(exception[1])

    def jvp(
        self,
        primals: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the tangents of results that were computed while recording.

        Parameters
        ----------
        primals
            Tensors, in any nested containers.
        unconnected_gradients
            The tangent of a tensor that does not depend on the primals: ``"none"`` for ``None``,
            ``"zero"`` for zeros.

        Returns
        -------
        object
            A tangent per tensor, of its shape and dtype, in the structure of ``primals``.

        Raises
        ------
        TypeError
            If a leaf is neither a tensor nor a variable.
        ValueError
            If ``unconnected_gradients`` has another value.
        GradientError
            If the accumulator is strict, and a path is broken.
        """
        if self._strict:
            raise_or_warn(self.lacking(flatten(primals)), True)
        else:
            reasons = (self._lost.get(x.id) for x in flatten(primals) if hasattr(x, "id"))
            raise_or_warn([x for x in reasons if isinstance(x, ReadReason)], False)
        zero = unconnected_kind(unconnected_gradients) is UnconnectedGradients.ZERO
        results = []
        for leaf in flatten(primals):
            handle = leaf.handle() if isinstance(leaf, ValueHolder) else leaf
            if not isinstance(handle, Tensor):
                raise TypeError(f"jvp: expected a Tensor or Variable, got {type(leaf).__name__}")
            tangent = self.records.get(handle.id)
            if tangent is None and zero:
                tangent = Tensor(F.zeros_like(handle.array))
            results.append(tangent)
        return pack_like(primals, results)

    def lacking(self, results: Sequence[Any]) -> list[str]:
        """Return the reasons why tangents of results lack a part."""
        handles = [leaf.handle() if isinstance(leaf, ValueHolder) else leaf for leaf in results]
        ids = [handle.id for handle in handles if isinstance(handle, Tensor)]
        reasons = [self._lost[id] for id in ids if id in self._lost]
        if (results and not ids) or any(self.records.get(id) is None for id in ids):
            reasons += self._reads  # a result may depend on a value that was read
        return reasons

    # -- records ---------------------------------------------------------------------------------

    def record(self, op: Op, inputs: Any, output: Tensor, params: dict[str, Any]) -> None:
        """Compute the tangent of an op's output."""
        self.record_joint(op, inputs, [output], params)

    def record_joint(
        self, op: Op, inputs: Any, outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        """Compute the tangents of an op's outputs."""
        self._note_lost(op, inputs, outputs, params)
        tangents = self._tangents(inputs)
        if tangents is None or not any(is_differentiable(y.dtype) for y in outputs):
            return
        with self._for_outer_recorders():
            self._keep(outputs, push_forward(op, tangents, inputs, outputs, params))

    def _note_lost(
        self, op: Op, inputs: Any, outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        """Follow tensors that depend on the primals but have no tangent."""
        known, rules = self.records, op.rules
        passing = [
            self._lost[x.id]
            for i, x in enumerate(inputs)
            if type(x) is Tensor
            and x.id in self._lost
            and (is_differentiable(x.dtype) if rules is None else rules[i] is not None)
        ]
        for y in outputs:
            reason = passing[0] if passing else None
            if op.vjp is None and (rules is None or self._strict):
                given = {x.id for x in inputs if type(x) is Tensor}
                tangents = {id for id in given if known.get(id) is not None}
                lost = lost_inputs(op, inputs, y, tangents)
                if rules is None and tangents:
                    reason = reason or f"op {op.name!r} has no gradient rule"
                elif y.dtype.kind in "iu" and (lost or (tangents and op.differentiable)):
                    reason = reason or f"op {op.name!r} gives {y.dtype}, which has no gradient"
                elif lost:
                    reason = reason or f"op {op.name!r} does not pass gradients to this input"
            if self._read is not None:
                entered = self._read.numbers_enter(y.id, numbers_of((*inputs, *params.values())))
                reason = reason or next((line.reason for line in entered), None)
            if reason is not None and (is_differentiable(y.dtype) or self._strict):
                self._mark_incomplete(y, reason)

    def _mark_incomplete(self, y: Tensor, reason: str) -> None:
        """Follow a tensor that has no tangent, or only a part of it."""
        known, lost = self.records, self._lost
        lost[y.id] = reason
        known.setdefault(y.id)  # so that ops report their use of it
        for table in (known, lost):
            weakref.finalize(y, table.pop, y.id, None).atexit = False

    def record_read(self, x: Tensor, site: Any, frame: FrameType, value: Any, held: bool) -> None:
        """Note that a value was read, and look at all constants that enter from now on."""
        if self.records.get(x.id) is None:
            return
        if self._read is None:
            self._read, self.checks_constants = Reads(self._strict), True
        reason = self._read.note(x.id, site, frame, value, next_id())
        self.record_break([x], (), reason)

    def record_entry(self, x: Tensor, value: Any) -> None:
        """Follow a constant if it may have been computed from a value that was read."""
        entered = self._read.array_enters(x.id, value, x.array) if self._read is not None else ()
        for line in entered:
            self._mark_incomplete(x, line.reason)

    def record_lost(
        self, inputs: Sequence[Tensor], places: Sequence[int], outputs: Sequence[Tensor], why: str
    ) -> None:
        """Note that the tangents of outputs lack the part of some inputs."""
        if any(inputs[i].id in self.records for i in places):
            for y in outputs:
                if is_differentiable(y.dtype):
                    self._mark_incomplete(y, why)

    def record_break(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], why: str) -> None:
        """Note that a value was used where tangents do not follow."""
        if any(self.records.get(x.id) is not None for x in inputs):
            self._reads.append(why)
        lost = [self._lost[x.id] for x in inputs if x.id in self._lost]
        if lost and self.checks_constants:  # a variable is assigned what lacks a part
            self._lost.update({y.id: lost[0] for y in outputs})

    def accessed(self, variable: Variable, read: Tensor) -> None:
        """Give the read of a variable the variable's tangent."""
        tangent = self.records.get(variable.id)
        if tangent is not None:
            self.records[read.id] = tangent
        if variable.id in self._lost:
            self._mark_incomplete(read, self._lost[variable.id])

    def changing(self, variable: Variable, before: Any) -> None:
        """Pass on that a variable is about to be assigned (called by the variable)."""
        changing(variable, before)

    def record_call(
        self,
        name: str,
        inputs: list[Tensor],
        outputs: list[Tensor],
        backward: Callable[[list[Any]], Sequence[Any]],
    ) -> None:
        """Compute the tangents of a computation with a gradient function."""
        for passing in [self._lost[x.id] for x in inputs if x.id in self._lost][:1]:
            for y in filter(lambda y: is_differentiable(y.dtype), outputs):
                self._mark_incomplete(y, passing)
        tangents = self._tangents(inputs)
        if tangents is None:
            return
        with self._for_outer_recorders():
            found = transposed(backward, tangents, outputs, name)
            with recording_to(()):
                check_linear(backward, tangents, outputs, name)
            self._keep(outputs, found)

    def _tangents(self, inputs: Sequence[Any]) -> list[Tensor | None] | None:
        known = self.records
        found = [known.get(x.id) if type(x) is Tensor else None for x in inputs]
        return found if any(t is not None for t in found) else None

    @contextmanager
    def _for_outer_recorders(self) -> Iterator[None]:
        """Run a block that computes tangents, recorded by the recorders opened before this one."""
        strict = self._strict or strictness.get()
        with Setting(strictness, strict), recording_to(self._others()):
            yield

    def _others(self) -> tuple[Any, ...]:
        """Return the recorders opened before this one, which record the tangents."""
        active = active_tapes.get()
        return active[: active.index(self)] if self in active else active

    def _keep(self, outputs: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> None:
        records = self.records
        for y, tangent in zip(outputs, tangents, strict=True):
            if tangent is not None and is_differentiable(y.dtype):
                records[y.id] = tangent
                # the tangent is not needed after the result is gone
                weakref.finalize(y, records.pop, y.id, None).atexit = False


def _fitting(tangent: Tensor, primal: Any) -> Tensor:
    """Return a tangent in its primal's dtype."""
    shape, want = tangent.shape, primal.shape
    if not same_shape(shape, want) and not TensorSpec(want, primal.dtype).admits(shape):
        raise ValueError(
            f"ForwardAccumulator: a tangent has shape {shape}, but its primal has {want}"
        )
    if tangent.dtype == primal.dtype:
        return tangent
    if tangent.dtype.kind == "c" and primal.dtype.kind != "c":
        raise TypeError(
            f"ForwardAccumulator: a tangent of dtype {tangent.dtype} does not fit a real primal"
        )
    result: Tensor = tangent.astype(primal.dtype)
    return result


def register_jvp(op_name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function to make it the forward rule of an op.

    Without a forward rule, it is derived from the gradient rules, at several times the cost.

    Parameters
    ----------
    op_name
        The op, as ``gradtape plugins --ops`` lists it.

    Returns
    -------
    callable
        A decorator for ``rule(tangents, inputs, outputs, **params)``: the rule receives a tangent
        or ``None`` (for zero) per input, and returns the tangent of the output, or one per output.

    Raises
    ------
    LookupError
        If no plugin provides the op.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from gradtape.plugin import Op
    >>> cube = Op("example::cube", lambda xp, x: x**3, gradients={"x": lambda g, x: 3 * g * x * x})
    >>> plugin = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [cube]))
    >>> registered = gt.register_plugin(plugin, "example")
    >>> @gt.register_jvp("example::cube")
    ... def forward(tangents, inputs, outputs):
    ...     return 3.0 * tangents[0] * inputs[0] * inputs[0]
    >>> gt.jvp(cube, 2.0, 1.0)[1].item()
    12.0
    >>> gt.unregister_plugin("example")
    """
    op = registry().op(op_name)

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        op.jvp = rule
        KERNEL_CACHES.meaning_changed()
        return rule

    return register
