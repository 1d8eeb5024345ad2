"""Mini-batches from arrays, or from any iterable of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from ..core.extend import F, Tensor, are_several, as_tensor, backend_of, flatten, map_structure
from ..data import Dataset, length_of
from .names import as_count
from .ranks import BatchLayout, RankPart

__all__ = [
    "BATCH_SIZE",
    "Batches",
    "Examples",
    "Labelled",
    "as_dataset",
    "as_part",
    "expected",
    "first_batches",
]

#: A function of labels and the name of the data, which raises if labels are invalid.
Check = Callable[[Any, str], None]
#: The default size of batches that arrays are cut into.
BATCH_SIZE = 32
_NAMES = ("x", "y", "sample_weight")


class Examples:
    """Tensors, perhaps in nested containers, with one row per example; cut into batches.

    Parameters
    ----------
    x
        Inputs; the first axes are the examples.
    y
        Labels, likewise; ``None`` if there are none, so that batches hold only inputs.
    batch_size
        The size of every batch, except perhaps the last.
    what
        The name of the data in messages.
    weight
        Weights of the examples, likewise, if there are any.

    Attributes
    ----------
    length : int
        The number of batches.
    rewinds : bool
        Whether the batches can be iterated again: true.

    Raises
    ------
    ValueError
        If the lengths differ, there are no examples, or the batch size is not positive.
    """

    rewinds = True
    #: Whether a batch may be read before it is needed: reading runs no code of the user's.
    early = True
    #: Whether there is always another batch.
    endless = False
    #: Whether a batch without labels is a tuple ``(x,)``.
    in_tuples = False
    #: In a job of several ranks, a function of a batch's size that returns how they share it.
    shared: Callable[[int], BatchLayout] | None = None

    def __init__(
        self, x: Any, y: Any, batch_size: int, what: str = "data", weight: Any = None
    ) -> None:
        self.x, self.y, self.weight, self.what = x, y, weight, what
        shapes = []
        for name, part in zip(_NAMES, (x, y, weight), strict=True):
            for leaf in () if part is None else flatten(part):
                if not leaf.ndim or not len(leaf):
                    raise ValueError(f"{what}: {name} has no examples, its shape is {leaf.shape}")
                shapes.append(leaf.shape)
        if len({shape[0] for shape in shapes}) != 1:
            told = f"different lengths: shapes {' and '.join(map(str, shapes[:4]))}"
            told += f" and {len(shapes) - 4} more" if len(shapes) > 4 else ""
            if y is None:
                raise ValueError(
                    f"{what}: a list of arrays is several inputs, but these have {told}; pad "
                    "sequences to one length, and give batches as an iterator or a Dataset"
                )
            parts = "x and y" if weight is None else "x, y and sample_weight"
            raise ValueError(f"{what}: {parts} have {told}")
        self.batch_size = as_count("batch_size", batch_size, least=1)
        self.count: int = shapes[0][0]
        self.length: int | None = -(-self.count // self.batch_size)

    def batches(
        self, generator: np.random.Generator | None = None, first: int = 0
    ) -> Iterator[Any]:
        """Yield ``(x, y)``, in an order drawn from ``generator`` if there is one.

        With weights, batches are ``(x, y, weight)``; without labels, ``x``. The first batch has
        number ``first``.
        """
        size = self.batch_size
        order = None if generator is None else _Order(generator.permutation(self.count))
        for start in range(first * size, self.count, size):
            stop = min(start + size, self.count)  # some libraries refuse a stop after the end
            if self.shared is None:
                yield self._batch(start, stop, order)
                continue
            layout = self.shared(stop - start)
            first_row, end = start + layout.start, start + layout.stop
            yield RankPart(self._batch(first_row, end, order), layout)

    def _batch(self, start: int, stop: int, order: _Order | None) -> Any:
        chosen = slice(start, stop) if order is None else order.part(start, stop)
        x = _rows_of(self.x, chosen)
        if self.weight is not None:
            return x, _rows_of(self.y, chosen), _rows_of(self.weight, chosen)
        if self.y is None:
            return (x,) if self.in_tuples else x
        return x, _rows_of(self.y, chosen)

    def signature(self) -> list[int | None]:
        """Return the number of examples, the batch size, and the number of batches."""
        return [self.count, self.batch_size, self.length]

    def seed_pass(self, seed: int, number: int) -> None:
        """Do nothing: ``batches`` takes a generator instead."""

    def state(self) -> None:
        """Return ``None``: arrays have no state."""

    def load(self, state: Any) -> None:
        """Raise, because the state belongs to another kind of data."""
        raise ValueError(
            f"{self.what}: the run trained on data with a state, and arrays have none; give the "
            "same data"
        )

    def split(self, fraction: float) -> tuple[Examples, Examples]:
        """Split off the last ``fraction`` of the examples; return both parts."""
        kept = round(self.count * (1.0 - fraction))
        if not 0 < kept < self.count:
            raise ValueError(
                f"validation_split={fraction} of {self.count} examples leaves one part empty"
            )
        return self._part(slice(0, kept)), self._part(slice(kept, None))

    def in_batches(self, size: int) -> Examples:
        """Return the same examples in batches of another size."""
        found = Examples(self.x, self.y, size, self.what, self.weight)
        found.in_tuples = self.in_tuples
        return found

    def _part(self, chosen: slice) -> Examples:
        x, y, weight = [
            None if part is None else _rows_of(part, chosen)
            for part in (self.x, self.y, self.weight)
        ]
        found = Examples(x, y, self.batch_size, self.what, weight)
        found.in_tuples = self.in_tuples
        return found


class Batches:
    """An iterable of batches of any structure.

    Parameters
    ----------
    batches
        An object that starts again at each ``iter()``.
    passes
        The number of passes through it.
    what
        The name of the data in messages.

    Attributes
    ----------
    length : int or None
        The number of batches, if it is known.
    rewinds : bool
        Whether the batches can be iterated again; an iterator does not allow that.
    endless : bool
        Whether the batches are known to have no end.

    Raises
    ------
    TypeError
        If ``batches`` cannot be iterated, or is a mapping or a data frame.
    ValueError
        If it can only be iterated once, and ``passes`` is larger.
    """

    def __init__(self, batches: Iterable[Any], passes: int = 1, what: str = "data") -> None:
        if not hasattr(batches, "__iter__"):
            raise TypeError(
                f"{what} must be a pair of arrays (x, y) or an iterable of such batches, "
                f"got {type(batches).__name__}{_instead(batches)}"
            )
        if hasattr(batches, "keys") or hasattr(batches, "columns"):
            raise TypeError(
                f"{what} is a {type(batches).__name__} with inputs and labels under names; give "
                "both in a tuple (x, y), such as (table.drop(columns='label'), table['label']) "
                "for a data frame, or (file['x'], file['y'])"
            )
        if passes > 1 and iter(batches) is batches:
            raise ValueError(
                f"{what} is an iterator, which is exhausted after one of {passes} passes; give a "
                "list, or an object whose __iter__ starts again"
            )
        self.source = batches
        self.what = what
        self.rewinds = not hasattr(batches, "__next__")
        self.early = type(batches) in (list, tuple)
        self.length: int | None = length_of(batches)
        self.endless = isinstance(batches, Dataset) and batches.cardinality() == np.inf
        if self.length == 0:
            raise ValueError(f"{what} has no batches")

    def seed_pass(self, seed: int, number: int) -> None:
        """Seed the order of a pipeline's next pass, where the pipeline has no seed of its own."""
        if isinstance(self.source, Dataset):
            self.source._seed_pass(seed, number)

    def batches(self, generator: Any = None, first: int = 0) -> Iterator[Any]:
        """Yield the batches in their own order, from number ``first`` on; leaves are tensors."""
        for batch in islice(self.source, first, None):
            yield map_structure(as_tensor, batch)

    def signature(self) -> list[int | None]:
        """Return the number of examples and the batch size, both unknown, and that of batches."""
        return [None, None, self.length]

    def state(self) -> Any:
        """Return the state of the iterable; None if it has no ``state_dict``."""
        found = getattr(self.source, "state_dict", None)
        return None if found is None else found()

    def load(self, state: Any) -> None:
        """Set the state of the iterable."""
        self.source.load_state_dict(state)  # type: ignore[attr-defined]


