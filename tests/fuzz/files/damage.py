"""Accidental damage of bytes: flips, cuts, insertions, pieces of other files."""

from __future__ import annotations

import random

__all__ = ["changed"]


def changed(data: bytes, rng: random.Random) -> bytes:
    """Return damaged bytes."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        _CHANGES[rng.randrange(len(_CHANGES))](found, rng)
    return bytes(found)


def _place(data: bytearray, rng: random.Random) -> int:
    """Return a position, more often near the beginning, where headers are."""
    size = max(1, len(data))
    return rng.randrange(min(size, rng.choice([100, 1000, 10_000, size])))


def _flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        if data:
            data[_place(data, rng)] ^= 1 << rng.randrange(8)


def _put(data: bytearray, rng: random.Random) -> None:
    at, width = _place(data, rng), rng.choice([1, 2, 4, 8, 64])
    byte = rng.choice([b"\0", b"\1", b"\x7f", b"\xff"])
    data[at : at + width] = (byte * width)[: max(0, len(data) - at)]


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[_place(data, rng) :]


def _remove(data: bytearray, rng: random.Random) -> None:
    at = _place(data, rng)
    del data[at : at + rng.choice([1, 8, 100, 4096])]


def _insert(data: bytearray, rng: random.Random) -> None:
    at = _place(data, rng)
    data[at:at] = rng.randbytes(rng.choice([1, 8, 100, 4096]))


def _copy(data: bytearray, rng: random.Random) -> None:
    """Copy a piece over another one."""
    size = rng.choice([8, 16, 64, 512])
    source, target = _place(data, rng), _place(data, rng)
    piece = data[source : source + size]
    data[target : target + len(piece)] = piece[: max(0, len(data) - target)]


_CHANGES = [_flip, _flip, _flip, _put, _cut, _remove, _insert, _copy]
