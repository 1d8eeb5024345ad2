"""Weights of Keras: HDF5 files, by themselves (``.weights.h5``, ``.h5``) or in a zip (``.keras``).

They come from the HDF5 library, and from strangers: another process reads them, within limits, and
writes their arrays to a safetensors file (see :mod:`gradtape.saving.container.legacy`).
"""

from __future__ import annotations

import io
import os
import re
import shutil
import zipfile
from collections import Counter
from typing import Any

from ..container.legacy import converted, within_limits
from ..container.source import Source
from ..errors import DamagedFile, UnsafeFile
from .arrays import Arrays, Entry
from .tensors import open_tensors, pieces_of

__all__ = ["archive_kind", "convert", "open_keras"]

_WEIGHTS = "model.weights.h5"
_MAX_MEMBERS = 10_000
# What deflate can reach is 1032:1.
_MAX_RATIO = 1100
# What belongs to training, or to the random numbers of a layer.
_NO_WEIGHTS = (
    (re.compile(r"(optimizer|_optimizer|optimizer_weights)(/|$)"), "a state of the optimizer"),
    (re.compile(r"(.*/)?seed_generator(/|$)"), "a state of random numbers"),
)


def open_keras(file: Source, max_bytes: int) -> Arrays | None:
    """Return the weights of a file of Keras; None if gradtape wrote it, in format 1."""
    try:
        plain = converted(file, max_bytes, __name__)
    except (DamagedFile, UnsafeFile) as error:
        raise type(error)(f"{file.path}: {error}") from None
    found = open_tensors(plain, max_bytes)
    if found.layout == "gradtape":
        found.close()
        return None
    names = _short(list(found.entries))
    entries: dict[str, Entry] = {}
    for name, entry in found.entries.items():
        why = next((why for pattern, why in _NO_WEIGHTS if pattern.match(name)), None)
        if why is None:
            entries[names[name]] = entry
        else:
            found.left_out[name] = why
    file.close()
    return Arrays(file.path, entries, {}, found.left_out, "keras", found.close)


def _short(names: list[str]) -> dict[str, str]:
    """Return shorter names: in old files, a layer's name and that of its weight.

    ``model_weights/dense/sequential/dense/kernel:0`` is ``dense/kernel``; where two would be called
    so, they keep their own names.
    """
    found = {}
    for name in names:
        layer, _, rest = name.removeprefix("model_weights/").partition("/")
        is_new = re.search(r"(^|[/\\])vars[/\\]\d+$", name)
        last = rest.rpartition("/")[2].removesuffix(":0")
        found[name] = name if is_new or not last else f"{layer}/{last}"
    taken = Counter(found.values())
    return {name: x if taken[x] == 1 else name for name, x in found.items()}


# -- zip archives ----------------------------------------------------------------------------------


def archive_kind(file: Source) -> str:
    """Return whose zip archive it is, by the names in it: ``"keras"``, ``"torch"``, ``"numpy"``."""
    with _archive(_Reader(file), file.path) as archive:
        names = [info.filename for info in archive.infolist()]
    if _WEIGHTS in names:
        return "keras"
    if any(name.rpartition("/")[2] in ("data.pkl", "constants.pkl") for name in names):
        return "torch"
    return "numpy" if names and all(name.endswith(".npy") for name in names) else ""


def _archive(stream: Any, path: str) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(stream)
    except Exception as error:  # zipfile raises what it likes of a damaged directory
        raise DamagedFile(f"{path}: not a readable zip archive ({error})") from None
    if len(archive.infolist()) > _MAX_MEMBERS:
        raise UnsafeFile(f"{path}: an archive of more than {_MAX_MEMBERS:,} files")
    return archive


class _Reader(io.RawIOBase):
    """A file's bytes as a stream."""

    def __init__(self, file: Source) -> None:
        self._file = file
        self._place = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._file.size}[whence]
        if start + offset < 0:
            raise OSError("a place before the file")
        self._place = start + offset
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as there is something."""
        count = max(0, min(len(buffer), self._file.size - self._place))
        if count:
            self._file.read_into(self._place, [memoryview(buffer)[:count]])
        self._place += count
        return count


# -- the other process -----------------------------------------------------------------------------


def convert(original: str, target: str, *limits: str) -> None:
    """Write the arrays of a file of Keras to a safetensors file: the other process.

    Parameters
    ----------
    original, target
        Paths.
    limits
        As those of :func:`gradtape.saving.container.legacy.convert`.
    """
    from .hdf5 import arrays_of  # the HDF5 library is for this process alone

    def action(original: str, target: str, max_bytes: int) -> None:
        if zipfile.is_zipfile(original):
            original = _unpacked(original, max_bytes)
        arrays = arrays_of(original, max_bytes)
        metadata = {"format": "gradtape" if arrays is None else "keras"}
        with open(target, "xb") as stream:  # nobody needs it on disk
            stream.writelines(pieces_of(arrays or {}, metadata))

    within_limits(action, original, target, *limits)


def _unpacked(original: str, max_bytes: int) -> str:
    """Write the weights in an archive to a file beside it, under a name of ours."""
    path = os.path.join(os.path.dirname(original), "weights.h5")
    with _archive(original, "the file") as archive:
        found = [info for info in archive.infolist() if info.filename == _WEIGHTS]
        if len(found) != 1:
            raise UnsafeFile(f"the archive has {len(found)} files {_WEIGHTS}")
        size, stored = found[0].file_size, found[0].compress_size
        if size > _MAX_RATIO * stored or size > 2 * max_bytes + 2**26:
            raise UnsafeFile(f"{_WEIGHTS} claims {size:,} bytes and stores {stored:,}")
        try:
            with archive.open(found[0]) as packed, open(path, "xb") as plain:
                # zipfile reads no more than the size that it was told, and compares the checksum
                shutil.copyfileobj(packed, plain, 2**20)
        except (
            zipfile.BadZipFile,
            EOFError,
            NotImplementedError,
            RuntimeError,
            ValueError,
        ) as error:
            raise DamagedFile(f"{_WEIGHTS} cannot be unpacked ({error})") from None
    return path
