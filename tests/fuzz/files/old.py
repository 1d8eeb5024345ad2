"""Files of format 1 from HDF5's own library, with changed metadata and repaired checksums."""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
from functools import cache

import h5py
import numpy as np

from fuzz.files.subjects import Parts, subjects
from gradtape.saving.container.hdf5.profile import checksum
from gradtape.saving.reading.old import array_digest, text_digest

__all__ = ["changed", "old_file", "old_files"]

# Blocks that end with a checksum, besides object headers.
_BLOCKS = (b"OCHK", b"FRHP", b"FHIB", b"BTHD", b"BTLF", b"BTIN", b"FSHD")
_LONGEST = 700
_VALUES = [0, 1, 2, 3, 7, 8, 16, 64, 255, 256, 4096, 2**16 - 1, 2**31, 2**32 - 1, 2**40, 2**64 - 1]


def old_file(parts: Parts, version: str = "1.2", libver: str = "v110") -> bytes:
    """Return a file of format 1 with these contents.

    Parameters
    ----------
    parts
        The contents.
    version
        The version of the format.
    libver
        The version of HDF5's format: ``"earliest"`` has neither checksums nor dense groups.
    """
    manifest = json.loads(parts.texts["/manifest"])
    texts = {path: text for path, text in parts.texts.items() if path != "/manifest"}
    manifest["digests"] = {path: text_digest(text) for path, text in texts.items()}
    manifest["digests"] |= {path: array_digest(x) for path, x in parts.arrays.items()}
    texts["/manifest"] = json.dumps(manifest)
    stream = io.BytesIO()
    with h5py.File(stream, "w", libver=(libver, "v110")) as file:
        for name, text in (
            ("format", parts.attributes["format"]),
            ("format_version", version),
            ("manifest_sha256", hashlib.sha256(texts["/manifest"].encode()).hexdigest()),
        ):
            file.attrs[name] = np.bytes_(text)
        for path, text in texts.items():
            data = text.encode()
            file.create_dataset(path, data=data, dtype=h5py.string_dtype("utf-8", len(data)))
        for path, array in parts.arrays.items():
            file.create_dataset(path, data=array)
    return stream.getvalue()


@cache
def old_files() -> list[tuple[bytes, str]]:
    """Return files of format 1 with the names of their subjects; they are made once."""
    found = []
    for subject in subjects():
        if subject.name in ("plain", "traced"):
            made = (old_file(subject.parts, libver=libver) for libver in ("v110", "earliest"))
            found += [(data, subject.name) for data in made]
    return found


def changed(data: bytes, rng: random.Random) -> bytes:
    """Return a file with one to three changed numbers in its metadata."""
    found = bytearray(data)
    blocks = _blocks(data)
    for _ in range(rng.choice([1, 1, 2, 3])):
        begin, end = rng.choice(blocks) if blocks else (0, min(len(found), 4096))
        at = rng.randrange(begin, max(begin + 1, end))
        width = rng.choice([1, 1, 2, 4, 8])
        value = rng.choice(_VALUES) if rng.random() < 0.7 else rng.getrandbits(64)
        new = (value % 2 ** (8 * width)).to_bytes(width, "little")
        found[at : at + width] = new[: max(0, len(found) - at)]
        if blocks:
            found[end : end + 4] = struct.pack("<I", checksum(bytes(found[begin:end])))
    return bytes(found)


@cache
def _blocks(data: bytes) -> list[tuple[int, int]]:
    """Return where blocks of metadata with a checksum begin and end."""
    found = [(0, 44)] if data[8] in (2, 3) else []
    place = data.find(b"OHDR")
    while place >= 0:
        times, order, width = data[place + 5] & 32, data[place + 5] & 16, 1 << (data[place + 5] & 3)
        start = place + 6 + 16 * bool(times) + 4 * bool(order) + width
        end = start + int.from_bytes(data[start - width : start], "little")
        if checksum(data[place:end]) == int.from_bytes(data[end : end + 4], "little"):
            found.append((place, end))
        place = data.find(b"OHDR", place + 4)
    rare = []
    for signature in _BLOCKS:
        place = data.find(signature)
        while place >= 0:
            found_end = _end_of(data, place)
            if found_end is not None:
                rare.append((place, found_end))
            place = data.find(signature, place + 4)
    # parts of indices as often as all object headers
    return found + rare * (1 + len(found) // (1 + len(rare)))


def _end_of(data: bytes, begin: int) -> int | None:
    """Return the end of a block of unknown length, found by trying lengths for its checksum."""
    for end in range(begin + 8, min(begin + _LONGEST, len(data) - 4)):
        value = int.from_bytes(data[end : end + 4], "little")
        if value and checksum(data[begin:end]) == value:
            return end
    return None
