"""Exchange of arrays between the ranks of a job: engines and their communicators.

One communicator is active at a time. Without a job it is a group of one rank, in which every
collective returns its argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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
    "connect_to",
    "exchanging",
    "ranks_in_words",
    "told",
    "wish",
]

Array = NDArray[Any]


class Communicator:
    """One rank's connection to the other ranks of a job; this base class is a group of one.

    Engines subclass it. All methods except :meth:`abort` are collective: every rank calls them, in
    the same order, with arrays of the same shape and dtype.

    Attributes
    ----------
    rank, size
        The number of this rank, from 0, and the number of ranks.
    engine
        The name of the engine, ``"alone"`` for a group of one.
    watched
        Whether each rank is a separate process, which may die or hang while others wait for it:
        ``init`` then also connects them by TCP, so that the job ends.
    comparing
        The collective that the ranks are comparing before they run it; None otherwise.
    """

    rank: int = 0
    size: int = 1
    engine: str = "alone"
    watched: bool = False
    comparing: str | None = None

    @property
    def devices(self) -> int:
        """The number of shards of a batch: the number of ranks, unless the engine has devices."""
        return self.size

    def all_reduce(self, array: Array, reduction: str = "sum") -> Array:
        """Return the ``"sum"``, ``"min"`` or ``"max"`` of all ranks' arrays, bit-identical on each.

        Parameters
        ----------
        array
            A C-contiguous array in host memory; it is not changed.
        reduction
            The reduction of the elements.

        Returns
        -------
        numpy.ndarray
            An array of the same shape and dtype; in a group of one it may be ``array`` itself.
        """
        return array

    def reduce_in_place(self, array: Array) -> None:
        """Replace an array by the sum of all ranks' arrays, in place.

        Parameters
        ----------
        array
            A contiguous array of ``float32`` or ``float64`` in host memory.
        """
        array[...] = self.all_reduce(array)

    def start_in_place(self, array: Array) -> Callable[[], object]:
        """Start :meth:`reduce_in_place`, and return a function that waits for its end.

        ``array`` must not be used until then. By default the reduction is done at once.
        """
        self.reduce_in_place(array)
        return _nothing

    def all_gather(self, array: Array) -> Array:
        """Return the arrays of all ranks, stacked along a new first axis."""
        return array[None]

    def broadcast(self, array: Array, root: int = 0) -> Array:
        """Return the array of rank ``root``; the other ranks' arrays are ignored."""
        return array

    def reduce_scatter(self, array: Array) -> Array:
        """Return this rank's rows of the sum; each rank gets the same number of rows."""
        total = self.all_reduce(array)
        rows = array.shape[0] // self.size
        return total[self.rank * rows : (self.rank + 1) * rows]

    def exchange(self, message: bytes) -> list[bytes]:
        """Return the messages of all ranks, which may differ in length."""
        return [message]

    def barrier(self) -> None:
        """Wait until every rank has reached this call."""

    def parallel(
        self, step: Callable[..., Any], options: dict[str, Any]
    ) -> Callable[..., Any] | None:
        """Return a function that runs a data-parallel step as one global program, if supported.

        Parameters
        ----------
        step
            The function passed to ``group.data_parallel``.
        options
            Its keyword arguments, and ``meet``: a collective function of variables, called before
            they are placed on the engine's devices, that raises if the ranks' values differ.

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
            The reason, already printed, for engines that can pass it on to other ranks.
        code
            The exit code, not 0.
        """
        raise SystemExit(code)

    def close(self) -> None:
        """Leave the job without ending it for other ranks."""


