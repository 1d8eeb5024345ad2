"""``tf.saved_model``: modules in gradtape's HDF5 files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import gradtape

from .names import adapts, lookup

__all__ = ["SaveOptions", "load", "save"]

_FILE = "saved_model.h5"


@adapts()
class SaveOptions:
    """Options of :func:`save`.

    Parameters
    ----------
    experimental_custom_gradients
        Save custom gradients, so that a loaded module has them. Without them, asking it for a
        gradient through one raises ``LookupError``.
    other
        Further options of TensorFlow, which are ignored.
    """

    def __init__(self, *, experimental_custom_gradients: bool = True, **other: Any) -> None:
        self.experimental_custom_gradients = bool(experimental_custom_gradients)


@adapts("save")
def save(
    obj: Any,
    export_dir: str | os.PathLike[str],
    signatures: Any = None,
    options: SaveOptions | None = None,
) -> None:
    """Save a module with its variables and functions; see :func:`gradtape.save`.

    Parameters
    ----------
    obj
        A module.
    export_dir
        The path of the file, whose folders are made. In a folder that exists, the file is
        ``saved_model.h5``.
    signatures
        A ``tf.function``, which becomes ``"serving_default"``, or several by name.
    options
        What to leave out.
    """
    if signatures is not None and not isinstance(signatures, Mapping):
        signatures = {"serving_default": signatures}
    options = options or SaveOptions()
    gradtape.save(
        obj,
        with_folders(_path(export_dir)),
        signatures,
        custom_gradients=options.experimental_custom_gradients,
    )


@adapts("load")
def load(export_dir: str | os.PathLike[str], tags: Any = None, options: Any = None) -> Any:
    """Load a module; see :func:`gradtape.load`. ``tags`` and ``options`` are ignored."""
    return gradtape.load(_path(export_dir))


def with_folders(path: str | os.PathLike[str]) -> str:
    """Return a path after making the folders that it lies in."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    return os.fspath(path)


def _path(export_dir: str | os.PathLike[str]) -> str:
    path = os.fspath(export_dir)
    return os.path.join(path, _FILE) if os.path.isdir(path) else path


__getattr__ = lookup(__name__)
