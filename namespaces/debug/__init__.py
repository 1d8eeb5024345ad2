"""Tools for finding out what went wrong; they cost nothing while they are not in use."""

from __future__ import annotations

# as a whole, before its parts: threads that began with different parts would wait for each other
from ..core import extend  # noqa: F401
from ..core.tape.debug import nan_guard
from ..public import publish

__all__ = ["nan_guard"]

publish(__name__)
