"""Read HDF5 files with the library; everything is checked before it is read.

It needs the HDF5 library, so only a separate process imports this module (see :mod:`.file`).

A file may hold little here: groups, and plain datasets of numbers or text, each reached by one hard
link. Everything else in HDF5 (external links, external and virtual storage, filter plugins,
references, compound types) is refused by name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, ClassVar

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5l, h5o, h5s, h5t

from ...errors import DamagedFile, LoadError, NotAGradtapeFile, UnsafeFile
from ..child import fail, limit_self, unlimited_time
from ..limits import (
    DTYPES,
    MAX_DEPTH,
    MAX_OBJECTS,
    MAX_RANK,
    MAX_RATIO,
    MAX_TEXT,
    SEGMENT,
    most_claimed,
)

_FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}
_LAYOUTS = (h5d.CONTIGUOUS, h5d.CHUNKED, h5d.COMPACT)
_CLASSES = {
    h5t.TIME: "time",
    h5t.BITFIELD: "bit field",
    h5t.OPAQUE: "opaque",
    h5t.REFERENCE: "reference",
    h5t.VLEN: "variable-length",
    h5t.ARRAY: "array",
}
# A chunk is decompressed whole, so it must not be much larger than what is asked for.
_FREE_CHUNK = 2**20


class Hdf5File:
    """An open file. Before :meth:`check`, only the root's attributes can be read.

    Parameters
    ----------
    path
        The file.
    max_bytes
        The maximum memory of all datasets together.

    Attributes
    ----------
    sizes
        The size in bytes of every dataset, by path; filled by :meth:`check`.
    texts
        The paths of those that are texts.
    """

    #: What links may be called.
    segment: ClassVar[re.Pattern[str]] = SEGMENT

    def __init__(self, path: str, max_bytes: int) -> None:
        self.path = path
        self.sizes: dict[str, int] = {}
        self.texts: set[str] = set()
        self._datasets: dict[str, h5d.DatasetID] = {}
        self._max_bytes = max_bytes
        self._bytes = os.path.getsize(self.path)
        try:
            # the cache is for chunks that are read piecewise, and these are read once
            self._file = h5py.File(self.path, "r", rdcc_nbytes=0)
        except (OSError, RuntimeError, ValueError) as error:
            raise DamagedFile(f"not a readable HDF5 file ({error})") from None

    def __enter__(self) -> Hdf5File:
        return self

    def __exit__(self, *error: object) -> None:
        self._datasets.clear()
        self._file.close()

    def _guarded(self, place: str, action: Any, *args: Any) -> Any:
        """Run ``action``, and add the file's name and location to any error of h5py."""
        try:
            return action(*args)
        except LoadError as error:
            raise type(error)(f"{place}: {error}" if place else str(error)) from None
        except MemoryError:
            raise UnsafeFile(f"{place} does not fit into memory") from None
        except Exception as error:  # OSError, RuntimeError, KeyError: h5py raises what it likes
            raise DamagedFile(f"{place or 'the file'} cannot be read ({error})") from None

    def check(self) -> None:
        """Look at every object of the file, and refuse it if one is not what files hold."""
        self._guarded("", self._walk)

    def _walk(self) -> None:
        root = self._file.id
        seen: set[Any] = {_identity(h5o.get_info(root))}
        queue: list[tuple[str, Any, int]] = [("", h5g.open(root, b"/"), 0)]
        total = stored = 0
        while queue:
            prefix, group, depth = queue.pop()
            if depth > MAX_DEPTH:
                raise UnsafeFile(f"groups nested deeper than {MAX_DEPTH}")
            if len(seen) + group.get_num_objs() > MAX_OBJECTS:
                raise UnsafeFile(f"more than {MAX_OBJECTS} objects")
            for name in group:
                text = name.decode("utf-8", "replace")
                if not self.segment.match(text):
                    raise UnsafeFile(f"{prefix or '/'}: a link is called {text[:60]!a}")
                path = f"{prefix}/{text}"
                if group.links.get_info(name).type != h5l.TYPE_HARD:
                    raise UnsafeFile(f"{path} is a soft, external or user-defined link")
                item = h5o.open(group, name)
                identity = _identity(h5o.get_info(item))
                if identity in seen:
                    raise UnsafeFile(f"{path} is a second link to the same object")
                seen.add(identity)
                if isinstance(item, h5g.GroupID):
                    queue.append((path, item, depth + 1))
                elif isinstance(item, h5d.DatasetID):
                    self.sizes[path] = _checked_size(item, path, self.checked_dtype(item, path))
                    self._datasets[path] = item
                    if item.dtype.kind == "S":
                        self.texts.add(path)
                    total += self.sizes[path]
                    stored += item.get_storage_size()
                    if total > self._max_bytes:
                        raise UnsafeFile(
                            f"the datasets claim more than {self._max_bytes:,} bytes; "
                            "raise max_bytes if you trust the file"
                        )
                    if total > most_claimed(self._bytes):
                        raise UnsafeFile(f"{self._bytes:,} bytes of a file claim to hold {total:,}")
                    if stored > self._bytes:
                        raise UnsafeFile(f"the datasets at and before {path} share their storage")
                else:
                    raise UnsafeFile(f"{path} is neither a group nor a dataset")

    def checked_dtype(self, dataset: h5d.DatasetID, path: str) -> np.dtype[Any]:
        """Return the dtype if files may hold it.

        HDF5 has neither booleans nor complex numbers: an enumeration of FALSE and TRUE and a
        compound of two equal floats, r and i, stand for them. No other enumeration or compound is
        read.
        """
        kind = dataset.get_type().get_class()
        if kind in _CLASSES:
            raise UnsafeFile(f"{path} has an HDF5 type of class {_CLASSES[kind]}")
        dtype: np.dtype[Any] = dataset.dtype
        wanted = {h5t.ENUM: "b", h5t.COMPOUND: "c", h5t.STRING: "S", h5t.FLOAT: "f"}.get(kind, "iu")
        if dtype.kind not in wanted or (dtype.kind != "S" and dtype.name not in DTYPES):
            raise UnsafeFile(
                f"{path} has dtype {dtype}; files hold plain numbers and fixed-length text"
            )
        return dtype

    def attribute(self, name: str) -> str:
        """Return a text attribute of the root."""

        def read() -> str:
            if not h5a.exists(self._file.id, name.encode()):
                raise NotAGradtapeFile(f"no attribute {name!r}: not a file that gradtape wrote")
            held = h5a.open(self._file.id, name.encode())
            fixed = held.get_type().get_class() == h5t.STRING and held.dtype.kind == "S"
            if held.shape != () or not fixed or held.get_storage_size() > 4096:
                raise UnsafeFile(f"attribute {name!r} is not a short string of fixed length")
            value = np.empty((), held.dtype)
            held.read(value)
            return bytes(value[()]).decode("utf-8")

        result: str = self._guarded(f"attribute {name}", read)
        return result

    def array(self, path: str) -> np.ndarray[Any, Any]:
        """Return a dataset of numbers."""

        def read() -> np.ndarray[Any, Any]:
            dataset = self.dataset(path)
            if dataset.dtype.name not in DTYPES:
                raise DamagedFile("not an array of numbers")
            # NumPy's own dtype object, which fast paths recognise by identity; HDF5 converts bytes
            value = np.empty(dataset.shape, np.dtype(dataset.dtype.name))
            if value.size:
                dataset.read(h5s.ALL, h5s.ALL, value)
            if value.dtype == np.bool_ and np.any(value.view(np.uint8) > 1):
                raise DamagedFile("a boolean is neither 0 nor 1")
            return value

        result: np.ndarray[Any, Any] = self._guarded(path, read)
        return result

    def text(self, path: str) -> str:
        """Return a dataset of text."""

        def read() -> str:
            dataset = self.dataset(path)
            if dataset.dtype.kind != "S":
                raise DamagedFile("not a text")
            value = np.empty((), dataset.dtype)
            dataset.read(h5s.ALL, h5s.ALL, value)
            return bytes(value[()]).decode("utf-8")

        result: str = self._guarded(path, read)
        return result

    def dataset(self, path: str) -> h5d.DatasetID:
        """Return a checked dataset."""
        if path not in self._datasets:
            raise DamagedFile("this dataset is missing")
        return self._datasets[path]


