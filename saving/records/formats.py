"""Paths whose ends name another format than that of gradtape's files."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

from ...core.extend import Setting, raised, registry, warn_user
from ..container.replace import replacing_file
from ..container.storage import ending_of
from ..errors import SaveError


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
    ending, found = _written_as(path)
    if ending:
        instead = "gradtape.save_weights(model, path) writes weights in that format"
        containers: dict[str, str] = {}
        for end, storage in registry().storages.items():
            containers.setdefault(storage.name, end)
        listed = " or ".join(f"{name} ({end})" for name, end in containers.items())
        raise SaveError(
            f"{method}: {os.fsdecode(path)}: gradtape's files are {listed}, and programs that "
            f"read {ending} files cannot read them. {_instead(found) or instead}"
        )


#: Whether names of other programs' files pass without a warning.
_ANY_NAME: ContextVar[bool] = ContextVar("any_name", default=False)


def under_any_name() -> Setting[bool]:
    """Save without the warning of :func:`warn_of_name`, which was given or is out of place."""
    return Setting(_ANY_NAME, True)


def warn_of_name(path: Any, method: str) -> None:
    """Warn if a file of gradtape gets a name by which people expect another program's file.

    Parameters
    ----------
    path
        The user's path; anything else is left to other checks.
    method
        The caller, for the message.
    """
    ending, found = format_of(path, lambda item: bool(getattr(item, "warns", "")))
    if len(ending) > len(ending_of(path)) and not _ANY_NAME.get():
        warn_user(f"{method}: {os.fsdecode(path)}: {found.warns}", UserWarning)


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
    ending, found = _written_as(path)
    return None if _writes(found) is None else partial(_write, os.fsdecode(path), ending, found)


def _write(path: str, ending: str, item: Any, arrays: Any, metadata: Any) -> None:
    write = _writes(item)
    try:
        if getattr(item, "replaces", False):
            write(path, arrays, metadata)
            return
        with replacing_file(path, f"weights{ending}") as temporary:
            try:
                write(temporary, arrays, metadata)
            except OSError as error:
                raise _failed(path, ending, error) from error
            if not os.path.isfile(temporary):
                raise SaveError(
                    f"{path}: the plugin's function for {ending} wrote no file at the path that it "
                    "received; one that writes something else sets its attribute replaces = True, "
                    "and receives the path itself"
                )
    except SaveError:
        raise
    except Exception as error:
        raise _failed(path, ending, error) from error


def _failed(path: str, ending: str, error: Exception) -> SaveError:
    return SaveError(f"{path}: the plugin's function for {ending} failed with {raised(error)}")


def _written_as(path: Any) -> tuple[str, Any]:
    """Return the end of a path and the format that claims it for writing; or nothing."""
    ending, found = format_of(path, lambda item: bool(_instead(item)) or _writes(item) is not None)
    if len(ending) <= len(ending_of(path)):  # a container of whole files
        return "", None
    return ending, found


def format_of(path: Any, fits: Callable[[Any], bool]) -> tuple[str, Any]:
    """Return the longest end of a path among the formats that fit, and the format.

    Parameters
    ----------
    path
        The user's path; anything else has no end.
    fits
        A function of a format.

    Returns
    -------
    ending : str
        Empty if there is none.
    format : object
        What a plugin provides for this end, or ``None``.
    """
    if not isinstance(path, (str, os.PathLike)):
        return "", None
    name = os.path.basename(os.fsdecode(path)).lower()
    found = {end: item for end, item in registry().formats.items() if name.endswith(end)}
    ending = max((end for end, item in found.items() if fits(item)), key=len, default="")
    return ending, found.get(ending)


def _instead(item: Any) -> str:
    """Return what a format says to call instead of a function that saves."""
    return item if isinstance(item, str) else str(getattr(item, "instead", ""))


def _writes(item: Any) -> Any:
    """Return the function with which a format writes, or ``None``."""
    return item if callable(item) else getattr(item, "write", None)
