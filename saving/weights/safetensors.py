"""The safetensors format: a JSON header followed by arrays.

It is read as strictly as by the format's own library: the header is limited, and every byte after
it belongs to one array. Types that NumPy lacks become float32, which represents them exactly.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..container.limits import MAX_OBJECTS, MAX_RANK
from ..container.replace import replacing, write_at
from ..container.source import Source
from ..errors import DamagedFile, SaveError, UnsafeFile, printable
from ..records.schema import take
from .arrays import Arrays, Entry, layout_of

# The format allows 100 MB; a hundred thousand arrays need less than this.
MAX_HEADER = 16 * 2**20


class StoredType(NamedTuple):
    """How a type of the format is stored, and the dtype that it is read as."""

    stored: str
    dtype: str
    convert: Callable[[Any], Any] | None = None
    name: str = ""


def _from_bfloat16(bits: Any) -> Any:
    """Return bfloat16, the upper half of float32, as float32."""
    return np.left_shift(bits, 16, dtype=np.uint32).view(np.float32)


def _from_float8_e5m2(bits: Any) -> Any:
    """Return E5M2, the upper half of float16, as float32."""
    return np.left_shift(bits, 8, dtype=np.uint16).view(np.float16).astype(np.float32)


def _from_float8_e4m3(bits: Any) -> Any:
    """Return E4M3 as float32: four bits of exponent, three of mantissa, nan and no infinity."""
    codes = np.arange(256)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    size = np.where(
        exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    )
    size[(codes & 127) == 127] = np.nan
    return np.where(codes < 128, size, -size).astype(np.float32)[bits]


KINDS = {
    "BOOL": StoredType("uint8", "bool"),
    "U8": StoredType("uint8", "uint8"),
    "I8": StoredType("int8", "int8"),
    "U16": StoredType("uint16", "uint16"),
    "I16": StoredType("int16", "int16"),
    "U32": StoredType("uint32", "uint32"),
    "I32": StoredType("int32", "int32"),
    "U64": StoredType("uint64", "uint64"),
    "I64": StoredType("int64", "int64"),
    "F16": StoredType("float16", "float16"),
    "F32": StoredType("float32", "float32"),
    "F64": StoredType("float64", "float64"),
    "C64": StoredType("complex64", "complex64"),
    "BF16": StoredType("uint16", "float32", _from_bfloat16, "bfloat16"),
    "F8_E5M2": StoredType("uint8", "float32", _from_float8_e5m2, "float8_e5m2"),
    "F8_E4M3": StoredType("uint8", "float32", _from_float8_e4m3, "float8_e4m3"),
}
_NAMES = {kind.dtype: name for name, kind in KINDS.items() if kind.convert is None}


def open_tensors(file: Source, max_bytes: int) -> Arrays:
    """Return the contents of an open file, all of it checked except the numbers."""
    path, size = file.path, file.size
    start = int.from_bytes(file.read(0, 8), "little")
    if start > MAX_HEADER:
        raise UnsafeFile(f"{path}: a header of {start:,} bytes; at most {MAX_HEADER:,} are read")
    if size < 8 + start:
        raise DamagedFile(f"{path}: the file ends within its header")
    text = file.read(8, start)
    header = _parsed(text, path)
    metadata = header.pop("__metadata__", {})
    if type(metadata) is not dict or any(type(x) is not str for x in metadata.values()):
        raise DamagedFile(f"{path}: its metadata is not a mapping of strings")
    if len(header) > MAX_OBJECTS:
        raise UnsafeFile(f"{path}: more than {MAX_OBJECTS:,} arrays")
    entries: dict[str, Entry] = {}
    extents: list[tuple[int, int]] = []
    total = 0
    for name, record in header.items():
        kind, shape, begin, end = _checked(record, f"{path}: {printable(name)!r}")
        extents.append((begin, end))
        total += prod(shape) * np.dtype(kind.dtype).itemsize
        read = partial(_read, file, 8 + start + begin, kind, shape, f"{path}: {printable(name)!r}")
        entries[name] = Entry(shape, np.dtype(kind.dtype), read, kind.name)
    if total > max_bytes:
        raise UnsafeFile(
            f"{path}: the arrays claim {total:,} bytes, more than {max_bytes:,}; "
            "raise max_bytes if you trust the file"
        )
    place = 0
    for begin, end in sorted(extents):
        if begin != place:
            raise UnsafeFile(f"{path}: its arrays overlap, or leave bytes between them")
        place = end
    if 8 + start + place != size:
        raise DamagedFile(f"{path}: {size:,} bytes long, its header claims {8 + start + place:,}")
    aliases = {k: v for k, v in metadata.items() if v in entries and k not in entries}
    return Arrays(path, entries, aliases, layout=layout_of(metadata), close=file.close)


def _parsed(text: bytes, path: str) -> dict[str, Any]:
    """Return a header as a dictionary, read in time proportional to its length."""
    # an array has one brace, two brackets and some ten commas, if its name has none
    if text.count(b"{") + text.count(b"[") > 6 * MAX_OBJECTS or text.count(b",") > 12 * MAX_OBJECTS:
        raise UnsafeFile(f"{path}: its header claims more than {MAX_OBJECTS:,} arrays")
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{path}: its header cannot be read ({str(error)[:200]})") from None
    if type(header) is not dict:
        raise DamagedFile(f"{path}: its header is not a JSON object")
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    "".join(found).encode()  # a lone surrogate in a name raises ValueError
    if len(found) != len(pairs):
        raise ValueError("a JSON object repeats a key")
    return found


def _checked(record: Any, where: str) -> tuple[StoredType, tuple[int, ...], int, int]:
    name = take(record, "dtype", str, where)
    kind = KINDS.get(name)
    if kind is None:
        raise UnsafeFile(
            f"{where} has the type {name[:40]!r}, which is not read; read are {', '.join(KINDS)}: "
            "convert it before saving"
        )
    shape, offsets = take(record, "shape", list, where), take(record, "data_offsets", list, where)
    if len(shape) > MAX_RANK or any(type(n) is not int or not 0 <= n < 2**48 for n in shape):
        raise DamagedFile(f"{where}: not a shape: {str(shape)[:80]}")
    if len(offsets) != 2 or any(type(n) is not int or not 0 <= n < 2**63 for n in offsets):
        raise DamagedFile(f"{where}: not a place in the file: {str(offsets)[:80]}")
    begin, end = offsets
    if end - begin != prod(shape) * np.dtype(kind.stored).itemsize:
        raise DamagedFile(f"{where}: {end - begin:,} bytes are not {name}{shape}")
    if prod(n or 1 for n in shape) >= 2**58:  # NumPy counts so even what is empty
        raise DamagedFile(f"{where}: not a shape: {str(shape)[:80]}")
    return kind, tuple(shape), begin, end


def _read(
    file: Source, place: int, kind: StoredType, shape: tuple[int, ...], where: str
) -> np.ndarray[Any, Any]:
    try:
        array = np.empty(shape, np.dtype(kind.stored))
    except MemoryError:
        raise UnsafeFile(f"{where} does not fit into memory") from None
    if array.size:
        file.read_into(place, [array.reshape(-1).view(np.uint8).data])
    if sys.byteorder == "big":
        array = array.byteswap()
    if kind.dtype == "bool":
        if array.size and array.max() > 1:
            raise DamagedFile(f"{where}: a boolean is neither 0 nor 1")
        return array.view(np.bool_)
    return array if kind.convert is None else np.asarray(kind.convert(array))


def write_tensors(path: str, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write arrays to a file, which is put in place when it is complete.

    Raises
    ------
    SaveError
        If the format has no such dtype, or the file cannot be written; the old file is then
        unchanged.
    """
    pieces = pieces_of(arrays, metadata)
    start = next(pieces)
    size = len(start) + sum(array.nbytes for array in arrays.values())
    with replacing(path, size) as descriptor:
        offset = 0
        for piece in chain([start], pieces):
            write_at(descriptor, piece, offset)
            offset += len(piece)


def pieces_of(arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> Iterator[Any]:
    """Yield the bytes of a file: its header, then those of each array.

    Raises
    ------
    SaveError
        If the format has no such dtype.
    """
    # the widest types first, so that each array begins at a multiple of its item's size
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    place = 0
    for name in order:
        dtype = arrays[name].dtype
        if dtype.name not in _NAMES:
            raise SaveError(f"{name}: the safetensors format has no {dtype.name}")
        shape = [int(n) for n in arrays[name].shape]
        end = place + prod(shape) * dtype.itemsize
        header[name] = {"dtype": _NAMES[dtype.name], "shape": shape, "data_offsets": [place, end]}
        place = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise SaveError(f"names and shapes take {len(text):,} bytes, more than readers accept")
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        yield array.reshape(-1).view(np.uint8).data
