"""The backward pass: walks a tape's records from the end, and sums gradients that meet."""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import Any

import numpy as np

from ..base.context import BackwardPass, active_tapes, running
from ..base.holders import COUNTS
from ..base.table import F
from ..base.watcher import watcher
from ..ops.checks import Check
from ..tensors.tensor import Tensor, arrays_of
from .records import MultiOutputRecord, Pick, Picks, with_rules


def run_backward(
    records: dict[int, Any],
    grads: dict[int, Any],
    wanted: set[int],
    raw: bool,
    useful: set[int] | None,
) -> None:
    """Pass gradients from outputs to inputs, last record first; sum gradients that meet.

    Parameters
    ----------
    records
        The records to walk; empty afterwards.
    grads
        The upstream gradients of the targets, by id. Afterwards it holds those of the sources.
    wanted
        The ids of the sources: their gradients are kept.
    raw
        Whether gradients are arrays. Otherwise they are tensors, for other recorders to see.
    useful
        The ids of the tensors that sources influence; None for all.
    """
    watching = watcher.get()
    if watching is None:
        run = _walk if raw else _run
        run(records.popitem, records, grads, wanted, raw, useful)
        return

    def popitem() -> tuple[int, Any]:
        output, record = records.popitem()
        return output, with_rules(output, record, watching.rule)

    with watching.backward():
        _run(popitem, records, grads, wanted, raw, useful)


def _run(
    last: Callable[[], tuple[int, Any]],
    records: dict[int, Any],
    grads: dict[int, Any],
    wanted: set[int],
    raw: bool,
    useful: set[int] | None,
) -> None:
    """Walk the records, and report the current one if a recorder asks for it."""
    if raw or not any(recorder.asks_where for recorder in active_tapes.get()):
        _walk(last, records, grads, wanted, raw, useful)
        return
    here = BackwardPass()
    token = running.set((*running.get(), here))

    def popitem() -> tuple[int, Any]:
        item = last()
        here.output = item[0]
        return item

    try:
        _walk(popitem, records, grads, wanted, raw, useful)
    finally:
        running.reset(token)


def _walk(
    last: Callable[[], tuple[int, Any]],
    records: dict[int, Any],
    grads: dict[int, Any],
    wanted: set[int],
    raw: bool,
    useful: set[int] | None,
) -> None:
    unbroadcast = F.unbroadcast_like
    take, known_of = grads.pop, grads.get
    while records:
        output, record = last()
        kind = type(record)
        if kind is tuple:  # the most common record first
            g = take(output, None)
            if g is None:
                continue
            if output in wanted:
                grads[output] = g
            id, rule, saved, like = record
            if useful is not None and id not in useful:
                continue
            if saved is None:
                gx = rule(g)
            elif type(saved) is tuple:
                x, out = saved
                gx = rule(g, x.array, out.array) if raw else rule(g, x, out)
            else:
                gx = rule(g, saved.array if raw and type(saved) is Tensor else saved)
            if like is not None:
                if type(like) is not Check:
                    gx = unbroadcast(gx, like.array if raw else like)
                elif type(gx) is not type(g) or gx.shape != g.shape or gx.dtype is not g.dtype:
                    gx = like.held(gx, g)
            known = known_of(id)
            grads[id] = gx if known is None else _sum(known, gx)
            continue
        if record is None:
            continue
        if kind is not list:
            _run_rare(output, record, records, grads, wanted, raw, useful)
            continue
        g = take(output, None) if output not in wanted else known_of(output)
        if g is None:
            continue
        for id, rule, saved, keywords, like in record:
            if useful is not None and id not in useful:
                continue
            if keywords is not None:
                gx = rule(g, *(arrays_of(saved) if raw else saved), **keywords)
            elif saved is None:
                gx = rule(g)
            else:
                gx = rule(g, saved.array if raw and type(saved) is Tensor else saved)
            if like is not None:
                if type(like) is not Check:
                    gx = unbroadcast(gx, like.array if raw else like)
                elif type(gx) is not type(g) or gx.shape != g.shape or gx.dtype is not g.dtype:
                    gx = like.held(gx, g)
            known = known_of(id)
            grads[id] = gx if known is None else _sum(known, gx)


def _run_rare(
    output: int,
    record: MultiOutputRecord | Pick | Picks,
    records: dict[int, Any],
    grads: dict[int, Any],
    wanted: set[int],
    raw: bool,
    useful: set[int] | None,
) -> None:
    if type(record) is MultiOutputRecord:
        _run_multi_output(record, grads, wanted, useful)
    elif type(record) is Pick:
        g = grads.get(output) if output in wanted else grads.pop(output, None)
        tensor = record.input
        if g is not None and (useful is None or tensor in useful):
            # the pass makes no array of the tensor's size until it reaches the tensor
            picks = records[tensor]
            if type(picks) is not Picks:
                picks = records[tensor] = Picks(picks)
            picks.add(g, record)
    elif type(record) is Picks:
        for gx in record.gradients(raw):
            known = grads.get(output)
            grads[output] = gx if known is None else _sum(known, gx)
        records[output] = record.record  # which is walked next


def _run_multi_output(
    record: MultiOutputRecord, grads: dict[int, Any], wanted: set[int], useful: set[int] | None
) -> None:
    gs = [grads.get(id) if id in wanted else grads.pop(id, None) for id in record.outputs]
    for g in gs:
        if g is not None:
            break
    else:
        return
    if useful is not None and useful.isdisjoint(record.inputs):
        return
    for id, gx in zip(record.inputs, record.backward(gs), strict=True):
        if id is not None and gx is not None and (useful is None or id in useful):
            known = grads.get(id)
            grads[id] = gx if known is None else _sum(known, gx)


#: From this number of elements, a new array costs more than counting the old one's references.
_MANY = 1 << 14


def _sum(known: Any, gx: Any) -> Any:
    """Return the sum of two gradients, in the first one's memory if nothing else refers to it."""
    if (
        type(known) is np.ndarray
        and known.size >= _MANY
        and type(gx) is np.ndarray
        and known.dtype is gx.dtype
        and known.shape == gx.shape
        and known.base is None
        and known.flags.writeable
        and getrefcount(known) == _ALONE
    ):
        known += gx
        return known
    return known + gx


def _count(known: Any, gx: Any) -> int:
    return getrefcount(known)


def _alone() -> int:
    """Return how many references :func:`_sum` counts if only ``grads`` holds the array."""
    grads = {0: np.zeros(1)}
    known = grads.get(0)
    return _count(known, None) if COUNTS else -1


_ALONE = _alone()
