"""Digests of datasets: XXH3-128 of pieces, and the two threads that hash them in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from xxhash import xxh3_128_digest

from ...core.extend import can_start_threads

#: The dataset that holds the digests of all others.
DIGESTS = "/digests"
#: A dataset's bytes are hashed in pieces of this many.
PIECE = 16 * 2**20
#: The length of a digest.
SIZE = 16

#: The digest of one piece.
piece_digest = xxh3_128_digest


def digest_of(path: str, kind: str, shape: Sequence[int], parts: Sequence[bytes]) -> bytes:
    """Return the digest of a dataset: of its path, its dtype and shape, and its pieces' digests."""
    head = f"{path} {kind}{list(shape)}\n".encode()
    digest: bytes = xxh3_128_digest(head + b"".join(parts))
    return digest


def pieces(size: int) -> list[tuple[int, int]]:
    """Return where the pieces of so many bytes begin and end."""
    return [(i, min(i + PIECE, size)) for i in range(0, size, PIECE)]


def digest_of_bytes(path: str, kind: str, shape: Sequence[int], data: Any) -> bytes:
    """Return the digest of a dataset, given all of its bytes."""
    parts = [piece_digest(data[i:j]) for i, j in pieces(len(data))]
    return digest_of(path, kind, shape, parts)


# -- threads ---------------------------------------------------------------------------------------
# for work that the system and the digests do without Python's lock

T = TypeVar("T")
R = TypeVar("R")

_THREADS = 2
# Below so many bytes, starting threads takes longer than they save.
_WORTH_THREADS = 4 * 2**20


def each(function: Callable[[T], R], tasks: Iterable[T], size: int) -> list[R]:
    """Return the results of ``function`` for each task, which process ``size`` bytes in total."""
    if size < _WORTH_THREADS or not can_start_threads():
        return [function(task) for task in tasks]
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and small files need none

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(function, tasks))
