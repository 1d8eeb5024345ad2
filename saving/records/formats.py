"""Paths whose ends name another format than that of gradtape's files."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from ...core.extend import registry
from ..container.replace import replacing, resolved, write_at
from ..errors import SaveError

__all__ = ["check_format", "writer_of"]

_PIECE = 1 << 22  # bytes that are copied at a time


def check_format(path: Any, method: str) -> None:
    """Refuse a path for a file of gradtape whose end promises another format.

    Parameters
    ----------
    path
        The user's path; anything else is left to other checks.
    method
        The caller, for the message.

    Raises
    ------
    SaveError
        The message says what to call instead.
    """
    ending, found = _format_of(path)
    if ending:
        instead = "gradtape.save_weights(model, path) writes weights in that format"
        raise SaveError(
            f"{method}: {os.fsdecode(path)}: gradtape's files are HDF5 (.h5), and programs that "
            f"read {ending} files cannot read them. {found if isinstance(found, str) else instead}"
        )


def writer_of(path: Any) -> Callable[..., None] | None:
    """Return the function of a plugin that writes weights to such a path.

    Parameters
    ----------
    path
        The user's path.

    Returns
    -------
    function or None
        A function of arrays and texts by name; None for a file of gradtape. It replaces the file
        at the path atomically, and raises ``SaveError`` if it cannot be written.
    """
    ending, found = _format_of(path)
    return partial(_write, os.fsdecode(path), ending, found) if callable(found) else None


def _write(path: str, ending: str, write: Any, arrays: Any, metadata: Any) -> None:
    try:
        if getattr(write, "replaces", False):
            write(path, arrays, metadata)
            return
        folder = os.path.dirname(resolved(path))
        with TemporaryDirectory(prefix=".", dir=folder, ignore_cleanup_errors=True) as held:
            temporary = os.path.join(held, f"weights{ending}")
            write(temporary, arrays, metadata)
            if not os.path.isfile(temporary):
                raise SaveError(
                    f"{path}: the plugin's function for {ending} wrote no file at the path that it "
                    "received; one that writes something else sets its attribute replaces = True, "
                    "and receives the path itself"
                )
            _put_in_place(temporary, path)
    except SaveError:
        raise
    except Exception as error:
        raise SaveError(
            f"{path}: the plugin's function for {ending} failed with {type(error).__name__}: "
            f"{error}"
        ) from error


def _put_in_place(source: str, path: str) -> None:
    """Copy a file, so that permissions, links and the rest remain as in files of gradtape."""
    size, offset = os.path.getsize(source), 0
    with open(source, "rb") as file, replacing(path, size) as descriptor:
        while piece := file.read(_PIECE):
            write_at(descriptor, piece, offset)
            offset += len(piece)


def _format_of(path: Any) -> tuple[str, Any]:
    if not isinstance(path, (str, os.PathLike)):
        return "", None
    name = os.path.basename(os.fsdecode(path)).lower()
    formats = registry().formats
    ending = max((x for x in formats if name.endswith(x)), key=len, default="")
    return ending, formats.get(ending)
