"""Whether BLAS's threads wait for each other, as ``fit`` warns and ``gradtape doctor`` reports."""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import Any

import numpy as np

from ..core.errors import BackendUnavailable, ThreadsWarning
from ..core.extend import cores, quota, warn_user
from ..plugins.numpy.backend import limit_threads, pools

__all__ = ["COSTLY", "blas_threads", "too_many", "usable_cores", "warn_once_of_threads"]

#: The ratio of times, with all threads and with one, above which users hear of it.
COSTLY = 1.3
# What the measurement may take with each number of threads, in seconds.
_TIME = 0.005


class _Process:
    """What this process has done already."""

    looked = False


def usable_cores() -> float:
    """Return how many cores this process may use: its affinity, and the container's quota."""
    return min(x for x in (len(cores()), quota()) if x is not None)


def blas_threads() -> int | None:
    """Return the number of BLAS's and OpenMP's threads; None if threadpoolctl is not installed."""
    try:
        return max((x["num_threads"] or 0 for x in pools()), default=0)
    except BackendUnavailable:
        return None


def too_many(threads: int, usable: float) -> str | None:
    """Return what is wrong if BLAS has more threads than cores, or None.

    Parameters
    ----------
    threads, usable
        The number of threads, and of cores that the process may use.
    """
    if threads <= usable:
        return None
    return (
        f"BLAS starts {threads} threads, but this process has {usable:g} cores: the threads wait "
        "for each other."
    )


def cost_of_threads() -> float:
    """Return how many times as long a matrix product takes with all threads as with one.

    Both are timed on matrices of a small network. This takes about ten milliseconds, or as long as
    two products with all threads if these take longer.
    """
    a, b = np.ones((128, 256), np.float32), np.ones((256, 256), np.float32)
    every = _median_time(a, b)
    with limit_threads(1):
        one = _median_time(a, b)
    return every / one


def _median_time(a: Any, b: Any) -> float:
    a @ b  # threads start, and wake up
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 3 or (len(times) < 15 and time.perf_counter() - begin < _TIME):
        start = time.perf_counter()
        a @ b
        times.append(time.perf_counter() - start)
        if times[-1] > _TIME:
            break
    return statistics.median(times)


def warn_once_of_threads() -> None:
    """Warn if training takes longer because of threads: once in a process, before the first epoch.

    The warning contains the line that mends it. Nothing is measured if BLAS has one thread.
    """
    if _Process.looked:
        return
    _Process.looked = True
    threads = blas_threads()
    if threads is None or threads < 2:
        return
    usable = usable_cores()
    wrong, fewer = too_many(threads, usable), max(1, int(usable))
    if wrong is None:
        ratio, fewer = cost_of_threads(), 1
        if ratio <= COSTLY:
            return
        wrong = (
            f"with {threads} threads, a matrix product takes {ratio:.1f} times as long as with "
            "one: other processes use the cores, and threads that wait for them spin."
        )
    script = os.path.basename(sys.argv[0]) if sys.argv else ""
    script = script if script.endswith(".py") else "train.py"
    warn_user(
        f"fit: {wrong} Start Python with OMP_NUM_THREADS={fewer} python {script}, or call "
        f"gt.limit_threads({fewer}) before fit; 'gradtape doctor' measures more",
        ThreadsWarning,
    )
