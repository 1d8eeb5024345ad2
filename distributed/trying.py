"""Tests and times each collective, for ``gradtape doctor --distributed``."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.extend import Communicator

#: The bytes of messages, and how often each is sent.
SIZES = {64: 200, 65_536: 50, 1_048_576: 20, 16_777_216: 4}
DTYPES = ("float16", "float32", "float64", "int32", "int64")


def tried(found: Communicator) -> dict[str, str | None]:
    """Test each collective; return, by its name, the first wrong result or None; collective.

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

    def in_place(dtype: Any, begin: bool) -> Any:
        # engines sum in place only in these two dtypes
        array = mine(np.float64 if dtype.itemsize > 4 else np.float32)
        found.start_in_place(array)() if begin else found.reduce_in_place(array)
        return array.astype(dtype)

    def every(dtype: Any) -> Any:
        return np.repeat(ranks[:, None] + rank, 2, axis=1).astype(dtype)

    def compared(dtype: Any) -> Any:
        same, rows = found.compare(1, mine(dtype))
        carried = (ranks[:, None] + tail).astype(dtype) if rows is None else rows.copy()
        different = not found.compare(1 + rank, mine(dtype))[0]
        return carried if same and (different or size == 1) else np.zeros_like(carried)

    holds("comparison", compared, ranks[:, None] + tail)
    holds("all_reduce", lambda d: found.all_reduce(mine(d)), total + size * tail)
    holds("reduce_in_place", lambda d: in_place(d, begin=False), total + size * tail)
    holds("start_in_place", lambda d: in_place(d, begin=True), total + size * tail)
    holds("all_reduce (max)", lambda d: found.all_reduce(mine(d), "max"), size - 1 + tail)
    holds("all_gather", lambda d: found.all_gather(mine(d)), ranks[:, None] + tail)
    holds("broadcast", lambda d: found.broadcast(mine(d), size - 1), size - 1 + tail)
    holds("reduce_scatter", lambda d: found.reduce_scatter(every(d)), [[total + size * rank] * 2])
    found.barrier()
    return problems


def timed(found: Communicator) -> dict[str, list[dict[str, float]]]:
    """Return the times of collectives by size: the median of the ranks' medians; collective.

    Parameters
    ----------
    found
        The ranks.

    Returns
    -------
    dict
        By collective, records of ``bytes`` (sent by each rank), ``us`` and ``MB_per_s``.
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
    """Return the values of all ranks, which JSON must be able to hold; collective."""
    return [json.loads(x) for x in found.exchange(json.dumps(what).encode())]
