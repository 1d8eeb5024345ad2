"""The source of a file's bytes: an open file, or bytes in memory."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Sequence
from typing import Any

from ..errors import DamagedFile, FileMissing, LoadError, NotAGradtapeFile

#: The first bytes of an HDF5 file.
SIGNATURE = b"\x89HDF\r\n\x1a\n"

# What people have under the name of a model, by how it begins.
_PAGE = "a web page or the answer of a server, as from a download that failed; open it to see why"
_KINDS = (
    (b"version https://git-lfs", 'a pointer of Git LFS, not the file itself; run "git lfs pull"'),
    ((b"<", b'{"'), _PAGE),
    ((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"), "compressed; unpack it first"),
    (b"PK", "a zip archive"),
    (b"\x93NUMPY", "an array of NumPy"),
    ((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a pickle"),
)
_FOLDER = (
    "not a file, but a folder; give the path of a file in it, or install the plugin that has its "
    "container"
)
# How much is copied at once.
_COPIED = 2**24
_SEEKING = threading.Lock()


class EndsTooEarly(DamagedFile):
    """A file is shorter than what is read of it, as one of another kind may be."""


class Source:
    """Bytes that can be read at offsets, from several threads.

    An open file is closed with the last reference to this object.

    Parameters
    ----------
    origin
        A path, or the bytes themselves.

    Attributes
    ----------
    path
        Its name in messages.
    size
        The number of bytes.
    """

    def __init__(self, origin: str | os.PathLike[str] | bytes | bytearray | memoryview) -> None:
        self._descriptor: int | None = None
        self._bytes: memoryview | None = None
        if isinstance(origin, (bytes, bytearray, memoryview)):
            self.path = "<bytes>"
            self._bytes = memoryview(origin).cast("B")
            self.size = len(self._bytes)
            return
        self.path = os.fsdecode(origin)
        # a named pipe would be waited for; without it, it is opened and then refused
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            self._descriptor = os.open(self.path, flags | getattr(os, "O_CLOEXEC", 0))
            state = os.fstat(self._descriptor)
        except FileNotFoundError:
            raise FileMissing(f"{self.path}: there is no such file") from None
        except (OSError, ValueError) as error:  # ValueError: a NUL
            if os.path.isdir(self.path.replace("\0", "")):  # Windows opens no folder
                raise NotAGradtapeFile(f"{self.path}: {_FOLDER}") from None
            raise LoadError(f"{self.path!r}: cannot be opened ({error})") from None
        if not stat.S_ISREG(state.st_mode):
            what = _FOLDER if stat.S_ISDIR(state.st_mode) else "not a file"
            raise NotAGradtapeFile(f"{self.path}: {what}")
        self.size = state.st_size

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; data already read stay valid."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def guess(self) -> str:
        """Return what the file seems to be, as the rest of a sentence; empty if it says nothing."""
        start = self.read(0, min(512, self.size))
        if not start:
            return ": it is empty; perhaps the program that wrote it ended, or a download failed"
        if SIGNATURE.startswith(start):
            return ": it ends within its first bytes"
        if not start.strip(b"\0"):
            return ": it begins with zeros; perhaps a download or a copy did not end"
        found = next((what for begins, what in _KINDS if start.lstrip().startswith(begins)), "")
        return f": it is {found}" if found else ""

    def copy_to(self, path: str) -> None:
        """Write all bytes to a new file."""
        with open(path, "xb") as stream:
            for offset in range(0, self.size, _COPIED):
                stream.write(self.read(offset, min(_COPIED, self.size - offset)))

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``."""
        found = bytearray(size)
        self.read_into(offset, [memoryview(found)])
        return bytes(found)

    def read_into(self, offset: int, buffers: Sequence[Any]) -> None:
        """Fill buffers of bytes, one after another.

        Raises
        ------
        DamagedFile
            If the file ends too early.
        """
        if self._bytes is not None:
            for buffer in buffers:
                end = offset + len(buffer)
                if end > self.size:
                    raise EndsTooEarly(f"{self.path}: it ends too early")
                buffer[:] = self._bytes[offset:end]
                offset = end
            return
        if self._descriptor is None:
            raise LoadError(f"{self.path}: it has been closed")
        for buffer in _once(self._descriptor, offset, buffers):
            offset, rest = buffer
            while rest.nbytes:
                count = _read_at(self._descriptor, rest, offset)
                if not count:
                    raise EndsTooEarly(f"{self.path}: it ends too early")
                offset, rest = offset + count, rest[count:]


def _once(descriptor: int, offset: int, buffers: Sequence[Any]) -> list[tuple[int, Any]]:
    """Read with one system call, and return what is still to be filled, with its offset."""
    done = os.preadv(descriptor, buffers, offset) if hasattr(os, "preadv") else 0
    rest = []
    for buffer in buffers:
        if done < len(buffer):
            rest.append((offset + done, buffer[done:]))
        offset += len(buffer)
        done = max(0, done - len(buffer))
    return rest


def _read_at(descriptor: int, buffer: memoryview, offset: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [buffer], offset)
    with _SEEKING:
        os.lseek(descriptor, offset, os.SEEK_SET)
        data = os.read(descriptor, len(buffer))
    buffer[: len(data)] = data
    return len(data)