class Engine:
    """Base class of engines, which start communicators; ``gradtape_collectives`` returns them.

    Attributes
    ----------
    name
        The name that users select, for instance ``"mpi"``.
    """

    name: str = ""
    provider: Any = None

    def unavailable(self) -> str | None:
        """Return why it cannot be used here and what to install; ``None`` if it can be used."""
        return None

    def launched(self) -> bool:
        """Return whether a launcher of this engine started the process, without any import."""
        return False

    def connect(self, **options: Any) -> Communicator:
        """Join the job that this process belongs to.

        Parameters
        ----------
        options
            The engine's options; none by default.

        Returns
        -------
        Communicator
            The communicator of all ranks of the job.

        Raises
        ------
        BackendUnavailable
            If its library is missing; the message says what to install.
        """
        raise NotImplementedError

    def diagnosis(self) -> Sequence[str]:
        """Return the lines of ``gradtape doctor --distributed``: versions, launcher, library."""
        return ()


class BatchRows:
    """The rows of the global batch that a rank has.

    Parameters
    ----------
    count
        The number of rows.
    place
        The index of the first row, and the number of all ranks' rows. By default the ranks exchange
        their counts when :meth:`place` is first called.
    """

    def __init__(self, count: int, place: tuple[int, int] | None = None) -> None:
        self.count = count
        self._place = place

    def place(self) -> tuple[int, int]:
        """Return the index of the first row, and the number of all ranks' rows; collective."""
        if self._place is None:
            found = communicator()
            counts = found.all_gather(np.array(self.count)).tolist()
            self._place = sum(counts[: found.rank]), sum(counts)
        return self._place


#: This rank's rows of the batch, during a data-parallel step.
batch_rows: ContextVar[BatchRows | None] = ContextVar("gradtape_rows", default=None)


class Wish:
    """A rank's request to all ranks to end the run, sent along with the messages of a step.

    Attributes
    ----------
    asked : bool
        Whether this rank requests it.
    granted : bool
        Whether any rank has; all ranks learn of it in the same message.
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


@contextmanager
def agreed() -> Iterator[None]:
    """Run a block whose collectives all ranks are known to call alike, without comparing them."""
    token = _agreed.set(True)
    try:
        yield
    finally:
        _agreed.reset(token)


def exchanging(what: str, array: Any) -> Communicator:
    """Check that all ranks call the same collective, and return the communicator for it.

    Parameters
    ----------
    what
        The collective, with its parameters.
    array
        This rank's array; only its shape and dtype are compared.

    Raises
    ------
    DistributedError
        If ranks call different collectives, or pass arrays that differ in shape or dtype; the
        message lists them all.
    """
    found = communicator()
    if found.size == 1 or _agreed.get():
        return found
    said = f"{what} of {describe(array.shape, array.dtype)}"
    code = crc32(said.encode())
    found.comparing = said
    most, least = found.all_reduce(np.array([code, -code]), "max").tolist()
    found.comparing = None
    if most != -least:
        raise DistributedError(f"ranks disagree: {told(found, said)}")
    return found


def told(found: Communicator, said: str) -> str:
    """Return the texts of all ranks, each with the ranks that sent it."""
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
    """Return the active communicator: the job's, or that of a group of one."""
    if not _connected or _isolated.get():
        return _ALONE
    return _connected[0]


def connect_to(found: Communicator | None) -> None:
    """Activate a job's communicator for all threads; ``None`` returns to a group of one."""
    _connected[:] = [] if found is None else [found]


@contextmanager
def as_group_of_one() -> Iterator[None]:
    """Run a block as a group of one: for code that only one rank runs."""
    token, rows = _isolated.set(True), batch_rows.set(None)
    try:
        yield
    finally:
        batch_rows.reset(rows)
        _isolated.reset(token)


@contextmanager
def as_one_program() -> Iterator[None]:
    """Trace a block, as a group of one, that runs once for the whole batch of all ranks."""
    token = _one_program.set(True)
    try:
        with as_group_of_one():
            yield
    finally:
        _one_program.reset(token)


def check_by_rank(what: str) -> None:
    """Raise if ``what`` is per rank, and one program runs for all ranks.

    Raises
    ------
    DistributedError
        In a block of :func:`as_one_program`.
    """
    if _one_program.get():
        raise DistributedError(
            f"{what}: this step is one program over the whole batch of all ranks, so it has no "
            "ranks, and its sums and means over the batch already cover all of them. "
            f"Remove {what}, or call it outside the step"
        )
