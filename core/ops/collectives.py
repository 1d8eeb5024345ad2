"""Engines and communicators, which exchange arrays between the ranks of a job.

One communicator is active at a time. Without a job it is that of a group of one, whose collectives
return their argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

import numpy as np

from ..base.array_types import describe
from ..base.context import Setting
from ..errors import DistributedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"


class Communicator:
    """The ranks of a job, seen from one of them. This class is a group of one.

    Engines subclass it. All methods except :meth:`abort` are collective: every rank calls them, in
    the same order, with arrays of the same shape and dtype.

    Attributes
    ----------
    rank, size
        The number of this rank, from 0, and the number of ranks.
    engine
        The name of the engine, ``"alone"`` for a group of one.
    watched
        Whether each rank is a separate process, which may die or hang while others wait for it.
        ``init`` then also connects the ranks by TCP, so that the job ends.
    comparing
        The collective that the ranks are comparing before they run it, otherwise None.

    Examples
    --------
    >>> from gradtape.plugin import Communicator
    >>> class Twins(Communicator):  # pretends that there is a second rank with the same values
    ...     engine, size = "twins", 2
    ...
    ...     def all_reduce(self, array, reduction="sum"):
    ...         return array + array if reduction == "sum" else array
    >>> Twins().reduce_scatter(np.array([1.0, 2.0])).tolist()
    [2.0]
    """

    rank: int = 0
    size: int = 1
    engine: str = "alone"
    watched: bool = False
    comparing: str | None = None

    @property
    def devices(self) -> int:
        """The number of parts of a batch: the number of ranks, unless the engine has devices."""
        return self.size

    def all_reduce(self, array: Array, reduction: str = "sum") -> Array:
        """Return the ``"sum"``, ``"min"`` or ``"max"`` of all ranks' arrays, bit-identical on each.

        Parameters
        ----------
        array
            An array in host memory, C-contiguous. It is not changed.
        reduction
            How elements are combined.

        Returns
        -------
        numpy.ndarray
            An array of the same shape and dtype; in a group of one it may be ``array`` itself.
        """
        return array

    def reduce_in_place(self, array: Array) -> None:
        """Replace an array with the sum of all ranks' arrays.

        Parameters
        ----------
        array
            A contiguous array of ``float32`` or ``float64`` in host memory.
        """
        array[...] = self.all_reduce(array)

    def start_in_place(self, array: Array) -> Callable[[], object]:
        """Start :meth:`reduce_in_place`, and return a function that waits for its end.

        Do not touch ``array`` until then. The default implementation reduces at once.
        """
        self.reduce_in_place(array)
        return _nothing

    def all_gather(self, array: Array) -> Array:
        """Return the arrays of all ranks, stacked along a new first axis."""
        return array[None]

    def broadcast(self, array: Array, root: int = 0) -> Array:
        """Return the array of rank ``root``. The values on other ranks are ignored."""
        return array

    def reduce_scatter(self, array: Array) -> Array:
        """Return this rank's rows of the sum. Each rank gets equally many."""
        total = self.all_reduce(array)
        rows = array.shape[0] // self.size
        return total[self.rank * rows : (self.rank + 1) * rows]

    def exchange(self, message: bytes) -> list[bytes]:
        """Return the messages of all ranks, which may have different lengths."""
        return [message]

    def barrier(self) -> None:
        """Wait until every rank has called this."""

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
        """Return a function that runs a data-parallel step as one global program.

        Parameters
        ----------
        step
            The function passed to ``group.data_parallel``.
        options
            Its keyword arguments, and ``meet``: a collective function that takes the variables. It
            raises if their values differ between ranks.

        Returns
        -------
        callable or None
            ``None``, the default, if each rank runs the step on its own part of the batch.
        """
        return None

    def abort(self, reason: str, code: int = 1) -> None:
        """End the processes of all ranks at once.

        Parameters
        ----------
        reason
            The reason, already printed on this rank. An engine may pass it to other ranks.
        code
            The exit code, not 0.
        """
        raise SystemExit(code)

    def close(self) -> None:
        """Leave the job, which continues on the other ranks."""


class Engine:
    """Base class of engines, which create communicators.

    The hook ``gradtape_collectives`` returns instances.

    Attributes
    ----------
    name
        The name that users select, for instance ``"mpi"``.

    Examples
    --------
    >>> from gradtape.plugin import Communicator, Engine
    >>> class AloneEngine(Engine):
    ...     name = "alone"
    ...
    ...     def connect(self, **options):
    ...         return Communicator()
    >>> AloneEngine().connect().size
    1
    """

    name: str = ""
    provider: Any = None

    _gradtape_internal = "provider"

    def unavailable(self) -> str | None:
        """Return why the engine cannot be used here and what to install; ``None`` if it can."""
        return None

    def launched(self) -> bool:
        """Return whether a launcher of this engine started the process. Imports nothing."""
        return False

    def connect(self, **options: Any) -> Communicator:
        """Join the job that this process belongs to.

        Parameters
        ----------
        options
            The engine's options; by default there are none.

        Returns
        -------
        Communicator
            The communicator of all ranks of the job.

        Raises
        ------
        BackendUnavailable
            If the engine's library is missing. The message says what to install.
        """
        raise NotImplementedError

    def diagnosis(self) -> Sequence[str]:
        """Return the lines that ``gradtape doctor --distributed`` shows, such as versions."""
        return ()


