"""``GradientTape.explain``: why a gradient exists, is ``None`` or is zero."""

from __future__ import annotations

import threading
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..base.context import recording_to, using_ended_batches
from ..base.dtypes import is_differentiable
from ..base.spec import describe
from ..base.table import F
from ..base.unknown import warn_user
from ..errors import BrokenPathWarning
from ..ops.backends.owners import to_numpy
from ..ops.dispatch import is_transformed
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .arguments import UnconnectedGradients, handle_of
from .backward import run_backward
from .broken import lost_between, reads_between
from .records import ELSEWHERE, is_read, outputs_of, pieces, reachable

if TYPE_CHECKING:
    from .tape import GradientTape

#: The number of names that a sentence lists at most.
SHOWN = 8


def explain(tape: GradientTape, target: Tensor, source: Tensor, original: Any) -> str:
    """Return one or more sentences about the path from ``source`` to ``target``."""
    name = f"variable {original.name!r}" if isinstance(original, Variable) else "the source"
    for what, tensor in (("target", target), (name, source)):
        if not is_differentiable(tensor.dtype):
            return f"None: {what} has dtype {tensor.dtype}; only floats and complex have gradients."
    if target.id == source.id:
        return "Connected: the target is the source itself, so its gradient is 1."
    reached = reachable(tape._all, {source.id}, lost=False)
    if target.id in reached:
        depends = f"the target depends on {name} through differentiable ops"
        lost = _lost(tape, target, source, reached, name)
        try:
            why = _why_zero(tape, target, source, reached)
        except Exception as error:  # from a user's rule; gradient() raises it too
            return f"Connected: {depends}, but a rule raises {type(error).__name__}: {error}."
        return (f"Zero: {depends}, but {why}." if why else f"Connected: {depends}.") + lost
    ended = "was computed after the tape's with block ended, which does not record it"
    if target.id > tape._ended:
        return f"None: the target {ended}: compute it inside the block."
    reached = reachable(tape._all, {source.id})
    used = tape._used and not tape._persistent
    broken = _on_the_way(tape, target, reached)
    broken = broken or lost_between(tape._all, {source.id}, {target.id})
    if broken:
        return f"None: a path from {name} ends: {'; '.join(broken)}."
    if _is_swapped(tape, target, source):
        return "None: the source depends on the target: swap the arguments."
    reasons: list[str] = []
    if not tape._entered:
        return "None: the tape was never entered; use it in a with statement."
    if used:
        reasons.append(
            "this tape is not persistent and gradient() has freed its records; "
            "call explain() first, or make it with persistent=True"
        )
    if tape._was_reset:
        reasons.append("the tape was reset, which removed what it had watched and recorded before")
    if not used and source.id not in tape._roots and source.id not in tape._all:
        if source.id > tape._ended:
            reasons.append(f"{name} {ended}: pass the tensor from which the target was computed")
        reasons.append(
            f"{name} was never watched{' since' if tape._was_reset else ''}; call tape.watch(...) "
            f"before using it (watched: {_watched(tape)})"
        )
        if isinstance(original, Variable) and not original.trainable:
            reasons.append(f"{name} has trainable=False, so reading it does not watch it")
        elif isinstance(original, Variable):
            reasons.append("reading its value with .numpy() does not watch it")
        if not tape._watch_accessed:
            reasons.append("the tape was made with watch_accessed_variables=False")
    if tape._stops:
        reasons.append(f"recording was stopped at {', '.join(dict.fromkeys(tape._stops))}")
    if tape._thread != threading.get_ident():
        reasons.append("the tape was entered in another thread; it does not record in new threads")
    if not reasons:
        found = "the ops that used it lead elsewhere" if len(reached) > 1 else "no op used it"
        reasons.append(
            f"no recorded op connects {name} to the target ({found}). Ops that run outside the "
            "tape's with block, or in a new thread (unless by contextvars.copy_context().run), are "
            "not recorded. Arrays, Python numbers, and values that were read from a variable "
            "before the tape began are constants"
        )
    return f"None: {'; '.join(reasons)}."


def warn_of_none(
    tape: GradientTape,
    method: str,
    targets: list[Tensor],
    sources: list[Any],
    unconnected: UnconnectedGradients,
) -> None:
    """Warn if the arguments alone make every derivative ``None``.

    They do if no target or no source is floating, if a target was computed outside the block, if
    the tape never saw the tensors among the sources, or if targets and sources are swapped. A
    variable that a target does not depend on is no such mistake: a model may not use it.
    """
    ends, known = {y.id for y in targets}, tape._all
    tensors = [x for x in sources if is_differentiable(x.dtype)]
    if unconnected is not UnconnectedGradients.NONE or any(x.id in ends for x in tensors):
        return
    if (
        all(not is_differentiable(y.dtype) or y.id > tape._ended for y in targets)
        or all(type(x) is Tensor and x.id not in known for x in tensors)
        or all(_is_swapped(tape, y, x) for y in targets for x in tensors)
    ):
        why = explain(tape, targets[0], handle_of(sources[0], "sources"), sources[0])
        warn_user(
            f'{method}: {why} With unconnected_gradients="zero", the result is zeros, without this '
            "warning",
            BrokenPathWarning,
        )


