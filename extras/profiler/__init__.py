"""``gt.profile()`` shows where time goes, by op, kernel, line and layer."""

from ..public import publish
from .profile import Profile, Row

__all__ = ["Profile", "Row"]

publish(__name__)
