"""Plans: graphs as Python functions on NumPy, with planned memory and combined steps.

A program goes through these modules, in order. ``tracing`` fixes unknown sizes of its inputs.
``lowering`` turns ops into steps (by ``rules``, or by tracing portable kernels), and ``batching``
several products into one. ``combining`` finds other steps that run as one: groups of elementwise
steps, stacks of calls, and flat updates. ``writing`` gives values their ``memory``, for as long as
they are needed, and writes a Python function. ``plan`` keeps these functions by the shapes of
inputs, and describes them. ``steps`` has the data structures of all of these. Plans of the default
executor change to compiled loops later, by ``tiers``.

Variables are read when the function starts, and change after its last line. No array that other
code may hold is written to: buffers belong to one call, and results and unpacked updates are always
new. Packed variables alternate between two sets of arrays; a set is written to only if no other
code still refers to it.

This module is the plugin of the executors that ship with gradtape, imported when executors or
lowerings are first needed. It is also all that other plugins may use of plans:

To run groups otherwise than as ufuncs (``plugins.fused``), pass an :class:`Emitter` to
:func:`planned_by`, which returns a :data:`Run`. An emitter receives a :class:`LoopGroup` of
:class:`PlanStep`, each of a :class:`StepKind`; its loop must compute :meth:`LoopGroup.by_numpy`.
Sums of :func:`numbers_to_sum` differ if it adds in another order than NumPy.
A function that returns an emitter is an executor's attribute ``emitter``: the default executor's
plans change to its loops.

To write a rule of an op, return a :data:`Rule` from ``gradtape_lowerings``. Rules add steps to a
:class:`Lowering`, whose values are symbols with a :data:`Shape`: :func:`symbol_like` makes one,
:func:`shape_of`, :func:`size_of` and :func:`bytes_of` measure it. :data:`RULES` are those for
NumPy; they share :func:`elementwise`, :func:`reshaped`, :func:`exponentials_of`,
:func:`has_rows_of_logits`, :func:`cast_into` and :func:`for_arrays_only`.

To plan for another backend (``plugins.cupy.compiled``): :func:`has_dtypes` checks a call's arrays,
:func:`retraced` fixes sizes, and a subclass of
:class:`Lowering` makes the steps (:func:`view_kernel` its views). :func:`packed` takes out each
:class:`FlatUpdate`, :func:`grouped` orders the rest as a list of :data:`Item`, and after changes
:func:`close_groups` sets what crosses their borders. :func:`lifetimes` says how long each value is
needed, :class:`Packed` holds a pack's variables, and :func:`count_ops` and :func:`pack_line`
describe a plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.extend import default, hookimpl, plain
from .combining import Emitter as Emitter
from .combining import FlatUpdate as FlatUpdate
from .combining import Item as Item
from .combining import close_groups as close_groups
from .combining import grouped as grouped
from .combining import packed as packed
from .lowering import Lowering as Lowering
from .lowering import reshaped as reshaped
from .lowering import view_kernel as view_kernel
from .memory import Packed as Packed
from .memory import lifetimes as lifetimes
from .plan import Plans as Plans
from .plan import Run as Run
from .plan import pack_line as pack_line
from .plan import planned as planned
from .plan import planned_by as planned_by
from .rules import RULES as RULES
from .rules import Rule as Rule
from .rules import cast_into as cast_into
from .rules import elementwise as elementwise
from .rules import exponentials_of as exponentials_of
from .rules import for_arrays_only as for_arrays_only
from .rules import has_rows_of_logits as has_rows_of_logits
from .steps import LoopGroup as LoopGroup
from .steps import PlanStep as PlanStep
from .steps import Shape as Shape
from .steps import StepKind as StepKind
from .steps import bytes_of as bytes_of
from .steps import count_ops as count_ops
from .steps import shape_of as shape_of
from .steps import size_of as size_of
from .steps import symbol_like as symbol_like
from .tracing import has_dtypes as has_dtypes
from .tracing import retraced as retraced
from .writing import numbers_to_sum as numbers_to_sum


@hookimpl(trylast=True)
def gradtape_executors() -> dict[str, Callable[..., Any]]:
    """Provide executors: the backend's own, a kernel call per node, and plans for NumPy."""
    return {"default": default, "plain": plain, "planned": planned}


@hookimpl(trylast=True)
def gradtape_lowerings() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide the steps of ops; an op with a ufunc or a formula as its kernel needs none."""
    return {(op, "planned"): rule for op, rule in RULES.items()}
