"""Broken paths: floats that depend on a source through an op that unintentionally has no gradient.

The tape also follows an op without gradient rules: its record is ``Lost``, which passes no
gradient. The tape can therefore report exactly which part of a gradient is missing. A strict tape
follows rounding and integers in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ..base.dtypes import is_differentiable
from ..base.unknown import Place, warn_user
from ..errors import BrokenPathWarning, GradientError
from ..tensors.tensor import Tensor
from .reads import ReadReason
from .records import (
    ELSEWHERE,
    MultiOutputRecord,
    edges,
    is_lost,
    is_read,
    outputs_of,
    reachable,
)

if TYPE_CHECKING:
    from ..tensors.op import Op
    from .tape import GradientTape


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
            if b.is_read and b.input in reached and b.input < max(ends)
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


def tell(reasons: Sequence[str], strict: bool) -> None:
    """Raise ``GradientError`` if there are reasons and ``strict`` is true; otherwise, warn.

    A value that was read is warned of at the line that read it.
    """
    if not reasons:
        return
    reasons = list(dict.fromkeys(reasons))
    if strict:
        raise GradientError(f"{_broken(reasons)}. {_INTENDED}")
    for reason in reasons:
        if isinstance(reason, ReadReason) and not reason.told:
            reason.told = True
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
        reasons = [x for x in severed(tape, targets, sources) if x not in tape._told]
        tape._told.update(reasons)
        tell(reasons, False)


def check_paths(tape: GradientTape, targets: Sequence[Tensor], sources: Sequence[Any]) -> None:
    """Raise ``GradientError`` if the tape is strict and a gradient is incomplete.

    Otherwise, warn if it is incomplete because a value was read, or because of a custom gradient.
    """
    if tape._strict:
        tell(severed(tape, targets, sources), True)
    elif tape._lacks_calls:
        warn_of_breaks(tape, targets, sources)
    elif tape.wary:
        starts = {x.id for x in sources if is_differentiable(x.dtype)}
        tell(reads_between(tape, starts, {y.id for y in targets}), False)


def reads_between(tape: GradientTape, starts: set[int], ends: set[int]) -> list[str]:
    """Return the reasons of the reads that matter."""
    if tape._read is None:
        return []
    reasons: list[str] = [x.reason for x in tape._read.lacking(tape._all, starts, ends)]
    assigned = [id for id in tape._read.entries if not reasons and _assigned(tape, id, ends)]
    reasons += [line.reason for id in assigned for line in tape._read.entries[id]]
    return reasons
