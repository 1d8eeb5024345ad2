"""Debugging tools. They cost nothing while they are not in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..base.array_types import describe
from ..base.context import BackwardPass, active_tapes, running
from ..base.dtypes import SCALARS, kind_of
from ..base.observers import AllRecords, Recorder
from ..base.tree import flatten
from ..base.user_code import user_line
from ..batches.batched import Batched
from ..errors import NonFiniteError
from ..ops.dispatch import backend_of, is_transformed, scope_of, to_numpy
from ..tensors.op import Op
from ..tensors.tensor import Tensor

# The guard remembers the source lines of this many ops, the latest ones.
_REMEMBERED = 100_000


@contextmanager
def nan_guard(infinities: bool = True) -> Iterator[None]:
    """Raise an error at the first op that makes a NaN or an infinity out of finite values.

    The guard checks every op that runs in the block, in forward and backward passes. This includes
    functions made by :func:`gradtape.function`: inside the block, they run one op at a time.

    Parameters
    ----------
    infinities
        Whether an infinity is an error. If false, only NaN is, even if it results from an infinity.
        True by default.

    Yields
    ------
    None
        The block runs unchanged.

    Raises
    ------
    NonFiniteError
        (A ``FloatingPointError``.) The message names the op, your line of code, and the ranges of
        the op's inputs. For an op in a backward pass, it also names the differentiated op and its
        line.

    Notes
    -----
    An op whose inputs are not finite is not reported, because data may contain NaN, and masks
    infinities. The guard does not check computations on raw arrays (an optimizer's step, a custom
    gradient in NumPy), and it does not check new threads.

    The guard reads every element of every result, so the block runs slower. Other code does not.

    Examples
    --------
    >>> with np.errstate(all="ignore"), gt.debug.nan_guard():  # doctest: +ELLIPSIS
    ...     y = gt.log(gt.constant([0.0, 1.0]))
    Traceback (most recent call last):
        ...
    gradtape.errors.NonFiniteError: ...: op 'log' makes -inf (1 of 2 elements, ...
    """
    guard = _Guard(infinities)
    active_tapes.set((*active_tapes.get(), guard))
    try:
        yield
    finally:
        # by identity, as tapes do: they may be closed in any order
        active_tapes.set(tuple(other for other in active_tapes.get() if other is not guard))


class _Guard(Recorder):
    """A recorder that checks the results of every op.

    While it is active, backward passes run on tensors, as for a second tape, so it sees their ops
    too.
    """

    asks_where = True

    def __init__(self, infinities: bool) -> None:
        self.records = AllRecords()
        self._infinities = infinities
        # id of a result -> the op that made it and the user's line
        self._made: dict[int, str] = {}

    def record(self, op: Op, inputs: Any, output: Tensor, params: dict[str, Any]) -> None:
        self._look(op.name, op.inputs, inputs, [output], params)

    def record_joint(
        self, op: Op, inputs: Any, outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        self._look(op.name, op.inputs, inputs, outputs, params)

    def record_call(
        self, name: str, inputs: list[Tensor], outputs: list[Tensor], backward: Any
    ) -> None:
        self._look(name, (), inputs, outputs, {})

    def _look(
        self,
        op: str,
        names: tuple[str, ...],
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
        params: dict[str, Any],
    ) -> None:
        where = user_line()
        for y in outputs:
            if len(self._made) >= _REMEMBERED:
                del self._made[next(iter(self._made))]
            self._made[y.id] = f"op {op!r} ({where})"
        for y in outputs:
            if self._passes(y):
                continue
            if all(map(self._passes, (*inputs, *flatten(list(params.values()))))):
                given = [_range(name, x) for name, x in _named(names, inputs)]
                around = self._surroundings()
                host = np.asarray(to_numpy(_all_examples(y.array)))
                what = _what(host, self._faults(np, host))
                raise NonFiniteError(
                    f"{where}: op {op!r} makes {what}{around} out of {', '.join(given)}"
                )

    def _passes(self, value: Any) -> bool:
        """Return whether a value holds no NaN and, if they count, no infinities."""
        array = _all_examples(value.array if type(value) is Tensor else value)
        if type(array) in SCALARS:
            return not self._faults(np, array)
        dtype = getattr(array, "dtype", None)
        if dtype is None or is_transformed(array) or kind_of(dtype) not in "fc":
            return True
        xp = backend_of(array).xp
        with scope_of((array,)):
            return not bool(xp.any(self._faults(xp, array)))

    def _faults(self, xp: Any, array: Any) -> Any:
        return ~xp.isfinite(array) if self._infinities else xp.isnan(array)

    def _surroundings(self) -> str:
        """Name the gradient and the traced function that the running op is part of."""
        reported = []
        for what in reversed(running.get()):
            if isinstance(what, BackwardPass):
                made = self._made.get(what.output, "an op that ran before the guard")
                reported.append(f" in the gradient of {made}")
            else:
                reported.append(f" in the traced function {what.name!r}")
        return ",".join(reported)


def _all_examples(array: Any) -> Any:
    """Return the array that holds the values: inside vmap, those of all examples."""
    while type(array) is Batched:
        array = array.array
    return array


def _named(names: tuple[str, ...], inputs: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return an op's inputs with their names; those of a variadic op are numbered."""
    if len(names) == len(inputs) and not any(name.startswith("*") for name in names):
        return list(zip(names, inputs, strict=True))
    return [(f"input {i}", x) for i, x in enumerate(inputs)]


def _range(name: str, value: Any) -> str:
    """Return an input's name, type and range."""
    array = _all_examples(value.array if type(value) is Tensor else value)
    if type(array) in SCALARS:
        return f"{name} = {array!r}"
    text = f"{name}: {describe(array.shape, array.dtype)}"
    host = np.asarray(to_numpy(array))
    if not host.size:
        return f"{text} without elements"
    if host.size == 1:
        return f"{text} = {host.item()!r}"
    if host.dtype.kind == "c":
        sizes = np.abs(host)
        return f"{text} of magnitude {sizes.min():.6g} to {sizes.max():.6g}"
    return f"{text} from {host.min():.6g} to {host.max():.6g}"


def _what(host: Any, faults: Any) -> str:
    """Return what is wrong in a result, how often, and where first."""
    first = tuple(int(i) for i in np.argwhere(faults)[0])
    at = f", the first at {first}" if first else ""
    return f"{host[first]} ({np.count_nonzero(faults)} of {host.size} elements{at})"
