"""Broken paths: where floats depend on a source through what has no gradient, and is not meant so.

An op without any gradient rule is followed all the same: its record is ``Lost``, through which no
gradient passes. So who asks can be told exactly what of a gradient is missing. A strict tape
follows so what rounds and what goes through integers, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ..base.dtypes import is_differentiable
from ..base.unknown import warn_user
from ..errors import BrokenPathWarning, GradientError
from ..tensors.tensor import Tensor
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

__all__ = ["check_strict", "is_meant", "lost_between", "lost_inputs", "severed", "tell"]

#: Ops of which floats come that do not depend on the values of their inputs without a rule, or
#: where the path is meant to end.
_MEANT = frozenset(
    {
        "stop_gradient",
        "zeros_like",
        "ones_like",
        "size_over",
        "numbered_like",
        "pad_ramp",
        "max_pool_scatter",
        "max_pool_gather",
    }
)


def is_meant(op: Op, place: int) -> bool:
    """Return whether an op has no gradient for an input because its values play no part."""
    name = op.inputs[min(place, len(op.inputs) - 1)]
    return op.name in _MEANT or op.name.startswith("random_") or name == "like"


def lost_inputs(op: Op, inputs: Sequence[Any], output: Tensor, live: Collection[int]) -> list[int]:
    """Return the followed inputs whose influence on the output has no gradient.

    Conditions, which are boolean, and integers that select do not count: what is chosen by them has
    its own gradient.
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
        and not is_meant(op, i)
    ]


def lost_between(
    records: dict[int, Any], sources: Collection[int], targets: Collection[int]
) -> list[str]:
    """Return why parts of the gradients of targets by sources are lost, each reason once."""
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
    """Return why gradients lack what they should have; nothing, if they lack nothing.

    A value that was read may have gone anywhere: that counts where no other path leads to a target.
    So does one that was assigned, but for what is read later of a variable that is followed.
    """
    if not tape._may_lack:
        return []
    ends, records = {y.id for y in targets}, tape._all
    starts = [x.id for x in sources if is_differentiable(x.dtype)]
    reasons = lost_between(records, starts, ends)
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
    """Return the assignments by which a source has a part in targets."""
    records = tape._all
    assigned = [b for b in tape._breaks if b.is_read and b.output != ELSEWHERE]
    reached = reachable(records, {start}) if assigned else ()
    found = []
    for b in assigned:
        if b.input not in reached:
            continue
        later = {b.output}  # what a traced function reads after it has assigned
        if not is_read(records.get(b.output)):
            later = {
                id for id, r in records.items() if id > b.time and is_read(r) and r[0] == b.output
            }
        if not ends.isdisjoint(reachable(records, later)):
            found.append(b.reason)
    return found


def tell(reasons: Sequence[str], strict: bool) -> None:
    """Raise ``GradientError`` if there are reasons and somebody is strict; warn otherwise."""
    if not reasons:
        return
    why = f"a path from a source to the target is broken: {'; '.join(dict.fromkeys(reasons))}"
    if strict:
        raise GradientError(f"{why}. Where that is meant, say so with gradtape.stop_gradient")
    warn_user(
        f"{why}. The derivative lacks what came that way. Where that is meant, say so with "
        "gradtape.stop_gradient; strict=True makes this an error",
        BrokenPathWarning,
    )


def check_strict(tape: GradientTape, targets: Sequence[Tensor], sources: Sequence[Any]) -> None:
    """Raise ``GradientError`` if a strict tape lacks a part of a gradient."""
    if tape._strict:
        tell(severed(tape, targets, sources), True)
