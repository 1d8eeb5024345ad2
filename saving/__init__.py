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
from .reading.build import load
from .reports.inspection import inspect_text
from .reports.results import Report
from .reports.verify import verify
from .writing.save import save

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
