"""``average_over_ranks``: gradients and losses of all ranks, in one message.

All arrays are copied into one flat buffer, which is reduced and divided in place; the results are
its parts. The buffer starts with the rank's weight and, for each rank, whether its loss is finite:
all ranks learn of a loss that is not finite, together and before anything is assigned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.extend import (
    NONDIFF,
    F,
    Kept,
    Shared,
    backend_of,
    communicator,
    exchanging,
    ranks_in_words,
    row_of,
    to_numpy,
    wish,
)
from ..common.op_builders import op

__all__: list[str] = []

Array = NDArray[Any]
#: What a rank reports about its losses.
_FINE, _NOT_FINITE, _NO_EXAMPLES = 0, 1, 2
_kept = Kept()
#: The head's size is a multiple of this, so that what follows begins where vector loads do.
_ALIGNED = 16


def _kernel(xp: Any, weight: Any, *arrays: Any, checked: int = 0, mean: bool = True) -> list[Any]:
    group = communicator()
    hosts = [to_numpy(x) for x in arrays]
    share, said = _head(weight, hosts[:checked])
    if group.size == 1:
        _refuse([said], hosts[:checked])
        return list(arrays) if share == 1.0 or not mean else [x / share for x in arrays]
    results = list(arrays)
    for part in _packed(hosts, share, said):
        exchanging(f"average_over_ranks of {len(arrays)} arrays", part.buffer).reduce_in_place(
            part.buffer
        )
        _unpack(part, arrays, hosts, results, checked, mean)
    return results


class _Part(NamedTuple):
    """One message: a buffer, which arrays are in it, and where each ends."""

    buffer: Array
    members: list[int]
    ends: list[int]


def _head(weight: Any, losses: Sequence[Array]) -> tuple[float, int]:
    """Return this rank's weight, and its report about its losses."""
    share = float(weight if isinstance(weight, (int, float)) else to_numpy(weight))
    return share, _said(losses, share)


