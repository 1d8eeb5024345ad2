"""Mini-batches from arrays, or from any iterable of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from ..core.extend import F, Tensor, as_tensor, backend_of, flatten, map_structure

__all__ = ["Batches", "Examples", "Pairs", "as_count", "as_dataset", "as_part"]

#: A function of labels and of what the data are called, which may raise.
Check = Callable[[Tensor, str], None]


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
    rewinds : bool
        Whether one can go through the batches again: yes.

    Raises
    ------
    ValueError
        If the lengths differ, there are no examples, or the batch size is not positive.
    """

    rewinds = True
    #: Whether a batch may be read before it is wanted: no code of the user's runs then.
    early = True

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
        self.batch_size = as_count("batch_size", batch_size, least=1)
        self.count: int = shapes[0][0]
        self.length: int | None = -(-self.count // self.batch_size)

    def batches(
        self, generator: np.random.Generator | None = None, first: int = 0
    ) -> Iterator[Any]:
        """Yield ``(x, y)``, or ``x``, in an order drawn from ``generator`` if there is one.

        The first batch is that of number ``first``.
        """
        size = self.batch_size
        order = None if generator is None else _Order(generator.permutation(self.count))
        for start in range(first * size, self.count, size):
            stop = min(start + size, self.count)  # some libraries take no later one
            chosen = slice(start, stop) if order is None else order.part(start, stop)
            x = _rows_of(self.x, chosen)
            yield x if self.y is None else (x, _rows_of(self.y, chosen))

    def signature(self) -> list[int | None]:
        """Return the numbers of examples, of those in a batch, and of batches."""
        return [self.count, self.batch_size, self.length]

    def state(self) -> None:
        """Return the state of the data: none."""

    def load(self, state: Any) -> None:
        """Raise: the state is that of data of another kind."""
        raise ValueError(f"{self.what}: arrays have no state, and the run's data had one")

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
    rewinds : bool
        Whether one can go through the batches again, which an iterator does not allow.

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
        self.rewinds = not hasattr(batches, "__next__")
        self.early = type(batches) in (list, tuple)
        length = getattr(batches, "__len__", None)
        self.length: int | None = None if length is None else length()
        if self.length == 0:
            raise ValueError(f"{what} has no batches")

    def batches(self, generator: Any = None, first: int = 0) -> Iterator[Any]:
        """Yield the batches in their own order from number ``first`` on, leaves as tensors."""
        for batch in islice(self.source, first, None):
            yield map_structure(as_tensor, batch)

    def signature(self) -> list[int | None]:
        """Return the numbers of examples and of those in a batch, not known; and of batches."""
        return [None, None, self.length]

    def state(self) -> Any:
        """Return the state of what makes the batches, None if it has no ``state_dict``."""
        found = getattr(self.source, "state_dict", None)
        return None if found is None else found()

    def load(self, state: Any) -> None:
        """Set the state of what makes the batches."""
        self.source.load_state_dict(state)  # type: ignore[attr-defined]


class Pairs(Batches):
    """An iterable of ``(x, y)`` batches, each of one tensor of inputs and one of labels.

    Parameters
    ----------
    batches, passes, what
        As for :class:`Batches`.
    check
        A function of each batch's labels and of what the data are called, which may raise.
    """

    def __init__(
        self,
        batches: Iterable[Any],
        passes: int = 1,
        what: str = "data",
        check: Check | None = None,
    ) -> None:
        super().__init__(batches, passes, what)
        self.check = check

    def batches(self, generator: Any = None, first: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches in their own order from number ``first`` on."""
        for i, batch in enumerate(islice(self.source, first, None), first):
            what = f"{self.what}: batch {i}"
            if not isinstance(batch, (tuple, list)) or len(batch) != 2:
                raise ValueError(f"{what} is not a pair (x, y) but {_described(batch)}")
            if isinstance(batch, list) and not any(hasattr(part, "shape") for part in batch):
                raise ValueError(
                    f"{what} is a list of {len(batch)} lists or numbers, not a pair (x, y) of "
                    "arrays; give x and y in a tuple, each as one array"
                )
            x, y = as_part(f"{what}: x", batch[0]), as_part(f"{what}: y", batch[1])
            if not x.ndim or not y.ndim or len(x) != len(y) or not len(x):
                raise ValueError(
                    f"{what} has x of shape {x.shape} and y of shape {y.shape}; they need the "
                    "same, positive length"
                )
            if self.check is not None:
                self.check(y, what)
            yield x, y


def as_dataset(
    data: Any, batch_size: int, passes: int = 1, what: str = "data", check: Check | None = None
) -> Examples | Batches:
    """Return a pair of arrays, or an iterable of such batches, as something with ``batches()``.

    Raises
    ------
    ValueError
        If a tuple is neither: it holds several inputs, or weights of examples.
    TypeError
        If it is no data at all.
    """
    if isinstance(data, tuple) and not hasattr(data, "_fields") and len(data) == 2:
        x, y = as_part(f"{what}: x", data[0]), as_part(f"{what}: y", data[1])
        if check is not None and y.size:
            check(y, what)
        return Examples(x, y, batch_size, what)
    if isinstance(data, tuple) and any(hasattr(part, "shape") for part in data):
        raise ValueError(
            f"{what} is a tuple of {len(data)}, not a pair (x, y) of arrays; weights of examples "
            "are not taken, and batches come in a list"
        )
    return Pairs(data, passes, what, check)


def as_part(what: str, part: Any) -> Tensor:
    """Return inputs or labels as a tensor.

    Raises
    ------
    TypeError
        If it is a container of several arrays, or not numeric.
    """
    if isinstance(part, (tuple, dict)) and any(hasattr(leaf, "shape") for leaf in flatten(part)):
        raise TypeError(
            f"{what} is a {type(part).__name__} of {len(part)} arrays; give one array, joined as "
            "with np.concatenate or np.stack, or batches (x, y) in a list, each with one array"
        )
    try:
        return as_tensor(part)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: {error}") from None


def as_count(what: str, value: Any, least: int) -> int:
    """Return a number of things as a Python integer.

    Raises
    ------
    ValueError
        If it is no integer, or below ``least``.
    """
    whole = isinstance(value, (int, float, np.integer, np.floating)) and value == value // 1
    if not whole or value < least or value == np.inf:
        kind = "positive" if least else "non-negative"
        raise ValueError(f"{what} must be a {kind} integer, got {value!r}")
    return int(value)


def _described(batch: Any) -> str:
    kind = type(batch).__name__
    if hasattr(batch, "shape"):
        return f"{kind} of shape {tuple(batch.shape)}"
    return f"{kind} of {len(batch)}" if isinstance(batch, (tuple, list)) else kind


class _Order:
    """The order of an epoch, copied once to each device that has examples."""

    def __init__(self, numbers: Any) -> None:
        self._numbers = numbers
        self._there: dict[tuple[str, str], Any] = {}

    def part(self, start: int, stop: int) -> Callable[[Any], Any]:
        """Return a function of an array that returns rows to pick, where the array is."""

        def rows(array: Any) -> Any:
            owner = backend_of(array)
            place = owner.name, owner.device(array)
            if place not in self._there:
                self._there[place] = owner.asarray(self._numbers, device=place[1])
            return self._there[place][start:stop]

        return rows


def _rows_of(tensors: Any, chosen: Any) -> Any:
    return map_structure(lambda tensor: _rows(tensor, chosen), tensors)


def _rows(tensor: Tensor, chosen: Any) -> Tensor:
    array = tensor.array
    if isinstance(chosen, slice):
        return Tensor(array[chosen, ...])
    return Tensor(F.take(array, chosen(array), axis=0))
