"""The backward pass: what walks back through a tape's records, and sums where gradients meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..base.table import F
from ..tensors.tensor import Tensor

__all__ = ["Joint", "arrays_of", "reachable", "run_backward"]


class Joint(NamedTuple):
    """A record of several outputs or of a rule that serves all inputs at once."""

    outputs: tuple[int, ...]
    inputs: tuple[int | None, ...]
    # backward(upstream gradients or None, tensors or raw arrays?) -> a gradient or None per input
    backward: Callable[[list[Any], bool], Sequence[Any]]
    name: str


def reachable(records: dict[int, Any], sources: set[int]) -> set[int]:
    """Return the ids of all tensors that the sources influence."""
    reached = set(sources)
    for output, record in records.items():
        if type(record) is tuple:
            if record[0] in reached:
                reached.add(output)
        elif type(record) is Joint:
            if not reached.isdisjoint(record.inputs):
                reached.update(record.outputs)
        elif record is not None:
            for edge in record:
                if edge[0] in reached:
                    reached.add(output)
                    break
    return reached


def run_backward(
    records: dict[int, Any],
    grads: dict[int, Any],
    wanted: set[int],
    raw: bool,
    useful: set[int] | None,
) -> None:
    """Send gradients from outputs to inputs, taking records from the end; sum where they meet."""
    unbroadcast = F.unbroadcast_like
    last, take, known_of = records.popitem, grads.pop, grads.get
    while records:
        output, record = last()
        kind = type(record)
        if kind is tuple:  # the commonest record first
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
            else:
                gx = rule(g, saved.array if raw and type(saved) is Tensor else saved)
            if like is not None:
                gx = unbroadcast(gx, like.array if raw else like)
            known = known_of(id)
            grads[id] = gx if known is None else known + gx
            continue
        if record is None:
            continue
        if kind is Joint:
            _run_joint(record, grads, wanted, raw, useful)
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
                gx = unbroadcast(gx, like.array if raw else like)
            known = known_of(id)
            grads[id] = gx if known is None else known + gx


def _run_joint(
    record: Joint, grads: dict[int, Any], wanted: set[int], raw: bool, useful: set[int] | None
) -> None:
    gs = [grads.get(id) if id in wanted else grads.pop(id, None) for id in record.outputs]
    if all(g is None for g in gs):
        return
    if useful is not None and useful.isdisjoint(record.inputs):
        return
    for id, gx in zip(record.inputs, record.backward(gs, raw), strict=True):
        if id is not None and gx is not None and (useful is None or id in useful):
            known = grads.get(id)
            grads[id] = gx if known is None else known + gx


def arrays_of(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(x.array if type(x) is Tensor else x for x in values)
