"""``tf.saved_model``: modules in gradtape's HDF5 files."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import gradtape

from ...core.extend import RestoredFunction, blunt, map_structure
from .names import adapts, lookup

__all__ = ["SaveOptions", "load", "save"]

_FILE = "saved_model.h5"


@adapts()
class SaveOptions:
    """Options of :func:`save`."""

    def __init__(self, *, experimental_custom_gradients: bool = True, **other: Any) -> None:
        self.experimental_custom_gradients = bool(experimental_custom_gradients)


@adapts("save")
def save(
    obj: Any,
    export_dir: str | os.PathLike[str],
    signatures: Any = None,
    options: SaveOptions | None = None,
) -> None:
    """Save a module with its variables and functions; see :func:`gradtape.save`."""
    if signatures is not None and not isinstance(signatures, Mapping):
        signatures = {"serving_default": signatures}
    options = options or SaveOptions()
    path = with_folders(_path(export_dir))
    if not options.experimental_custom_gradients:
        gradtape.save(obj, path, signatures, custom_gradients=False)
        with contextlib.suppress(gradtape.saving.SaveError):
            whole = os.path.join(_wholes().name, f"{len(_whole_of)}.h5")
            gradtape.save(obj, whole, signatures)
            _whole_of[_digest(path)] = whole
        return
    gradtape.save(obj, path, signatures)


#: Files with custom gradients, which this process still knows, by the digest of those without.
_whole_of: dict[str, str] = {}


@functools.cache
def _wholes() -> Any:
    return tempfile.TemporaryDirectory(prefix="gradtape-")


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@adapts("load")
def load(export_dir: str | os.PathLike[str], tags: Any = None, options: Any = None) -> Any:
    """Load a module; see :func:`gradtape.load`. ``tags`` and ``options`` are ignored.

    A model saved without custom gradients keeps them in the process that saved it. Functions in
    ``signatures`` return dictionaries.
    """
    path = _path(export_dir)
    found = gradtape.load(_whole_of.get(_digest(path), path) if _whole_of else path)
    for function in getattr(found, "signatures", {}).values():
        function.__class__ = Signature
    return found


class Signature(RestoredFunction):
    """A function that takes its inputs by name and returns a dictionary."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _by_name(super().__call__(*args, **kwargs))

    @property
    def structured_outputs(self) -> dict[str, Any]:
        """A ``tf.TensorSpec`` for each output."""
        concrete = self.concrete_functions[0]
        outputs = concrete.graph.outputs
        made = [gradtape.TensorSpec(blunt(x.shape), x.dtype) for x in outputs]
        return _by_name(map_structure(lambda x: made[x.index], concrete.results))

    @property
    def structured_input_signature(self) -> Any:
        """An empty tuple, and a ``tf.TensorSpec`` for each input by name."""
        concrete = self.concrete_functions[0]
        return (), dict(zip(self.signature.parameters, concrete.arguments[0]))


def _by_name(found: Any) -> dict[str, Any]:
    if isinstance(found, dict):
        return found
    several = found if isinstance(found, (list, tuple)) else [found]
    return {f"output_{i}": x for i, x in enumerate(several)}


def with_folders(path: str | os.PathLike[str]) -> str:
    """Create the folders of a path, and return it."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    return os.fspath(path)


def _path(export_dir: str | os.PathLike[str]) -> str:
    path = os.fspath(export_dir)
    return os.path.join(path, _FILE) if os.path.isdir(path) else path


__getattr__ = lookup(__name__)
