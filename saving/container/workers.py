"""Two threads for work that the system and the digests do without Python's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_THREADS = 2
# Below so many bytes, starting threads takes longer than they save.
_WORTH_THREADS = 4 * 2**20


def each(function: Callable[[T], R], tasks: Iterable[T], size: int) -> list[R]:
    """Return the results of ``function`` for each task, which process ``size`` bytes in total."""
    if size < _WORTH_THREADS:
        return [function(task) for task in tasks]
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and small files need none

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(function, tasks))
