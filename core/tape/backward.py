"""The backward pass: checks of its arguments, and the walk over a tape's records from the end.

The arguments are targets, sources, upstream gradients and choices. Gradients that meet are summed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.array_types import TensorSpec
from ..base.context import BackwardPass, active_tapes, reducing, running
from ..base.dtypes import is_differentiable
from ..base.lifetimes import COUNTS
from ..base.observers import watcher
from ..base.sizes import same_shape
from ..base.table import F
from ..base.tree import flatten
from ..ops.checks import Check
from ..ops.dispatch import check_alive
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor, arrays_of
from ..tensors.value_holder import ValueHolder
from .records import MultiOutputRecord, PendingPicks, PickRecord, with_rules

if TYPE_CHECKING:
    from .recording import RecordingTape


class UnconnectedGradients(enum.Enum):
    """What :meth:`GradientTape.gradient` returns for a source that does not influence the target.

    ``NONE`` (or ``"none"``) gives ``None``, and ``ZERO`` (or ``"zero"``) gives zeros of the
    source's shape and dtype.

    Examples
    --------
    >>> x, y = gt.constant(1.0), gt.constant(2.0)
    >>> with gt.GradientTape() as tape:
    ...     tape.watch([x, y])
    ...     z = 3.0 * x
    >>> tape.gradient(z, [x, y], unconnected_gradients=gt.UnconnectedGradients.ZERO)[1].item()
    0.0
    """

    NONE = "none"
    ZERO = "zero"


def check_rows(parallel_iterations: int | None, name: str) -> None:
    if parallel_iterations is None:
        return
    if isinstance(parallel_iterations, bool) or not isinstance(parallel_iterations, int):
        raise TypeError(
            f"{name}: parallel_iterations must be an integer or None, got {parallel_iterations!r}"
        )
    if parallel_iterations < 1:
        raise ValueError(
            f"{name}: parallel_iterations must be at least 1, got {parallel_iterations}"
        )


def handle_of(
    leaf: Any, argument: str, method: str = "gradient", tape: RecordingTape | None = None
) -> Tensor:
    """Return the tensor of a target or source. This does not watch a variable.

    For anything else, the error says which lines read values that the ``tape`` follows.
    """
    if type(leaf) is Tensor:
        check_alive(leaf.array)
        return leaf
    if isinstance(leaf, ValueHolder):
        return leaf.handle()
    read = "" if tape is None else tape._where_read()
    if method == "batch_jacobian":
        kind = type(leaf).__name__
        raise TypeError(
            f"batch_jacobian: {argument} must be one Tensor or Variable, got {kind}{read}"
        )
    raise TypeError(f"{method}: {argument} must be Tensors or Variables, got {leaf!r}{read}")


def refuse_parts(method: str, sources: list[Any]) -> None:
    """Raise if derivatives would silently cover only this rank's part of a batch."""
    reducer = reducing.get()
    if reducer is not None:
        reducer.refuse(method, sources)


def seeds_of(targets: list[Tensor], output_gradients: Any) -> list[Tensor | None]:
    if output_gradients is None:
        return [None] * len(targets)
    leaves = flatten(output_gradients)
    if len(leaves) != len(targets):
        raise ValueError(f"gradient: {len(targets)} targets but {len(leaves)} output_gradients")
    seeds: list[Tensor | None] = []
    for target, leaf in zip(targets, leaves, strict=True):
        if leaf is None:
            raise ValueError("gradient: output_gradients contains None; pass zeros instead")
        seed = as_tensor(leaf)
        if seed.dtype != target.dtype and is_differentiable(target.dtype):
            if seed.dtype.kind == "c" and target.dtype.kind != "c":
                raise TypeError(
                    f"gradient: output_gradients has dtype {seed.dtype}, its target is real "
                    f"({target.dtype}); pass the real part"
                )
            seed = seed.astype(target.dtype)
        shape, want = seed.shape, target.shape
        if not same_shape(shape, want) and not TensorSpec(want, target.dtype).admits(shape):
            raise ValueError(
                f"gradient: output_gradients has shape {shape}, its target has shape {want}"
            )
        seeds.append(seed)
    return seeds


def unconnected_kind(value: UnconnectedGradients | str) -> UnconnectedGradients:
    if type(value) is UnconnectedGradients:
        return value
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(f"unconnected_gradients must be 'none' or 'zero', got {value!r}") from None


# -- the walk over the records ---------------------------------------------------------------------


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
    unbroadcast, take, known_of = F.unbroadcast_like, grads.pop, grads.get
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
        if kind is not list:
            if record is not None:
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
    record: MultiOutputRecord | PickRecord | PendingPicks,
    records: dict[int, Any],
    grads: dict[int, Any],
    wanted: set[int],
    raw: bool,
    useful: set[int] | None,
) -> None:
    if type(record) is MultiOutputRecord:
        _run_multi_output(record, grads, wanted, useful)
    elif type(record) is PickRecord:
        g = grads.get(output) if output in wanted else grads.pop(output, None)
        tensor = record.input
        if g is not None and (useful is None or tensor in useful):
            # the pass makes no array of the tensor's size until it reaches the tensor
            picks = records[tensor]
            if type(picks) is not PendingPicks:
                picks = records[tensor] = PendingPicks(picks)
            picks.add(g, record)
    elif type(record) is PendingPicks:
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


def _unshared_count() -> int:
    """Return how many references :func:`_sum` counts if only ``grads`` holds the array."""
    grads = {0: np.zeros(1)}
    known = grads.get(0)
    return _count(known, None) if COUNTS else -1


_ALONE = _unshared_count()
