"""Keras weights: HDF5 files, alone (``.weights.h5``, ``.h5``) or in a zip (``.keras``).

The names in a zip archive say whether Keras, PyTorch or NumPy wrote it.

Such files need the HDF5 library and are untrusted. A separate process reads them, within limits,
and writes their arrays to a safetensors file (see :mod:`.conversion`).
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from typing import Any

from ..saving.container.hdf5.file import converted
from ..saving.container.source import Source
from ..saving.errors import DamagedFile, LoadError, UnsafeFile
from ..saving.weights.arrays import Arrays, Entry
from ..saving.weights.safetensors import open_tensors

# -- zip archives ----------------------------------------------------------------------------------

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


# -- weights ---------------------------------------------------------------------------------------

# Found by its name: it needs the HDF5 library, which is for the other process alone.
_CONVERTER = f"{__package__}.conversion"
# How many groups the name of a layer may be.
_MAX_SLASHES = 16
# What belongs to training, or to the random numbers of a layer.
_NO_WEIGHTS = (
    (re.compile(r"(optimizer|_optimizer|optimizer_weights)(/|$)"), "a state of the optimizer"),
    (re.compile(r"(.*/)?seed_generator(/|$)"), "a state of random numbers"),
)


def open_keras(file: Source, max_bytes: int) -> Arrays | None:
    """Return the weights of a Keras file; None if gradtape wrote it."""
    try:
        plain = converted(file, max_bytes, _CONVERTER)
    except LoadError as error:
        raise type(error)(f"{file.path}: {error}") from None
    found = open_tensors(plain, max_bytes)
    if found.layout == "gradtape":
        found.close()
        return None
    names = _spelled(list(found.entries))
    entries: dict[str, Entry] = {}
    spellings: dict[str, list[str]] = {}
    for name, entry in found.entries.items():
        why = next((why for pattern, why in _NO_WEIGHTS if pattern.match(name)), None)
        if why is None:
            entries[names[name][0]] = entry
            spellings[names[name][0]] = names[name][1:]
        else:
            found.left_out[name] = why
    file.close()
    arrays = Arrays(file.path, entries, {}, found.left_out, "keras", found.close)
    arrays.spellings = spellings
    return arrays


def _spelled(names: list[str]) -> dict[str, list[str]]:
    """Return the spellings of each name in old files, the one to show first.

    In such files, the name of a layer is a group, also if it has slashes, and the weights in it
    have names that may begin with the layer's or with those of models around it. In the group of a
    model they begin with the names of its layers: ``model_weights/conv1/bn/conv1/bn/gamma:0`` is
    ``conv1/bn/gamma``, and ``model_1/dense/kernel:0`` is ``model_1/dense/kernel``.
    """
    found = {name: list(_spellings(name)) for name in names}
    counts = Counter(spelling for each in found.values() for spelling in each)
    return {name: [x for x in each if counts[x] == 1] or [name] for name, each in found.items()}


def _spellings(name: str) -> dict[str, None]:
    """Return the spellings of a name, in order."""
    path = name.removeprefix("model_weights/").removesuffix(":0")
    parts = path.split("/")
    if len(parts) < 3 or re.search(r"(^|[/\\])vars[/\\]\d+$", name):
        return dict.fromkeys([path if len(parts) < 3 else name])
    short = f"{parts[0]}/{parts[-1]}"
    for i in range(min((len(parts) - 1) // 2, _MAX_SLASHES), 0, -1):
        layer, rest = parts[:i], parts[i:]
        if rest[-i - 1 : -1] == layer or rest[:i] == layer:
            own = "/".join(rest if rest[:i] == layer else [*layer, parts[-1]])
            # a part of a layer, as a cell, is in a layer of its own name
            return dict.fromkeys([short, own, path] if i == 1 else [own, path])
    return dict.fromkeys([path, short])
