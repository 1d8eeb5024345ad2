"""``SafeFile``: an untrusted file, checked before any of it is used."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from ...errors import DamagedFile, LoadError, NotAGradtapeFile, UnsafeFile
from .. import limits
from ..child import ChildEnded, run_child
from ..digests import DIGESTS, PIECE, SIZE, digest_of, digest_of_bytes, each, piece_digest, pieces
from ..source import Source
from . import profile as p
from .layout import DatasetItem
from .walk import Walk

Array = np.ndarray[Any, Any]
# Arrays up to this size share memory: as long as one of them is used, the others stay too.
_MOST_SHARED = 2**19
_LARGE_PAGE = 2**21
# Versions of the superblock that HDF5's library writes by default, and gradtape does not.
_OF_THE_LIBRARY = (b"\0", b"\1", b"\3")
# What to do with a file of Keras, which holds a model as settings of Keras's classes.
_OF_KERAS = (
    "if Keras wrote it, create the model with gradtape.layers, and call "
    "gradtape.load_weights(path, model)"
)
_ZIPPED = f"; {_OF_KERAS}"


class SafeFile:
    """An open file. Before :meth:`check`, only the root's attributes can be read.

    The HDF5 library is not used here.

    Parameters
    ----------
    origin
        A path, or the bytes of a file.
    max_bytes
        The maximum memory of all datasets together; 8 GiB by default. Everything read is counted,
        as often as it is read.
    keep_open
        Whether datasets are also read after the block. The file is then closed with the last
        reference to this object.

    Attributes
    ----------
    path
        The file's name in messages.
    length
        The size of the file in bytes.
    sizes
        The size in memory of every dataset in bytes, by path; filled by :meth:`check`.
    texts
        The paths of the text datasets.
    """

    def __init__(
        self,
        origin: str | os.PathLike[str] | bytes | bytearray | memoryview,
        max_bytes: int | None = None,
        keep_open: bool = False,
    ) -> None:
        self._source = Source(origin)
        self.path = self._source.path
        self.length = self._source.size
        self.sizes: dict[str, int] = {}
        self.texts: set[str] = set()
        self._max_bytes = limits.MAX_BYTES if max_bytes is None else int(max_bytes)
        self._read_bytes = 0
        self._keep_open = keep_open
        self._digests: dict[str, bytes] = {}
        with _Naming(self.path):
            signature = self._source.read(0, min(9, self.length))
            if not signature.startswith(p.SIGNATURE):
                if self._source.size > 8 and self._source.read(8, 1) == b"{":
                    raise NotAGradtapeFile(
                        "not an HDF5 file: it seems to be a file of safetensors, which holds "
                        "weights: gradtape.load_weights(path, model)"
                    )
                advice = _ZIPPED if signature.startswith(b"PK\3\4") else ""
                raise NotAGradtapeFile(f"not an HDF5 file{self._source.guess()}{advice}")
            if signature[8:] in _OF_THE_LIBRARY:
                raise NotAGradtapeFile(
                    "not a file of gradtape's format 2: HDF5's own library wrote it, as another "
                    f"program or a development version of gradtape (format 1) does; {_OF_KERAS}. "
                    "Otherwise save the model again with gradtape.save"
                )
            self._walk = Walk(self._source)

    def __enter__(self) -> SafeFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None or not self._keep_open:
            self._source.close()
        _Naming(self.path).__exit__(kind, error, trace)

    def attribute(self, name: str) -> str:
        """Return a text attribute of the root."""
        found = self._walk.attributes.get(name)
        if found is None:
            raise NotAGradtapeFile(
                f"{self.path}: no attribute {name!r}: not a file that gradtape wrote"
            )
        return found

    def check(self) -> None:
        """Check every object of the file, and refuse objects that files do not hold."""
        with _Naming(self.path):
            self._walk.run()
            items = self._walk.items
            self.sizes = {path: item.size for path, item in items.items() if path != DIGESTS}
            self.texts = {path for path in self.sizes if not items[path].dtype}
            limits.check_claims(sum(self.sizes.values()), self._max_bytes, self.length)
            self._read_digests()

    def _read_digests(self) -> None:
        item = self._walk.items.get(DIGESTS)
        count = len(self.sizes)
        if item is None or (item.dtype, item.shape, item.level) != ("uint8", (count, SIZE), None):
            raise DamagedFile(f"{DIGESTS} is not a table of {count} digests")
        table = self._source.read(item.offset, item.stored) if item.stored else b""
        found = digest_of_bytes(DIGESTS, item.kind, item.shape, table)
        if found.hex() != self._walk.attributes["digest"]:
            raise DamagedFile("the table of digests does not match its own")
        for i, path in enumerate(sorted(self.sizes)):
            self._digests[path] = table[i * SIZE : (i + 1) * SIZE]

    def declared(self, path: str) -> tuple[str, tuple[int, ...]]:
        """Return the dtype's name and the shape of a dataset of numbers, without reading it."""
        item = self._numbers(path)
        return item.dtype, item.shape

    def array(self, path: str) -> Array:
        """Return a dataset of numbers with a verified digest."""
        return self.arrays([path])[path]

    def arrays(self, paths: Iterable[str]) -> dict[str, Array]:
        """Return several datasets of numbers; they are read and hashed in two threads."""
        with _Naming(self.path):
            items = [self._numbers(path) for path in dict.fromkeys(paths)]
            self._charge(items)
            try:
                return self._read(sorted(items, key=lambda item: item.offset))
            except LoadError:  # what was not handed out may be asked for again
                self._read_bytes -= sum(item.size for item in items)
                raise

    def _read(self, items: Sequence[DatasetItem]) -> dict[str, Array]:
        """Return datasets of numbers, in the order of their bytes, that match their digests."""
        read = _Read(self._source)
        plain = [item for item in items if item.level is None]
        each(read.piece, read.pieces(plain), sum(item.size for item in plain))
        deflated = [item for item in items if item.level is not None]
        each(read.inflate, deflated, sum(item.size for item in deflated))
        for item in items:
            if item.dtype == "bool" and np.any(read.arrays[item.path].view(np.uint8) > 1):
                raise DamagedFile(f"{item.path}: a boolean is neither 0 nor 1")
            self._compare(item, read.digests[item.path])
        return read.arrays

    def text(self, path: str) -> str:
        """Return a text dataset with a verified digest."""
        with _Naming(self.path):
            item = self._item(path)
            if item.dtype:
                raise DamagedFile(f"{path}: not a text")
            self._charge([item])
            data = self._source.read(item.offset, item.stored)
            self._compare(item, [piece_digest(data[i:j]) for i, j in pieces(len(data))])
            try:
                return data.decode("utf-8")
            except UnicodeDecodeError as error:
                raise DamagedFile(f"{path} cannot be read ({error})") from None

    def _item(self, path: str) -> DatasetItem:
        if path not in self.sizes:
            raise DamagedFile(f"{self.path}: {path[:200]!r}: this dataset is missing")
        return self._walk.items[path]

    def _numbers(self, path: str) -> DatasetItem:
        item = self._item(path)
        if not item.dtype:
            raise DamagedFile(f"{self.path}: {path}: not an array of numbers")
        return item

    def _charge(self, items: Sequence[DatasetItem]) -> None:
        self._read_bytes += sum(item.size for item in items)
        if self._read_bytes > self._max_bytes:
            raise UnsafeFile(
                f"its datasets, as often as they are used, take more than {self._max_bytes:,} "
                "bytes; raise max_bytes if you trust the file"
            )

    def _compare(self, item: DatasetItem, parts: Sequence[bytes]) -> None:
        if digest_of(item.path, item.kind, item.shape, parts) != self._digests[item.path]:
            raise DamagedFile(
                f"{item.path} does not match its digest: it is damaged, or another program changed "
                "it"
            )


