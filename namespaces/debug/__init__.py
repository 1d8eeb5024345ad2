"""Tools for finding out what went wrong; they cost nothing while they are not in use."""

from __future__ import annotations

from ..core.tape.debug import nan_guard
from ..public import publish

__all__ = ["nan_guard"]

publish(__name__)
