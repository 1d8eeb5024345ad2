"""What exporting raises."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..core.errors import BackendUnavailable, GradtapeError

__all__ = ["ExportError", "needed"]


class ExportError(GradtapeError, NotImplementedError):
    """A function has something that the other runtime cannot do; the message names the op."""


def needed(module: str, extra: str, name: str) -> Any:
    """Import what an extra brings; raise with the line that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise BackendUnavailable(
            f'gradtape.export.{name}: {error}; pip install "gradtape[{extra}]"'
        ) from error
