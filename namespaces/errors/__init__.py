"""The exceptions of gradtape, each a subclass of the builtin one that NumPy users would catch.

The exceptions of saving and loading are in :mod:`gradtape.saving`.
"""

from __future__ import annotations

from ..core.errors import (
    BackendMismatch,
    BackendUnavailable,
    BrokenPathWarning,
    DistributedError,
    EndlessLoop,
    GradientError,
    GradtapeError,
    NonFiniteError,
    OutOfMemory,
    PluginError,
    TraceError,
    UnknownName,
    UnknownOp,
)
from ..public import publish

__all__ = [
    "BackendMismatch",
    "BackendUnavailable",
    "BrokenPathWarning",
    "DistributedError",
    "EndlessLoop",
    "GradientError",
    "GradtapeError",
    "NonFiniteError",
    "OutOfMemory",
    "PluginError",
    "TraceError",
    "UnknownName",
    "UnknownOp",
]

publish(__name__)
