"""The errors of exports."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..core.errors import BackendUnavailable, GradtapeError


class ExportError(GradtapeError, NotImplementedError):
    """A function needs something that the other runtime lacks; the message names the op."""


def for_the_host(op: str, target: str) -> ExportError:
    """Return the error for an op whose kernel computes on host memory."""
    return ExportError(
        f"op {op!r}: its kernel runs on the host, a function of NumPy arrays that {target} cannot "
        "hold; compute it outside the exported function"
    )


def needed(module: str, extra: str, name: str) -> Any:
    """Import a module that an extra installs; if it is missing, raise with the install line."""
    try:
        return import_module(module)
    except ImportError as error:
        raise BackendUnavailable(
            f'gradtape.export.{name}: {error}; pip install "gradtape[{extra}]"'
        ) from error
