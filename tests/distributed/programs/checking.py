"""What the programs of this folder share: all ranks run checks, and rank 0 writes the results."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as gt

group = gt.distributed.init()
RANK, SIZE = group.rank, group.size
#: A folder that all programs see, and the file for the results: lines of JSON.
FOLDER, FOUND = Path(os.environ["GRADTAPE_TEST_FOLDER"]), Path(os.environ["GRADTAPE_TEST_FOUND"])


def rows(counts: Sequence[int]) -> slice:
    """Return this rank's rows, of a batch of which each rank has so many."""
    start = sum(counts[:RANK])
    return slice(start, start + counts[RANK])


def even(count: int) -> list[int]:
    """Return equal shares."""
    return [count // SIZE] * SIZE


def uneven(count: int) -> list[int]:
    """Return shares of one row each, and the rest for the last rank."""
    return [1] * (SIZE - 1) + [count - SIZE + 1]


def alike(arrays: Sequence[Any]) -> bool:
    """Return whether all ranks have the same arrays, bit for bit."""
    said = group.communicator.exchange(b"".join(np.asarray(x).tobytes() for x in arrays))
    return len(set(said)) == 1


def total(value: float) -> float:
    """Return the sum over ranks."""
    return float(group.communicator.all_reduce(np.array(float(value))))


def apart(a: Any, b: Any) -> float:
    """Return the largest difference, relative to the largest number."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    return float(np.abs(a - b).max() / (np.abs(b).max() + 1e-300))


def refusal(call: Callable[[], Any]) -> list[str]:
    """Return what each rank is told when a call is refused."""
    try:
        call()
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
    else:
        told = "nothing"
    return [text.decode() for text in group.communicator.exchange(told.encode())]


def tell(checks: Sequence[Callable[[], Any]]) -> None:
    """Run checks on all ranks, and write what they found on rank 0 by their names."""
    for check in checks:
        try:
            found = check()
        except BaseException:
            traceback.print_exc()
            print(f"rank {RANK} in {check.__name__}", file=sys.stderr, flush=True)
            gt.distributed.abort(f"{check.__name__} failed")
        if RANK == 0:
            with FOUND.open("a") as file:
                file.write(json.dumps({check.__name__: found}) + "\n")
