"""``average_over_ranks``: averages the gradients and losses of all ranks in one message.

All arrays are copied into one flat buffer, which is reduced in place. The results are views of the
buffer. A head in front of them holds the rank's weight and, for each rank, whether its loss is
finite. If a loss is not, all ranks therefore raise together, before any variable is assigned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, count
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    ReusedArrays,
    Shared,
    backend_of,
    communicator,
    compared,
    ranks_in_words,
    row_of,
    stop_request,
    to_numpy,
    without_examples,
)
from ..common.op_builders import op

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
#: The states of a rank's losses.
_FINE, _NOT_FINITE, _NO_EXAMPLES = 0, 1, 2
_kept = ReusedArrays()
#: The head's size is a multiple of this, so that the arrays behind it are aligned for vector loads.
_ALIGNED = 16
#: Fewer numbers than this are concatenated and then scaled: for them calls cost more than passes
#: over memory.
_FEW = 1 << 15


def _kernel(xp: Any, weight: Any, *arrays: Any, checked: int = 0, mean: bool = True) -> list[Any]:
    group = communicator()
    hosts = [x if type(x) is np.ndarray else to_numpy(x) for x in arrays]
    share, states = _head(weight, hosts[:checked])
    if group.size == 1:
        if states:
            _refuse([states], hosts[:checked])
        return list(arrays) if share == 1.0 or not mean else [x / share for x in arrays]
    results = list(arrays)
    for part in _packed(hosts, share, states, mean):
        compared(f"average_over_ranks of {len(arrays)} arrays", part.buffer, agreed=True)
        group.reduce_in_place(part.buffer)
        _unpack(part, arrays, hosts, results, checked, mean)
    return results


class _Layout(NamedTuple):
    """What a message holds: its dtype, its arrays, and the ends of the head and of each array."""

    dtype: Any
    members: list[int]
    ends: list[int]


class _Part(NamedTuple):
    """A message: the head, and behind it the elements of arrays, divided by ``shared``."""

    buffer: Array
    layout: _Layout
    shared: int


def _head(weight: Any, losses: Sequence[Array]) -> tuple[float, int]:
    """Return this rank's weight, and the state of its losses."""
    share = float(weight if isinstance(weight, (int, float)) else to_numpy(weight))
    return share, _loss_states(losses, share)


def _packed(hosts: Sequence[Array], share: float, states: int, mean: bool) -> list[_Part]:
    """Copy arrays into buffers, one for each precision.

    For a mean the copy also divides by the number of ranks. If all weights are 1, no further pass
    over the memory is needed.
    """
    group, asking = communicator(), stop_request.get()
    shared = group.size if mean else 1
    found = []
    for layout in _layouts(group.size, tuple([(x.size, x.dtype) for x in hosts])):
        dtype, members, ends = layout
        first = ends[0]
        buffer = _kept.empty(ends[-1], dtype)
        _fill(buffer[first:], [_numbers(hosts[i]) for i in members], 1.0 / shared)
        buffer[:first] = 0.0
        buffer[0] = share
        buffer[1] = asking is not None and asking.asked
        buffer[2 + group.rank] = states
        found.append(_Part(buffer, layout, shared))
    return found


