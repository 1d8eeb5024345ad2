"""Ranks of a job in training: how they share a batch, and what they decide together.

:class:`Alone` is a single process; ``parallel`` beside this has those of several.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .interrupt import DeferredInterrupt

__all__ = ["ALONE", "Alone", "Layout", "Part"]


class Layout(NamedTuple):
    """How ranks share a batch.

    Attributes
    ----------
    rank
        The rank that asks.
    counts
        How many rows each has.
    repeated
        Whether each has all of them: there are fewer than ranks.
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
        """The row after its last one."""
        return self.start + self.counts[self.rank]

    @property
    def total(self) -> int:
        """The number of rows of the batch."""
        return self.counts[0] if self.repeated else sum(self.counts)

    @property
    def even(self) -> bool:
        """Whether all have as many."""
        return len(set(self.counts)) == 1


class Part(NamedTuple):
    """A rank's part of a batch."""

    batch: Any
    layout: Layout


class Alone:
    """What a run does together with other ranks: a single process has none."""

    #: Whether this rank writes files and shows how far the run is.
    first = True

    def agree_on(self, method: str, settings: dict[str, Any]) -> None:
        """Raise on all ranks if they were given other settings."""

    def shares(self, data: Any) -> Any:
        """Return data of which each rank takes its part."""
        return data

    def rows(self, data: Any) -> Any:
        """Return what predicts with all ranks; None for a single process."""
        return None

    def callbacks(self, callbacks: list[Any]) -> list[Any]:
        """Return the callbacks that are told on this rank."""
        return callbacks

    def same(self, number: int) -> int:
        """Return the first rank's number."""
        return number

    def any(self, flag: bool) -> bool:
        """Return whether one of the ranks says so."""
        return flag

    def keeper(self, keeper: Any, session: Any) -> Any:
        """Return what keeps checkpoints."""
        return keeper

    def interrupt(self) -> DeferredInterrupt:
        """Return what notes Ctrl-C, on whichever rank."""
        return DeferredInterrupt()


ALONE = Alone()
