"""What exchanges arrays between the ranks of a job: engines, and their communicators.

One communicator is in force at a time. Without a job it is that of a group of one, in which every
collective returns what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..base.spec import describe
from ..errors import DistributedError

__all__ = [
    "BatchRows",
    "Communicator",
    "Engine",
    "Wish",
    "agreed",
    "as_group_of_one",
    "as_one_program",
    "batch_rows",
    "check_by_rank",
    "communicator",
    "compared",
    "connect_to",
    "ranks_in_words",
    "told",
    "wish",
]

Array = NDArray[Any]


class Communicator:
    """The ranks of a job, as one of them sees them: a group of one.

    Engines subclass it. All methods but :meth:`abort` are collective: every rank calls them, in the
    same order, with arrays of the same shape and dtype.

    Attributes
    ----------
    rank, size
        The number of this rank, from 0, and how many there are.
    engine
        The name of the engine, ``"alone"`` for a group of one.
    watched
        Whether each rank is a process of its own, which may die or be stuck while others wait for
        it: ``init`` then connects them by TCP as well, so that the job ends.
    comparing
        The collective that the ranks compare before they run it, while they do.
    """

    rank: int = 0
    size: int = 1
    engine: str = "alone"
    watched: bool = False
    comparing: str | None = None

    @property
    def devices(self) -> int:
        """Into how many shards a batch is cut: the ranks, if an engine knows of no devices."""
        return self.size

    def all_reduce(self, array: Array, reduction: str = "sum") -> Array:
        """Return the ``"sum"``, ``"min"`` or ``"max"`` of all ranks' arrays, the same bits on each.

        Parameters
        ----------
        array
            An array in host memory, C-contiguous; it is not changed.
        reduction
            How elements are reduced.

        Returns
        -------
        numpy.ndarray
            An array of the same shape and dtype, which may be ``array`` in a group of one.
        """
        return array

    def reduce_in_place(self, array: Array) -> None:
        """Put the sum of all ranks' arrays in the memory of this one.

        Parameters
        ----------
        array
            A contiguous array of ``float32`` or ``float64`` in host memory.
        """
        array[...] = self.all_reduce(array)

    def start_in_place(self, array: Array) -> Callable[[], object]:
        """Begin :meth:`reduce_in_place`, and return what waits for its end.

        ``array`` must not be touched until then. By default it is done at once.
        """
        self.reduce_in_place(array)
        return _nothing

    def all_gather(self, array: Array) -> Array:
        """Return the arrays of all ranks, in a new first axis."""
        return array[None]

    def broadcast(self, array: Array, root: int = 0) -> Array:
        """Return the array of rank ``root``; the others' are not looked at."""
        return array

    def reduce_scatter(self, array: Array) -> Array:
        """Return this rank's part of the sum, of which each rank has as many rows."""
        total = self.all_reduce(array)
        rows = array.shape[0] // self.size
        return total[self.rank * rows : (self.rank + 1) * rows]

    def exchange(self, message: bytes) -> list[bytes]:
        """Return the messages of all ranks, which may be of different lengths."""
        return [message]

    def barrier(self) -> None:
        """Wait until every rank is here."""

    def compare(self, code: int, array: Array) -> tuple[bool, Array | None]:
        """Return whether all ranks give the same code, and perhaps their arrays.

        Parameters
        ----------
        code
            A number below ``2**63`` that tells collectives and the kinds of their arrays apart.
        array
            This rank's array, C-contiguous. Engines may send it along if it is small.

        Returns
        -------
        same : bool
            The same on all ranks.
        rows : numpy.ndarray or None
            The arrays of all ranks, in a new first axis, if the codes are the same and the arrays
            were sent along. The memory is overwritten by the next call.
        """
        most, least = self.all_reduce(np.array([code, -code]), "max").tolist()
        return most == -least, None

    def parallel(
        self, step: Callable[..., Any], options: dict[str, Any]
    ) -> Callable[..., Any] | None:
        """Return what runs a data-parallel step, if the engine does so as one global program.

        Parameters
        ----------
        step
            The function that was given to ``group.data_parallel``.
        options
            Its keyword arguments; and ``meet``, a collective function of the variables that it
            puts in the hands of the engine, which raises if ranks do not begin with the same.

        Returns
        -------
        callable or None
            ``None``, the default: each rank runs the step on its part of the batch.
        """
        return None

    def abort(self, reason: str, code: int = 1) -> None:
        """End the processes of all ranks at once.

        Parameters
        ----------
        reason
            What was printed already: for engines that can tell it to others.
        code
            The exit code, not 0.
        """
        raise SystemExit(code)

    def close(self) -> None:
        """Leave the job in peace."""


class Engine:
    """Base class of what starts communicators; ``gradtape_collectives`` returns instances.

    Attributes
    ----------
    name
        The name that users select, for instance ``"mpi"``.
    """

    name: str = ""
    provider: Any = None

    def unavailable(self) -> str | None:
        """Return why it cannot be used here, with what to install; ``None`` if it can."""
        return None

    def launched(self) -> bool:
        """Return whether a launcher of this engine started the process. It imports nothing."""
        return False

    def connect(self, **options: Any) -> Communicator:
        """Join the job that the process was started for.

        Parameters
        ----------
        options
            What the engine takes; by default nothing.

        Returns
        -------
        Communicator
            That of all ranks of the job.

        Raises
        ------
        BackendUnavailable
            If its library is missing, with what to install.
        """
        raise NotImplementedError

    def diagnosis(self) -> Sequence[str]:
        """Return what ``gradtape doctor --distributed`` shows: versions, launcher, library."""
        return ()


