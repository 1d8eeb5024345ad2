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
from .reports.diff import diff
from .reports.difference import Difference
from .reports.inspection import Inspection, inspect, inspect_text
from .reports.results import Report
from .reports.verify import verify
from .weights.load import load_weights, read_weights
from .weights.report import WeightsMismatch, WeightsReport
from .weights.save import save_weights
from .writing.save import save

__all__ = [
    "DamagedFile",
    "Difference",
    "FileMissing",
    "Inspection",
    "LoadError",
    "MissingOp",
    "MissingPlugin",
    "NewerFormat",
    "NotAGradtapeFile",
    "Report",
    "SaveError",
    "UnsafeFile",
    "UntraceableGradient",
    "WeightsMismatch",
    "WeightsReport",
    "diff",
    "inspect",
    "inspect_text",
    "load",
    "load_weights",
    "read_weights",
    "save",
    "save_weights",
    "verify",
]

publish(__name__)