class _Naming:
    """Add the file's name to the errors of a block."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, MemoryError):
            raise UnsafeFile(f"{self._path}: it does not fit into memory") from None
        if isinstance(error, OSError) and not isinstance(error, LoadError):
            raise LoadError(f"{self._path}: cannot be read ({error})") from None
        if isinstance(error, LoadError) and not str(error).startswith(self._path):
            raise type(error)(f"{self._path}: {error}") from None


# A part of a block: where it is in the file and in memory, and the datasets' pieces in it, each
# with its number and where it begins and ends.
_Piece = tuple[int, memoryview, list[tuple[DatasetItem, int, int, int]]]


class _Read:
    """Datasets being read into memory, and the digests of their pieces."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.arrays: dict[str, Array] = {}
        self.digests: dict[str, list[bytes]] = {}

    def pieces(self, items: Sequence[DatasetItem]) -> list[_Piece]:
        """Create the arrays of datasets, and return the pieces to read into them."""
        found: list[_Piece] = []
        for item, *others in _blocks(items):
            if others:
                found.append(self._shared([item, *others]))
                continue
            memory = self._make(item)
            for i, (begin, stop) in enumerate(pieces(item.size)):
                part = memory[begin:stop]
                found.append((item.offset + begin, part, [(item, i, 0, len(part))]))
        return found

    def _shared(self, items: Sequence[DatasetItem]) -> _Piece:
        """Create small arrays in one block of memory, which the system fills at once."""
        first, last = items[0].offset, items[-1]
        memory = _memory(last.offset + last.size - first)
        parts = []
        for item in items:
            begin = item.offset - first
            array: Array = np.ndarray(item.shape, limits.DTYPES[item.dtype], memory, begin)
            self.arrays[item.path], self.digests[item.path] = array, [b""]
            parts.append((item, 0, begin, begin + item.size))
        return first, memory.data, parts

    def _make(self, item: DatasetItem) -> memoryview:
        # NumPy's own dtype object, which fast paths recognise by identity
        array = self.arrays[item.path] = np.empty(item.shape, limits.DTYPES[item.dtype])
        self.digests[item.path] = [b""] * len(pieces(item.size))
        return array.reshape(-1).view(np.uint8).data

    def piece(self, piece: _Piece) -> None:
        """Read a part of a block."""
        offset, memory, parts = piece
        self._source.read_into(offset, [memory])
        for item, i, begin, stop in parts:
            self.digests[item.path][i] = piece_digest(memory[begin:stop])

    def inflate(self, item: DatasetItem) -> None:
        """Read a compressed dataset."""
        data = self._source.read(item.offset, item.stored)
        stream = zlib.decompressobj()
        try:
            plain = stream.decompress(data, item.size)
        except zlib.error as error:
            raise DamagedFile(f"{item.path} cannot be decompressed ({error})") from None
        if len(plain) != item.size or not stream.eof or stream.unused_data:
            raise DamagedFile(f"{item.path} does not decompress to what it claims")
        memory = self._make(item)
        planes = np.frombuffer(plain, np.uint8).reshape(item.itemsize, -1)
        np.frombuffer(memory, np.uint8).reshape(-1, item.itemsize)[...] = planes.T
        for i, (begin, stop) in enumerate(pieces(item.size)):
            self.digests[item.path][i] = piece_digest(memory[begin:stop])


