"""Plans: programs on NumPy with planned memory, grouped and packed steps.

A program goes through these modules, in order. ``tracing`` fixes unknown sizes of its inputs.
``lowering`` turns ops into steps (by ``rules``, or by tracing portable kernels). ``combining``
finds steps that run as one: groups of elementwise steps, stacks of calls, and packs of updates.
``emission`` gives values their ``memory``, for as long as they are needed, and writes a Python
function; ``writing`` has the lines of groups and joins. ``plan`` keeps these functions by the
shapes of inputs, writes the bodies of scans as loops, and describes them. ``steps`` has the data
structures of all of these.

Variables are read when the function starts, and change after its last line. No array that other
code may hold is written to: buffers belong to one call, and results and unpacked updates are always
new. Packed variables alternate between two sets of arrays; a set is written to only if no other
code still refers to it.

This module is the plugin of the executors that ship with gradtape, imported when executors or
lowerings are first needed. It is also all that other plugins may use of plans:

To run groups otherwise than as ufuncs (``plugins.fused``), pass an :class:`Emitter` to
:func:`planned_by`, which returns a :data:`Run`. An emitter receives a :class:`Group` of
:class:`Step`, each of a :class:`Kind`; :meth:`Group.by_numpy` is what its loop must compute.

To write a rule of an op, return a :data:`Rule` from ``gradtape_lowerings``. Rules add steps to a
:class:`Lowering`, whose values are symbols with a :data:`Shape`: :func:`symbol_like` makes one,
:func:`shape_of`, :func:`size_of` and :func:`bytes_of` measure it. :data:`RULES` are those for
NumPy; they share :func:`reshaped`, :func:`exponentials_of`, :func:`has_rows_of_logits`,
:func:`cast_into` and :func:`for_arrays_only`.

To plan for another backend (``plugins.cupy.compiled``): :func:`retraced` fixes sizes, a subclass of
:class:`Lowering` makes the steps (:func:`view_kernel` its views), :func:`packed` takes out each
:class:`Pack`, :func:`grouped` orders the rest as a list of :data:`Item`, and after changes
:func:`close_groups` sets what crosses their borders. :func:`lifetimes` says how long each value is
needed, :class:`Packed` holds a pack's variables, and :func:`count_ops` and :func:`pack_line`
describe a plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.extend import default, hookimpl, plain
from .combining import Emitter, Item, Pack, close_groups, grouped, packed
from .lowering import Lowering, view_kernel
from .memory import Packed, lifetimes
from .plan import Plans, Run, pack_line, planned, planned_by
from .rules import (
    RULES,
    Rule,
    cast_into,
    exponentials_of,
    for_arrays_only,
    has_rows_of_logits,
    reshaped,
)
from .steps import (
    Group,
    Kind,
    Shape,
    Step,
    bytes_of,
    count_ops,
    shape_of,
    size_of,
    symbol_like,
)
from .tracing import retraced

__all__ = [
    "RULES",
    "Emitter",
    "Group",
    "Item",
    "Kind",
    "Lowering",
    "Pack",
    "Packed",
    "Plans",
    "Rule",
    "Run",
    "Shape",
    "Step",
    "bytes_of",
    "cast_into",
    "close_groups",
    "count_ops",
    "exponentials_of",
    "for_arrays_only",
    "grouped",
    "has_rows_of_logits",
    "lifetimes",
    "pack_line",
    "packed",
    "planned",
    "planned_by",
    "reshaped",
    "retraced",
    "shape_of",
    "size_of",
    "symbol_like",
    "view_kernel",
]


@hookimpl(trylast=True)
def gradtape_executors() -> dict[str, Callable[..., Any]]:
    """Provide executors: the backend's own, a kernel call per node, and plans for NumPy."""
    return {"default": default, "plain": plain, "planned": planned}


@hookimpl(trylast=True)
def gradtape_lowerings() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide the steps of ops; an op with a ufunc or a formula as its kernel needs none."""
    return {(op, "planned"): rule for op, rule in RULES.items()}
