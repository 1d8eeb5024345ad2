"""Why a gradient is what it is: the answer of ``GradientTape.explain``."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from .backward import reachable
from .dtypes import is_differentiable
from .tape import ELSEWHERE
from .tensor import Tensor
from .variable import Variable

if TYPE_CHECKING:
    from .tape import GradientTape


def explain(tape: GradientTape, target: Tensor, source: Tensor, original: Any) -> str:
    """Return one sentence or more on the path from ``source`` to ``target``."""
    name = f"variable {original.name!r}" if isinstance(original, Variable) else "the source"
    for what, tensor in (("target", target), (name, source)):
        if not is_differentiable(tensor.dtype):
            return f"None: {what} has dtype {tensor.dtype}; only floats and complex have gradients."
    if target.id == source.id:
        return "Connected: the target is the source itself, so its gradient is 1."
    reached = reachable(tape._all, {source.id})
    if target.id in reached:
        return f"Connected: the target depends on {name} through differentiable ops."
    used = tape._used and not tape._persistent
    broken = _on_the_way(tape, target, reached)
    if broken:
        return f"None: a path from {name} ends: {'; '.join(broken)}."
    reasons: list[str] = []
    if not tape._entered:
        return "None: the tape was never entered; use it in a with statement."
    if used:
        reasons.append(
            "this tape is not persistent and gradient() has freed its records; "
            "call explain() first, or make it with persistent=True"
        )
    elif source.id not in tape._roots and source.id not in tape._all:
        watched = [v.name for v in tape.watched_variables()]
        reasons.append(
            f"{name} was never watched; call tape.watch(...) before using it "
            f"(watched variables: {', '.join(watched) or 'none'})"
        )
        if isinstance(original, Variable) and not original.trainable:
            reasons.append(f"{name} has trainable=False, so reading it does not watch it")
        elif isinstance(original, Variable):
            reasons.append("reading its value with .numpy() does not watch it")
        if not tape._watch_accessed:
            reasons.append("the tape was made with watch_accessed_variables=False")
    if tape._was_reset:
        reasons.append("the tape was reset, and forgot what came before")
    if tape._stops:
        reasons.append(f"recording was stopped at {', '.join(dict.fromkeys(tape._stops))}")
    if tape._thread != threading.get_ident():
        reasons.append("the tape was entered in another thread; a new thread records on no tape")
    if not reasons:
        found = "what was recorded from it leads elsewhere" if len(reached) > 1 else "no op used it"
        reasons.append(
            f"no recorded op connects {name} to the target ({found}); what ran outside the tape's "
            "with block, or in a new thread (unless by contextvars.copy_context().run), is not "
            "recorded, and an array or a Python number enters as a constant"
        )
    return f"None: {'; '.join(reasons)}."


def _on_the_way(tape: GradientTape, target: Tensor, reached: set[int]) -> list[str]:
    """Return why paths end that may have led to the target, without repeating a reason.

    Where a path ends in the target itself, the others are not asked. Otherwise what was made
    after the target is not on the way to it; ids are given in the order of creation.
    """
    broken = [b for b in tape._breaks if b.input in reached]
    ends = [b for b in broken if b.output == target.id]
    if not ends:
        ends = [b for b in broken if b.output < target.id and b.input < target.id]
        ends.sort(key=lambda b: b.output == ELSEWHERE)  # the less certain ones last
    return list(dict.fromkeys(b.reason for b in ends))
