"""Zip archives of weights: which framework wrote them, and their contents."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from ..container.source import Source
from ..errors import DamagedFile, UnsafeFile

#: The name of the weights in an archive of Keras.
WEIGHTS = "model.weights.h5"
_MAX_MEMBERS = 10_000


def archive_kind(file: Source) -> str:
    """Return who wrote a zip archive, by the names in it: ``"keras"``, ``"torch"``, ``"numpy"``."""
    with opened(_Reader(file), file.path) as archive:
        names = [info.filename for info in archive.infolist()]
    if WEIGHTS in names:
        return "keras"
    if any(name.rpartition("/")[2] in ("data.pkl", "constants.pkl") for name in names):
        return "torch"
    return "numpy" if names and all(name.endswith(".npy") for name in names) else ""


def opened(stream: Any, path: str) -> zipfile.ZipFile:
    """Return a zip archive whose directory can be read."""
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
        """Go to a position."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._file.size}[whence]
        if start + offset < 0:
            raise OSError("a place before the file")
        self._place = start + offset
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as bytes are available."""
        count = max(0, min(len(buffer), self._file.size - self._place))
        if count:
            self._file.read_into(self._place, [memoryview(buffer)[:count]])
        self._place += count
        return count
