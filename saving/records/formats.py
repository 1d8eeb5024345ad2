"""Paths whose ends name another format than that of gradtape's files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ...core.extend import registry
from ..errors import SaveError

__all__ = ["check_format", "writer_of"]


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
    """Return the function that writes weights to such a path; None for a file of gradtape."""
    _, found = _format_of(path)
    return found if callable(found) else None


def _format_of(path: Any) -> tuple[str, Any]:
    if not isinstance(path, (str, os.PathLike)):
        return "", None
    name = os.path.basename(os.fsdecode(path)).lower()
    formats = registry(strict=False).formats
    ending = max((x for x in formats if name.endswith(x)), key=len, default="")
    return ending, formats.get(ending)
