"""``Dataset``: a pipeline with the method names of ``tf.data``."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np

from ..core.extend import TensorSpec, as_tensor, flatten, map_structure, paths, warn_user

# by its public name: this package does not know which plugin provides it
from ..random import uniform
from . import steps
from .arrays import Nested
from .methods import CreatingMethods, GroupingMethods
from .shuffling import Cache, Shuffle, note_part
from .sources import Indexed, Items, Pass, Source, Stream, length_of
from .steps import positive

__all__ = ["Dataset"]


class Dataset(CreatingMethods, GroupingMethods, Nested):
    """A lazy sequence of elements, computed anew in each pass over it.

    Create one with :meth:`from_tensor_slices` or another ``from_...`` method. Each method returns a
    new dataset and leaves the original unchanged. Elements are NumPy arrays, in tuples and
    dictionaries. Your functions receive these and may return tensors. ``fit``, ``evaluate`` and
    ``predict`` take a dataset of batches.

    Parameters
    ----------
    source
        Anything with ``__len__`` and ``__getitem__``, such as a list or a PyTorch ``Dataset``; or
        another iterable, which each pass iterates over.

    Raises
    ------
    TypeError
        If ``source`` is not iterable, or is an iterator, which allows only one pass.

    Examples
    --------
    >>> data = gt.data.Dataset.range(10).shuffle(10, seed=0).batch(4)
    >>> [len(batch) for batch in data]
    [4, 4, 2]
    >>> gt.data.Dataset([1, 2, 3]).map(lambda x: x * x).to_list()
    [1, 4, 9]
    """

    #: A function that makes tensors of arrays of text, if a subclass has such tensors.
    _of_texts: Callable[[Any], Any] | None = None
    _gradtape_unrolled = True  # of which AutoGraph warns, in a loop over it

    def __init__(self, source: Any) -> None:
        if isinstance(source, Source):
            self._source = source
        elif isinstance(source, Mapping) or hasattr(source, "columns"):
            raise TypeError(
                f"Dataset: iterating over a {type(source).__name__} does not give its rows; pass a "
                "dictionary of arrays to Dataset.from_tensor_slices"
            )
        elif hasattr(source, "__len__") and hasattr(source, "__getitem__"):
            if _looks_like_columns(source):
                warn_user(
                    f"Dataset: a tuple of {len(source)} arrays is a dataset of {len(source)} "
                    f"elements; for one of {len(source[0])} rows, use Dataset.from_tensor_slices",
                    UserWarning,
                )
            self._source = Items(source)
        elif hasattr(source, "__iter__"):
            if iter(source) is source:
                raise TypeError(
                    "Dataset: an iterator is exhausted after one pass; pass a function that "
                    "returns one to Dataset.from_generator"
                )
            self._source = Stream(lambda: source, length_of(source))
        else:
            raise TypeError(
                f"Dataset: expected a sequence or another iterable, got {type(source).__name__}"
            )

    @classmethod
    def zip(cls, *datasets: Any) -> Self:
        """Return a dataset that combines the elements of several datasets, one from each.

        Parameters
        ----------
        datasets
            Datasets, or one tuple or dictionary of them.

        Examples
        --------
        >>> a = gt.data.Dataset.range(2)
        >>> [(int(x), int(y)) for x, y in gt.data.Dataset.zip(a, a.skip(1).repeat())]
        [(0, 1), (1, 1)]
        """
        if not datasets:
            raise TypeError("zip: pass at least one dataset")
        packed = datasets[0] if len(datasets) == 1 else datasets
        return cls(steps.Zip(tuple(d._source for d in _leaves(packed)), packed))

    # -- steps -----------------------------------------------------------------------------------

    def map(self, map_func: Callable[..., Any], num_parallel_calls: int | None = None) -> Self:
        """Apply a function to each element.

        Parameters
        ----------
        map_func
            A function of an element. The parts of a tuple are separate arguments.
        num_parallel_calls
            The number of threads; -1 means one per processor. By default, the function runs in the
            calling thread. The order of elements stays the same.
        """
        _check_function("map", map_func)
        threads = 1
        if num_parallel_calls == -1:
            threads = os.cpu_count() or 1
        elif num_parallel_calls is not None:
            threads = positive("num_parallel_calls", num_parallel_calls)
        return type(self)(steps.Map(self._source, steps.reading(self, map_func), threads))

    def filter(self, predicate: Callable[..., Any]) -> Self:
        """Leave out the elements for which a function returns False.

        Parameters
        ----------
        predicate
            A function of an element. The parts of a tuple are separate arguments.
        """
        _check_function("filter", predicate)
        return type(self)(steps.Filter(self._source, steps.reading(self, predicate)))

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Self:
        """Stack elements into batches along a new first axis.

        Parameters
        ----------
        batch_size
            The number of elements per batch.
        drop_remainder
            Whether to leave out a smaller last batch. False by default.
        """
        size = positive("batch_size", batch_size)
        return type(self)(steps.Batch(self._source, size, bool(drop_remainder)))

    def unbatch(self) -> Self:
        """Split batches into their rows."""
        return type(self)(steps.Unbatch(self._source))

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool = True,
    ) -> Self:
        """Yield elements in a random order.

        Parameters
        ----------
        buffer_size
            The number of elements from which the next one is drawn. If it is at least the number of
            elements, every order is equally likely, and for arrays the buffer holds only indices.
            An HDF5 file is read in blocks, each in the file's order.
        seed
            A seed. By default, one is drawn from ``gt.random``, and ``fit(seed=...)`` derives
            another one for each epoch.
        reshuffle_each_iteration
            Whether each pass has a different order. True by default. If it is False, you can
            split the result with :meth:`take` and :meth:`skip`: the order, and so each part, stays
            the same from the first pass on.
        """
        drawn = seed is None
        if seed is None:
            seed = int(uniform((), 0.0, 2.0**31, dtype="float64"))
        if not hasattr(seed, "__index__") or seed < 0:
            raise ValueError(f"shuffle: seed must be a non-negative integer, got {seed!r}")
        size = positive("buffer_size", buffer_size)
        anew = bool(reshuffle_each_iteration)
        return type(self)(Shuffle(self._source, size, int(seed), drawn, anew))

    def repeat(self, count: int | None = None) -> Self:
        """Repeat the elements ``count`` times, or forever by default.

        Parameters
        ----------
        count
            The number of passes. ``None`` (the default) or -1 means forever.
        """
        times = None if count in (None, -1) else positive("count", count, least=0)
        return type(self)(steps.Repeat(self._source, times))

    def take(self, count: int) -> Self:
        """Keep only the first elements.

        Parameters
        ----------
        count
            The number of elements; -1 means all.
        """
        if count == -1:
            return self
        count = positive("count", count, least=0)
        if count:
            note_part(self._source, ("at", count), 0, "take")
        if isinstance(self._source, Indexed):
            return type(self)(steps.Chosen(self._source, range(min(count, self._source.length))))
        return type(self)(steps.Take(self._source, count))

    def skip(self, count: int) -> Self:
        """Leave out the first elements.

        Parameters
        ----------
        count
            The number of elements; -1 means all.
        """
        if count == -1:
            return self.take(0)
        count = positive("count", count, least=0)
        if count:
            note_part(self._source, ("at", count), 1, "skip")
        if isinstance(self._source, Indexed):
            length = self._source.length
            return type(self)(steps.Chosen(self._source, range(min(count, length), length)))
        return type(self)(steps.Skip(self._source, count))

    def shard(self, num_shards: int, index: int) -> Self:
        """Keep every ``num_shards``-th element, starting with number ``index``.

        Parameters
        ----------
        num_shards
            The number of shards.
        index
            The index of this shard, from 0.
        """
        shards = positive("num_shards", num_shards)
        if not 0 <= index < shards:
            raise ValueError(f"shard: index must be from 0 to {shards - 1}, got {index!r}")
        note_part(self._source, ("shards", shards), index, "shard")
        return type(self)(steps.sharded(self._source, shards, index))

    def concatenate(self, dataset: Dataset) -> Self:
        """Append another dataset.

        Parameters
        ----------
        dataset
            The dataset whose elements follow.
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"concatenate: expected a Dataset, got {type(dataset).__name__}")
        return type(self)(steps.Chain((self._source, dataset._source)))

    def cache(self) -> Self:
        """Keep elements in memory once they have been read, for later passes.

        All passes have the elements and the order of the first. If it ends early, the next one
        reads on.
        """
        return type(self)(Cache(self._source))

    def prefetch(self, buffer_size: int = 2) -> Self:
        """Prepare the next elements in a thread while the current one is in use.

        Parameters
        ----------
        buffer_size
            The maximum number of prepared elements, 2 by default; -1 means 2.
        """
        size = 2 if buffer_size == -1 else positive("buffer_size", buffer_size)
        return type(self)(steps.Prefetch(self._source, size))

    def flat_map(self, map_func: Callable[..., Dataset]) -> Self:
        """Turn each element into a dataset, and concatenate these datasets.

        Parameters
        ----------
        map_func
            A function of an element that returns a dataset.
        """
        to_source = _to_source(steps.reading(self, map_func))
        return type(self)(steps.FlatMap(self._source, to_source))

    def interleave(
        self, map_func: Callable[..., Dataset], cycle_length: int = 2, block_length: int = 1
    ) -> Self:
        """Turn each element into a dataset, and take elements from several of them in turn.

        Parameters
        ----------
        map_func
            A function of an element that returns a dataset.
        cycle_length
            The number of datasets to take elements from at a time, 2 by default.
        block_length
            The number of consecutive elements from each dataset, 1 by default.
        """
        cycle = positive("cycle_length", cycle_length)
        block = positive("block_length", block_length)
        to_source = _to_source(steps.reading(self, map_func))
        return type(self)(steps.Interleave(self._source, to_source, cycle, block))

    def enumerate(self, start: int = 0) -> Self:
        """Pair each element with its number: ``(number, element)``.

        Parameters
        ----------
        start
            The first number, 0 by default.
        """
        numbers = steps.Numbers(start)
        return type(self)(steps.Zip((numbers, self._source), (None, None)))

    def with_options(self, options: Any) -> Self:
        """Return the dataset itself; options have no effect here.

        Parameters
        ----------
        options
            Any object. It is accepted for compatibility with ``tf.data``.
        """
        return self

    # -- elements --------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        """Yield the elements as tensors."""
        texts, source = self._of_texts, self._source

        def elements() -> Iterator[Any]:
            return (_as_tensors(element, texts) for element in source.elements())

        return Pass(elements(), elements, self)

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Yield the elements as NumPy arrays."""
        return Pass(self._source.elements(True))

    def to_list(self) -> list[Any]:
        """Return all elements in a list, with Python numbers instead of arrays of shape ``()``."""
        if self._source.endless():
            raise ValueError("to_list: the dataset is infinite; call take(n) first")
        return [map_structure(_listed, element) for element in self._source.elements(True)]

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """Return ``reduce_func(state, element)`` after the last element.

        Parameters
        ----------
        initial_state
            The first state.
        reduce_func
            A function of a state and an element, which returns the next state.
        """
        state = initial_state
        for element in self:
            state = reduce_func(state, element)
        return state

    @property
    def element_spec(self) -> Any:
        """A :class:`TensorSpec` for each leaf of the first element.

        Raises
        ------
        ValueError
            If there are no elements.
        """
        state = self.state_dict()  # this does not count as a pass
        try:
            for element in self._source.elements():
                return map_structure(lambda x: TensorSpec(x.shape, x.dtype), element)
        finally:
            self.load_state_dict(state)
        raise ValueError("element_spec: the dataset is empty, so the element's spec is unknown")

    def cardinality(self) -> int | float | None:
        """Return the number of elements: ``inf`` if infinite, ``None`` if unknown."""
        return math.inf if self._source.endless() else self._source.length

    def __len__(self) -> int:
        length = self._source.length
        if length is None:
            reason = "is not known; iterate over it to count its elements"
            raise TypeError(
                "the length of this dataset "
                f"{'is infinite; take(n) bounds it' if self._source.endless() else reason}"
            )
        return length

    def __bool__(self) -> bool:
        return True  # its length need not be known

    # -- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state that the next pass depends on: the shuffles' seeds and pass counts."""
        return {"passes": [source.state() for source in self._sources()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that :meth:`state_dict` returned.

        Parameters
        ----------
        state
            The state of a pipeline with the same steps.

        Raises
        ------
        ValueError
            If ``state`` belongs to a pipeline with another number of steps.
        """
        sources = list(self._sources())
        if len(state["passes"]) != len(sources):
            raise ValueError(
                f"load_state_dict: the state has {len(state['passes'])} steps, but this dataset "
                f"has {len(sources)}; load it into a dataset with the same steps"
            )
        for source, value in zip(sources, state["passes"]):
            if value is not None:
                source.load(value)

    def _seed_pass(self, seed: int, number: int) -> None:
        """Derive the orders of the next pass from these numbers, for shuffles without a seed."""
        for i, source in enumerate(self._sources()):
            source.seed_pass((seed, number, i))

    def _sources(self) -> Iterator[Source]:
        waiting = [self._source]
        while waiting:
            source = waiting.pop()
            yield source
            waiting += source.parents()

    def __repr__(self) -> str:
        kinds = [type(source).__name__ for source in self._sources()]
        length = "?" if self._source.length is None else self._source.length
        return f"<Dataset of {length} elements: {' ← '.join(kinds)}>"


def sharding_of(data: Any) -> tuple[int, int] | None:
    """Return a dataset's ``(num_shards, index)``; None if it is not a shard."""
    sources = data._sources() if isinstance(data, Dataset) else ()
    return next((source.shard for source in sources if source.shard is not None), None)


def _looks_like_columns(source: Any) -> bool:
    """Return whether a sequence seems to be meant as ``(x, y)``."""
    if type(source) is not tuple or len(source) not in (2, 3):
        return False
    shapes: list[Any] = [getattr(x, "shape", ()) for x in source]
    return all(shapes) and len({shape[0] for shape in shapes}) == 1


def _as_tensors(element: Any, texts: Callable[[Any], Any] | None = None) -> Any:
    """Return an element with tensors instead of arrays; an error names the part in question."""
    try:
        return _shown(element, texts)
    except TypeError as error:
        if not isinstance(element, (tuple, list, dict)):
            raise
        for leaf, place in zip(flatten(element), paths(element, "element"), strict=True):
            try:
                _shown(leaf, texts)
            except TypeError as found:
                raise TypeError(f"{place}: {found}") from error
        raise


def _shown(element: Any, texts: Callable[[Any], Any] | None = None) -> Any:
    """Return an element with tensors instead of arrays; ``texts`` makes those of text."""
    if type(element) is np.ndarray:
        if texts is not None and element.dtype.kind in "OSU":
            return texts(element)
        if element.dtype.hasobject and element.ndim == 0:
            raise TypeError(
                f"Dataset: an element, or a part of one, is {element.item()!r:.80}, which is not a "
                "number: leave it out, or convert it, with map(); as_numpy_iterator() and "
                "to_list() return elements of any kind"
            )
        return as_tensor(element)
    if type(element) is tuple:
        return tuple([_shown(part, texts) for part in element])
    if isinstance(element, (tuple, list, dict)):
        return map_structure(lambda part: _shown(part, texts), element)
    return element if isinstance(element, Dataset) else as_tensor(element)  # of windows


def _listed(value: Any) -> Any:
    if isinstance(value, Dataset):  # of windows
        return value.to_list()
    return value if value.ndim or np.ma.is_masked(value) else value.item()


def _check_function(who: str, function: Any) -> None:
    if not callable(function):
        raise TypeError(f"{who}: expected a function, got {function!r}")


def _leaves(packed: Any) -> list[Dataset]:
    found = flatten(packed)
    for x in found:
        if not isinstance(x, Dataset):
            raise TypeError(f"zip: expected datasets, got {x!r}")
    return found


def _to_source(map_func: Callable[..., Any]) -> Callable[..., Source]:
    def source(element: Any) -> Source:
        found = map_func(*element) if isinstance(element, tuple) else map_func(element)
        return (found if isinstance(found, Dataset) else Dataset(found))._source

    return source
