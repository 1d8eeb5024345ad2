"""The arrays of an HDF5 file that gradtape did not write, for use in a separate process."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import h5py
import numpy as np
from h5py import h5t

from ..container.hdf5.library import Hdf5File
from ..errors import LoadError, UnsafeFile
from ..records.schema import FORMAT
from .tensors import KINDS

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
