"""Walk through the headers of a file, and refuse anything unexpected.

HDF5 can express the same content in many ways, most of them unneeded. Here every object has one
position, after the object before it, so nothing can be shared, overlap, point back or hide.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

from ...errors import DamagedFile, NotAGradtapeFile, UnsafeFile
from .. import limits
from ..source import Source
from . import profile as p
from .layout import DatasetItem
from .profile import checksum, checksums

_FIRST_READ = 2**18
_LINK = struct.Struct("<BBB")
_ATTRIBUTE = struct.Struct("<BBHHHB")
_START = [(p.LINK_INFO, p.NO_LINKS), (p.GROUP_INFO, p.NO_GROUP)]
_ROOT = [*_START, (p.ATTRIBUTE_INFO, p.NO_ATTRIBUTES)]
_MOST_ATTRIBUTES, _LONGEST_ATTRIBUTE = 16, 4096
_PLAIN = [p.DATASPACE, p.DATATYPE, p.FILL, p.LAYOUT]
_CHANGED = (
    "; if gradtape wrote this file, another program such as h5py has changed it since, which it "
    "does not allow: load the original, and keep notes in attributes of the module or in a file of "
    "their own. h5py can still read the arrays under /variables"
)
_FILTERED = [p.DATASPACE, p.DATATYPE, p.FILL, p.FILTERS, p.LAYOUT]


class Walk:
    """The headers of a file.

    Parameters
    ----------
    source
        The file, which starts with HDF5's signature.

    Attributes
    ----------
    attributes
        The text attributes of the root.
    items
        The datasets by path; filled by :meth:`run`.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._head = source.read(0, min(_FIRST_READ, source.size))
        self.items: dict[str, DatasetItem] = {}
        root = p.SUPERBLOCK.size + 4
        if len(self._head) < root:
            raise DamagedFile("it ends within its first bytes")
        block = p.SUPERBLOCK.unpack_from(self._head)
        if block[1:4] != (2, 8, 8) or block[4:7] != (0, 0, p.UNDEFINED) or block[8] != root:
            raise UnsafeFile("its superblock is none that gradtape writes")
        if checksum(self._head[: root - 4]) != int.from_bytes(
            self._head[root - 4 : root], "little"
        ):
            raise DamagedFile("its superblock does not match its checksum")
        if block[7] != source.size:
            more = source.size > block[7]
            raise DamagedFile(
                f"it should have {block[7]:,} bytes, and has {source.size:,}: "
                f"{'something was added' if more else 'perhaps a download or a copy did not end'}"
            )
        self._address = root
        self._headers: list[tuple[int, int]] = []
        self._long = self._paths = 0
        with self._explained():
            self._root = self._messages("/")
            if checksum(self._header(0)) != self._sum(0):
                raise DamagedFile("its root does not match its checksum")
            self.attributes = self._texts()

    def run(self) -> None:
        """Walk through all objects below the root, and check the positions of their data."""
        with self._explained():
            waiting = self._visit()
        found = checksums([self._header(i) for i in range(1, len(self._headers))])
        for i, value in enumerate(found, 1):
            if value != self._sum(i):
                raise DamagedFile(f"{waiting[i - 1][0]} does not match its checksum")
        self._check_data()

    def _visit(self) -> list[tuple[str, int]]:
        """Read all headers, and return the paths and the addresses of the objects."""
        # the paths of objects not yet visited, with the addresses that links give
        waiting: list[tuple[str, int]] = self._links("", self._root[len(_ROOT) :])
        for path, address in waiting:  # it grows
            if address != self._address:
                raise UnsafeFile(f"{path} is not where its header belongs")
            messages = self._messages(path)
            if messages[:2] == _START:
                if path.count("/") > limits.MAX_DEPTH:
                    raise UnsafeFile(f"groups nested deeper than {limits.MAX_DEPTH}")
                waiting += self._links(path, messages[2:])
            else:
                self.items[path] = _dataset(path, messages)
            if len(waiting) >= limits.MAX_OBJECTS:
                raise UnsafeFile(f"more than {limits.MAX_OBJECTS} objects")
        return waiting

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say of a header that is right by its checksum that another program wrote it."""
        try:
            yield
        except (UnsafeFile, DamagedFile) as error:
            last = len(self._headers) - 1
            whole = last >= 0 and self._headers[last][1] + 4 <= len(self._head)
            if not whole or str(error).endswith("checksum"):
                raise
            if checksum(self._header(last)) == self._sum(last):
                raise type(error)(f"{error}{_CHANGED}") from None
            raise DamagedFile(f"{error}, and it does not match its checksum") from None

    def _check_data(self) -> None:
        """Check that data follow one another, from the last header to the end of the file."""
        end = self._address
        for path, item in self.items.items():
            if item.level is not None:
                end = self._check_index(item, p.aligned(end))
                continue
            if not item.stored:
                if item.offset != p.UNDEFINED or item.size:
                    raise UnsafeFile(f"{path} claims {item.size:,} bytes but stores none")
                continue
            if item.offset != p.aligned(end):
                raise UnsafeFile(f"{path}: its data are not where they belong")
            end = item.offset + item.stored
        if max(end, p.aligned(self._address)) != self._source.size:
            raise DamagedFile("its data do not end where the file does")

    def _check_index(self, item: DatasetItem, place: int) -> int:
        """Check the index of compressed data, and return where they end."""
        size = p.index_size(len(item.shape))
        if item.index != place or item.offset >= self._source.size:
            raise UnsafeFile(f"{item.path}: its data are not where they belong")
        node = self._source.read(item.index, size)
        item.stored = int.from_bytes(node[24:28], "little")
        if node != p.one_index(item.shape, item.itemsize, item.stored, item.offset):
            raise UnsafeFile(f"{item.path}: the index of its data is none that gradtape writes")
        if not 0 < item.size <= limits.MAX_RATIO * item.stored:
            raise UnsafeFile(f"{item.path} claims {item.size:,} bytes but stores {item.stored:,}")
        return item.offset + item.stored

    # -- headers -------------------------------------------------------------------------------

    def _reach(self, end: int) -> bytes:
        """Return the start of the file, at least up to a position, reading a lot at once."""
        if end > len(self._head):
            if end > self._source.size:
                raise DamagedFile("it ends too early")
            more = min(max(end, 2 * len(self._head)), self._source.size) - len(self._head)
            self._head += self._source.read(len(self._head), more)
        return self._head

    def _header(self, i: int) -> bytes:
        begin, end = self._headers[i]
        return self._head[begin:end]

    def _sum(self, i: int) -> int:
        end = self._headers[i][1]
        return int.from_bytes(self._head[end : end + 4], "little")

    def _messages(self, path: str) -> list[tuple[int, bytes]]:
        """Return the contents of the header at the current address, and go to the next one."""
        begin = self._address
        start = begin + p.HEADER.size
        head = self._reach(start)
        signature, version, flags, length = p.HEADER.unpack_from(head, begin)
        if signature != b"OHDR" or (version, flags) != (2, 2):
            raise UnsafeFile(f"{path} has no header of the kind that gradtape writes")
        if length > p.LONG_HEADER:
            # its checksum takes time, and many of one length, as datasets have, are quicker
            self._long += length
            if self._long > p.MAX_LONG_HEADERS:
                raise UnsafeFile(f"{path}: the names in groups take too many bytes")
        end = start + length
        head = self._reach(end + 4)
        self._headers.append((begin, end))
        self._address = end + 4
        messages, place = [], start
        while place < end:
            if end - place < p.MESSAGE.size:
                raise DamagedFile(f"{path}: its header ends within a message")
            kind, size, flags = p.MESSAGE.unpack_from(head, place)
            place += p.MESSAGE.size
            if flags or place + size > end:
                raise UnsafeFile(f"{path}: a message in its header is none that gradtape writes")
            messages.append((kind, head[place : place + size]))
            if len(messages) > limits.MAX_OBJECTS:
                raise UnsafeFile(
                    f"{path}: its header has more than {limits.MAX_OBJECTS:,} messages"
                )
            place += size
        return messages

    def _links(self, path: str, messages: list[tuple[int, bytes]]) -> list[tuple[str, int]]:
        found: dict[str, int] = {}
        for kind, data in messages:
            if kind != p.LINK or len(data) < _LINK.size:
                raise UnsafeFile(f"{path or '/'} has more than links (message {kind})")
            version, flags, length = _LINK.unpack_from(data)
            name = data[_LINK.size : -8].decode("ascii", "replace")
            if (version, flags) != (1, 0) or len(data) != _LINK.size + length + 8:
                raise UnsafeFile(f"{path or '/'}: a link is not a hard link with a plain name")
            if not limits.SEGMENT.match(name):
                raise UnsafeFile(f"{path or '/'}: a link is called {name[:60]!r}")
            if name in found:
                raise UnsafeFile(f"{path or '/'}: two links are called {name!r}")
            found[name] = int.from_bytes(data[-8:], "little")
        self._paths += sum(map(len, found)) + len(found) * len(path)
        if self._paths > limits.MAX_PATHS:
            raise UnsafeFile("the paths of its objects together are too long")
        return [(f"{path}/{name}", address) for name, address in found.items()]

    def _texts(self) -> dict[str, str]:
        """Return the root's attributes, and remove their messages."""
        if self._root[: len(_ROOT)] != _ROOT:
            raise UnsafeFile("its root is a group of another kind")
        found: dict[str, str] = {}
        rest = self._root[len(_ROOT) :]
        while rest and rest[0][0] == p.ATTRIBUTE:
            name, text = _attribute(rest.pop(0)[1])
            if name in found or len(found) == _MOST_ATTRIBUTES:
                raise UnsafeFile("its root has attributes twice, or too many")
            found[name] = text
        if not {"format", "format_version", "digest"} <= set(found):
            raise NotAGradtapeFile("its attributes are not those of a file that gradtape wrote")
        self._root[len(_ROOT) :] = rest
        return found


