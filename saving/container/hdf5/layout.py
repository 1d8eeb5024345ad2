"""The positions of everything in a file: the headers of all objects, then their data."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from typing import Any

from ...errors import SaveError
from .. import limits
from ..digests import PIECE, pieces
from . import profile as p
from .profile import checksum, checksums

# Per system call, which takes at most 1,024.
_MOST_BUFFERS = 500


@dataclass(slots=True)
class DatasetItem:
    """A dataset: numbers of a dtype, or a text without one.

    Attributes
    ----------
    path
        Its path, such as ``/variables/kernel``.
    dtype
        The name of its dtype; empty for a text.
    shape
        Its shape; for a text, only its length in bytes.
    level
        The compression level; None if it is not compressed.
    stored
        The number of bytes in the file.
    offset
        The position of these bytes.
    size
        The number of bytes in memory.

    If it is compressed, an index precedes its bytes.
    """

    path: str
    dtype: str
    shape: tuple[int, ...]
    level: int | None = None
    stored: int = 0
    offset: int = 0
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = prod(self.shape) * limits.ITEMSIZES[self.dtype]

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return limits.ITEMSIZES[self.dtype]

    @property
    def kind(self) -> str:
        """Its dtype's name in digests."""
        return self.dtype or "text"

    @property
    def index(self) -> int:
        """The position of its chunk's index, if it is compressed."""
        return max(0, self.offset - p.aligned(p.index_size(len(self.shape))))


#: Pieces of datasets that are read or written with one call: each begins and ends in its dataset.
Batch = list[tuple[DatasetItem, int, int]]


def batches(items: Iterable[DatasetItem]) -> Iterator[Batch]:
    """Yield the pieces of datasets in the order of their bytes, adjacent ones together.

    Reading a few of many datasets does not read the bytes between them.
    """
    batch: Batch = []
    size = end = 0
    for item in items:
        for begin, stop in pieces(item.size):
            apart = item.offset + begin >= end + p.ALIGNMENT
            if batch and (apart or size + stop - begin > PIECE or len(batch) == _MOST_BUFFERS):
                yield batch
                batch, size = [], 0
            batch.append((item, begin, stop))
            size += stop - begin
            end = item.offset + stop
    if batch:
        yield batch


def side_by_side(batch: Batch, bytes_of: Mapping[str, memoryview]) -> tuple[int, list[Any]]:
    """Return the start of a batch, and its pieces with buffers for the padding between them."""
    buffers: list[Any] = []
    start = end = batch[0][0].offset + batch[0][1]
    for item, begin, stop in batch:
        if item.offset + begin > end:
            buffers.append(bytearray(item.offset + begin - end))
        buffers.append(bytes_of[item.path][begin:stop])
        end = item.offset + stop
    return start, buffers


@dataclass(slots=True)
class _Group:
    path: str = ""
    depth: int = 0
    children: dict[str, _Group | DatasetItem] = field(default_factory=dict)


class HeaderLayout:
    """The headers of a file of these datasets.

    An object's header starts where the one before it ends: first the root's, then those of the
    objects that it links to, in the order of the links, then those that these link to.

    Parameters
    ----------
    attributes
        Text attributes of the root.
    items
        The datasets.

    Attributes
    ----------
    items
        The datasets in the order of their headers, which is the order of their data.
    start
        The position of the first data.

    Raises
    ------
    SaveError
        If there is more than readers accept.
    """

    def __init__(self, attributes: Mapping[str, str], items: Sequence[DatasetItem]) -> None:
        self._attributes = dict(attributes)
        self._objects = _ordered(items)
        self.items = [item for item in self._objects if isinstance(item, DatasetItem)]
        lengths = [self._length(item) for item in self._objects]
        first = p.SUPERBLOCK.size + 4
        *addresses, end = accumulate(lengths, initial=first)
        self._addresses = {id(x): at for x, at in zip(self._objects, addresses, strict=True)}
        self.start = p.aligned(end)
        if sum(n for n in lengths if n > p.LONG_HEADER) > p.MAX_LONG_HEADERS:
            raise SaveError("the names of all that is saved are longer than readers accept")

    def _length(self, item: _Group | DatasetItem) -> int:
        """Return the length of an object's header, without building it."""
        length = p.HEADER.size + 4
        if isinstance(item, DatasetItem):
            return length + sum(map(len, _dataset(item)))
        length += sum(map(len, self._group_start(item)))
        return length + sum(p.MESSAGE.size + 11 + len(name) for name in item.children)

    def _group_start(self, group: _Group) -> list[bytes]:
        start = [_message(p.LINK_INFO, p.NO_LINKS), _message(p.GROUP_INFO, p.NO_GROUP)]
        if not group.path:
            start += [_message(p.ATTRIBUTE_INFO, p.NO_ATTRIBUTES)]
            start += [
                _message(p.ATTRIBUTE, _attribute(name, text))
                for name, text in self._attributes.items()
            ]
        return start

    def set_attribute(self, name: str, text: str) -> None:
        """Replace an attribute by another text of the same length."""
        self._attributes[name] = text

    def encode(self, end: int) -> bytes:
        """Return the file's bytes up to the first data; all items have positions by now."""
        headers = []
        for item in self._objects:
            if isinstance(item, DatasetItem):
                messages = _dataset(item)
            else:
                messages = self._group_start(item)
                messages += [self._link(name, child) for name, child in item.children.items()]
            body = b"".join(messages)
            headers.append(p.HEADER.pack(b"OHDR", 2, 2, len(body)) + body)
        root = p.SUPERBLOCK.size + 4
        block = p.SUPERBLOCK.pack(p.SIGNATURE, 2, 8, 8, 0, 0, p.UNDEFINED, end, root)
        parts = [block, checksum(block).to_bytes(4, "little")]
        for header, found in zip(headers, checksums(headers), strict=True):
            parts += [header, found.to_bytes(4, "little")]
        encoded = b"".join(parts)
        return encoded + bytes(self.start - len(encoded))

    def _link(self, name: str, child: _Group | DatasetItem) -> bytes:
        text = name.encode("ascii")
        address = self._addresses[id(child)]
        return _message(p.LINK, struct.pack("<BBB", 1, 0, len(text)) + text + _eight(address))


