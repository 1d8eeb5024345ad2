"""The subset of HDF5 that files use: the possible contents of headers.

The numbers of messages and their contents are those of the HDF5 File Format Specification, version
3.0; docs/format.md says byte by byte which of them a file has.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

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
