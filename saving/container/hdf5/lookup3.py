"""Bob Jenkins' lookup3 (``hashlittle``, May 2006), the checksum of HDF5's metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_MASK = 0xFFFFFFFF
_TWICE = 0x100000001
# How far words are rotated in a round, and in the last one; see the original, lookup3.c.
_MIX = (4, 6, 8, 16, 19, 4)
_FINAL = (14, 11, 25, 16, 4, 14, 24)
# As many texts of one length are worth NumPy.
_WORTH_ARRAYS = 16


def checksum(data: bytes) -> int:
    """Return the checksum of one text, an unsigned integer of 32 bits."""
    words = _words(data)
    a = b = c = 0xDEADBEEF + len(data) & _MASK
    if not words:
        return c
    for x, y, z in zip(words[:-3:3], words[1:-3:3], words[2:-3:3], strict=True):
        # Written out: this runs for every twelve bytes of a group's links. A word times _TWICE,
        # shifted, is the word rotated, with bits above; bits above stay until they are in the way.
        c = c + z & _MASK
        a = (a + x - c ^ c * _TWICE >> 28) & _MASK
        c += b + y
        b = (b + y - a ^ a * _TWICE >> 26) & _MASK
        a += c
        c = (c - b ^ b * _TWICE >> 24) & _MASK
        b += a
        a = (a - c ^ c * _TWICE >> 16) & _MASK
        c += b
        b = (b - a ^ a * _TWICE >> 13) & _MASK
        a += c
        c = (c - b ^ b * _TWICE >> 28) & _MASK
        b += a
    a, b, c = (x + y & _MASK for x, y in zip((a, b, c), words[-3:], strict=True))
    return _last(a, b, c)


def checksums(texts: Sequence[bytes]) -> list[int]:
    """Return the checksum of each text; those of one length are computed together."""
    found = [0] * len(texts)
    by_length: dict[int, list[int]] = {}
    for i, text in enumerate(texts):
        by_length.setdefault(len(text), []).append(i)
    for length, places in by_length.items():
        if len(places) < _WORTH_ARRAYS or not length:
            for i in places:
                found[i] = checksum(texts[i])
        else:
            joint = _together([texts[i] for i in places], length)
            for i, value in zip(places, joint.tolist(), strict=True):
                found[i] = value
    return found


def _words(data: bytes) -> list[int]:
    padded = data + bytes(-len(data) % 12)
    return np.frombuffer(padded, "<u4").tolist()


def _together(texts: Sequence[bytes], length: int) -> Any:
    rest = bytes(-length % 12)
    words = np.frombuffer(rest.join([*texts, b""]), "<u4").reshape(len(texts), -1).T
    start = np.uint32(0xDEADBEEF + length & _MASK)
    a, b, c = (np.full(len(texts), start, np.uint32) for _ in range(3))
    for i in range(0, len(words) - 3, 3):
        a, b, c = a + words[i], b + words[i + 1], c + words[i + 2]
        for k in _MIX:
            # the three words take turns
            a, c = (a - c) ^ _rotated(c, k), c + b
            a, b, c = b, c, a
    return _last(*(x + y for x, y in zip((a, b, c), words[-3:], strict=True)))


def _last(a: Any, b: Any, c: Any) -> Any:
    """Return the last round of three words, Python integers or arrays of unsigned ones."""
    mask: Any = _MASK if isinstance(a, int) else np.uint32(_MASK)
    for k in _FINAL:
        c = (c ^ b) - _rotated(b, k) & mask
        a, b, c = b, c, a
    # the last word that changed has moved on
    return b


def _rotated(x: Any, k: int) -> Any:
    if isinstance(x, int):
        return x << k & _MASK | x >> 32 - k
    return x << np.uint32(k) | x >> np.uint32(32 - k)
