"""Counters in files: numbers that a step or a draw increments."""

from __future__ import annotations

from typing import Any

from ..errors import DamagedFile

#: The attribute of optimizers with the steps of each variable, where ``iterations`` is not enough.
COUNTS = "step_counts"

# Nobody counts so far, and there is room above it.
_MOST = 2**62


def check_steps(count: Any, where: str) -> None:
    """Refuse an array that is not an optimizer's number of steps."""
    if count.shape != () or count.dtype != "int64" or not 0 <= int(count) < _MOST:
        raise DamagedFile(
            f"{where}: no number of steps, int64: {count.dtype} {str(count.tolist())[:80]}"
        )


def check_stream(state: Any, where: str) -> None:
    """Refuse integers that are not the seed and the count of a stream of random numbers."""
    if not all(n >= 0 for n in state.tolist()):
        raise DamagedFile(f"{where}: no seed and count of a random stream: {state.tolist()}")
