"""Mini-batches from arrays, or from any iterable of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..core.extend import Tensor, as_tensor, backend_of

__all__ = ["Arrays", "Batches", "as_dataset"]


class Arrays:
    """Inputs and labels of the same length, cut into batches.

    Parameters
    ----------
    x, y
        Arrays whose first axis counts examples.
    batch_size
        The size of every batch but perhaps the last.
    what
        What the arrays are called in messages.

    Raises
    ------
    ValueError
        If the lengths differ, there are no examples, or the batch size is not positive.
    """

    def __init__(self, x: Any, y: Any, batch_size: int, what: str = "data") -> None:
        self.x, self.y = as_tensor(x), as_tensor(y)
        for name, array in (("x", self.x), ("y", self.y)):
            if not array.ndim or not len(array):
                raise ValueError(f"{what}: {name} has no examples, its shape is {array.shape}")
        if len(self.x) != len(self.y):
            raise ValueError(
                f"{what}: x and y have different lengths: shapes {self.x.shape} and {self.y.shape}"
            )
        if batch_size != int(batch_size) or batch_size < 1:
            raise ValueError(f"batch_size must be a positive integer, got {batch_size!r}")
        self.batch_size = int(batch_size)

    def __len__(self) -> int:
        return -(-len(self.x) // self.batch_size)

    def batches(
        self, generator: np.random.Generator | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield batches, in an order drawn from ``generator`` if there is one."""
        count, size = len(self.x), self.batch_size
        order = None if generator is None else generator.permutation(count)
        for start in range(0, count, size):
            chosen = slice(start, start + size) if order is None else order[start : start + size]
            yield _rows(self.x, chosen), _rows(self.y, chosen)

    def split(self, fraction: float) -> tuple[Arrays, Arrays]:
        """Return all but the last ``fraction`` of the examples, and that last part."""
        kept = round(len(self.x) * (1.0 - fraction))
        if not 0 < kept < len(self.x):
            raise ValueError(
                f"validation_split={fraction} of {len(self.x)} examples leaves one part empty"
            )
        head, tail = slice(0, kept), slice(kept, None)
        return (
            Arrays(_rows(self.x, head), _rows(self.y, head), self.batch_size),
            Arrays(_rows(self.x, tail), _rows(self.y, tail), self.batch_size),
        )


class Batches:
    """An iterable of ``(x, y)`` batches, as it is.

    Parameters
    ----------
    batches
        Something that starts anew at each ``iter()``.
    passes
        How often it will be gone through.
    what
        What it is called in messages.

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

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError("the number of batches is not known")
        return self.length

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


def as_dataset(data: Any, batch_size: int, passes: int = 1, what: str = "data") -> Arrays | Batches:
    """Return a pair of arrays, or an iterable of batches, as something with ``batches()``."""
    if isinstance(data, (Arrays, Batches)):
        return data
    if isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], tuple):
        return Arrays(*data, batch_size, what)
    return Batches(data, passes, what)


def _rows(tensor: Tensor, chosen: Any) -> Tensor:
    array = tensor.array
    if isinstance(chosen, slice):
        return Tensor(array[chosen])
    owner = backend_of(array)
    index = owner.asarray(chosen, device=owner.device(array))
    return Tensor(owner.xp.take(array, index, axis=0))
