"""The subset of HDF5 that files use: the possible contents of headers, and their checksum.

The numbers of messages and their contents are those of the HDF5 File Format Specification, version
3.0; docs/format.md says byte by byte which of them a file has.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..source import SIGNATURE

__all__ = [
    "ALIGNMENT",
    "ATTRIBUTE",
    "ATTRIBUTE_INFO",
    "DATASPACE",
    "DATATYPE",
    "DATATYPES",
    "DTYPE_OF",
    "FILL",
    "FILL_CHUNKED",
    "FILL_VALUE",
    "FILTERS",
    "GROUP_INFO",
    "HEADER",
    "LAYOUT",
    "LINK",
    "LINK_INFO",
    "LONG_HEADER",
    "MAX_COMPRESSED",
    "MAX_LONG_HEADERS",
    "MESSAGE",
    "NO_ATTRIBUTES",
    "NO_GROUP",
    "NO_LINKS",
    "SIGNATURE",
    "SUPERBLOCK",
    "TEXT",
    "UNDEFINED",
    "aligned",
    "index_size",
    "one_chunk",
    "one_index",
    "pipeline",
]

#: Its version; sizes of offsets and lengths; flags; base, extension, end, root; then a checksum.
SUPERBLOCK = struct.Struct("<8sBBBBQQQQ")
#: Signature, version, flags (2: a length of four bytes), and the length of the messages.
HEADER = struct.Struct("<4sBBI")
#: Type, length and flags of a message in an object's header.
MESSAGE = struct.Struct("<BHB")

DATASPACE, LINK_INFO, DATATYPE, FILL, LINK, LAYOUT = 1, 2, 3, 5, 6, 8
GROUP_INFO, FILTERS, ATTRIBUTE, ATTRIBUTE_INFO = 10, 11, 12, 21

UNDEFINED = 2**64 - 1
_NOWHERE = b"\xff" * 16
NO_LINKS = b"\x00\x00" + _NOWHERE
NO_GROUP = b"\x00\x00"
NO_ATTRIBUTES = b"\x00\x00" + _NOWHERE
#: Late allocation (incremental for chunks); a fill value only if somebody set one.
FILL_VALUE, FILL_CHUNKED = b"\x03\x0a", b"\x03\x0b"

#: Data begins at a multiple of this, as arrays do in memory.
ALIGNMENT = 64

#: All headers that are longer than a dataset's, in bytes; a group's links are in its header.
MAX_LONG_HEADERS, LONG_HEADER = 4 * 2**20, 1024
#: HDF5 reads a chunk as a whole, and none of four gigabytes.
MAX_COMPRESSED = 2**31
# Half the children of a node of an index, as HDF5 has it unless told otherwise.
_FANOUT = 32


def aligned(offset: int) -> int:
    """Return the first multiple of the alignment that is at least ``offset``."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _integer(size: int, signed: bool) -> bytes:
    return struct.pack("<BBBBIHH", 0x10, 8 if signed else 0, 0, 0, size, 0, 8 * size)


def _float(size: int, exponent: int, mantissa: int) -> bytes:
    return struct.pack(
        "<BBBBIHHBBBBI",
        0x11,
        0x20,
        8 * size - 1,
        0,
        size,
        0,
        8 * size,
        mantissa,
        exponent,
        0,
        mantissa,
        2 ** (exponent - 1) - 1,
    )


def _types() -> dict[str, bytes]:
    found = {f"int{8 * n}": _integer(n, True) for n in (1, 2, 4, 8)}
    found |= {f"uint{8 * n}": _integer(n, False) for n in (1, 2, 4, 8)}
    found |= {"float16": _float(2, 5, 10), "float32": _float(4, 8, 23)}
    found["float64"] = _float(8, 11, 52)
    # HDF5 has neither of these: an enumeration, and a compound of two floats, stand for them
    head = struct.pack("<BBBBI", 0x38, 2, 0, 0, 1)
    found["bool"] = head + found["int8"] + b"FALSE\0TRUE\0\0\1"
    for size in (4, 8):
        part = found[f"float{8 * size}"]
        head = struct.pack("<BBBBI", 0x36, 2, 0, 0, 2 * size)
        found[f"complex{16 * size}"] = head + b"r\0\0" + part + b"i\0" + bytes([size]) + part
    return found


#: The datatype message of each dtype, and of a text before its length.
DATATYPES: dict[str, bytes] = _types()
DTYPE_OF: dict[bytes, str] = {message: name for name, message in DATATYPES.items()}
TEXT = b"\x13\x11\x00\x00"


def pipeline(itemsize: int, level: int) -> bytes:
    """Return the message of the filters of compressed data: shuffle, then deflate."""
    return struct.pack("<BBHHHIHHHI", 2, 2, 2, 1, 1, itemsize, 1, 1, 1, level)


def one_chunk(shape: Sequence[int], itemsize: int, address: int) -> bytes:
    """Return the layout message of data in one chunk, whose index is at ``address``."""
    sizes = (*shape, itemsize)
    return struct.pack(f"<BBBQ{len(sizes)}I", 3, 2, len(sizes), address, *sizes)


def index_size(rank: int) -> int:
    """Return the size in bytes of the index of one chunk: the same as for 64 chunks."""
    return 24 + 2 * _FANOUT * 8 + (2 * _FANOUT + 1) * (8 + 8 * (rank + 1))


def one_index(shape: Sequence[int], itemsize: int, stored: int, address: int) -> bytes:
    """Return the index, a B-tree, of one chunk of so many bytes stored at ``address``."""
    rank = len(shape)
    head = struct.pack("<4sBBHQQ", b"TREE", 1, 0, 1, UNDEFINED, UNDEFINED)
    first = struct.pack(f"<II{rank + 1}Q", stored, 0, *(0,) * (rank + 1))
    # the end, in chunks' own sizes
    last = struct.pack(f"<II{rank + 1}Q", 0, 0, *shape, itemsize)
    node = head + first + struct.pack("<Q", address) + last
    return node + bytes(index_size(rank) - len(node))


# -- the checksum of metadata ----------------------------------------------------------------------
# Bob Jenkins' lookup3 (``hashlittle``, May 2006)

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
