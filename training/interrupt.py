"""Defers Ctrl-C to a safe moment."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["DeferredInterrupt"]


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
