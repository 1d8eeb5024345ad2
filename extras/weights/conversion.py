"""Convert Keras weights to a safetensors file, in a separate process.

It needs the HDF5 library, so only that process imports it (see :mod:`.keras`), and reads any
HDF5 file that gradtape did not write.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import zipfile
from typing import Any

import h5py
import numpy as np
from h5py import h5t

from ..saving.container.hdf5.library import Hdf5File, within_limits
from ..saving.container.limits import MAX_RATIO
from ..saving.errors import DamagedFile, LoadError, UnsafeFile
from ..saving.records.schema import FORMAT
from ..saving.weights.safetensors import KINDS, pieces_of
from .keras import WEIGHTS, opened


def convert(original: str, target: str, *limits: str) -> None:
    """Write the arrays of a Keras file to a safetensors file.

    Parameters
    ----------
    original, target
        Paths.
    limits
        As for :func:`gradtape.saving.container.hdf5.library.within_limits`.
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


# -- the arrays of an HDF5 file --------------------------------------------------------------------

# Types that HDF5 lacks and Keras stores as opaque bytes, by the name in the attribute "dtype".
_OPAQUE = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}


def arrays_of(path: str, max_bytes: int) -> dict[str, np.ndarray[Any, Any]] | None:
    """Return all arrays of a file by path, without its texts; None if gradtape wrote it."""
    with _ForeignFile(path, max_bytes) as file:
        with contextlib.suppress(LoadError):
            if file.attribute("format") == FORMAT:
                return None
        file.check()
        names = [name for name in file.sizes if name not in file.texts]
        return {name.lstrip("/"): file.array(name) for name in names}


class _ForeignFile(Hdf5File):
    """A file whose links may have any printable name, and whose arrays may be of opaque types."""

    segment = re.compile(r"(?!\.{1,2}\Z)[^\x00-\x1f\x7f-\x9f/\ufffd]{1,255}\Z")

    def checked_dtype(self, dataset: Any, path: str) -> np.dtype[Any]:
        """Return the dtype; opaque types of one or two bytes are included."""
        if dataset.get_type().get_class() == h5t.OPAQUE and dataset.dtype.itemsize <= 2:
            dtype: np.dtype[Any] = dataset.dtype
            return dtype
        return super().checked_dtype(dataset, path)

    def array(self, path: str) -> np.ndarray[Any, Any]:
        """Return an array; one of an opaque type as float32."""
        dataset = self.dataset(path)
        if dataset.dtype.kind != "V":
            return super().array(path)
        name = h5py.Dataset(dataset).attrs.get("dtype", "")
        kind = KINDS.get(_OPAQUE.get(str(name), ""))
        size = dataset.dtype.itemsize
        if kind is None or kind.convert is None or np.dtype(kind.stored).itemsize != size:
            raise UnsafeFile(f"{path} has the opaque type {str(name)[:40]!r}, which is not read")
        found = np.empty(dataset.shape, dataset.dtype)
        if found.size:
            dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, found)
        return np.asarray(kind.convert(found.view(kind.stored)))
