"""Convert Keras weights to a safetensors file, in a separate process.

It needs the HDF5 library, so only that process imports it (see :mod:`.keras`).
"""

from __future__ import annotations

import os
import shutil
import zipfile

from ..container.hdf5.conversion import within_limits
from ..container.limits import MAX_RATIO
from ..errors import DamagedFile, UnsafeFile
from .archives import WEIGHTS, opened
from .hdf5 import arrays_of
from .tensors import pieces_of


def convert(original: str, target: str, *limits: str) -> None:
    """Write the arrays of a Keras file to a safetensors file.

    Parameters
    ----------
    original, target
        Paths.
    limits
        As for :func:`gradtape.saving.container.hdf5.conversion.within_limits`.
    """
    within_limits(_convert, original, target, *limits)


def _convert(original: str, target: str, max_bytes: int) -> None:
    if zipfile.is_zipfile(original):
        original = _unpacked(original, max_bytes)
    arrays = arrays_of(original, max_bytes)
    metadata = {"format": "gradtape" if arrays is None else "keras"}
    with open(target, "xb") as stream:  # nobody needs it on disk
        stream.writelines(pieces_of(arrays or {}, metadata))


def _unpacked(original: str, max_bytes: int) -> str:
    """Write the weights in an archive to a file next to it, under our own name."""
    path = os.path.join(os.path.dirname(original), "weights.h5")
    with opened(original, "the file") as archive:
        found = [info for info in archive.infolist() if info.filename == WEIGHTS]
        if len(found) != 1:
            raise UnsafeFile(f"the archive has {len(found)} files {WEIGHTS}")
        size, stored = found[0].file_size, found[0].compress_size
        if size > MAX_RATIO * stored or size > 2 * max_bytes + 2**26:
            raise UnsafeFile(f"{WEIGHTS} claims {size:,} bytes and stores {stored:,}")
        try:
            with archive.open(found[0]) as packed, open(path, "xb") as plain:
                # zipfile reads no more than the recorded size, and compares the checksum
                shutil.copyfileobj(packed, plain, 2**20)
        except (
            zipfile.BadZipFile,
            EOFError,
            NotImplementedError,
            RuntimeError,
            ValueError,
        ) as error:
            raise DamagedFile(f"{WEIGHTS} cannot be unpacked ({error})") from None
    return path
