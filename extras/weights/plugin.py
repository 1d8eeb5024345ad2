"""The weights files of Keras, PyTorch and NumPy, as a plugin.

What reads them is imported when it does: ``gradtape.save`` asks for these formats, too.
"""

from __future__ import annotations

from typing import Any

from ..core.extend import hookimpl, lazy_module
from ..saving.container.source import SIGNATURE, Source
from ..saving.errors import LoadError, UnsafeFile
from ..saving.plugin import begins, is_pickle
from .layouts import KERAS, PYTORCH

_TORCH = (
    'PyTorch reads safetensors: model.save_weights("model.safetensors", layout="pytorch") there, '
    'and model.load_state_dict(safetensors.torch.load_file("model.safetensors")) in PyTorch'
)
_NUMPY = (
    "numpy.savez(path, **{name: v.numpy() for name, v in model.named_variables.items()}) writes "
    "the weights, and gradtape.load_weights(dict(numpy.load(path)), model) loads them"
)
_ZIP = b"PK\x03\x04"


def _is_archive_of(file: Source, *kinds: str) -> bool:
    return (
        begins(file).startswith(_ZIP) and lazy_module("weights.keras").archive_kind(file) in kinds
    )


class _Hdf5Weights:
    """HDF5 files of weights: of gradtape, or of Keras."""

    layouts = ("gradtape", KERAS)

    def recognises(self, file: Source) -> bool:
        """Return whether a file begins with HDF5's signature."""
        return begins(file).startswith(SIGNATURE) and file.size > len(SIGNATURE)

    def open(self, origin: Any, max_bytes: int) -> Any:
        """Return the contents of a file."""
        file = Source(origin)
        arrays = None
        # gradtape writes version 2 of the superblock, and other programs hardly ever
        if file.read(8, 1) != b"\x02":
            arrays = lazy_module("weights.keras").open_keras(file, max_bytes)
        if arrays is None:
            arrays = lazy_module("saving.weights.formats").open_own(origin, max_bytes)
        return arrays


class _KerasArchive:
    """Archives of Keras."""

    layouts = (KERAS,)
    warns = (
        "this is a file of gradtape, which Keras cannot open. Let its name end with .h5; "
        "gradtape opens it under either name"
    )

    def recognises(self, file: Source) -> bool:
        """Return whether a file is a zip archive of Keras."""
        return _is_archive_of(file, "keras")

    def open(self, origin: Any, max_bytes: int) -> Any:
        """Return the weights in an archive."""
        file = Source(origin)
        arrays = lazy_module("weights.keras").open_keras(file, max_bytes)
        if arrays is None:
            raise LoadError(f"{file.path}: a zip archive without weights of Keras in it")
        return arrays


class _Torch:
    """Files of PyTorch, which may run code; safetensors and others hold its names and axes."""

    layouts = (PYTORCH,)

    instead = _TORCH

    def recognises(self, file: Source) -> bool:
        """Return whether a file is a pickle, or an archive with one."""
        return is_pickle(begins(file)) or _is_archive_of(file, "torch")

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
        return begins(file).startswith(b"\x93NUMPY") or _is_archive_of(file, "numpy")

    def open(self, origin: Any, max_bytes: int) -> Any:
        """Refuse a file."""
        raise LoadError(
            f"{Source(origin).path} is a file of NumPy; pass the arrays: "
            "gt.load_weights(dict(numpy.load(...)), model)"
        )


@hookimpl(trylast=True)
def gradtape_formats() -> dict[str, Any]:
    """Provide the formats of other frameworks."""
    numpy, torch = _NumpyFiles(), _Torch()
    return {
        ".weights.h5": _Hdf5Weights(),
        ".keras": _KerasArchive(),
        ".pt": torch,
        ".pth": torch,
        ".npz": numpy,
        ".npy": numpy,
    }
