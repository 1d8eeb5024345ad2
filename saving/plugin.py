"""The containers of whole files, and the formats of weights, that ship with gradtape, as a plugin.

What reads and writes weights is imported when it does: ``gradtape.save`` asks for these, too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.extend import hookimpl, late
from .container.hdf5.file import SafeFile
from .container.hdf5.write import COMPRESSIONS, check, write
from .container.source import SIGNATURE, Source
from .container.storage import Storage
from .errors import LoadError, UnsafeFile


class Hdf5(Storage):
    """HDF5, in the subset of docs/format.md, without the HDF5 library.

    It writes and hashes in several threads, so it has digests and atomic replacement of its own.
    """

    name = "HDF5"
    compressions = tuple(COMPRESSIONS)

    def recognises(self, path: str) -> bool:
        """Return whether a file begins with HDF5's signature."""
        if not os.path.isfile(path):
            return False
        with contextlib.suppress(OSError), open(path, "rb") as stream:
            return stream.read(len(SIGNATURE)) == SIGNATURE
        return False

    def check(
        self,
        attributes: Mapping[str, str],
        texts: Mapping[str, str],
        arrays: Mapping[str, np.ndarray[Any, Any]],
    ) -> None:
        """Raise the error that :meth:`save` would raise for the contents, without writing."""
        check(attributes, texts, arrays)

    def save(
        self,
        path: str | os.PathLike[str],
        attributes: Mapping[str, str],
        texts: Mapping[str, str],
        arrays: Mapping[str, np.ndarray[Any, Any]],
        compression: str | None = None,
    ) -> None:
        """Write a file, completely or not at all."""
        write(path, attributes, texts, arrays, compression)

    def open(
        self,
        origin: str | os.PathLike[str] | bytes | bytearray | memoryview,
        max_bytes: int | None = None,
        keep_open: bool = False,
    ) -> SafeFile:
        """Open an untrusted file: a path, or its bytes."""
        return SafeFile(origin, max_bytes, keep_open)


@hookimpl(trylast=True)
def gradtape_storages() -> dict[str, Storage]:
    """Provide HDF5."""
    return dict.fromkeys((".h5", ".hdf5"), Hdf5())


# -- formats of weights ----------------------------------------------------------------------------

_ONNX = "gradtape.export.onnx(model, spec, path=...) writes ONNX, from a TensorSpec of the input"
_TORCH = (
    'PyTorch reads safetensors: model.save_weights("model.safetensors", layout="pytorch") there, '
    'and model.load_state_dict(safetensors.torch.load_file("model.safetensors")) in PyTorch'
)
_NUMPY = (
    "numpy.savez(path, **{name: v.numpy() for name, v in model.named_variables.items()}) writes "
    "the weights, and gradtape.load_weights(dict(numpy.load(path)), model) loads them"
)
_PICKLE = "pickle.dump(model, file) pickles a model"
_STABLEHLO = "gradtape.export.stablehlo(model, spec, path=...) writes StableHLO"
_ZARR = (
    "zarr.save_group(path, **gradtape.saving.read_weights(file)) copies weights; a plugin such as "
    "docs/examples/gradtape-zarr saves whole files"
)
_ZIP = b"PK\x03\x04"


def _begins(file: Source, size: int = 16) -> bytes:
    return file.read(0, min(size, file.size))


def _is_pickle(start: bytes) -> bool:
    return start[:1] == b"\x80" and start[1:2] in (b"\2", b"\3", b"\4", b"\5")


def _is_archive_of(file: Source, *kinds: str) -> bool:
    return (
        _begins(file).startswith(_ZIP)
        and late("saving.weights.archives").archive_kind(file) in kinds
    )


