"""What each collective gives and costs here: the engine's part of ``gradtape doctor``."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.extend import Communicator

__all__ = ["gathered", "timed", "tried"]

#: How many bytes are exchanged, and how often.
SIZES = {64: 200, 65_536: 50, 1_048_576: 20, 16_777_216: 4}
DTYPES = ("float16", "float32", "float64", "int32", "int64")


def tried(found: Communicator) -> dict[str, str | None]:
    """Return, by the name of each collective, what is wrong with it on some rank; collective.

    Parameters
    ----------
    found
        The ranks.
    """
    rank, size = found.rank, found.size
    ranks = np.arange(size)
    total, tail = int(ranks.sum()), np.arange(3)
    problems: dict[str, str | None] = {}

    def holds(name: str, run: Callable[[Any], Any], wanted: Any) -> None:
        wrong = None
        for dtype in DTYPES:
            got = np.asarray(run(np.dtype(dtype)))
            right = np.asarray(wanted).astype(dtype)
            if got.dtype != right.dtype or not np.array_equal(got, right):
                wrong = wrong or f"rank {rank} got {got.tolist()} for {right.tolist()} as {dtype}"
        said = [x.decode() for x in found.exchange((wrong or "").encode())]
        problems[name] = next((x for x in said if x), None)

    def mine(dtype: Any) -> Any:
        return (rank + tail).astype(dtype)

    def every(dtype: Any) -> Any:
        return np.repeat(ranks[:, None] + rank, 2, axis=1).astype(dtype)

    holds("all_reduce", lambda d: found.all_reduce(mine(d)), total + size * tail)
    holds("start_all_reduce", lambda d: found.start_all_reduce(mine(d))(), total + size * tail)
    holds("all_reduce (max)", lambda d: found.all_reduce(mine(d), "max"), size - 1 + tail)
    holds("all_gather", lambda d: found.all_gather(mine(d)), ranks[:, None] + tail)
    holds("broadcast", lambda d: found.broadcast(mine(d), size - 1), size - 1 + tail)
    holds("reduce_scatter", lambda d: found.reduce_scatter(every(d)), [[total + size * rank] * 2])
    found.barrier()
    return problems


def timed(found: Communicator) -> dict[str, list[dict[str, float]]]:
    """Return what collectives take by size, each rank's median and of those the median; collective.

    Parameters
    ----------
    found
        The ranks.

    Returns
    -------
    dict
        By collective, records of ``bytes`` (what a rank gives), ``us`` and ``MB_per_s``.
    """
    runs: Mapping[str, Callable[[Any], Any]] = {
        "all_reduce": found.all_reduce,
        "all_gather": lambda x: found.all_gather(x[: max(1, x.size // found.size)]),
        "broadcast": found.broadcast,
        "barrier": lambda x: found.barrier(),
    }
    told: dict[str, list[dict[str, float]]] = {}
    for name, run in runs.items():
        told[name] = []
        for size, times in SIZES.items() if name != "barrier" else [(0, 200)]:
            array = np.ones(max(1, size // 4), "float32")
            for _ in range(2):
                run(array)
            took = []
            for _ in range(times):
                start = time.perf_counter()
                run(array)
                took.append(time.perf_counter() - start)
            seconds = statistics.median(gathered(found, statistics.median(took)))
            record = {"bytes": size, "us": round(seconds * 1e6, 2)}
            if size:
                record["MB_per_s"] = round(size / seconds / 1e6, 1)
            told[name].append(record)
    return told


def gathered(found: Communicator, what: Any) -> list[Any]:
    """Return what all ranks give, values that JSON has; collective."""
    return [json.loads(x) for x in found.exchange(json.dumps(what).encode())]
