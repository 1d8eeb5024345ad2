"""Write the bytes of a file; the thread that writes a dataset also hashes it."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import SaveError
from .. import limits
from ..digests import DIGESTS, SIZE, digest_of, digest_of_bytes, each, piece_digest
from ..replace import replacing, write_at
from . import profile as p
from .layout import Batch, DatasetItem, HeaderLayout, batches, side_by_side

#: How arrays may be compressed: by name, the level of deflate.
COMPRESSIONS = {"gzip": 4}
# Smaller arrays gain nothing, since a chunk has an index.
_LEAST_COMPRESSED = 4096

Array = np.ndarray[Any, Any]
# Writes buffers one after another from an offset on.
Put = Callable[[int, Sequence[Any]], None]


def write(
    path: str | os.PathLike[str],
    attributes: Mapping[str, str],
    texts: Mapping[str, str],
    arrays: Mapping[str, Array],
    compression: str | None = None,
) -> None:
    """Write a file, completely or not at all.

    Parameters
    ----------
    path
        The target.
    attributes
        ASCII text attributes of the root.
    texts, arrays
        The datasets by path, in their order in the file.
    compression
        A name among ``COMPRESSIONS``, or None. Data that do not become smaller are not compressed.

    Raises
    ------
    SaveError
        If it cannot be written; the old file is then unchanged.
    """
    plan = _FileLayout(attributes, texts, arrays, compression)
    with replacing(path, plan.end) as descriptor:

        def put(offset: int, buffers: Sequence[Any]) -> None:
            _put(descriptor, offset, buffers)

        plan.carry_out(put)


def check(
    attributes: Mapping[str, str], texts: Mapping[str, str], arrays: Mapping[str, Array]
) -> None:
    """Raise the error that :func:`write` would raise for the contents, without writing."""
    _FileLayout(attributes, texts, arrays, None)


def to_bytes(
    attributes: Mapping[str, str],
    texts: Mapping[str, str],
    arrays: Mapping[str, Array],
    compression: str | None = None,
) -> bytearray:
    """Return the bytes that :func:`write` would write."""
    plan = _FileLayout(attributes, texts, arrays, compression)
    found = bytearray(plan.end)

    def put(offset: int, buffers: Sequence[Any]) -> None:
        for buffer in buffers:
            view = memoryview(buffer)
            found[offset : offset + view.nbytes] = view
            offset += view.nbytes

    plan.carry_out(put)
    return found


class _FileLayout:
    """The layout of a file, made before the file is touched."""

    def __init__(
        self,
        attributes: Mapping[str, str],
        texts: Mapping[str, str],
        arrays: Mapping[str, Array],
        compression: str | None,
    ) -> None:
        self._attributes = {**attributes, "digest": "0" * 2 * SIZE}
        # the table of digests is made last, and lies with the small things at the beginning
        table = np.zeros((len(texts) + len(arrays), SIZE), np.uint8)
        self._plain = {path: _bytes_of(text, path) for path, text in texts.items()}
        self._plain[DIGESTS] = _raw(table)
        self._plain |= {path: _raw(array) for path, array in arrays.items()}
        items = [DatasetItem(path, "", (len(self._plain[path]),)) for path in texts]
        items.append(DatasetItem(DIGESTS, table.dtype.name, table.shape))
        items += [DatasetItem(path, x.dtype.name, x.shape) for path, x in arrays.items()]
        self._stored = self._compressed(items, compression)
        self._layout = HeaderLayout(self._attributes, items)
        offset = self.end = self._layout.start
        for item in self._layout.items:
            item.stored = len(self._stored.get(item.path, self._plain[item.path]))
            if item.stored:
                if item.level is not None:
                    offset += p.aligned(p.index_size(len(item.shape)))
                item.offset, self.end = offset, offset + item.stored
                offset = p.aligned(self.end)

    def _compressed(self, items: Sequence[DatasetItem], compression: str | None) -> dict[str, Any]:
        """Compress data that become smaller, and record it in the item."""
        if compression is None:
            return {}
        level = COMPRESSIONS[compression]

        def deflated(item: DatasetItem) -> bytes | None:
            plain = self._plain[item.path]
            fits = _LEAST_COMPRESSED <= len(plain) <= p.MAX_COMPRESSED
            if not item.dtype or not item.shape or item.path == DIGESTS or not fits:
                return None
            rows = np.frombuffer(plain, np.uint8).reshape(-1, item.itemsize)
            found = zlib.compress(np.ascontiguousarray(rows.T).data, level)
            # a reader refuses what claims to be smaller than deflate makes anything
            taken = len(found) + p.index_size(len(item.shape))
            return found if taken < len(plain) <= limits.MAX_RATIO * len(found) else None

        size = sum(map(len, self._plain.values()))
        tried = zip(items, each(deflated, items, size), strict=True)
        stored = {item.path: found for item, found in tried if found is not None}
        # what readers would take for a trap is stored as it is, beginning with what is smallest
        taken = size - sum(len(self._plain[path]) - len(x) for path, x in stored.items())
        for path in sorted(stored, key=lambda path: len(stored[path]) / len(self._plain[path])):
            if size <= limits.most_claimed(taken):
                break
            taken += len(self._plain[path]) - len(stored.pop(path))
        for item in items:
            item.level = level if item.path in stored else None
        return stored

    def carry_out(self, put: Put) -> None:
        """Write everything through ``put``."""
        items = [item for item in self._layout.items if item.path != DIGESTS]
        plain = [item for item in items if item.level is None]
        parts: dict[str, dict[int, bytes]] = {item.path: {} for item in plain}

        def run(batch: Batch) -> None:
            for item, begin, stop in batch:
                parts[item.path][begin] = piece_digest(self._plain[item.path][begin:stop])
            put(*side_by_side(batch, self._plain))

        each(run, batches(plain), self.end)
        found = {}
        for item in items:
            if item.level is None:
                digests = [x for _, x in sorted(parts[item.path].items())]
                found[item.path] = digest_of(item.path, item.kind, item.shape, digests)
            else:
                put(item.index, [_index(item)])
                put(item.offset, [self._stored[item.path]])
                data = self._plain[item.path]
                found[item.path] = digest_of_bytes(item.path, item.kind, item.shape, data)
        table = b"".join(found[path] for path in sorted(found))
        place = next(item for item in self._layout.items if item.path == DIGESTS)
        own = digest_of_bytes(DIGESTS, place.kind, place.shape, table)
        self._layout.set_attribute("digest", own.hex())
        put(place.offset, [table])
        put(0, [self._layout.encode(self.end)])


def _index(item: DatasetItem) -> bytes:
    return p.one_index(item.shape, item.itemsize, item.stored, item.offset)


def _raw(array: Array) -> memoryview:
    """Return an array's elements as bytes: C order, little endian; without a copy if possible."""
    plain = np.ascontiguousarray(array)
    if plain.dtype.hasobject:
        raise SaveError("a tensor of texts cannot be saved: tensors in files hold numbers")
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    return plain.reshape(-1).view(np.uint8).data


def _bytes_of(text: str, path: str) -> memoryview:
    data = text.encode()
    if not 0 < len(data) <= limits.MAX_TEXT:
        raise SaveError(f"{path}: a text of {len(data):,} bytes cannot be saved")
    return memoryview(data)


def _put(descriptor: int, offset: int, buffers: Sequence[Any]) -> None:
    if len(buffers) > 1 and hasattr(os, "pwritev"):
        written = os.pwritev(descriptor, buffers, offset)
        rest = b"".join(buffers)[written:] if written < sum(map(len, buffers)) else b""
        write_at(descriptor, rest, offset + written)
        return
    for buffer in buffers:
        write_at(descriptor, buffer, offset)
        offset += len(buffer)
