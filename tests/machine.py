"""How slow this machine is now: bounds on time are a multiple of work done beside them."""

from __future__ import annotations

import time

import numpy as np

__all__ = ["seconds_of"]

# What the work below takes on the machine whose seconds the tests name.
_THERE = 0.03


def seconds_of(there: float) -> float:
    """Return how long takes here and now what took so many seconds on that machine.

    Examples
    --------
    >>> seconds_of(2.0) > 0
    True
    """
    best = min(_work() for _ in range(3))
    return there * max(1.0, best / _THERE)


def _work() -> float:
    """Return the processor's seconds of some Python, some NumPy and some new memory."""
    start = time.thread_time()
    sum(number * number for number in range(200_000))
    for _ in range(4):
        np.ones(2**18).cumsum()
    return time.thread_time() - start