@lru_cache(maxsize=256)
def _layouts(ranks: int, kinds: tuple[tuple[int, Any], ...]) -> list[_Layout]:
    """Return the messages for arrays of these sizes and dtypes, one for each precision.

    float16 is summed in float32, and rounded once, at the end.
    """
    numbers: dict[Any, dict[int, int]] = {}
    for i, (size, dtype) in enumerate(kinds):
        single = np.empty(0, dtype).real.dtype
        wide = np.dtype(np.float64 if single.itemsize > 4 else np.float32)
        numbers.setdefault(wide, {})[i] = size * (dtype.itemsize // single.itemsize)
    first = -(-(2 + ranks) // _ALIGNED) * _ALIGNED
    return [
        _Layout(dtype, [*sizes], [*accumulate(sizes.values(), initial=first)])
        for dtype, sizes in sorted(numbers.items(), key=lambda x: -x[0].itemsize)
    ] or [_Layout(np.dtype(np.float32), [], [first])]


def _fill(room: Array, flat: Sequence[Array], scale: float) -> None:
    """Write the concatenation of arrays, multiplied by a scale."""
    if room.size < _FEW and flat:
        np.concatenate(flat, out=room, casting="same_kind")
        if scale != 1.0:
            np.multiply(room, scale, room)
        return
    start = 0
    for x in flat:
        part = room[start : start + x.size]
        np.multiply(x, scale, part, dtype=room.dtype, casting="same_kind")
        start += x.size


def _unpack(
    part: _Part,
    arrays: Sequence[Any],
    hosts: Sequence[Array],
    results: list[Any],
    checked: int,
    mean: bool,
) -> None:
    """Set each array's result to its part of a reduced buffer."""
    buffer, (dtype, members, ends), shared = part
    whole, granted, *states = buffer[: 2 + communicator().size].tolist()
    if granted and (asking := stop_request.get()) is not None:
        asking.granted = True
    if any(states):
        _refuse([int(x) for x in states], hosts[:checked])
    rest = (whole if mean else 1.0) / shared
    if rest != 1.0:
        np.divide(buffer, rest, out=buffer)
    for i, start, stop in zip(members, ends, ends[1:]):
        host, found = hosts[i], buffer[start:stop]
        if host.dtype is dtype and host is arrays[i]:
            results[i] = found.reshape(host.shape)
        else:
            results[i] = _part_of(found, arrays[i], host)


def _loss_states(losses: Sequence[Array], weight: float) -> int:
    """Return the state of this rank's losses, which all ranks learn."""
    if not weight:
        return _NO_EXAMPLES
    return _FINE if all(map(_finite, losses)) else _NOT_FINITE


def _finite(loss: Array) -> bool:
    return isfinite(loss.item()) if loss.size == 1 else bool(np.isfinite(loss).all())


def _refuse(states: Sequence[int], losses: Sequence[Array]) -> None:
    """Raise on every rank if the loss of one rank is not finite, or one has no examples."""
    empty = [rank for rank, state in enumerate(states) if state == _NO_EXAMPLES]
    bad = [rank for rank, state in enumerate(states) if state == _NOT_FINITE]
    error: Exception
    if empty:
        error = ValueError(
            f"{without_examples(empty, len(states))}. The optimizer has taken no step"
        )
    elif bad:
        here = ", ".join(
            f"{float(np.ravel(x)[0]):.6g}" for x in losses if x.size and not np.isfinite(x).all()
        )
        which = f"on {ranks_in_words(bad)} of {len(states)}{here and f' (here it is {here})'}"
        error = FloatingPointError(
            f"data_parallel: the loss is {here if len(states) == 1 else f'not finite {which}'}; a "
            "smaller learning rate, or scaled inputs, may help. The optimizer has taken no step"
        )
    else:
        return
    vars(error)["named_op"] = "average_over_ranks"  # the message is complete without its name
    raise error


def _numbers(array: Array) -> Array:
    """Return an array's elements as a vector; a complex number becomes two elements."""
    flat = array.reshape(-1)  # in C order, copied if it is not
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _part_of(total: Array, like: Any, host: Array) -> Any:
    """Return a part of a buffer with the backend, shape and dtype of ``like``."""
    found = total if host.dtype == total.dtype else _narrowed(total, host.dtype)
    found = found.reshape(host.shape)
    if type(like) is np.ndarray:
        return found
    owner = backend_of(like)
    return owner.asarray(found, device=owner.device(like))


def _narrowed(total: Array, dtype: Any) -> Array:
    """Return a part of a buffer in the array's own dtype."""
    return total.view(dtype) if dtype.kind == "c" else total.astype(dtype)


# -- in two halves, so that the rank computes in between -----------------------------------------


#: Messages in flight, by ticket: their parts, and a function that waits for each. Ticket 0 means
#: that there is none.
_sent: dict[int, list[tuple[_Part, Callable[[], object]]]] = {}
_tickets = count(1).__next__


def _begin_kernel(xp: Any, weight: Any, *arrays: Any, checked: int = 0, mean: bool = True) -> Any:
    group, ticket = communicator(), 0
    if group.size > 1:
        hosts = [to_numpy(x) for x in arrays]
        ticket = _tickets()
        _sent[ticket] = [
            (part, group.start_in_place(part.buffer))
            for part in _packed(hosts, *_head(weight, hosts[:checked]), mean)
        ]
    return xp.asarray(np.array(ticket, np.int64))


def _end_kernel(
    xp: Any, ticket: Any, weight: Any, *arrays: Any, checked: int = 0, mean: bool = True
) -> list[Any]:
    parts = _sent.pop(int(to_numpy(ticket)), None)
    if parts is None:
        return _kernel(xp, weight, *arrays, checked=checked, mean=mean)
    hosts, results = [to_numpy(x) for x in arrays], list(arrays)
    for _, wait in parts:  # wait for all before anything can raise
        wait()
    try:
        for part, _ in parts:
            _unpack(part, arrays, hosts, results, checked, mean)
    except Exception:  # the step ends here, so its other messages must end too
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
    ticket = row_of(xs[0]) if batched[0] else xs[0]  # one message for all examples
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
    """Return the averages of some of the arrays, and None for the others and the weight."""
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
    """Average whole batches; an array without the batch axis stays without it."""
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
        The number by which this rank's arrays were multiplied.
    arrays
        Floating or complex arrays, of the same shapes and dtypes on every rank.
    checked
        The number of losses, which come first and must be finite.
    mean
        Whether to divide by the sum of the weights.

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
    infer=lambda weight, *arrays, **params: ((), np.dtype(np.int64)),
    batch=lambda op, xs, batched, params: Shared(op.raw(*xs, **params)),
    doc="""Start :data:`average_over_ranks`, and return a number that identifies the message.""",
)
op(
    "end_average_over_ranks",
    _end_kernel,
    vjp=_end_vjp,
    shapes_only=("*arrays", "out"),
    infer=lambda ticket, *rest, **params: _infer(*rest, **params),
    batch=_end_batch,
    jvp=_end_jvp,
    doc="""Wait for the message of :data:`begin_average_over_ranks`, and return its results.

    If no message was started, or in a group of one, the arrays are averaged now. Derivatives are
    those of :data:`average_over_ranks`.
    """,
)
