"""The op families, as one plugin."""

from __future__ import annotations

from ...core.extend import Op, hookimpl
from . import elementwise, like, reductions, scans
from .families import OPS

__all__ = ["elementwise", "gradtape_ops", "like", "reductions", "scans"]


@hookimpl
def gradtape_ops() -> list[Op]:
    """Provide every op defined in this package."""
    return OPS
