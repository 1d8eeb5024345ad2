"""``TrainingRanks``: what the ranks of a job compare, agree on, and leave to rank 0."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ...core.errors import DistributedError
from ...core.extend import (
    BatchRows,
    Communicator,
    Module,
    StopRequest,
    Tensor,
    Variable,
    as_group_of_one,
    backend_of,
    batch_rows,
    collectives_agreed,
    communicator,
    flatten,
    map_structure,
    ranks_in_words,
    stop_request,
    to_numpy,
    told_by_ranks,
)
from ...data import sharding_of
from ...distributed import Group
from ...distributed.agreement import agree, compare
from ..data import Examples
from ..ranks import ALONE, BatchLayout, DeferredInterrupt, RankPart, SingleRank

__all__ = ["RankRows", "TrainingRanks", "WholeRanks", "sample_of", "together"]

#: The number of rows of data that ranks compare.
_ROWS = 256


class TrainingRanks(SingleRank):
    """The ranks of a job that train one model.

    Parameters
    ----------
    group
        The group from :func:`gradtape.distributed.init`.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.first = group.rank == 0
        self.stop_request = StopRequest()

    def callbacks(self, callbacks: list[Any]) -> list[Any]:
        """Return all callbacks on rank 0; on other ranks, those that write no files."""
        return [x for x in callbacks if self.first or not getattr(x, "writes_files", False)]

    # -- shares --------------------------------------------------------------------------------

    def share(self, count: int) -> BatchLayout:
        """Return how ranks share a batch. The first ranks have one row more if it is uneven."""
        size, rank = self.group.size, self.group.rank
        if count < size:
            return BatchLayout(rank, (count,) * size, repeated=True)
        whole, rest = divmod(count, size)
        return BatchLayout(rank, tuple(whole + (i < rest) for i in range(size)))

    def shares(self, data: Any) -> Any:
        """Return data from which each rank takes its rows, or a rank's own shard."""
        if isinstance(data, Examples):
            self.compare(
                data.what,
                "pass the same arrays on each rank, which takes its rows of each batch",
                sample_of(data.x, data.y, data.weight),
            )
            data.shared = self.share
        elif data is not None:
            shards = sharding_of(data.source)
            if shards is not None:
                self._check_shards(shards, data.what)
                return Shards(self, data)
        return data

    def _check_shards(self, shards: tuple[int, int], what: str) -> None:
        if shards != (self.group.size, self.group.rank):
            raise ValueError(
                f"fit: {what} is shard {shards[1]} of {shards[0]}, and this is rank "
                f"{self.group.rank} of {self.group.size}: use shard(group.size, group.rank)"
            )

    @contextmanager
    def working_on(self, layout: BatchLayout) -> Iterator[None]:
        """Run a step on a part of a batch."""
        rows = BatchRows(layout.counts[layout.rank], (layout.start, layout.total))
        places, wishes = batch_rows.set(rows), stop_request.set(self.stop_request)
        try:
            with collectives_agreed(), self.group.step("a step of fit"):
                yield
        finally:
            stop_request.reset(wishes)
            batch_rows.reset(places)

    def rows(self, data: Any) -> RankRows:
        """Return the object that predicts with all ranks."""
        shards = sharding_of(data.source) if hasattr(data, "source") else None
        if shards is not None:
            raise ValueError(
                f"predict: x is shard {shards[1]} of {shards[0]}, and with distributed=group each "
                "rank passes the whole data. Leave out shard(), or leave out distributed for the "
                "outputs of this rank's own shard"
            )
        return RankRows(self.share, sample_of)

    # -- agreement -----------------------------------------------------------------------------

    def same(self, number: int) -> int:
        """Return rank 0's number."""
        return int(communicator().broadcast(np.array(number, np.int64)))

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set on any rank."""
        return bool(communicator().all_reduce(np.array(int(flag)), "max"))

    def average(self, variables: Sequence[Variable]) -> None:
        """Replace variables by their mean over all ranks."""
        if not variables:
            return
        values = [variable.numpy() for variable in variables]
        flat = np.concatenate([x.reshape(-1).astype(np.float64) for x in values])
        means = communicator().all_reduce(flat) / self.group.size
        ends = np.cumsum([x.size for x in values])[:-1]
        for variable, like, part in zip(variables, values, np.split(means, ends), strict=True):
            variable.assign(part.reshape(like.shape).astype(like.dtype))

    def interrupt(self) -> DeferredInterrupt:
        """Return the object that records Ctrl-C on any rank."""
        self.stop_request = StopRequest()
        return SharedInterrupt(self)

    def agree_on(self, method: str, settings: Mapping[str, Any]) -> None:
        """Raise on all ranks if their settings differ. The message lists those that do."""
        self.agree(f"called {method}")
        mine = {name: _in_words(value) for name, value in settings.items()}
        found = communicator().exchange(json.dumps(mine).encode())
        told = [json.loads(x) for x in found]
        for name in dict.fromkeys(chain(*told)):
            values = [x.get(name, "missing") for x in told]
            if len(set(values)) > 1:
                words = ", ".join(
                    f"{value} on {ranks_in_words([i for i, x in enumerate(values) if x == value])}"
                    for value in dict.fromkeys(values)
                )
                raise DistributedError(
                    f"{method}: arguments differ between ranks: {name} is {words}. Call {method} "
                    "with the same arguments on every rank"
                )

    def agree(self, what: str) -> None:
        """Raise on all ranks if the text differs between them."""
        agree(self.group.communicator, what)

    def compare(self, what: str, hint: str, arrays: Iterable[Any]) -> None:
        """Raise on all ranks if their arrays differ.

        Raises
        ------
        DistributedError
            If arrays differ. The message names the ranks that differ from most.
        """
        compare("fit", what, hint, arrays)

    # -- files ---------------------------------------------------------------------------------

    def keeper(self, keeper: Any, session: Any) -> Any:
        """Return the object that keeps checkpoints, which rank 0 writes for all."""
        return SharedKeeper(self, keeper, session)


class WholeRanks(TrainingRanks):
    """The processes of a job, each with some of its devices."""

    def share(self, count: int) -> BatchLayout:
        """Return how processes share a batch: evenly if it divides; otherwise each has all rows."""
        size, rank = self.group.size, self.group.rank
        if count % self.group.devices:
            return BatchLayout(rank, (count,) * size, repeated=True)
        return BatchLayout(rank, (count // size,) * size)

    def average(self, variables: Sequence[Variable]) -> None:
        """Do nothing: the variables already reflect the whole batch."""


class Shards:
    """Batches of each rank's own shard, which end when those of any rank end.

    Parameters
    ----------
    ranks
        The ranks.
    data
        This rank's batches.
    """

    def __init__(self, ranks: TrainingRanks, data: Any) -> None:
        self._ranks, self._data = ranks, data
        lengths = communicator().all_gather(np.array(-1 if data.length is None else data.length))
        self.length = None if lengths.min() < 0 else int(lengths.min())
        self._warned = len(set(lengths.tolist())) == 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    def batches(self, generator: Any = None, first: int = 0) -> Iterator[RankPart]:
        """Yield this rank's batches while all ranks have one."""
        found = communicator()
        for batch in chain(self._data.batches(generator, first), [None]):
            mine = 0 if batch is None else len(flatten(batch[0])[0])
            counts = found.all_gather(np.array(mine)).tolist()
            if 0 in counts:
                self._warn(counts)
                return
            yield RankPart(batch, BatchLayout(found.rank, tuple(counts)))

    def _warn(self, counts: list[int]) -> None:
        more = [rank for rank, n in enumerate(counts) if n]
        if more and not self._warned and self._ranks.first:
            self._warned = True
            warnings.warn(
                f"fit: {ranks_in_words(more)} of {len(counts)} had more batches of "
                f"{self._data.what} than the others. These are skipped: an epoch ends where the "
                "shortest shard ends",
                stacklevel=2,
            )


