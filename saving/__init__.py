"""Saving modules to HDF5 files, and loading them from anyone's. The format: docs/format.md."""

from ..public import publish
from .errors import (
    DamagedFile,
    FileMissing,
    LoadError,
    MissingOp,
    MissingPlugin,
    NewerFormat,
    NotAGradtapeFile,
    SaveError,
    UnsafeFile,
    UntraceableGradient,
)
from .inspection import inspect_text
from .reader import load
from .verify import Report, verify
from .writer import save

__all__ = [
    "DamagedFile",
    "FileMissing",
    "LoadError",
    "MissingOp",
    "MissingPlugin",
    "NewerFormat",
    "NotAGradtapeFile",
    "Report",
    "SaveError",
    "UnsafeFile",
    "UntraceableGradient",
    "inspect_text",
    "load",
    "save",
    "verify",
]

publish(__name__)