def _packed(hosts: Sequence[Array], share: float, said: int) -> list[_Part]:
    """Copy arrays into buffers, one for each precision."""
    group = communicator()
    head = np.zeros(-(-(2 + group.size) // _ALIGNED) * _ALIGNED)
    asking = wish.get()
    head[0], head[1] = share, asking is not None and asking.asked
    head[2 + group.rank] = said
    found = []
    for dtype, members in _by_precision(hosts):
        parts = [head, *[_numbers(hosts[i]) for i in members]]
        ends = np.cumsum([x.size for x in parts]).tolist()
        buffer = _kept.empty(ends[-1], dtype)
        np.concatenate(parts, out=buffer, casting="same_kind")
        found.append(_Part(buffer, members, ends))
    return found


def _unpack(
    part: _Part,
    arrays: Sequence[Any],
    hosts: Sequence[Array],
    results: list[Any],
    checked: int,
    mean: bool,
) -> None:
    """Give each array its part of a buffer that was reduced."""
    buffer, members, ends = part
    whole = float(buffer[0])
    asking = wish.get()
    if asking is not None and buffer[1]:
        asking.granted = True
    _refuse(buffer[2 : 2 + communicator().size].astype(int).tolist(), hosts[:checked])
    if mean and whole != 1.0:
        np.divide(buffer, whole, out=buffer)
    for i, start, stop in zip(members, ends, ends[1:]):
        results[i] = _part_of(buffer[start:stop], arrays[i], hosts[i])


def _said(losses: Sequence[Array], weight: float) -> int:
    """Return this rank's report about its losses, for the others."""
    if not weight:
        return _NO_EXAMPLES
    return _FINE if all(np.isfinite(loss).all() for loss in losses) else _NOT_FINITE


def _refuse(said: Sequence[int], losses: Sequence[Array]) -> None:
    """Raise, on every rank, if one of them has reported a loss that is not finite."""
    empty = [rank for rank, state in enumerate(said) if state == _NO_EXAMPLES]
    bad = [rank for rank, state in enumerate(said) if state == _NOT_FINITE]
    error: Exception
    if empty:
        error = ValueError(
            f"data_parallel: {ranks_in_words(empty)} of {len(said)} got a batch of no examples; "
            "each rank needs at least one. The optimizer has done no step"
        )
    elif bad:
        here = ", ".join(
            f"{float(np.ravel(x)[0]):.6g}" for x in losses if x.size and not np.isfinite(x).all()
        )
        which = f"on {ranks_in_words(bad)} of {len(said)}{here and f' (here it is {here})'}"
        error = FloatingPointError(
            f"data_parallel: the loss is {here if len(said) == 1 else f'not finite {which}'}; a "
            "smaller learning rate, or scaled inputs, may help. The optimizer has done no step"
        )
    else:
        return
    vars(error)["named_op"] = "average_over_ranks"  # the message is complete without its name
    raise error


def _by_precision(arrays: Sequence[Array]) -> list[tuple[Any, list[int]]]:
    """Return the dtypes of sums, with their arrays: half precision is rounded once, at the end."""
    wide = [i for i, x in enumerate(arrays) if x.real.dtype.itemsize > 4]
    narrow = [i for i, x in enumerate(arrays) if x.real.dtype.itemsize <= 4]
    found: list[tuple[Any, list[int]]] = [(np.float64, wide), (np.float32, narrow)]
    return [(dtype, mine) for dtype, mine in found if mine] or [(np.float32, [])]


def _numbers(array: Array) -> Array:
    """Return an array's numbers as a vector; a complex number becomes two."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _part_of(total: Array, like: Any, host: Array) -> Any:
    """Return a part of a buffer as an array like ``like``."""
    found = total if host.dtype == total.dtype else _narrowed(total, host.dtype)
    found = found.reshape(host.shape)
    if type(like) is np.ndarray:
        return found
    owner = backend_of(like)
    return owner.asarray(found, device=owner.device(like))


def _narrowed(total: Array, dtype: Any) -> Array:
    """Return numbers of a buffer in their original dtype."""
    return total.view(dtype) if dtype.kind == "c" else total.astype(dtype)


# -- in two halves, between which the rank computes ----------------------------------------------


#: Messages in flight, by ticket: their parts, and what waits for each. Ticket 0 means none.
_sent: dict[int, list[tuple[_Part, Callable[[], object]]]] = {}
_tickets = count(1).__next__


def _begin_kernel(xp: Any, weight: Any, *arrays: Any, checked: int = 0) -> Any:
    group, ticket = communicator(), 0
    if group.size > 1:
        hosts = [to_numpy(x) for x in arrays]
        ticket = _tickets()
        _sent[ticket] = [
            (part, group.start_in_place(part.buffer))
            for part in _packed(hosts, *_head(weight, hosts[:checked]))
        ]
    return xp.asarray(np.array(ticket, np.int64))


def _end_kernel(
    xp: Any, ticket: Any, weight: Any, *arrays: Any, checked: int = 0, mean: bool = True
) -> list[Any]:
    parts = _sent.pop(int(to_numpy(ticket)), None)
    if parts is None:
        return _kernel(xp, weight, *arrays, checked=checked, mean=mean)
    hosts, results = [to_numpy(x) for x in arrays], list(arrays)
    for _, wait in parts:  # all of them, before one may raise
        wait()
    try:
        for part, _ in parts:
            _unpack(part, arrays, hosts, results, checked, mean)
    except Exception:  # the step ends here, and so do its other messages
        for _, others in sorted(_sent.items()):
            for _, wait in others:
                wait()
        _sent.clear()
        raise
    return results


def _end_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, **params: Any) -> list[Any]:
    return [None, *_vjp(gs, inputs[1:], outputs, needed[1:], **params)]


def _end_jvp(tangents: Any, inputs: Any, outputs: Any, **params: Any) -> Any:
    return _jvp(tangents[1:], inputs[1:], outputs, **params)


def _end_batch(op: Any, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> list[Any]:
    ticket = row_of(xs[0]) if batched[0] else xs[0]  # one message, whatever the example
    found = op.raw(ticket, *xs[1:], **params)
    return [y if many else Shared(y) for y, many in zip(found, batched[2:], strict=True)]


# -- the ops -----------------------------------------------------------------------------------


def _infer(weight: Any, *arrays: Any, checked: int, mean: bool) -> list[tuple[Any, Any]]:
    return [(x.shape, x.dtype) for x in arrays]


def _vjp(
    gs: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    needed: Sequence[bool],
    *,
    checked: int,
    mean: bool,
) -> list[Any]:
    """Average the upstream gradients in the same way: the op is its own adjoint."""
    wanted = [i for i, g in enumerate(gs) if g is not None and needed[1 + i]]
    return _spread(inputs[0], gs, wanted, len(inputs), mean)


def _jvp(
    tangents: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    *,
    checked: int,
    mean: bool,
) -> list[Any]:
    wanted = [i for i, t in enumerate(tangents[1:]) if t is not None]
    return _spread(inputs[0], tangents[1:], wanted, len(inputs), mean)[1:]


def _spread(
    weight: Any, arrays: Sequence[Any], wanted: list[int], count: int, mean: bool
) -> list[Any]:
    """Return averages of the arrays that are needed, and None for the others and the weight."""
    found: list[Any] = [None] * count
    if wanted:
        chosen = [arrays[i] for i in wanted]
        averages = _averages(weight, chosen, mean)
        for i, average in zip(wanted, averages, strict=True):
            found[1 + i] = average
    return found


def _averages(weight: Any, arrays: Sequence[Any], mean: bool) -> Any:
    return F.average_over_ranks(weight, *arrays, checked=0, mean=mean)


def _batch(op: Any, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> list[Any]:
    """Average whole batches; arrays that all examples share remain shared."""
    found = op.raw(*xs, **params)
    return [y if many else Shared(y) for y, many in zip(found, batched[1:], strict=True)]


op(
    "average_over_ranks",
    _kernel,
    vjp=_vjp,
    shapes_only=("*arrays", "out"),
    infer=_infer,
    batch=_batch,
    jvp=_jvp,
    doc="""Return, for each array, the sum over ranks divided by the sum of their weights.

    Parameters
    ----------
    weight
        The weight by which this rank's arrays were multiplied, a number.
    arrays
        Floating or complex arrays, of the same shapes and dtypes on every rank.
    checked
        How many of them, from the first one, are losses that must be finite.
    mean
        Whether to divide.

    Raises
    ------
    FloatingPointError
        On every rank, if a loss is not finite on one of them.
    ValueError
        On every rank, if the weight of one of them is 0.
    """,
)

op(
    "begin_average_over_ranks",
    _begin_kernel,
    gradients={"weight": NONDIFF, "*arrays": NONDIFF},
    infer=lambda weight, *arrays, checked: ((), np.dtype(np.int64)),
    batch=lambda op, xs, batched, params: Shared(op.raw(*xs, **params)),
    doc="""Begin :data:`average_over_ranks`, and return a ticket for the message.""",
)
op(
    "end_average_over_ranks",
    _end_kernel,
    vjp=_end_vjp,
    shapes_only=("*arrays", "out"),
    infer=lambda ticket, *rest, **params: _infer(*rest, **params),
    batch=_end_batch,
    jvp=_end_jvp,
    doc="""Wait for the averages that :data:`begin_average_over_ranks` began, and return them.

    Averages that were not begun, or are over a group of one, are computed now. Derivatives are
    those of :data:`average_over_ranks`.
    """,
)