class SharedInterrupt(DeferredInterrupt):
    """Records Ctrl-C on one rank. All ranks learn it from the same message, and stop together."""

    def __init__(self, ranks: TrainingRanks) -> None:
        self._ranks = ranks
        super().__init__()

    @property
    def requested(self) -> bool:
        """Whether any rank was interrupted, and all ranks know."""
        return self._ranks.stop_request.granted

    @requested.setter
    def requested(self, value: bool) -> None:
        self._ranks.stop_request.asked = value

    def settle(self) -> None:
        """Ask the other ranks."""
        if self._ranks.any(self._ranks.stop_request.asked or self._ranks.stop_request.granted):
            self._ranks.stop_request.granted = True

    def _note(self, number: int, frame: Any) -> None:
        if self._ranks.stop_request.asked:
            raise KeyboardInterrupt
        self._ranks.stop_request.asked = True


class SharedKeeper:
    """Checkpoints of all ranks: compared, written by rank 0, and read by all.

    Parameters
    ----------
    ranks
        The ranks.
    keeper
        The object that keeps them.
    session
        What is trained. Its variables are the same on all ranks.
    """

    def __init__(self, ranks: TrainingRanks, keeper: Any, session: Any) -> None:
        self._ranks, self._keeper, self._session = ranks, keeper, session

    @property
    def best(self) -> str | None:
        """The metric by which a manager chooses the best checkpoint."""
        found: str | None = self._keeper.best
        return found

    def check(self) -> None:
        """Raise on all ranks if rank 0 cannot save the current state."""
        self._on_first(self._keeper.check)

    def save(self, metrics: Mapping[str, float] | None = None) -> None:
        """Save the current state.

        Raises
        ------
        DistributedError
            If ranks have diverged (the message names them), or rank 0 could not write.
        """
        self._session.settle()
        self._on_first(lambda: self._keeper.save(metrics))

    def _on_first(self, action: Callable[[], None]) -> None:
        """Run something on rank 0, and raise its error on all ranks."""
        failure: BaseException | None = None
        if self._ranks.first:
            try:
                with as_group_of_one():
                    action()
            except Exception as error:
                failure = error
        told = communicator().exchange(b"" if failure is None else str(failure).encode())[0]
        if failure is not None:
            raise failure
        if told:
            raise DistributedError(f"fit: rank 0 could not write the checkpoint: {told.decode()}")

    def find(self) -> str | None:
        """Return the path of the checkpoint to resume from, or None.

        Raises
        ------
        DistributedError
            If ranks find different files.
        """
        path: str | None = self._keeper.find()
        told = told_by_ranks(communicator(), f"found {path or 'no checkpoint'}")
        if ";" in told:
            raise DistributedError(
                f"fit: {told}; use a folder for checkpoints that all ranks can read"
            )
        return path

    def plan(self, path: str) -> Any:
        """Return the plan to restore a file."""
        return self._keeper.plan(path)


