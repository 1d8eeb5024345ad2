"""Missing gradients: broken paths, and ``GradientTape.explain``.

A path is broken where a float depends on a source through an op that unintentionally has no
gradient. The tape also follows an op without gradient rules: its record is ``Lost``, which passes
no gradient. The tape can therefore report exactly which part of a gradient is missing. A strict
tape follows rounding and integers in the same way.

``explain`` says why a gradient exists, is ``None`` or is zero.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..base.array_types import describe
from ..base.context import recording_to, using_ended_batches
from ..base.dtypes import is_differentiable
from ..base.table import F
from ..base.user_code import Place, warn_user
from ..errors import BrokenPathWarning, GradientError
from ..ops.dispatch import is_transformed, to_numpy
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .backward import UnconnectedGradients, handle_of, run_backward
from .reads import ReadReason
from .records import (
    ELSEWHERE,
    MultiOutputRecord,
    edges,
    is_lost,
    is_read,
    outputs_of,
    pieces,
    reachable,
)

if TYPE_CHECKING:
    from ..tensors.op import Op
    from .tape import GradientTape


# -- broken paths ----------------------------------------------------------------------------------


def lost_inputs(op: Op, inputs: Sequence[Any], output: Tensor, live: Collection[int]) -> list[int]:
    """Return the followed inputs whose influence on the output has no gradient.

    Boolean conditions, and integers that select elements, do not count: the selected values have
    their own gradients.
    """
    if output.dtype.kind == "b":
        return []
    return [
        x.id
        for i, (x, rule) in enumerate(zip(inputs, op.rules or (), strict=False))
        if rule is None
        and type(x) is Tensor
        and x.id in live
        and is_differentiable(x.dtype)
        and not op.ends_at(i)
    ]


def lost_between(
    records: dict[int, Any], sources: Collection[int], targets: Collection[int]
) -> list[str]:
    """Return the distinct reasons why parts of the targets' gradients are lost."""
    reached = reachable(records, set(sources))
    needed = set(targets)
    reasons: dict[str, None] = {}
    for output, record in reversed(records.items()):
        if record is None or needed.isdisjoint(outputs_of(output, record)):
            continue
        if type(record) is MultiOutputRecord:
            given = [id for id in record.inputs if id in reached]
        else:
            given = [edge.input for edge in edges(record) if edge.input in reached]
        if given and is_lost(record):
            reasons[record.backward.reason] = None
        needed.update(given)
    return list(reasons)


def severed(tape: GradientTape, targets: Sequence[Tensor], sources: Sequence[Any]) -> list[str]:
    """Return why gradients are incomplete; an empty list if they are complete.

    A value that was read with ``.numpy()`` may have gone anywhere, so it counts only if no other
    path leads to a target. Other reads count if a target depends on a constant that may have been
    computed from the value. The same as for ``.numpy()`` holds for an assigned value, except that
    reads of a followed variable after the assignment count if they lead to a target.
    """
    if not tape._may_lack:
        return []
    ends, records = {y.id for y in targets}, tape._all
    starts = [x.id for x in sources if is_differentiable(x.dtype)]
    reasons = lost_between(records, starts, ends) + reads_between(tape, set(starts), ends)
    for start in starts:
        reasons += _assigned(tape, start, ends)
        if start in ends or not ends.isdisjoint(reachable(records, {start}, lost=False)):
            continue
        reached = reachable(records, {start})
        reasons += [
            b.reason
            for b in tape._breaks
            if b.is_read and b.input in reached and b.input < max(ends, default=0)
        ]
    return list(dict.fromkeys(reasons))


def _assigned(tape: GradientTape, start: int, ends: set[int]) -> list[str]:
    """Return the reasons of assignments through which a source influences targets."""
    records = tape._all
    assigned = [b for b in tape._breaks if b.is_read and b.output != ELSEWHERE]
    reached = reachable(records, {start}) if assigned else ()
    found = []
    for b in assigned:
        if b.input not in reached:
            continue
        later = {b.output}  # what a traced function reads after the assignment
        if not is_read(records.get(b.output)):
            later = {
                id for id, r in records.items() if id > b.time and is_read(r) and r[0] == b.output
            }
        if not ends.isdisjoint(reachable(records, later)):
            found.append(b.reason)
    return found


