"""Save modules to files, and load untrusted ones. The format: docs/format.md."""

from typing import TYPE_CHECKING

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
from .writing.save import save

if TYPE_CHECKING:
    from .container.storage import Storage, Stored
    from .reading.features import features
    from .reports.checks import Report
    from .reports.diff import diff
    from .reports.difference import Difference
    from .reports.inspection import Inspection, inspect, inspect_text
    from .reports.verify import verify
    from .weights.load import load_weights, read_weights
    from .weights.report import WeightsMismatch, WeightsReport
    from .weights.save import save_weights

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
    "Storage",
    "Stored",
    "UnsafeFile",
    "UntraceableGradient",
    "WeightsMismatch",
    "WeightsReport",
    "diff",
    "features",
    "inspect",
    "inspect_text",
    "load",
    "load_weights",
    "read_weights",
    "save",
    "save_weights",
    "verify",
]

# names that loading a model does not need are imported at first use
publish(
    __name__,
    above={
        ".saving.container.storage": "Storage Stored",
        ".saving.reading.features": "features",
        ".saving.reports.diff": "diff",
        ".saving.reports.difference": "Difference",
        ".saving.reports.inspection": "Inspection inspect inspect_text",
        ".saving.reports.checks": "Report",
        ".saving.reports.verify": "verify",
        ".saving.weights.load": "load_weights read_weights",
        ".saving.weights.report": "WeightsMismatch WeightsReport",
        ".saving.weights.save": "save_weights",
    },
)