def together(group: Any, method: str) -> SingleRank:
    """Return the cooperation of a group's ranks; see ``ranks_and_trainer``."""
    if not isinstance(group, Group):
        raise TypeError(
            f"{method}: distributed must be the group from gradtape.distributed.init(), "
            f"got {group!r}"
        )
    if type(group.communicator).parallel is not Communicator.parallel:
        return WholeRanks(group)
    if group.size == 1:
        return ALONE
    return TrainingRanks(group)


def sample_of(*parts: Any) -> list[Any]:
    """Return some rows of data, for the comparison."""
    found = []
    for leaf in flatten(parts):
        if isinstance(leaf, Tensor):
            step = max(1, len(leaf) // _ROWS)
            found.append(leaf.array[::step, ...])
    return found


def _unnamed(value: Any) -> Any:
    """Return settings without names, which count the layers that a rank has made."""
    if isinstance(value, Mapping):
        return {key: _unnamed(x) for key, x in value.items() if key != "name"}
    return [*map(_unnamed, value)] if isinstance(value, (list, tuple)) else value


def _in_words(value: Any) -> str:
    """Return a setting as text that is the same on each rank: its class and plain values."""
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_in_words(x)}' for key, x in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_in_words, value))}]"
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return name
    with suppress(Exception):  # a class of the user's may have other arguments
        return f"{type(value).__qualname__}({_in_words(_unnamed(value.get_config()))})"
    given = {k: x for k, x in getattr(value, "__dict__", {}).items() if k[0] != "_" and k != "name"}
    plain = [f"{k}={x!r}" for k, x in given.items() if isinstance(x, (bool, int, float, str))]
    return f"{type(value).__qualname__}({', '.join(plain)})"


# -- predictions ----------------------------------------------------------------------------------


class RankRows:
    """This rank's rows of batches that all ranks have, and all ranks' outputs for them.

    Parameters
    ----------
    share
        Returns how ranks share a batch of a size.
    sample
        Returns some rows of a batch, which ranks compare.
    """

    def __init__(
        self, share: Callable[[int], BatchLayout], sample: Callable[..., Sequence[Any]]
    ) -> None:
        self._share, self._sample = share, sample
        self._layouts: list[BatchLayout] = []

    def of(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield this rank's rows of each batch."""
        for batch in batches:
            if not self._layouts:
                hint = "each rank passes the same data, and computes its rows of each batch"
                compare("predict", "batches", hint, self._sample(batch))
            layout = self._share(len(flatten(batch)[0]))
            self._layouts.append(layout)
            yield map_structure(partial(_rows_of, slice(layout.start, layout.stop)), batch)

    def gathered(self, model: Module, columns: Sequence[Any]) -> list[Any]:
        """Return the outputs for all rows, in order, the same on all ranks.

        Parameters
        ----------
        model
            The model, whose variables are the same on all ranks.
        columns
            For each output, an array for this rank's rows.

        Raises
        ------
        DistributedError
            If ranks have different variables, batches or kinds of outputs.
        """
        hint = "train it with distributed=group, or call gt.distributed.broadcast_variables(model)"
        compare("predict", "variables", hint, [x.array for x in model.variables])
        kinds = [f"{x.dtype}{tuple(x.shape[1:])}" for x in columns]
        sizes = [layout.total for layout in self._layouts]
        hint = "each rank passes the same data and gets outputs of the same shape and dtype"
        compare("predict", "batches or outputs", hint, [np.array(kinds), np.array(sizes)])
        return [self._gathered(x) for x in columns]

    def _gathered(self, column: Any) -> Any:
        own = to_numpy(column)
        counts = np.array([layout.counts for layout in self._layouts]).sum(axis=0)
        padded = np.zeros((counts.max(), *own.shape[1:]), own.dtype)
        padded[: len(own)] = own
        rows = communicator().all_gather(padded)
        parts, starts = [], [0] * len(rows)
        for layout in self._layouts:
            for rank, count in enumerate(layout.counts):
                if rank == 0 or not layout.repeated:
                    parts.append(rows[rank, starts[rank] : starts[rank] + count])
                starts[rank] += count
        owner = backend_of(column)
        return owner.asarray(np.concatenate(parts), device=owner.device(column))


def _rows_of(rows: slice, x: Tensor) -> Tensor:
    return Tensor(x.array[rows, ...])
