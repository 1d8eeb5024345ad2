"""Zarr, version 3, as a container of gradtape's files: ``gt.save(model, "model.zarr")``."""

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from gradtape.plugin import hookimpl
from gradtape.saving import Storage, Stored, UnsafeFile

METADATA = "zarr.json"
MOST_METADATA = 2**24  # bytes of one file of metadata: the root's lists all texts


class Opened(Stored):
    """A group of arrays, opened for reading."""

    def __init__(self, path: str) -> None:
        zarr = import_module("zarr")  # slow to import, and needed only here
        for folder, _, names in os.walk(path):
            if METADATA in names and os.path.getsize(f"{folder}/{METADATA}") > MOST_METADATA:
                raise UnsafeFile(f"{folder}/{METADATA} has more than {MOST_METADATA:,} bytes")
        # consolidated metadata could claim arrays that are not there
        self._group = zarr.open_group(path, mode="r", zarr_format=3, use_consolidated=False)
        self._arrays: dict[str, Any] = {}
        self._path = path
        self.attributes = dict(self._group.attrs)

    def declared(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Yield path, dtype and shape of each array."""
        for name, item in self._group.members(None, use_consolidated_for_children=False):
            if not hasattr(item, "shape"):  # a group
                continue
            codecs = [type(codec).__name__ for codec in item.metadata.codecs]
            # a codec, or a chunk larger than the array, could take any amount of memory
            if codecs != ["BytesCodec"] or item.chunks != one_chunk(item.shape):
                raise UnsafeFile(f"/{name} is not stored in one plain chunk")
            # Zarr reads all of a chunk's file, whatever the array's size is
            chunk = f"{self._path}/{name}/{item.metadata.encode_chunk_key((0,) * item.ndim)}"
            most = max(1, item.size) * item.dtype.itemsize
            if os.path.isfile(chunk) and os.path.getsize(chunk) > most:
                raise UnsafeFile(f"/{name} is smaller than the file of its chunk")
            self._arrays[f"/{name}"] = item
            yield f"/{name}", item.dtype.name, item.shape

    def read(self, path: str) -> np.ndarray[Any, Any]:
        """Return an array."""
        return np.asarray(self._arrays[path][...])


class Zarr(Storage):
    """A folder with one group, in which each array is one chunk without compression."""

    name = "Zarr"
    is_folder = True

    def recognises(self, path: str) -> bool:
        """Return whether a folder has the metadata of a group or an array."""
        return os.path.isfile(os.path.join(path, METADATA))

    def write(
        self, path: str, attributes: Mapping[str, str], arrays: Mapping[str, Any], *rest: Any
    ) -> None:
        """Write a group into an empty folder."""
        zarr = import_module("zarr")
        group = zarr.create_group(path, zarr_format=3, attributes=dict(attributes))
        plain: Any = {"compressors": None, "filters": None, "config": {"write_empty_chunks": True}}
        for name, array in arrays.items():
            group.create_array(name[1:], data=array, chunks=one_chunk(array.shape), **plain)

    def read(self, path: str) -> Opened:
        """Open a folder."""
        return Opened(path)


def one_chunk(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the only chunk of an array."""
    return tuple(max(1, size) for size in shape)


@hookimpl
def gradtape_storages() -> dict[str, Storage]:
    """Provide Zarr."""
    return {".zarr": Zarr()}
