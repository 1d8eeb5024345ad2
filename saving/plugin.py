"""The containers of whole files, and the formats of weights, that ship with gradtape, as a plugin.

What reads and writes weights is imported when it does: ``gradtape.save`` asks for these, too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.extend import hookimpl, lazy_module
from .container.hdf5.file import SafeFile
from .container.hdf5.write import COMPRESSIONS, check, write
from .container.source import SIGNATURE, Source
from .container.storage import Storage


class Hdf5(Storage):
    """HDF5, in the subset of docs/format.md, without the HDF5 library.

    It writes and hashes in several threads, so it has digests and atomic replacement of its own.
    """

    name = "HDF5"
    compressions = tuple(COMPRESSIONS)

    def recognises(self, path: str) -> bool:
        """Return whether a file begins with HDF5's signature."""
        if not os.path.isfile(path):
            return False
        with contextlib.suppress(OSError), open(path, "rb") as stream:
            return stream.read(len(SIGNATURE)) == SIGNATURE
        return False

    def check(
        self,
        attributes: Mapping[str, str],
        texts: Mapping[str, str],
        arrays: Mapping[str, np.ndarray[Any, Any]],
    ) -> None:
        """Raise the error that :meth:`save` would raise for the contents, without writing."""
        check(attributes, texts, arrays)

    def save(
        self,
        path: str | os.PathLike[str],
        attributes: Mapping[str, str],
        texts: Mapping[str, str],
        arrays: Mapping[str, np.ndarray[Any, Any]],
        compression: str | None = None,
    ) -> None:
        """Write a file, completely or not at all."""
        write(path, attributes, texts, arrays, compression)

    def open(
        self,
        origin: str | os.PathLike[str] | bytes | bytearray | memoryview,
        max_bytes: int | None = None,
        keep_open: bool = False,
    ) -> SafeFile:
        """Open an untrusted file: a path, or its bytes."""
        return SafeFile(origin, max_bytes, keep_open)


@hookimpl(trylast=True)
def gradtape_storages() -> dict[str, Storage]:
    """Provide HDF5."""
    return dict.fromkeys((".h5", ".hdf5"), Hdf5())


# -- formats of weights ----------------------------------------------------------------------------

_PICKLE = "pickle.dump(model, file) pickles a model"
_ZARR = (
    "zarr.save_group(path, **gradtape.saving.read_weights(file)) copies weights; a plugin such as "
    "docs/examples/gradtape-zarr saves whole files"
)


def begins(file: Source, size: int = 16) -> bytes:
    """Return the first bytes of a file."""
    return file.read(0, min(size, file.size))


def is_pickle(start: bytes) -> bool:
    """Return whether a file that starts with these bytes may be a pickle."""
    return start[:1] == b"\x80" and start[1:2] in (b"\2", b"\3", b"\4", b"\5")


class _SafeTensors:
    """Files of safetensors."""

    layouts = ("gradtape",)
    replaces = True

    def write(self, path: str, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
        """Write a file, completely or not at all."""
        lazy_module("saving.weights.safetensors").write_tensors(path, arrays, metadata)

    def recognises(self, file: Source) -> bool:
        """Return whether a file begins with a header; its length may look like a pickle or JSON."""
        start = begins(file)
        fits = int.from_bytes(start[:8], "little") <= file.size
        is_json = start[:8].lstrip()[:1] in (b"", b"{")
        return start[8:9] == b"{" and (fits or not (is_pickle(start) or is_json))

    def open(self, origin: Any, max_bytes: int) -> Any:
        """Return the contents of a file."""
        return lazy_module("saving.weights.safetensors").open_tensors(Source(origin), max_bytes)


@hookimpl(trylast=True)
def gradtape_formats() -> dict[str, Any]:
    """Provide formats of weights, and what to call for formats that ``save`` does not write."""
    formats: Sequence[tuple[Any, str]] = (
        (_SafeTensors(), ".safetensors"),
        (_PICKLE, ".pkl .pickle .joblib"),
        (_ZARR, ".zarr"),
    )
    return {ending: item for item, endings in formats for ending in endings.split()}


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], dict[str, Any]]]:
    """List libraries of files in ``gradtape doctor``."""
    return {"saving": lambda: {"packages": {"h5py": "h5py", "xxhash": "xxhash"}}}