def _ordered(items: Sequence[DatasetItem]) -> list[_Group | DatasetItem]:
    """Return all objects, each after those nearer to the root."""
    root = _Group()
    objects: list[_Group | DatasetItem] = [root]
    for item in items:
        group = root
        *parts, name = item.path[1:].split("/")
        for part in parts:
            below = group.children.get(part)
            if below is None:
                below = _Group(f"{group.path}/{part}", group.depth + 1)
                group.children[part] = below
            if isinstance(below, DatasetItem):
                raise SaveError(f"{item.path}: {below.path} is in its way; rename one of them")
            group = below
        if name in group.children:
            raise SaveError(f"{item.path}: there are two of this name")
        group.children[name] = item
    for found in objects:  # it grows
        if isinstance(found, _Group):
            objects += found.children.values()
            _check_group(found)
    if len(objects) > limits.MAX_OBJECTS:
        raise SaveError(
            f"{len(objects):,} groups and datasets are more than a file may hold "
            f"({limits.MAX_OBJECTS:,})"
        )
    if sum(len(item.path) for item in objects) > limits.MAX_PATHS:
        raise SaveError("the paths of all that is saved are longer than readers accept")
    return objects


def _check_group(group: _Group) -> None:
    if group.depth > limits.MAX_DEPTH:
        raise SaveError(f"{group.path[:80]}...: nested deeper than {limits.MAX_DEPTH} groups")
    for name in group.children:
        if not limits.SEGMENT.match(name):
            raise SaveError(f"{group.path}: {name!r} cannot be a name in a file")


def _message(kind: int, data: bytes) -> bytes:
    return p.MESSAGE.pack(kind, len(data), 0) + data


def _eight(number: int) -> bytes:
    return number.to_bytes(8, "little")


def _dataspace(shape: Sequence[int]) -> bytes:
    return struct.pack(f"<BBBB{len(shape)}Q", 2, len(shape), 0, int(bool(shape)), *shape)


def _text_type(size: int) -> bytes:
    return p.TEXT + struct.pack("<I", size)


def _attribute(name: str, text: str) -> bytes:
    """Return the message of an attribute that is one ASCII text."""
    data, label = text.encode("ascii"), name.encode("ascii") + b"\0"
    kind, space = _text_type(len(data)), _dataspace(())
    head = struct.pack("<BBHHHB", 3, 0, len(label), len(kind), len(space), 0)
    return head + label + kind + space + data


def _dataset(item: DatasetItem) -> list[bytes]:
    """Return the messages of a dataset's header."""
    if item.dtype:
        space, kind = _dataspace(item.shape), p.DATATYPES[item.dtype]
    else:
        space, kind = _dataspace(()), _text_type(item.shape[0])
    messages = [_message(p.DATASPACE, space), _message(p.DATATYPE, kind)]
    address = item.offset if item.stored else p.UNDEFINED
    if item.level is None:
        messages.append(_message(p.FILL, p.FILL_VALUE))
        messages.append(_message(p.LAYOUT, b"\x03\x01" + struct.pack("<QQ", address, item.stored)))
        return messages
    messages.append(_message(p.FILL, p.FILL_CHUNKED))
    messages.append(_message(p.FILTERS, p.pipeline(item.itemsize, item.level)))
    messages.append(_message(p.LAYOUT, p.one_chunk(item.shape, item.itemsize, item.index)))
    return messages
