"""Whether BLAS's threads wait for each other, as ``fit`` warns and ``gradtape doctor`` reports."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.errors import BackendUnavailable, ThreadsWarning
from ..core.extend import backend_of, cores, flatten, quota, warn_user
from ..plugins.numpy.backend import limit_threads, pools

__all__ = ["COSTLY", "blas_threads", "too_many", "usable_cores", "warn_once_of_threads"]

#: The ratio of times, with all threads and with one, above which users hear of it.
COSTLY = 1.3
# What the measurement may take with each number of threads, in seconds.
_TIME = 0.005
# How often threads must be found costly, so that one busy moment is not enough.
_ROUNDS = 2
# What a product must lose, in seconds: BLAS computes smaller ones with one thread.
_LOSS = 2e-5
# The greatest size of a matrix to measure: products of larger ones have the same problem.
_LARGEST = 512


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


def largest_product(variables: Iterable[Any], x: Any) -> tuple[int, int, int] | None:
    """Return the sizes of the largest matrix product in a model, about; None if there is none.

    Parameters
    ----------
    variables
        The model's variables. Those with several axes are matrices, whose last axis has the units.
        On a GPU they do not count.
    x
        A batch of inputs. All axes but the last one are rows, as in a convolution or a recurrent
        layer.
    """
    shapes = [v.shape for v in variables if len(v.shape) > 1 and backend_of(v.array).host]
    rows = max((math.prod(leaf.shape[:-1]) for leaf in flatten(x) if leaf.shape), default=1)
    products = [(rows, math.prod(shape[:-1]), shape[-1]) for shape in shapes]
    if not products:
        return None
    m, k, n = max(products, key=math.prod)
    return min(m, _LARGEST), min(k, _LARGEST), min(n, _LARGEST)


def cost_of_threads(sizes: tuple[int, int, int]) -> float:
    """Return how many times as long a matrix product takes with all threads as with one.

    It is the least of several measurements, and 1 if the difference is negligible. A measurement
    takes about ten milliseconds, or as long as two products with all threads if these take longer.
    The first one that finds threads cheap is the last.

    Parameters
    ----------
    sizes
        The rows and columns of the first matrix, and the columns of the second.
    """
    m, k, n = sizes
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    least = math.inf
    for _ in range(_ROUNDS):
        every = _median_time(a, b)
        with limit_threads(1):
            one = _median_time(a, b)
        least = min(least, every / one if every - one > _LOSS else 1.0)
        if least <= COSTLY:
            break
    return least


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


def warn_once_of_threads(variables: Iterable[Any], x: Any) -> None:
    """Warn if training takes longer because of threads: once in a process, in the first step.

    The warning says what to do. Nothing is measured if BLAS has one thread.

    Parameters
    ----------
    variables, x
        The model's variables and a batch of inputs, whose sizes matter.
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
        sizes = largest_product(variables, x)
        ratio, fewer = 1.0 if sizes is None else cost_of_threads(sizes), 1
        if ratio <= COSTLY:
            return
        wrong = (
            f"other processes use the cores, so a matrix product of this model takes {ratio:.1f} "
            f"times as long with {threads} threads as with one."
        )
    warn_user(
        f"fit: {wrong} Call gt.limit_threads({fewer}) before fit, or set OMP_NUM_THREADS={fewer}",
        ThreadsWarning,
    )