class _SafeTensors:
    """Files of safetensors."""

    layouts = ("gradtape", "pytorch")
    replaces = True

    def write(self, path: str, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
        """Write a file, completely or not at all."""
        late("saving.weights.tensors").write_tensors(path, arrays, metadata)

    def recognises(self, file: Source) -> bool:
        """Return whether a file begins with a header; its length may begin as a pickle does."""
        start = _begins(file)
        fits = int.from_bytes(start[:8], "little") <= file.size
        return start[8:9] == b"{" and (fits or not _is_pickle(start))

    def open(self, origin: Any, max_bytes: int) -> Any:
        """Return the contents of a file."""
        return late("saving.weights.tensors").open_tensors(Source(origin), max_bytes)


class _Hdf5Weights:
    """HDF5 files of weights: of gradtape, or of Keras."""

    layouts = ("gradtape", "keras")

    def recognises(self, file: Source) -> bool:
        """Return whether a file begins with HDF5's signature."""
        return _begins(file).startswith(SIGNATURE) and file.size > len(SIGNATURE)

    def open(self, origin: Any, max_bytes: int) -> Any:
        """Return the contents of a file."""
        file = Source(origin)
        arrays = None
        # gradtape writes version 2 of the superblock, and other programs hardly ever
        if file.read(8, 1) != b"\x02":
            arrays = late("saving.weights.keras").open_keras(file, max_bytes)
        if arrays is None:
            arrays = late("saving.weights.formats").open_own(origin, max_bytes)
        return arrays


class _KerasArchive:
    """Archives of Keras."""

    layouts = ("keras",)

    def recognises(self, file: Source) -> bool:
        """Return whether a file is a zip archive of Keras."""
        return _is_archive_of(file, "keras")

    def open(self, origin: Any, max_bytes: int) -> Any:
        """Return the weights in an archive."""
        file = Source(origin)
        arrays = late("saving.weights.keras").open_keras(file, max_bytes)
        if arrays is None:
            raise LoadError(f"{file.path}: a zip archive without weights of Keras in it")
        return arrays


class _Torch:
    """Files of PyTorch, which may run code."""

    instead = _TORCH

    def recognises(self, file: Source) -> bool:
        """Return whether a file is a pickle, or an archive with one."""
        return _is_pickle(_begins(file)) or _is_archive_of(file, "torch")

    def open(self, origin: Any, max_bytes: int) -> Any:
        """Refuse a file."""
        raise UnsafeFile(
            f"{Source(origin).path} is a pickle, which may hold code and is never read; where "
            "PyTorch is and the file is trusted: safetensors.torch.save_file(torch.load("
            '"model.pt", weights_only=True), "model.safetensors")'
        )


class _NumpyFiles:
    """Files of NumPy, which a program reads itself."""

    instead = _NUMPY

    def recognises(self, file: Source) -> bool:
        """Return whether a file is an array of NumPy, or an archive of some."""
        return _begins(file).startswith(b"\x93NUMPY") or _is_archive_of(file, "numpy")

    def open(self, origin: Any, max_bytes: int) -> Any:
        """Refuse a file."""
        raise LoadError(
            f"{Source(origin).path} is a file of NumPy; pass the arrays: "
            "gt.load_weights(dict(numpy.load(...)), model)"
        )


@hookimpl(trylast=True)
def gradtape_formats() -> dict[str, Any]:
    """Provide formats of weights, and what to call for formats that ``save`` does not write."""
    formats: Sequence[tuple[Any, str]] = (
        (_SafeTensors(), ".safetensors"),
        (_Hdf5Weights(), ".weights.h5"),
        (_KerasArchive(), ".keras"),
        (_Torch(), ".pt .pth"),
        (_NumpyFiles(), ".npz .npy"),
        (_ONNX, ".onnx"),
        (_PICKLE, ".pkl .pickle .joblib"),
        (_STABLEHLO, ".mlir .stablehlo"),
        (_ZARR, ".zarr"),
    )
    return {ending: item for item, endings in formats for ending in endings.split()}


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], dict[str, Any]]]:
    """List libraries of files in ``gradtape doctor``."""
    return {"saving": lambda: {"packages": {"h5py": "h5py", "xxhash": "xxhash"}}}
