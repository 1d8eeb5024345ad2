"""The ranks of a job in training: how they share a batch, what they decide, when they stop.

:class:`SingleRank` is a single process. The package ``parallel`` has the classes for several ranks.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, NamedTuple, Self

__all__ = ["ALONE", "BatchLayout", "DeferredInterrupt", "RankPart", "SingleRank"]


class DeferredInterrupt:
    """Turns the first Ctrl-C inside a ``with`` block into a flag; a second one interrupts as usual.

    Attributes
    ----------
    requested : bool
        Whether Ctrl-C was pressed.

    Notes
    -----
    Signals only reach the main thread. In other threads this does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None

    def settle(self) -> None:
        """Ask the other ranks whether one of them was interrupted; a single process has none."""

    def __enter__(self) -> Self:
        previous = signal.getsignal(signal.SIGINT)
        # None: the handler is not from Python code, so that it could not be restored
        if threading.current_thread() is threading.main_thread() and previous is not None:
            self._previous = previous
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


class BatchLayout(NamedTuple):
    """How ranks share a batch.

    Attributes
    ----------
    rank
        This rank.
    counts
        The number of rows of each rank.
    repeated
        Whether each rank has all rows, because there are fewer rows than ranks.
    """

    rank: int
    counts: tuple[int, ...]
    repeated: bool = False

    @property
    def start(self) -> int:
        """The first row of this rank."""
        return 0 if self.repeated else sum(self.counts[: self.rank])

    @property
    def stop(self) -> int:
        """The row after this rank's last one."""
        return self.start + self.counts[self.rank]

    @property
    def total(self) -> int:
        """The number of rows of the batch."""
        return self.counts[0] if self.repeated else sum(self.counts)

    @property
    def even(self) -> bool:
        """Whether all ranks have equally many."""
        return len(set(self.counts)) == 1


class RankPart(NamedTuple):
    """A rank's part of a batch."""

    batch: Any
    layout: BatchLayout


class SingleRank:
    """A run's cooperation with other ranks. A single process has none."""

    #: Whether this rank writes files and shows the progress.
    first = True

    def agree_on(self, method: str, settings: dict[str, Any]) -> None:
        """Raise on all ranks if their settings differ."""

    def shares(self, data: Any) -> Any:
        """Return data from which each rank takes its part."""
        return data

    def rows(self, data: Any) -> Any:
        """Return the object that predicts with all ranks; None for a single process."""
        return None

    def callbacks(self, callbacks: list[Any]) -> list[Any]:
        """Return the callbacks that run on this rank."""
        return callbacks

    def same(self, number: int) -> int:
        """Return the first rank's number."""
        return number

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set on any rank."""
        return flag

    def keeper(self, keeper: Any, session: Any) -> Any:
        """Return the object that keeps checkpoints."""
        return keeper

    def interrupt(self) -> DeferredInterrupt:
        """Return the object that records Ctrl-C on any rank."""
        return DeferredInterrupt()


ALONE = SingleRank()
