"""What files of any container may hold: names, dtypes and sizes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..errors import UnsafeFile

# A segment of a path: what an attribute, an index or a sensible dictionary key may be called.
SEGMENT = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.\- ]{0,126}[A-Za-z0-9_\-])?\Z")
#: NumPy's own dtype objects by name; fast paths recognise them by identity.
DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(name)
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
        "float16 float32 float64 complex64 complex128"
    ).split()
}
#: By the name of a dtype, how many bytes an element takes; of a text, each is one.
ITEMSIZES = {"": 1} | {name: np.dtype(name).itemsize for name in DTYPES}
MAX_DEPTH = 64
MAX_OBJECTS = 100_000
MAX_TEXT = 64 * 2**20
MAX_BYTES = 8 * 2**30
MAX_RANK = 32
#: All paths together, in characters: a small file can hold deep groups with long names.
MAX_PATHS = 16 * 2**20
#: What gzip can reach is 1032:1; a larger claim is not compression.
MAX_RATIO = 1100


def most_claimed(stored: int) -> int:
    """Return how many bytes datasets may claim together if they are stored in so many bytes."""
    return max(2**20, 64 * stored)


def check_claims(total: int, max_bytes: int, stored: int) -> None:
    """Refuse a file whose datasets claim more than is allowed, or than its size makes plausible.

    Parameters
    ----------
    total
        The bytes that its datasets claim together.
    max_bytes
        The user's limit.
    stored
        The bytes of the file.

    Raises
    ------
    UnsafeFile
        If they claim more than either.
    """
    if total > max_bytes:
        raise UnsafeFile(
            f"the datasets claim {total:,} bytes, more than {max_bytes:,}; "
            "raise max_bytes if you trust the file"
        )
    if total > most_claimed(stored):
        raise UnsafeFile(f"a file of {stored:,} bytes claims to hold {total:,}")