def _attribute(data: bytes) -> tuple[str, str]:
    refusal = UnsafeFile("an attribute is not a short string of fixed length")
    if len(data) < _ATTRIBUTE.size or len(data) > _LONGEST_ATTRIBUTE:
        raise refusal
    version, flags, name_size, kind_size, space_size, charset = _ATTRIBUTE.unpack_from(data)
    if (version, flags, charset, kind_size, space_size) != (3, 0, 0, 8, 4):
        raise refusal
    end = _ATTRIBUTE.size + name_size
    name, kind, space = data[_ATTRIBUTE.size : end], data[end : end + 8], data[end + 8 : end + 12]
    text = data[end + 12 :]
    if kind != p.TEXT + len(text).to_bytes(4, "little") or space != b"\2\0\0\0":
        raise refusal
    if name[-1:] != b"\0" or not (name + text).isascii():
        raise refusal
    return name[:-1].decode(), text.decode()


def _dataset(path: str, messages: list[tuple[int, bytes]]) -> DatasetItem:
    """Return the contents of a dataset's header, if gradtape writes this kind."""
    kinds = [kind for kind, _ in messages]
    if kinds not in (_PLAIN, _FILTERED):
        raise UnsafeFile(f"{path} is neither a group nor a dataset that gradtape writes")
    contents = dict(messages)
    shape = _shape(path, contents[p.DATASPACE])
    dtype = p.DTYPE_OF.get(contents[p.DATATYPE], "")
    if not dtype:
        kind = contents[p.DATATYPE]
        size = int.from_bytes(kind[4:], "little")
        if len(kind) != 8 or kind[:4] != p.TEXT or shape:
            raise UnsafeFile(f"{path} holds neither numbers of a known dtype nor one text")
        if not 0 < size <= limits.MAX_TEXT:
            raise UnsafeFile(f"{path}: a text is one string of at most {limits.MAX_TEXT:,} bytes")
        shape = (size,)
    item = DatasetItem(path, dtype, shape)
    if kinds == _PLAIN:
        _read_contiguous(item, contents)
    else:
        _read_chunk(item, contents)
    return item