def _identity(info: Any) -> tuple[int, int]:
    return (info.fileno, info.addr)


def _checked_size(dataset: h5d.DatasetID, path: str, dtype: np.dtype[Any]) -> int:
    """Return the size in memory of a dataset after checking how it is stored."""
    properties = dataset.get_create_plist()
    if properties.get_external_count():
        raise UnsafeFile(f"{path} stores its data in another file")
    layout = properties.get_layout()
    if layout not in _LAYOUTS:
        raise UnsafeFile(f"{path} is a virtual dataset")
    for i in range(properties.get_nfilters()):
        code = properties.get_filter(i)[0]
        if code not in _FILTERS:
            raise UnsafeFile(
                f"{path} needs the filter {code}; only {', '.join(_FILTERS.values())} are read"
            )
    shape = dataset.shape
    if shape is None or len(shape) > MAX_RANK:
        raise UnsafeFile(f"{path} has the shape {shape}")
    if dtype.kind == "S" and (shape != () or dtype.itemsize > MAX_TEXT):
        raise UnsafeFile(f"{path}: a text is one string of at most {MAX_TEXT:,} bytes")
    size = int(dtype.itemsize)
    for n in shape:
        size *= int(n)
    stored = int(dataset.get_storage_size())
    chunked = layout == h5d.CHUNKED
    if chunked:
        piece = int(dtype.itemsize)
        for n in properties.get_chunk():
            piece *= int(n)
        if piece > max(size, _FREE_CHUNK):
            raise UnsafeFile(f"{path} holds {size:,} bytes in chunks of {piece:,}")
    limit = MAX_RATIO if chunked and properties.get_nfilters() else 1
    if size > stored * limit:
        raise UnsafeFile(f"{path} claims {size:,} bytes but stores {stored:,}")
    return size


# -- in the other process -------------------------------------------------------------------------


def within_limits(
    action: Callable[[str, str, int], None],
    original: str,
    target: str,
    max_bytes: str,
    memory: str,
    seconds: str,
) -> None:
    """Run a conversion in the child process, and report errors to the parent.

    Parameters
    ----------
    action
        A function that reads ``original`` and writes ``target``, for a maximum size of arrays in
        bytes.
    original, target
        Paths.
    max_bytes
        The maximum size that the datasets may claim together.
    memory, seconds
        The maximum memory and processor time of reading, where the system can limit them.
    """
    limit_self(int(memory), float(seconds))
    try:
        action(original, target, int(max_bytes))
    except Exception as error:
        message = str(error).removeprefix(f"{original}: ").replace(original, "the file")[:2000]
        fail(error, message)
    unlimited_time()  # to end takes longer than to read a small file