def raise_or_warn(reasons: Sequence[str], strict: bool) -> None:
    """Raise ``GradientError`` if there are reasons and ``strict`` is true; otherwise, warn.

    A value that was read is warned of at the line that read it. It is an error if it certainly came
    back.
    """
    if not reasons:
        return
    reasons = list(dict.fromkeys(reasons))
    certain = [reason for reason in reasons if isinstance(reason, ReadReason) and reason.certain]
    if strict or certain:
        raise GradientError(f"{_broken(reasons if strict else certain)}. {_INTENDED}")
    for reason in reasons:
        if isinstance(reason, ReadReason) and not reason.reported:
            reason.reported = True
            _warn([reason], reason.place)
    others = [reason for reason in reasons if not isinstance(reason, ReadReason)]
    if others:
        _warn(others, None)


_INTENDED = "If this is intended, use gradtape.stop_gradient there"


def _broken(reasons: Sequence[str]) -> str:
    return f"a path from a source to the target is broken: {'; '.join(reasons)}"


def _warn(reasons: Sequence[str], place: Place | None) -> None:
    lacks = f"The derivative does not include that path. {_INTENDED}"
    text = f"{_broken(reasons)}. {lacks}; strict=True makes this an error"
    warn_user(text, BrokenPathWarning, place)


def warn_of_breaks(tape: GradientTape, results: Sequence[Any], sources: Sequence[Any]) -> None:
    """Warn if derivatives of results lack a part, once per reason; a strict tape raises instead."""
    if tape._may_lack and not tape._strict:
        targets = [leaf for leaf in results if isinstance(leaf, Tensor)]
        reasons = [x for x in severed(tape, targets, sources) if x not in tape._warned]
        tape._warned.update(reasons)
        raise_or_warn(reasons, False)


def check_paths(tape: GradientTape, targets: Sequence[Tensor], sources: Sequence[Any]) -> None:
    """Raise ``GradientError`` if the tape is strict and a gradient is incomplete.

    Otherwise, warn if it is incomplete because a value was read, or because of a custom gradient.
    """
    if tape._strict:
        raise_or_warn(severed(tape, targets, sources), True)
    elif tape._lacks_calls:
        warn_of_breaks(tape, targets, sources)
    if tape.checks_constants and (tape._strict or not tape._lacks_calls):
        starts = {x.id for x in sources if is_differentiable(x.dtype)}
        raise_or_warn(reads_between(tape, starts, {y.id for y in targets}), tape._strict)


def reads_between(tape: GradientTape, starts: set[int], ends: set[int]) -> list[str]:
    """Return the reasons of the reads that matter."""
    if tape._read is None:
        return []
    reasons: list[str] = [x.reason for x in tape._read.lacking(tape._all, starts, ends)]
    assigned = [id for id in tape._read.entries if not reasons and _assigned(tape, id, ends)]
    reasons += [line.reason for id in assigned for line in tape._read.entries[id]]
    return reasons


# -- explanations ----------------------------------------------------------------------------------


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
    broken = _intermediate_values(tape, target, reached)
    broken = broken or lost_between(tape._all, {source.id}, {target.id})
    if broken:
        return f"None: a path from {name} ends: {'; '.join(broken)}."
    if _is_swapped(tape, target, source):
        return "None: the source depends on the target: swap the arguments."
    if not tape._entered:
        return "None: the tape was never entered; use it in a with statement."
    reasons = _not_recorded(tape, source, original, name, ended)
    if not reasons:
        found = "the ops that used it lead elsewhere" if len(reached) > 1 else "no op used it"
        reasons.append(
            f"no recorded op connects {name} to the target ({found}). Ops that run outside the "
            "tape's with block, or in a new thread (unless by contextvars.copy_context().run), are "
            "not recorded. Arrays, Python numbers, and values that were read from a variable "
            "before the tape began are constants"
        )
    return f"None: {'; '.join(reasons)}."


def _not_recorded(
    tape: GradientTape, source: Tensor, original: Any, name: str, ended: str
) -> list[str]:
    """Return why the tape may have recorded nothing that connects the source to a target."""
    reasons: list[str] = []
    used = tape._used and not tape._persistent
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
    return reasons


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


def _intermediate_values(tape: GradientTape, target: Tensor, reached: set[int]) -> list[str]:
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
