"""Errors about files, one class for each kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import fsdecode
from typing import Any

from ..core.errors import BackendUnavailable, GradtapeError, PluginError

__all__ = [
    "DamagedFile",
    "FileMissing",
    "LoadError",
    "MissingOp",
    "MissingPlugin",
    "NewerFormat",
    "NotAGradtapeFile",
    "SaveError",
    "UnsafeFile",
    "UntraceableGradient",
]


# A path may take 4,096 of these.
_MOST_SHOWN = 6_000


class SaveError(GradtapeError):
    """A module cannot be saved; nothing was written."""


class UntraceableGradient(SaveError):
    """A custom gradient's backward function cannot be traced, so a file could not hold it."""


class LoadError(GradtapeError):
    """A file cannot be loaded; the message names the file and the location in it.

    The message contains untrusted text: control characters are escaped, and long messages are cut.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message, _MOST_SHOWN))


def printable(text: Any, most: int = 200) -> str:
    """Return untrusted text as one line without control characters.

    Parameters
    ----------
    text
        A text, or an object to convert to text.
    most
        The maximum number of characters; longer text ends in ``...``.
    """
    line = str(text)[: most + 1]
    if not line.isprintable():
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    return line if len(line) <= most else line[: most - 3] + "..."


class FileMissing(LoadError, FileNotFoundError):
    """There is no such file."""


class NotAGradtapeFile(LoadError):
    """The file is not an HDF5 file, or gradtape did not write it."""


class NewerFormat(LoadError):
    """The file was written in a newer format than this gradtape reads."""


class DamagedFile(LoadError):
    """The file is truncated, or its contents do not match their digests or each other."""


class UnsafeFile(LoadError):
    """The file contains something that gradtape files never contain, and that could do harm."""


class MissingPlugin(LoadError):
    """The file needs a plugin that is not installed here."""


class MissingOp(LoadError):
    """The file needs an op that no installed plugin provides."""


@contextmanager
def guarded(origin: Any) -> Iterator[None]:
    """Turn any error about a file in a block into one of these errors, with its path."""
    path = "<bytes>" if isinstance(origin, (bytes, bytearray, memoryview)) else fsdecode(origin)
    try:
        yield
    except LoadError as error:
        if str(error).startswith((path, printable(path, _MOST_SHOWN), repr(path))):
            raise
        raise type(error)(f"{path}: {error}") from None
    except (BackendUnavailable, PluginError, Warning):  # of what is here, not of the file
        raise
    except (MemoryError, RecursionError) as error:
        raise UnsafeFile(
            f"{path}: reading it takes too much memory or depth ({type(error).__name__})"
        ) from error
    except Exception as error:
        raise DamagedFile(f"{path}: it cannot be read ({type(error).__name__}: {error})") from error