def _blocks(items: Iterable[DatasetItem]) -> Iterator[list[DatasetItem]]:
    """Yield datasets in the order of their bytes; small adjacent ones together."""
    block: list[DatasetItem] = []
    end = 0
    for item in items:
        alone = item.size > _MOST_SHARED or not item.size
        apart = alone or item.offset >= end + p.ALIGNMENT
        if block and (apart or item.offset + item.size > block[0].offset + PIECE):
            yield block
            block = []
        end = 0 if alone else item.offset + item.size
        block.append(item)
    if block:
        yield block


def _memory(size: int) -> Array:
    """Return bytes that start at a memory page, also at a large one."""
    page = _LARGE_PAGE if size > _LARGE_PAGE else p.ALIGNMENT
    found = np.empty(size + page, np.uint8)
    begin = -found.ctypes.data % page
    return found[begin : begin + size]


# -- files that the HDF5 library wrote -----------------------------------------------------------
# -- files that the HDF5 library wrote -----------------------------------------------------------
# the library does. A separate process therefore opens the file, checks its structure (library.py),
# and writes all datasets to a file of another format. This process reads that file as strictly as
# any other.

# For the start of Python and its libraries, however busy the machine is.
_STARTING = 60
# Of computing, then; a file of kilobytes takes a thirtieth of it.
_SECONDS, _BYTES_PER_SECOND = 1.0, 20 * 2**20
# Beside what the process has when it begins to read.
_MEMORY = 160 * 2**20
# NumPy's threads are not used, and would take memory on machines of many cores.
_ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_CODE = """
import importlib
importlib.import_module(sys.argv[2]).convert(*sys.argv[3:])
"""


def _folder() -> Any:
    try:
        return tempfile.TemporaryDirectory(prefix="gradtape-")
    except OSError as error:
        raise LoadError(
            f"reading it needs a temporary folder ({error}); set TMPDIR to a folder that can be "
            "written"
        ) from None


def converted(source: Source, max_bytes: int, converter: str) -> Source:
    """Return a file that the HDF5 library wrote in the format of a converter.

    Parameters
    ----------
    source
        The file.
    max_bytes
        The maximum size that its datasets may claim together.
    converter
        The module whose ``convert`` the child process runs. It is found by its name, because it
        needs the HDF5 library, which is for the other process alone.

    Raises
    ------
    LoadError
        If the file is damaged or unsafe, or if reading it crashes, takes too long or needs too much
        memory.
    """
    with _folder() as folder:
        target = os.path.join(folder, "converted.h5")
        original = os.path.join(folder, "original.h5")
        # the bytes that are open here, whatever the path leads to by now
        source.copy_to(original)
        size = min(max_bytes, limits.most_claimed(source.size))
        seconds = _SECONDS + size / _BYTES_PER_SECOND
        arguments = [converter, original, target, str(max_bytes)]
        arguments += [str(_MEMORY + 3 * size), str(seconds)]
        try:
            run_child(_CODE, arguments, _STARTING + 10 * seconds, _ALONE)
        except ChildEnded as ended:
            if ended.late:
                raise UnsafeFile("reading it takes too long; it may be made to") from None
            raise DamagedFile(f"the HDF5 library fails on it ({ended})") from None
        found = Source(target)
        found.path = source.path
        if os.name == "nt":  # an open file cannot be removed there
            found = Source(found.read(0, found.size))
        return found
