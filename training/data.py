"""Mini-batches from arrays, or from any iterable of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..core.extend import Tensor, as_tensor, backend_of, flatten, map_structure

__all__ = ["Batches", "Examples", "Pairs", "as_dataset"]


class Examples:
    """Tensors, perhaps in nested containers, that count the same examples; cut into batches.

    Parameters
    ----------
    x
        Inputs, whose first axes count examples.
    y
        Labels, likewise; ``None`` if there are none, and batches are of inputs alone.
    batch_size
        The size of every batch but perhaps the last.
    what
        What the data are called in messages.

    Attributes
    ----------
    length : int
        The number of batches.

    Raises
    ------
    ValueError
        If the lengths differ, there are no examples, or the batch size is not positive.
    """

    def __init__(self, x: Any, y: Any, batch_size: int, what: str = "data") -> None:
        self.x, self.y, self.what = x, y, what
        shapes = []
        for name, part in (("x", x), ("y", y)):
            for leaf in () if part is None else flatten(part):
                if not leaf.ndim or not len(leaf):
                    raise ValueError(f"{what}: {name} has no examples, its shape is {leaf.shape}")
                shapes.append(leaf.shape)
        if len({shape[0] for shape in shapes}) != 1:
            raise ValueError(
                f"{what}: x and y have different lengths: shapes {' and '.join(map(str, shapes))}"
            )
        if batch_size != int(batch_size) or batch_size < 1:
            raise ValueError(f"batch_size must be a positive integer, got {batch_size!r}")
        self.batch_size = int(batch_size)
        self.count: int = shapes[0][0]
        self.length: int | None = -(-self.count // self.batch_size)

    def batches(self, generator: np.random.Generator | None = None) -> Iterator[Any]:
        """Yield ``(x, y)``, or ``x``, in an order drawn from ``generator`` if there is one."""
        size = self.batch_size
        order = None if generator is None else generator.permutation(self.count)
        for start in range(0, self.count, size):
            chosen = slice(start, start + size) if order is None else order[start : start + size]
            x = _rows_of(self.x, chosen)
            yield x if self.y is None else (x, _rows_of(self.y, chosen))

    def split(self, fraction: float) -> tuple[Examples, Examples]:
        """Return all but the last ``fraction`` of the examples, and that last part."""
        kept = round(self.count * (1.0 - fraction))
        if not 0 < kept < self.count:
            raise ValueError(
                f"validation_split={fraction} of {self.count} examples leaves one part empty"
            )
        return self._part(slice(0, kept)), self._part(slice(kept, None))

    def _part(self, chosen: slice) -> Examples:
        y = None if self.y is None else _rows_of(self.y, chosen)
        return Examples(_rows_of(self.x, chosen), y, self.batch_size, self.what)


class Batches:
    """An iterable of batches of any structure, as it is.

    Parameters
    ----------
    batches
        Something that starts anew at each ``iter()``.
    passes
        How often it will be gone through.
    what
        What it is called in messages.

    Attributes
    ----------
    length : int or None
        The number of batches, if it is known.

    Raises
    ------
    TypeError
        If it cannot be iterated.
    ValueError
        If it can only be gone through once, and that is not enough.
    """

    def __init__(self, batches: Iterable[Any], passes: int = 1, what: str = "data") -> None:
        if not hasattr(batches, "__iter__"):
            raise TypeError(
                f"{what} must be a pair of arrays (x, y) or an iterable of such batches, "
                f"got {type(batches).__name__}"
            )
        if passes > 1 and iter(batches) is batches:
            raise ValueError(
                f"{what} is an iterator, which is used up after one of {passes} passes; give a "
                "list, or an object whose __iter__ starts anew"
            )
        self.source = batches
        self.what = what
        length = getattr(batches, "__len__", None)
        self.length: int | None = None if length is None else length()
        if self.length == 0:
            raise ValueError(f"{what} has no batches")

    def batches(self, generator: Any = None) -> Iterator[Any]:
        """Yield the batches in their own order, their leaves as tensors."""
        for batch in self.source:
            yield map_structure(as_tensor, batch)


class Pairs(Batches):
    """An iterable of ``(x, y)`` batches, each of one tensor of inputs and one of labels."""

    def batches(self, generator: Any = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches in their own order."""
        for i, batch in enumerate(self.source):
            if not isinstance(batch, (tuple, list)) or len(batch) != 2:
                raise ValueError(
                    f"{self.what}: batch {i} is not a pair (x, y) but {type(batch).__name__}"
                )
            x, y = as_tensor(batch[0]), as_tensor(batch[1])
            if not x.ndim or not y.ndim or len(x) != len(y) or not len(x):
                raise ValueError(
                    f"{self.what}: batch {i} has x of shape {x.shape} and y of shape {y.shape}; "
                    "they need the same, positive length"
                )
            yield x, y


def as_dataset(
    data: Any, batch_size: int, passes: int = 1, what: str = "data"
) -> Examples | Batches:
    """Return a pair of arrays, or an iterable of such batches, as something with ``batches()``."""
    if isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], tuple):
        return Examples(as_tensor(data[0]), as_tensor(data[1]), batch_size, what)
    return Pairs(data, passes, what)


def _rows_of(tensors: Any, chosen: Any) -> Any:
    return map_structure(lambda tensor: _rows(tensor, chosen), tensors)


def _rows(tensor: Tensor, chosen: Any) -> Tensor:
    array = tensor.array
    if isinstance(chosen, slice):
        return Tensor(array[chosen])
    owner = backend_of(array)
    index = owner.asarray(chosen, device=owner.device(array))
    return Tensor(owner.xp.take(array, index, axis=0))
