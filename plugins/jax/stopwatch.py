"""The time of steps on JAX's devices, which compute while Python continues."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from ...core.extend import Stopwatch


class JaxStopwatch(Stopwatch):
    """Waits for each step, because XLA does not report when a step began.

    Parameters
    ----------
    jax
        JAX.
    """

    def __init__(self, jax: Any) -> None:
        self._jax = jax

    def stop(self, result: Any) -> Any:
        """Wait for a step's results, and return the time."""
        self._jax.block_until_ready(result)
        return perf_counter_ns()