class BatchRows:
    """The rows of the global batch that a rank has.

    Parameters
    ----------
    count
        Their number.
    place
        The number of the first row, and the number of rows of all ranks. By default ranks exchange
        their counts when :meth:`place` is first called.
    """

    def __init__(self, count: int, place: tuple[int, int] | None = None) -> None:
        self.count = count
        self._place = place

    def place(self) -> tuple[int, int]:
        """Return the number of the first row, and the number of rows of all ranks; collective."""
        if self._place is None:
            found = communicator()
            counts = found.all_gather(np.array(self.count)).tolist()
            self._place = sum(counts[: found.rank]), sum(counts)
        return self._place


#: The rows of the batch that a data-parallel step processes.
batch_rows: ContextVar[BatchRows | None] = ContextVar("gradtape_rows", default=None)


class StopRequest:
    """A rank's request to end the run on all ranks, sent with the messages of a step.

    Attributes
    ----------
    asked : bool
        Whether this rank has asked.
    granted : bool
        Whether any rank has asked. All ranks learn this from the same message.
    """

    def __init__(self) -> None:
        self.asked = self.granted = False


#: The wish that messages carry, if any.
stop_request: ContextVar[StopRequest | None] = ContextVar("gradtape_wish", default=None)


def _nothing() -> None: ...


_ALONE = Communicator()
_connected: list[Communicator] = []
_isolated: ContextVar[bool] = ContextVar("gradtape_alone", default=False)
_agreed: ContextVar[bool] = ContextVar("gradtape_agreed", default=False)
_one_program: ContextVar[bool] = ContextVar("gradtape_one_program", default=False)


class agreed:  # a context manager, written out: each step enters one
    """A block whose messages are known to be the same on all ranks, and are not compared.

    Parameters
    ----------
    known
        Whether they are known to be the same, the default.
    """

    __slots__ = ("_known", "_token")

    def __init__(self, known: bool = True) -> None:
        self._known = known

    def __enter__(self) -> None:
        self._token = _agreed.set(self._known or _agreed.get())

    def __exit__(self, *raised: object) -> None:
        _agreed.reset(self._token)


def compared(what: str, array: Array, agreed: bool = False) -> Array | None:
    """Check that all ranks call the same collective, before it runs.

    Parameters
    ----------
    what
        The collective, with its parameters.
    array
        This rank's array, in host memory and C-contiguous.
    agreed
        Whether the comparison is left out in a block of :class:`agreed`.

    Returns
    -------
    numpy.ndarray or None
        The arrays of all ranks, in a new first axis, if the comparison carried them. Read them
        before the next collective.

    Raises
    ------
    DistributedError
        If ranks call different collectives, or pass arrays of different shapes or dtypes. The
        message lists what each rank called.
    """
    found = communicator()
    if found.size == 1 or (agreed and _agreed.get()):
        return None
    description, code = _coded(what, array.shape, array.dtype)
    found.comparing = description
    try:
        same, rows = found.compare(code, array)
    finally:
        found.comparing = None
    if not same:
        raise DistributedError(f"ranks disagree: {texts_by_rank(found, f'called {description}')}")
    return rows


@lru_cache(maxsize=256)
def _coded(what: str, shape: tuple[int, ...], dtype: Any) -> tuple[str, int]:
    """Return the description of a collective, and its checksum."""
    description = f"{what} of {describe(shape, dtype)}"
    return description, crc32(description.encode())


def texts_by_rank(found: Communicator, description: str) -> str:
    """Return the texts of all ranks, with ranks of the same text listed together."""
    by_text: dict[str, list[int]] = {}
    for rank, text in enumerate(found.exchange(description.encode())):
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


def without_examples(ranks: Sequence[int], size: int) -> str:
    """Return the message for ranks whose part of a batch is empty."""
    return (
        f"data_parallel: {ranks_in_words(ranks)} of {size} got a batch without examples; each rank "
        "needs at least one"
    )


def communicator() -> Communicator:
    """Return the active communicator: the job's, or that of a group of one."""
    if not _connected or _isolated.get():
        return _ALONE
    return _connected[0]


def connect_to(found: Communicator | None) -> None:
    """Activate a job's communicator in all threads; ``None`` returns to a group of one."""
    _connected[:] = [] if found is None else [found]


@contextmanager
def as_group_of_one() -> Iterator[None]:
    """Run a block as a group of one, for work that only one rank does."""
    with Setting(_isolated, True), Setting(batch_rows, None):
        yield


@contextmanager
def as_one_program() -> Iterator[None]:
    """Trace a block as a group of one, for a program over the whole batch of all ranks."""
    with Setting(_one_program, True), as_group_of_one():
        yield


def check_by_rank(what: str) -> None:
    """Raise if a collective is called in a program that runs for all ranks together.

    Raises
    ------
    DistributedError
        In a block of :func:`as_one_program`.
    """
    if _one_program.get():
        raise DistributedError(
            f"{what}: this step is one program over the whole batch of all ranks. Its sums and "
            f"means over the batch already include all ranks. Remove {what}, or call it outside "
            "the step"
        )
