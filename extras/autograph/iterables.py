"""Iterables of a ``for``: rows of tensors, and ``range``, ``enumerate`` and ``zip`` of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.extend import (
    Tensor,
    Variable,
    active_graph,
    as_tensor,
    flatten,
    is_open,
    map_structure,
    ops,
    smallest,
    user_line,
)
from ..plugins.ops.shapes.ranges import arange
from .values import is_traced


class Rows:
    """Tensors that a traced loop iterates over together, one row at a time.

    Parameters
    ----------
    tensors
        The tensors, in any containers. Each item has the same containers.
    """

    def __init__(self, tensors: Any) -> None:
        self.tensors = tensors
        lengths = [_length(x) for x in flatten(tensors)]
        self.length = smallest(*lengths) if len(lengths) > 1 else lengths[0]
        if any(n is not self.length for n in lengths):
            self.tensors = map_structure(lambda x: x[: self.length], tensors)

    def __len__(self) -> int:
        return int(self.length)

    def item(self, row: Any) -> Any:
        """Return the loop's item for a row of the tensors."""
        return row

    def at(self, i: Tensor) -> Any:
        """Return the item at an index."""
        return map_structure(lambda x: x[i], self.tensors)

    def first(self, most: Any) -> Rows:
        """Return the first ``most`` rows, or all of them if there are fewer."""
        return Rows(map_structure(lambda x: x[:most], self.tensors))

    def __iter__(self) -> Any:
        for i in range(len(self)):
            yield map_structure(lambda x: x[i], self.tensors)  # noqa: B023


def _length(x: Tensor) -> Any:
    if x.shape is None:
        raise ValueError(
            f"{user_line()}: 'for' iterates over the first axis of a tensor, but this tensor's "
            "rank is unknown: give its TensorSpec a shape"
        )
    if not x.shape:
        raise TypeError(
            f"{user_line()}: 'for' iterates over the first axis of a tensor, but this tensor has "
            "shape (): give it an axis, with gradtape.reshape(x, (-1,)) for example"
        )
    return x.shape[0]


def rows_of(iterated: Any) -> Rows | None:
    """Return the rows that a trace iterates over in one op; None if Python iterates instead."""
    if isinstance(iterated, Rows):
        return iterated
    if isinstance(iterated, Variable):
        iterated = iterated.value
    if isinstance(iterated, Tensor) and (active_graph.get() is not None or is_traced(iterated)):
        return Rows(as_tensor(iterated))
    return None


def range_(*bounds: Any) -> Any:
    """Return ``range(...)``; the integers as a tensor if a bound is traced."""
    if not any(map(is_traced, bounds)):
        return range(*bounds)
    return Rows(arange(*bounds))


def len_(x: Any) -> Any:
    """Return ``len(x)``; for a tensor whose length is unknown in the trace, its size."""
    if isinstance(x, Tensor) and x.shape and is_open(x.shape[0]):
        return x.shape[0]
    return x.length if isinstance(x, Rows) else len(x)


def _all_rows(iterables: Sequence[Any]) -> list[Rows] | None:
    found = [rows_of(x) for x in iterables]
    return None if not found or None in found else found  # type: ignore[return-value]


def enumerate_(iterable: Any, start: Any = 0) -> Any:
    """Return ``enumerate(...)``; for a tensor, its indices and rows as :class:`Rows`."""
    rows = rows_of(iterable)
    if rows is None:
        return enumerate(iterable, start)
    return Rows((arange(rows.length) + start, rows.tensors))


def zip_(*iterables: Any, strict: bool = False) -> Any:
    """Return ``zip(...)``; for tensors, their rows together as :class:`Rows`."""
    rows = _all_rows(iterables)
    if rows is None:
        return zip(*iterables, strict=strict)
    if strict and any(x.length != rows[0].length for x in rows):
        raise ValueError(f"{user_line()}: zip() arguments have different lengths")
    return Rows(tuple([x.tensors for x in rows]))


def reversed_(iterable: Any) -> Any:
    """Return ``reversed(...)``; for a tensor, its rows in reverse order as :class:`Rows`."""
    rows = rows_of(iterable)
    if rows is None:
        return reversed(iterable)
    return Rows(map_structure(lambda x: ops["flip"](x, axis=0), rows.tensors))