def _shape(path: str, data: bytes) -> tuple[int, ...]:
    rank = data[1] if len(data) > 1 else 0
    if rank > limits.MAX_RANK or len(data) != 4 + 8 * rank:
        raise UnsafeFile(f"{path} has a shape of another kind")
    if data[:4] != bytes([2, rank, 0, int(bool(rank))]):
        raise UnsafeFile(f"{path} has a shape that may change, or none")
    shape: tuple[int, ...] = struct.unpack_from(f"<{rank}Q", data, 4)
    # an array without elements can have sizes whose product no machine can hold
    if max(shape, default=0) >= 2**48 or prod(filter(None, shape)) >= 2**58:
        raise UnsafeFile(f"{path} has the shape {shape}")
    return shape


def _read_contiguous(item: DatasetItem, contents: dict[int, bytes]) -> None:
    layout = contents[p.LAYOUT]
    if contents[p.FILL] != p.FILL_VALUE or len(layout) != 18 or layout[:2] != b"\x03\x01":
        raise UnsafeFile(f"{item.path} is stored in another way than contiguously")
    item.offset, item.stored = struct.unpack_from("<QQ", layout, 2)
    if item.stored != item.size:
        raise UnsafeFile(f"{item.path} claims {item.size:,} bytes but stores {item.stored:,}")


def _read_chunk(item: DatasetItem, contents: dict[int, bytes]) -> None:
    refusal = UnsafeFile(f"{item.path} is compressed in another way than gradtape does it")
    layout, filters = contents[p.LAYOUT], contents[p.FILTERS]
    if not item.dtype or not item.shape or len(filters) < 4:
        raise refusal
    if not 0 < item.size <= p.MAX_COMPRESSED:
        raise refusal
    itemsize = limits.ITEMSIZES[item.dtype]
    address = int.from_bytes(layout[3:11], "little")
    item.level = filters[-4]
    if (
        contents[p.FILL] != p.FILL_CHUNKED
        or layout != p.one_chunk(item.shape, itemsize, address)
        or filters != p.pipeline(itemsize, item.level)
        or item.level > 9
    ):
        raise refusal
    item.offset = address + p.aligned(p.index_size(len(item.shape)))
