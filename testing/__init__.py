"""Tools to test ops, gradients and plugins; gradtape's own suite runs on them."""

from ..public import publish
from .gradients import check_gradients
from .ops import PASSED, check_op
from .samples import CHECKS, Sample

__all__ = ["CHECKS", "PASSED", "Sample", "check_gradients", "check_op"]

publish(__name__)
