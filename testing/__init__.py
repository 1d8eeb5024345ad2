"""Tools to test ops, gradients, backends and plugins; gradtape's own test suite uses them."""

from ..public import publish
from .backends import BackendReport, check_backend
from .engines import check_engine
from .executors import check_executor
from .formats import check_format
from .gradients import check_gradients
from .ops import PASSED, check_op
from .plugins import PluginReport, check_plugin
from .report import OpReport, Report
from .samples import CHECKS, Sample

__all__ = [
    "CHECKS",
    "PASSED",
    "BackendReport",
    "OpReport",
    "PluginReport",
    "Report",
    "Sample",
    "check_backend",
    "check_engine",
    "check_executor",
    "check_format",
    "check_gradients",
    "check_op",
    "check_plugin",
]

publish(__name__)