def _instead(given: Any) -> str:
    """Return a hint on what to do with an object that is not iterable."""
    if callable(given) and not isinstance(given, type):
        return "; call it, or use gt.data.Dataset.from_generator(function) for several epochs"
    if hasattr(given, "__getitem__") and hasattr(given, "__len__"):
        return (
            "; gt.data.Dataset(it).batch(32) batches items, "
            "Dataset(it) reads items that are batches"
        )
    return ""


class Labelled(Batches):
    """An iterable of batches ``(x, y)`` or ``(x, y, sample_weight)``.

    Parameters
    ----------
    batches, passes, what
        As for :class:`Batches`.
    check
        A function of each batch's labels and the name of the data, which raises if labels are
        invalid.
    batch_size
        The size that the user gave for arrays. If it is not the default, the first batch must have
        it.
    """

    def __init__(
        self,
        batches: Iterable[Any],
        passes: int = 1,
        what: str = "data",
        check: Check | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        super().__init__(batches, passes, what)
        self.check = check
        self.batch_size = batch_size

    def batches(self, generator: Any = None, first: int = 0) -> Iterator[tuple[Any, ...]]:
        """Yield the batches in their own order, from number ``first`` on."""
        size = asked = self.batch_size
        for i, batch in enumerate(islice(self.source, first, None), first):
            what = f"{self.what}: batch {i}"
            if isinstance(batch, tuple) and (len(batch) == 1 or not_labelled(batch)):
                if self.check is not None:
                    self.check(None, what)
                yield (as_part(f"{what}: x", batch[0]),)
                continue
            if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
                if hasattr(self.source, "shape"):
                    raise ValueError(
                        f"{self.what}: an array of shape {tuple(self.source.shape)} has no labels; "
                        "give (x, y), or (x, None) if the model needs none"
                    )
                raise ValueError(
                    f"{what} must be (x, y) or (x, y, sample_weight), got "
                    f"{_described(batch)}{self._tuple_hint()}"
                )
            if isinstance(batch, list) and not any(
                hasattr(leaf, "shape") for leaf in flatten(batch)
            ):
                raise ValueError(
                    f"{what} is a list of {len(batch)} lists or numbers, not a pair (x, y) of "
                    "arrays; give x and y in a tuple, each as one array"
                )
            parts = as_parts(what, batch)
            leaves = [leaf for part in parts for leaf in flatten(part)]
            lengths = {len(leaf) if leaf.ndim else 0 for leaf in leaves}
            if len(lengths) != 1 or 0 in lengths:
                hint = "; Dataset.batch(n) makes batches" if 0 in lengths else ""
                shapes = [f"{n} of shape {_shapes(part)}" for n, part in zip(_NAMES, parts)]
                raise ValueError(
                    f"{what} has {' and '.join(shapes)}; they need the same, positive length{hint}"
                )
            size = max(lengths) if i == 0 and asked != BATCH_SIZE else size
            if size > asked or (i > 0 and size < asked):  # a single batch may be smaller
                raise ValueError(
                    f"{self.what}: its batches have {size} examples, but batch_size is {asked}; it "
                    "is for arrays: leave it out, or make batches of that size"
                )
            if self.check is not None:
                self.check(parts[1], what)
            yield parts

    def _tuple_hint(self) -> str:
        """Return a hint for users who passed ``[x, y]``."""
        given = self.source if isinstance(self.source, list) else []
        shapes = [getattr(x, "shape", None) or () for x in given]
        if len(given) in (2, 3) and len({shape[:1] for shape in shapes}) == 1 and shapes[0]:
            return "; give arrays x and y in a tuple: (x, y)"
        return ""


def as_dataset(
    data: Any, batch_size: int, passes: int = 1, what: str = "data", check: Check | None = None
) -> Examples | Batches:
    """Return arrays ``(x, y)`` or ``(x, y, sample_weight)``, or an iterable of such batches.

    Raises
    ------
    ValueError
        If a tuple is neither.
    TypeError
        If ``data`` has another type.
    """
    if not isinstance(data, tuple) or hasattr(data, "_fields"):
        return Labelled(data, passes, what, check, batch_size)
    if not_labelled(data):
        if check is not None:
            check(None, what)
        found = Examples(as_part(f"{what}: x", data[0]), None, batch_size, what)
        found.in_tuples = True
        return found
    kinds = {type(part) for part in data if are_several(part)}
    if len(data) == 2 and kinds == {tuple} and all(map(are_several, data)):
        raise TypeError(
            f"{what}: x and y are both tuples of {len(data[0])} arrays, which may be two batches, "
            "or several inputs and outputs; give batches (x, y) in a list, and several inputs or "
            "outputs in lists or dictionaries"
        )
    batches = kinds <= {list, tuple} and all(map(are_several, data))
    if len(data) == 2 or (len(data) == 3 and not batches):
        parts = as_parts(what, data)
        if check is not None and all(leaf.size for leaf in flatten(parts[1])):
            check(parts[1], what)
        x, y, *weight = parts
        return Examples(x, y, batch_size, what, weight[0] if weight else None)
    if any(hasattr(part, "shape") for part in data):
        raise ValueError(
            f"{what} is a tuple of {len(data)} arrays, not (x, y) or (x, y, sample_weight); "
            "give several inputs as one list, and batches in a list"
        )
    return Labelled(data, passes, what, check)


def not_labelled(data: tuple[Any, ...]) -> bool:
    """Return whether data are ``(x, None)``: inputs for a loss that needs no labels."""
    return len(data) == 2 and data[1] is None


def expected(
    data: Examples | Batches, epochs: int, steps: int | None = None
) -> dict[int, int] | None:
    """Return how many batches of each size there will be; None if unknown."""
    if not isinstance(data, Examples) or data.length is None:
        return None
    passes = epochs if steps is None else epochs * steps // data.length
    whole, rest = divmod(data.count, data.batch_size)
    return {data.batch_size: whole * passes, rest: passes}


def first_batches(data: Examples | Batches, steps: int | None) -> Iterator[Any]:
    """Return the first ``steps`` batches; all for ``None``.

    Raises
    ------
    ValueError
        If there are fewer (at the end of the batches, if their number is unknown), or if ``steps``
        is ``None`` and they never end.
    """
    if steps is None:
        if data.endless:
            raise ValueError(f"{data.what} never ends (repeat()): give the number of steps")
        return data.batches()
    if data.length is not None and data.length < steps:
        raise ValueError(f"{data.what} has {data.length} batches, fewer than {steps} steps")
    return _exactly(data, steps)


def _exactly(data: Examples | Batches, steps: int) -> Iterator[Any]:
    came = 0
    for batch in islice(data.batches(), steps):
        came += 1
        yield batch
    if came < steps:
        raise ValueError(f"{data.what} ended after {came} batches, fewer than {steps} steps")


def as_parts(what: str, given: Any) -> tuple[Any, ...]:
    """Return inputs, labels and perhaps weights as tensors, each in its structure.

    A list of arrays is several inputs or outputs if the length of each is the number of examples.
    It is one array of examples if its own length is that number.
    """
    given = given[:2] if len(given) == 3 and given[2] is None else given
    # an output without a loss may have no labels, and any output may have no weights
    given = (given[0], *map(_without_none, given[1:]))
    parts = [as_part(f"{what}: {name}", part) for name, part in zip(_NAMES, given)]
    lengths = [{len(leaf) for leaf in flatten(part) if leaf.ndim} for part in parts]
    others = [set().union(*lengths[:i], *lengths[i + 1 :]) for i in range(len(parts))]
    for i, part in enumerate(given):
        if isinstance(parts[i], list) and lengths[i] != others[i] == {len(part)}:
            parts[i] = as_part(f"{what}: {_NAMES[i]}", part, whole=True)
    return tuple(parts)


def _without_none(part: Any) -> Any:
    """Return a dictionary without the names of None; anything else unchanged."""
    if not isinstance(part, dict):
        return part
    return {name: x for name, x in part.items() if x is not None}


def as_part(what: str, part: Any, whole: bool = False) -> Any:
    """Return inputs, labels or weights as a tensor, or as several in their structure.

    Parameters
    ----------
    what
        Their name in messages.
    part
        What the user gave.
    whole
        Whether it is one array, also if it is a list of arrays.

    Raises
    ------
    TypeError
        If something is not numeric.
    ValueError
        If the elements of a list have different sizes.
    """
    try:
        if (
            not whole
            and are_several(part)
            and not all(np.ndim(leaf) == 0 for leaf in flatten(part))
        ):
            return map_structure(as_tensor, part)
        return as_tensor(part)
    except (TypeError, ValueError) as error:
        sizes = {_size(x) for x in part} if isinstance(part, (list, tuple)) else set()
        if type(error) is ValueError and len(sizes) > 1:
            raise ValueError(
                f"{what}: its {len(part)} elements have different sizes, such as "
                f"{' and '.join(sorted(map(str, sizes))[:2])}, so they make no array; resize them, "
                "or pad each batch: gt.data.Dataset(list(zip(x, y))).padded_batch(32)"
            ) from None
        raise type(error)(f"{what}: {error}") from None


def _size(x: Any) -> Any:
    """Return the shape of an array, the length of a list, and None for a number."""
    return tuple(x.shape) if hasattr(x, "shape") else len(x) if hasattr(x, "__len__") else None


def _shapes(part: Any) -> str:
    return " and ".join(str(leaf.shape) for leaf in flatten(part))


def _described(batch: Any) -> str:
    kind = type(batch).__name__
    if hasattr(batch, "shape"):
        return f"{kind} of shape {tuple(batch.shape)}"
    return f"{kind} of {len(batch)}" if isinstance(batch, (tuple, list)) else kind


class _Order:
    """The order of an epoch, copied once to each device with examples."""

    def __init__(self, numbers: Any) -> None:
        self._numbers = numbers
        self._there: dict[tuple[str, str], Any] = {}

    def part(self, start: int, stop: int) -> Callable[[Any], Any]:
        """Return a function of an array that returns the rows to take, on the array's device."""

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