def _is_swapped(tape: GradientTape, target: Tensor, source: Any) -> bool:
    """Return whether a watched target influences the source, and not the reverse."""
    return target.id in tape._roots and (
        source.id not in tape._roots and source.id in reachable(tape._all, {target.id})
    )


def _on_the_way(tape: GradientTape, target: Tensor, reached: set[int]) -> list[str]:
    """Return the distinct reasons why paths that may lead to the target end.

    If paths end in the target itself, only these count. Otherwise, paths count that end before the
    target was made: ids grow in the order of creation.
    """
    broken = [b for b in tape._breaks if b.input in reached]
    ends = [b for b in broken if b.output == target.id]
    if not ends:
        ends = [b for b in broken if b.output < target.id and b.input < target.id]
        ends.sort(key=lambda b: b.output == ELSEWHERE)  # the less certain ones last
    return list(dict.fromkeys(b.reason for b in ends))


def _lost(tape: GradientTape, target: Tensor, source: Tensor, reached: set[int], name: str) -> str:
    """Return a sentence that says where other paths end or may end, or an empty string."""
    returned = reads_between(tape, {source.id}, {target.id})
    known = list(dict.fromkeys(lost_between(tape._all, {source.id}, {target.id}) + returned))
    if known:
        return f" Other paths from {name} end: {'; '.join(known)}."
    guessed = {
        b.reason: None
        for b in tape._breaks
        if b.floats
        and not isinstance(b.why, str)
        and b.why.rules is not None  # the tape follows an op without any rules
        and not any(b.why.ends_at(i) for i in range(len(b.why.inputs)))
        and b.input in reached
        and b.output < target.id
    }
    text = ""
    if guessed and not tape._strict:
        text = f" Other paths from {name} may end before it: {'; '.join(guessed)}."
    read = tape._read.places(reached, target.id) if tape._read is not None else []
    if read:
        text += f" Values that depend on {name} were read by {', '.join(read)}."
    return text


def _watched(tape: GradientTape) -> str:
    """List what the tape watches: variables by name, tensors by shape and dtype."""
    variables, tensors, gone = [], [], 0
    for _, watched in sorted(tape._roots.items(), key=itemgetter(0)):
        source = watched if isinstance(watched, Variable) else watched()
        if isinstance(source, Variable):
            variables.append(f"variable {source.name!r}")
        elif source is not None:
            tensors.append(f"a tensor {describe(source.array.shape, source.array.dtype)}")
        else:
            gone += 1
    found = variables + tensors
    if gone:
        found.append(f"{gone} that no longer exist{'s' if gone == 1 else ''}")
    more = len(found) - SHOWN
    return ", ".join(found[:SHOWN]) + (f" and {more} more" if more > 0 else "") or "nothing"


# -- gradients of zero -----------------------------------------------------------------------------


def _why_zero(tape: GradientTape, target: Tensor, source: Tensor, reached: set[int]) -> str | None:
    """Say where the gradient became all zeros in the backward pass; None if it did not.

    This runs a backward pass that keeps every intermediate gradient, at the cost of its time and
    memory.
    """
    if is_transformed(target.array) or is_transformed(source.array):
        return None
    records = tape._all
    grads = {target.id: F.ones_like(target.array)}
    with recording_to(()), using_ended_batches(tape.batched):
        run_backward(records.copy(), grads, set(records), True, reached)
        if source.size == 0 or not _vanished(grads.get(source.id)):
            return None
        blocked, cancelled = _ends(records, grads, reached)
    said = []
    if blocked:
        said.append(f"at these values {_listed(blocked)} made its gradient all zeros")
    if cancelled:
        said.append(f"the gradients that come back through {_listed(cancelled)} cancel")
    return " and ".join(said) or None


def _ends(
    records: dict[int, Any], grads: dict[int, Any], reached: set[int]
) -> tuple[list[str], list[str]]:
    """Return the ops that turned a gradient into zeros, and those whose gradients cancelled."""
    blocked: dict[str, None] = {}
    cancelled: dict[str, None] = {}
    reads = {id: record[0] for id, record in records.items() if is_read(record)}
    for output, record in reversed(records.items()):
        if output in reads:
            continue
        coming = {id: grads[id] for id in outputs_of(output, record) if id in grads}
        if all(map(_vanished, coming.values())):
            continue
        for id, name, piece in pieces(record):
            # the gradients of two reads of the same variable may cancel
            if id in reached and _vanished(grads.get(reads.get(id, id))):
                alone = dict(coming)
                run_backward({output: piece}, alone, {id}, True, None)
                (blocked if _vanished(alone.get(id)) else cancelled)[name] = None
    return list(blocked), list(cancelled)


def _vanished(gradient: Any) -> bool:
    return gradient is not None and not to_numpy(gradient).any()


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    kind = "op" if len(names) == 1 else "ops"
    return f"{kind} {', '.join(map(repr, names[:SHOWN]))}{more}"
