"""Reading HDF5 files from strangers: everything is checked before any of it is read.

What a file may hold here is little: groups, and plain datasets of numbers or text, each reached by
one hard link. Everything else that HDF5 offers (links to elsewhere, external and virtual storage,
plugins for filters, references, compound types) is refused by name.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

import h5py
import numpy as np

from .errors import DamagedFile, FileMissing, LoadError, NotAGradtapeFile, UnsafeFile
from .schema import DTYPES, MAX_BYTES, MAX_DEPTH, MAX_OBJECTS, MAX_RANK, MAX_TEXT, SEGMENT

__all__ = ["SafeFile"]

_FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}
# What gzip can reach is 1032:1; a larger claim is not compression.
_MAX_RATIO = 1100


class SafeFile:
    """An open file whose datasets were all checked.

    Parameters
    ----------
    path
        The file.
    max_bytes
        The most that all datasets together may take in memory.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int | None = None) -> None:
        self.path = os.fspath(path)
        self._max_bytes = MAX_BYTES if max_bytes is None else int(max_bytes)
        if not os.path.exists(self.path):
            raise FileMissing(f"{self.path}: there is no such file")
        if not os.path.isfile(self.path):
            raise NotAGradtapeFile(f"{self.path}: not a file")
        try:
            self._file = h5py.File(self.path, "r")
        except OSError as error:
            kind = NotAGradtapeFile
            with open(self.path, "rb") as stream:
                if stream.read(8) == b"\x89HDF\r\n\x1a\n":
                    kind = DamagedFile  # type: ignore[assignment]
            raise kind(f"{self.path}: not a readable HDF5 file ({error})") from None
        self.datasets: dict[str, h5py.Dataset] = {}
        try:
            self._guarded("", self._walk)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> SafeFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def _guarded(self, place: str, action: Any, *args: Any) -> Any:
        """Run ``action`` and give whatever h5py raises the file's name and place."""
        try:
            return action(*args)
        except LoadError as error:
            if str(error).startswith(self.path):
                raise
            where = f"{place}: " if place else ""
            raise type(error)(f"{self.path}: {where}{error}") from None
        except (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError) as error:
            raise DamagedFile(
                f"{self.path}: {place or 'the file'} cannot be read ({error})"
            ) from None
        except MemoryError:
            raise UnsafeFile(f"{self.path}: {place} does not fit into memory") from None

    def _walk(self) -> None:
        seen: set[int] = set()
        queue: list[tuple[str, Any, int]] = [("", self._file, 0)]
        total = objects = 0
        while queue:
            prefix, group, depth = queue.pop()
            if depth > MAX_DEPTH:
                raise UnsafeFile(f"groups nested deeper than {MAX_DEPTH}")
            if len(group) > MAX_OBJECTS:
                raise UnsafeFile(f"{prefix or '/'} has {len(group)} links")
            for name in group:
                objects += 1
                if objects > MAX_OBJECTS:
                    raise UnsafeFile(f"more than {MAX_OBJECTS} objects")
                if type(name) is not str or not SEGMENT.match(name):
                    raise UnsafeFile(f"{prefix or '/'}: a link is called {str(name)[:60]!r}")
                path = f"{prefix}/{name}"
                if type(group.get(name, getlink=True)) is not h5py.HardLink:
                    raise UnsafeFile(f"{path} is a soft or external link")
                item = group[name]
                address = h5py.h5o.get_info(item.id).addr
                if address in seen:
                    raise UnsafeFile(f"{path} is a second link to the same object")
                seen.add(address)
                if type(item) is h5py.Group:
                    queue.append((path, item, depth + 1))
                elif type(item) is h5py.Dataset:
                    total += _checked_size(item, path)
                    if total > self._max_bytes:
                        raise UnsafeFile(
                            f"the datasets claim more than {self._max_bytes:,} bytes; "
                            "raise max_bytes if you trust the file"
                        )
                    self.datasets[path] = item
                else:
                    raise UnsafeFile(f"{path} is a {type(item).__name__}")

    def attribute(self, name: str) -> str:
        """Return a text attribute of the root."""

        def read() -> str:
            attributes = self._file.attrs
            if name not in attributes:
                raise NotAGradtapeFile(f"no attribute {name!r}: not a file that gradtape wrote")
            kind = h5py.h5a.open(self._file.id, name.encode())
            if kind.get_storage_size() > 4096 or kind.shape != () or kind.dtype.kind != "S":
                raise UnsafeFile(f"attribute {name!r} is no short text")
            return bytes(attributes[name]).decode("utf-8")

        result: str = self._guarded(f"attribute {name}", read)
        return result

    def array(self, path: str) -> np.ndarray[Any, Any]:
        """Return a dataset of numbers."""

        def read() -> np.ndarray[Any, Any]:
            dataset = self._dataset(path)
            if dataset.dtype.name not in DTYPES:
                raise UnsafeFile(f"dtype {dataset.dtype}")
            value = np.asarray(dataset[()])
            return value.astype(value.dtype.newbyteorder("="), copy=False)

        result: np.ndarray[Any, Any] = self._guarded(path, read)
        return result

    def text(self, path: str) -> str:
        """Return a dataset of text."""

        def read() -> str:
            dataset = self._dataset(path)
            if dataset.dtype.kind != "S" or dataset.shape != ():
                raise DamagedFile("not a text")
            return bytes(dataset[()]).decode("utf-8")

        result: str = self._guarded(path, read)
        return result

    def _dataset(self, path: str) -> h5py.Dataset:
        if path not in self.datasets:
            raise DamagedFile("this dataset is missing")
        return self.datasets[path]


