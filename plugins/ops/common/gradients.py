"""Helpers that gradient rules share."""

from __future__ import annotations

from typing import Any

from ....core.extend import F


def as_like(g: Any, like: Any) -> Any:
    """Return a gradient in the dtype of ``like``; its shape matches already."""
    return g if g.dtype == like.dtype else F.cast_like(g, like)
