"""``average_over_ranks``: gradients and losses of all ranks, in one message.

All arrays are copied into one flat buffer, which is reduced in place; what each array has of it is
copied out again. In front of them go the rank's weight and, for each rank, whether its loss is
finite, so that all ranks learn of a loss that is not, together and before anything is assigned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....core.extend import (
    F,
    Shared,
    backend_of,
    communicator,
    exchanging,
    ranks_in_words,
    to_numpy,
    wish,
)
from ..common.op_builders import op

__all__: list[str] = []

Array = NDArray[Any]
#: What a rank says of its losses.
_FINE, _NOT_FINITE, _NO_EXAMPLES = 0, 1, 2
#: Buffers that no kernel is using. To take one out, or to put it back, is one step for all threads.
_free: dict[tuple[Any, int], Array] = {}


def _kernel(xp: Any, weight: Any, *arrays: Any, checked: int = 0, mean: bool = True) -> list[Any]:
    share = float(weight if isinstance(weight, (int, float)) else to_numpy(weight))
    group = communicator()
    hosts = [to_numpy(x) for x in arrays]
    said = _said(hosts[:checked], share)
    if group.size == 1:
        _refuse([said], hosts[:checked])
        return list(arrays) if share == 1.0 or not mean else [x / share for x in arrays]
    head = np.zeros(2 + group.size)
    asking = wish.get()
    head[0], head[1] = share, asking is not None and asking.asked
    head[2 + group.rank] = said
    results = list(arrays)
    for dtype, mine in _by_precision(hosts):
        parts = [head, *[_numbers(hosts[i]) for i in mine]]
        ends = np.cumsum([x.size for x in parts]).tolist()
        buffer = _free.pop((dtype, ends[-1]), None)
        if buffer is None:
            buffer = np.empty(ends[-1], dtype)
        np.concatenate(parts, out=buffer, casting="same_kind")
        exchanging(f"average_over_ranks of {len(arrays)} arrays", buffer).reduce_in_place(buffer)
        whole = float(buffer[0])
        if asking is not None and buffer[1]:
            asking.granted = True
        _refuse(buffer[2 : ends[0]].astype(int).tolist(), hosts[:checked])
        for i, start, stop in zip(mine, ends, ends[1:]):
            results[i] = _scaled(buffer[start:stop], whole if mean else 1.0, arrays[i], hosts[i])
        _free[dtype, ends[-1]] = buffer
    return results


def _said(losses: Sequence[Array], weight: float) -> int:
    """Return what this rank tells the others of its losses."""
    if not weight:
        return _NO_EXAMPLES
    return _FINE if all(np.isfinite(loss).all() for loss in losses) else _NOT_FINITE


def _refuse(said: Sequence[int], losses: Sequence[Array]) -> None:
    """Raise, on every rank, if one of them has said that its loss is not finite."""
    empty = [rank for rank, state in enumerate(said) if state == _NO_EXAMPLES]
    bad = [rank for rank, state in enumerate(said) if state == _NOT_FINITE]
    error: Exception
    if empty:
        error = ValueError(
            f"data_parallel: {ranks_in_words(empty)} of {len(said)} got a batch of no examples; "
            "each rank needs one at least. The optimizer has done no step"
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
    vars(error)["named_op"] = "average_over_ranks"  # the message says it all
    raise error


def _by_precision(arrays: Sequence[Array]) -> list[tuple[Any, list[int]]]:
    """Return in which dtype which arrays are summed: half precision is rounded once, at the end."""
    wide = [i for i, x in enumerate(arrays) if x.real.dtype.itemsize > 4]
    narrow = [i for i, x in enumerate(arrays) if x.real.dtype.itemsize <= 4]
    found: list[tuple[Any, list[int]]] = [(np.float64, wide), (np.float32, narrow)]
    return [(dtype, mine) for dtype, mine in found if mine] or [(np.float32, [])]


def _numbers(array: Array) -> Array:
    """Return an array's numbers in a row, the two of a complex one side by side."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _scaled(total: Array, whole: float, like: Any, host: Array) -> Any:
    """Return a part of the buffer, divided, in memory of its own, as an array as ``like``."""
    found = total.copy() if whole == 1.0 else total / whole
    if host.dtype.kind == "c":
        found = found.view(host.dtype)
    found = found.astype(host.dtype, copy=False).reshape(host.shape)
    if type(like) is np.ndarray:
        return found
    owner = backend_of(like)
    return owner.asarray(found, device=owner.device(like))


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
    """Average the upstream gradients likewise: the op is its own adjoint."""
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
    """Return averages of those arrays that are wanted, and None for the others and the weight."""
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
    """Average whole batches; what is the same for all examples stays so."""
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
        How many of them, from the first on, are losses that have to be finite.
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