class BatchRows:
    """Which rows of the global batch a rank has.

    Parameters
    ----------
    count
        How many they are.
    place
        The number of the first one, and of the rows of all ranks; by default ranks tell each other
        when somebody asks.
    """

    def __init__(self, count: int, place: tuple[int, int] | None = None) -> None:
        self.count = count
        self._place = place

    def place(self) -> tuple[int, int]:
        """Return the number of the first row, and how many all ranks have; collective."""
        if self._place is None:
            found = communicator()
            counts = found.all_gather(np.array(self.count)).tolist()
            self._place = sum(counts[: found.rank]), sum(counts)
        return self._place


#: The rows of the batch that a data-parallel step runs on.
batch_rows: ContextVar[BatchRows | None] = ContextVar("gradtape_rows", default=None)


class Wish:
    """What a rank asks of all of them, carried by the messages of a step: to end the run.

    Attributes
    ----------
    asked : bool
        Whether this rank asks.
    granted : bool
        Whether one of them has, as all ranks have heard by the same message.
    """

    def __init__(self) -> None:
        self.asked = self.granted = False


#: The wish that messages carry.
wish: ContextVar[Wish | None] = ContextVar("gradtape_wish", default=None)


def _nothing() -> None: ...


_ALONE = Communicator()
_connected: list[Communicator] = []
_isolated: ContextVar[bool] = ContextVar("gradtape_alone", default=False)
_agreed: ContextVar[bool] = ContextVar("gradtape_agreed", default=False)
_one_program: ContextVar[bool] = ContextVar("gradtape_one_program", default=False)


class agreed:  # noqa: N801  # a context manager, written out: each step enters one
    """A block whose collectives all ranks are known to call alike: they are not compared.

    Parameters
    ----------
    known
        Whether they are known to; by default they are.
    """

    __slots__ = ("_known", "_token")

    def __init__(self, known: bool = True) -> None:
        self._known = known

    def __enter__(self) -> None:
        self._token = _agreed.set(self._known or _agreed.get())

    def __exit__(self, *raised: object) -> None:
        _agreed.reset(self._token)


def compared(what: str, array: Array) -> Array | None:
    """Return once all ranks are known to call the same collective.

    Parameters
    ----------
    what
        The collective, with its parameters.
    array
        This rank's array, in host memory and C-contiguous.

    Returns
    -------
    numpy.ndarray or None
        The arrays of all ranks, in a new first axis, if the comparison carried them. Read them
        before the next collective.

    Raises
    ------
    DistributedError
        If ranks call different collectives, or with arrays of different shapes or dtypes; it names
        each.
    """
    found = communicator()
    if found.size == 1 or _agreed.get():
        return None
    said, code = _coded(what, array.shape, array.dtype)
    found.comparing = said
    same, rows = found.compare(code, array)
    found.comparing = None
    if not same:
        raise DistributedError(f"ranks disagree: {told(found, said)}")
    return rows


@lru_cache(maxsize=256)
def _coded(what: str, shape: tuple[int, ...], dtype: Any) -> tuple[str, int]:
    """Return a collective in words, and its checksum."""
    said = f"{what} of {describe(shape, dtype)}"
    return said, crc32(said.encode())


def told(found: Communicator, said: str) -> str:
    """Return what all ranks say, those that say the same together."""
    by_text: dict[str, list[int]] = {}
    for rank, text in enumerate(found.exchange(said.encode())):
        by_text.setdefault(text.decode(), []).append(rank)
    return "; ".join(f"{ranks_in_words(ranks)} {text}" for text, ranks in by_text.items())


def ranks_in_words(ranks: Sequence[int]) -> str:
    """Return ``rank 3``, or ``ranks 0-2, 5``."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"


def communicator() -> Communicator:
    """Return the communicator in force: the job's, or that of a group of one."""
    if not _connected or _isolated.get():
        return _ALONE
    return _connected[0]


def connect_to(found: Communicator | None) -> None:
    """Put a job's communicator in force, for all threads; ``None`` goes back to a group of one."""
    _connected[:] = [] if found is None else [found]


@contextmanager
def as_group_of_one() -> Iterator[None]:
    """Run a block as a group of one: for what one rank does that others do not."""
    token, rows = _isolated.set(True), batch_rows.set(None)
    try:
        yield
    finally:
        batch_rows.reset(rows)
        _isolated.reset(token)


@contextmanager
def as_one_program() -> Iterator[None]:
    """Trace a block that runs once for the whole batch of all ranks: a group of one."""
    token = _one_program.set(True)
    try:
        with as_group_of_one():
            yield
    finally:
        _one_program.reset(token)


def check_by_rank(what: str) -> None:
    """Raise if ``what`` is asked of each rank where one program runs for all of them.

    Raises
    ------
    DistributedError
        In a block of :func:`as_one_program`.
    """
    if _one_program.get():
        raise DistributedError(
            f"{what}: this step is one program over the whole batch of all ranks, in which there "
            "are no ranks: its sums and means over the batch are those of all of them already. "
            f"Leave {what} out, or call it outside the step"
        )
