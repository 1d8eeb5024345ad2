"""Debugging tools, which cost nothing while they are not in use."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from ..core import extend  # noqa: F401
from ..core.tape.debug import nan_guard as nan_guard
from ..public import publish

publish(__name__)