def _checked_size(dataset: h5py.Dataset, path: str) -> int:
    """Return the size in memory of a dataset after checking how it is stored."""
    properties = dataset.id.get_create_plist()
    if properties.get_external_count() or dataset.external:
        raise UnsafeFile(f"{path} stores its data in another file")
    layout = properties.get_layout()
    if dataset.is_virtual or layout not in (
        h5py.h5d.CONTIGUOUS,
        h5py.h5d.CHUNKED,
        h5py.h5d.COMPACT,
    ):
        raise UnsafeFile(f"{path} is a virtual dataset")
    for i in range(properties.get_nfilters()):
        code = properties.get_filter(i)[0]
        if code not in _FILTERS:
            raise UnsafeFile(
                f"{path} needs the filter {code}; only {list(_FILTERS.values())} are read"
            )
    kind = dataset.id.get_type().get_class()
    if kind not in (
        h5py.h5t.INTEGER,
        h5py.h5t.FLOAT,
        h5py.h5t.ENUM,
        h5py.h5t.STRING,
        h5py.h5t.COMPOUND,
    ):
        raise UnsafeFile(f"{path} has an HDF5 type of class {kind}")
    dtype = dataset.dtype
    if dtype.kind == "S":
        if dataset.shape != () or dtype.itemsize > MAX_TEXT:
            raise UnsafeFile(
                f"{path}: a text is one fixed-length string of at most {MAX_TEXT:,} bytes"
            )
    elif dtype.name not in DTYPES:
        raise UnsafeFile(
            f"{path} has dtype {dtype}; files hold plain numbers and fixed-length text"
        )
    if dataset.shape is None or len(dataset.shape) > MAX_RANK:
        raise UnsafeFile(f"{path} has the shape {dataset.shape}")
    size = int(dtype.itemsize)
    for n in dataset.shape:
        size *= int(n)
    stored = int(dataset.id.get_storage_size())
    limit = _MAX_RATIO if layout == h5py.h5d.CHUNKED and properties.get_nfilters() else 1
    if size > stored * limit:
        raise UnsafeFile(f"{path} claims {size:,} bytes but stores {stored:,}")
    return size
