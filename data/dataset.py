"""``Dataset``: a pipeline, with the names of ``tf.data``."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..core.extend import TensorSpec, as_tensor, flatten, map_structure

# by its public name: data do not know which plugin provides it
from ..random import uniform
from . import steps
from .making import Made
from .sources import Indexed, Items, Source, Stream, length_of

__all__ = ["Dataset"]


class Dataset(Made):
    """Elements that are made when they are asked for, as often as one goes through them.

    Made by :meth:`from_tensor_slices` and its like. Each method returns another dataset and
    changes none. Elements are arrays of NumPy, in tuples and dictionaries; functions get those, and
    may return tensors. ``fit``, ``evaluate`` and ``predict`` take a dataset of batches.

    Parameters
    ----------
    source
        Anything with ``__len__`` and ``__getitem__``, such as a list or a PyTorch ``Dataset``; or
        another iterable, which is gone through at each pass.

    Raises
    ------
    TypeError
        If it cannot be gone through.

    Examples
    --------
    >>> data = gt.data.Dataset.range(10).shuffle(10, seed=0).batch(4)
    >>> [len(batch) for batch in data]
    [4, 4, 2]
    >>> gt.data.Dataset([1, 2, 3]).map(lambda x: x * x).to_list()
    [1, 4, 9]
    """

    def __init__(self, source: Any) -> None:
        if isinstance(source, Source):
            self._source = source
        elif isinstance(source, Mapping) or hasattr(source, "columns"):
            raise TypeError(
                f"Dataset: a {type(source).__name__} is not gone through by its rows; give "
                "Dataset.from_tensor_slices a dictionary of arrays"
            )
        elif hasattr(source, "__len__") and hasattr(source, "__getitem__"):
            self._source = Items(source)
        elif hasattr(source, "__iter__"):
            if iter(source) is source:
                raise TypeError(
                    "Dataset: an iterator is used up after one pass; give Dataset.from_generator a "
                    "function that makes one"
                )
            self._source = Stream(lambda: source, length_of(source))
        else:
            raise TypeError(f"Dataset: {type(source).__name__} cannot be gone through")

    @staticmethod
    def zip(*datasets: Any) -> Dataset:
        """Return elements of several datasets, side by side.

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
        packed = datasets[0] if len(datasets) == 1 else datasets
        return Dataset(steps.Zip(tuple(d._source for d in _leaves(packed)), packed))

    # -- steps -----------------------------------------------------------------------------------

    def map(self, map_func: Callable[..., Any], num_parallel_calls: int | None = None) -> Dataset:
        """Apply a function to each element.

        Parameters
        ----------
        map_func
            A function of an element; of tuples, each part is an argument.
        num_parallel_calls
            In how many threads; in none by default, and -1 stands for as many as there are
            processors. The order stays.
        """
        threads = 1
        if num_parallel_calls == -1:
            threads = os.cpu_count() or 1
        elif num_parallel_calls is not None:
            threads = _count("num_parallel_calls", num_parallel_calls)
        return Dataset(steps.Map(self._source, map_func, threads))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """Leave out elements for which a function is false.

        Parameters
        ----------
        predicate
            A function of an element; of tuples, each part is an argument.
        """
        return Dataset(steps.Filter(self._source, predicate))

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Put elements together, ``batch_size`` at a time, along a new first axis.

        Parameters
        ----------
        batch_size
            How many.
        drop_remainder
            Whether to leave out a last batch that is smaller.
        """
        size = _count("batch_size", batch_size)
        return Dataset(steps.Batch(self._source, size, bool(drop_remainder)))

    def unbatch(self) -> Dataset:
        """Take batches apart."""
        return Dataset(steps.Unbatch(self._source))

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool = True,
    ) -> Dataset:
        """Yield elements in a random order.

        Parameters
        ----------
        buffer_size
            Out of how many the next one is drawn. As many as there are elements, or more, make
            every order equally likely; of arrays, only their numbers are held then. An HDF5 file is
            read in blocks, each in the file's order.
        seed
            A seed; by default one is drawn from ``gt.random``, and ``fit(seed=)`` gives each epoch
            another.
        reshuffle_each_iteration
            Whether each pass has an order of its own, as is the default.
        """
        drawn = seed is None
        if seed is None:
            seed = int(uniform((), 0.0, 2.0**31, dtype="float64"))
        if not hasattr(seed, "__index__") or seed < 0:
            raise ValueError(f"shuffle: seed must be a non-negative integer, got {seed!r}")
        size = _count("buffer_size", buffer_size)
        anew = bool(reshuffle_each_iteration)
        return Dataset(steps.Shuffle(self._source, size, int(seed), drawn, anew))

    def repeat(self, count: int | None = None) -> Dataset:
        """Go through the elements ``count`` times; for ever by default.

        Parameters
        ----------
        count
            How often; ``None`` or -1 for ever.
        """
        times = None if count in (None, -1) else _count("count", count, least=0)
        return Dataset(steps.Repeat(self._source, times))

    def take(self, count: int) -> Dataset:
        """Keep the first elements.

        Parameters
        ----------
        count
            How many; -1 for all.
        """
        if count == -1:
            return self
        count = _count("count", count, least=0)
        if isinstance(self._source, Indexed):
            return Dataset(steps.Chosen(self._source, range(min(count, self._source.length))))
        return Dataset(steps.Take(self._source, count))

    def skip(self, count: int) -> Dataset:
        """Leave out the first elements.

        Parameters
        ----------
        count
            How many; -1 for all.
        """
        if count == -1:
            return self.take(0)
        count = _count("count", count, least=0)
        if isinstance(self._source, Indexed):
            length = self._source.length
            return Dataset(steps.Chosen(self._source, range(min(count, length), length)))
        return Dataset(steps.Skip(self._source, count))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Keep every ``num_shards``-th element, from number ``index`` on.

        Parameters
        ----------
        num_shards
            How many shards there are.
        index
            Which of them, from 0.
        """
        shards = _count("num_shards", num_shards)
        if not 0 <= index < shards:
            raise ValueError(f"shard: index must be from 0 to {shards - 1}, got {index!r}")
        return Dataset(steps.sharded(self._source, shards, index))

    def concatenate(self, dataset: Dataset) -> Dataset:
        """Go on with another dataset.

        Parameters
        ----------
        dataset
            What comes after this one.
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"concatenate: expected a Dataset, got {type(dataset).__name__}")
        return Dataset(steps.Chain((self._source, dataset._source)))

    def cache(self) -> Dataset:
        """Keep the elements of the first whole pass in memory, for those after it."""
        return Dataset(steps.Cache(self._source))

    def prefetch(self, buffer_size: int = 2) -> Dataset:
        """Make elements ahead in a thread, while the last one is used.

        Parameters
        ----------
        buffer_size
            How many at most; -1 stands for 2.
        """
        size = 2 if buffer_size == -1 else _count("buffer_size", buffer_size)
        return Dataset(steps.Prefetch(self._source, size))

    def flat_map(self, map_func: Callable[..., Dataset]) -> Dataset:
        """Make a dataset of each element, and go through them one after another.

        Parameters
        ----------
        map_func
            A function of an element that returns a dataset.
        """
        return Dataset(steps.FlatMap(self._source, _to_source(map_func)))

    def interleave(
        self, map_func: Callable[..., Dataset], cycle_length: int = 2, block_length: int = 1
    ) -> Dataset:
        """Make datasets of elements, and take some elements of several of them in turn.

        Parameters
        ----------
        map_func
            A function of an element that returns a dataset.
        cycle_length
            Of how many datasets at a time.
        block_length
            How many elements of each.
        """
        cycle = _count("cycle_length", cycle_length)
        block = _count("block_length", block_length)
        return Dataset(steps.Interleave(self._source, _to_source(map_func), cycle, block))

    def enumerate(self, start: int = 0) -> Dataset:
        """Put a number before each element.

        Parameters
        ----------
        start
            The first number.
        """
        numbers = steps.Numbers(start)
        return Dataset(steps.Zip((numbers, self._source), (None, None)))

    def with_options(self, options: Any) -> Dataset:
        """Return the dataset itself: options of other engines make no difference here.

        Parameters
        ----------
        options
            Anything.
        """
        return self

    # -- looking at it ---------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        """Yield the elements, as tensors."""
        return (map_structure(as_tensor, element) for element in self._source.elements())

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Yield the elements, as arrays of NumPy."""
        return self._source.elements()

    def to_list(self) -> list[Any]:
        """Return all elements: Python numbers in place of arrays without axes."""
        if self._source.endless():
            raise ValueError("to_list: the elements never end; take(n) first")
        return [
            map_structure(lambda x: x.item() if not x.ndim else x, element)
            for element in self._source.elements()
        ]

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
        state = self.state_dict()  # looking counts as no pass
        try:
            for element in self._source.elements():
                return map_structure(lambda x: TensorSpec(x.shape, x.dtype), element)
        finally:
            self.load_state_dict(state)
        raise ValueError("element_spec: there are no elements")

    def cardinality(self) -> int | float | None:
        """Return how many elements there are: ``inf`` if they never end, ``None`` if not known."""
        return math.inf if self._source.endless() else self._source.length

    def __len__(self) -> int:
        length = self._source.length
        if length is None:
            reason = "is not known; go through it to count"
            raise TypeError(
                "the length of this dataset "
                f"{'has no end; take(n) gives it one' if self._source.endless() else reason}"
            )
        return length

    def __bool__(self) -> bool:
        return True  # its length need not be known

    # -- going on with a pass --------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return what the next pass depends on beside the data: how often it was shuffled."""
        return {"passes": [source.state() for source in self._sources()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set what :meth:`state_dict` returned.

        Parameters
        ----------
        state
            The state of a pipeline of the same steps.

        Raises
        ------
        ValueError
            If it is that of another pipeline.
        """
        sources = list(self._sources())
        if len(state["passes"]) != len(sources):
            raise ValueError("the state is that of another pipeline")
        for source, value in zip(sources, state["passes"]):
            if value is not None:
                source.load(value)

    def _seed_pass(self, seed: int, number: int) -> None:
        """Let the orders of the next pass come from these, where no seed was given."""
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
    """Return which shard of how many a dataset is, as ``(shards, index)``; None if it is none."""
    sources = data._sources() if isinstance(data, Dataset) else ()
    return next((source.shard for source in sources if source.shard is not None), None)


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


def _count(what: str, value: Any, least: int = 1) -> int:
    if not hasattr(value, "__index__") or value < least:
        kind = "positive" if least else "non-negative"
        raise ValueError(f"{what} must be a {kind} integer, got {value!r}")
    return int(value)
