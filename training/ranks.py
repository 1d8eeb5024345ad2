"""Ranks of a job in training: how they share a batch, and what they decide together.

:class:`Alone` is for a single process. The classes for several are in ``parallel``.
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
        """The row after the last one of this rank."""
        return self.start + self.counts[self.rank]

    @property
    def total(self) -> int:
        """The number of rows of the batch."""
        return self.counts[0] if self.repeated else sum(self.counts)

    @property
    def even(self) -> bool:
        """Whether all ranks have the same number of rows."""
        return len(set(self.counts)) == 1


class Part(NamedTuple):
    """A rank's part of a batch."""

    batch: Any
    layout: Layout


class Alone:
    """What a run does together with other ranks; here, for a single process without any."""

    #: Whether this rank writes files and shows the progress.
    first = True

    def agree_on(self, method: str, settings: dict[str, Any]) -> None:
        """Raise on all ranks if their settings differ."""

    def shares(self, data: Any) -> Any:
        """Return data that give each rank its part."""
        return data

    def callbacks(self, callbacks: list[Any]) -> list[Any]:
        """Return the callbacks to call on this rank."""
        return callbacks

    def same(self, number: int) -> int:
        """Return the first rank's number."""
        return number

    def any(self, flag: bool) -> bool:
        """Return whether the flag is true on any rank."""
        return flag

    def keeper(self, keeper: Any, session: Any) -> Any:
        """Return the keeper of checkpoints for these ranks."""
        return keeper

    def interrupt(self) -> DeferredInterrupt:
        """Return a handler for Ctrl-C on any rank."""
        return DeferredInterrupt()


ALONE = Alone()
