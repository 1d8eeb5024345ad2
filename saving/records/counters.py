"""Counters in files: numbers that a step or a draw increments."""

from __future__ import annotations

from typing import Any

from ..errors import DamagedFile

__all__ = ["check_steps", "check_stream"]

# Nobody counts so far, and there is room above it.
_MOST = 2**62


def check_steps(count: Any, where: str) -> None:
    """Refuse an array that is not an optimizer's number of steps."""
    if count.shape != () or count.dtype.kind != "i" or not 0 <= int(count) < _MOST:
        raise DamagedFile(f"{where}: no number of steps: {str(count.tolist())[:80]}")


def check_stream(state: Any, where: str) -> None:
    """Refuse integers that are not the seed and the count of a stream of random numbers."""
    if not all(n >= 0 for n in state.tolist()):
        raise DamagedFile(f"{where}: no seed and count of a random stream: {state.tolist()}")
