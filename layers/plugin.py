"""The layer classes that saved files may name, and the op that they add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import Module, Op, hookimpl


@hookimpl
def gradtape_modules() -> dict[str, type[Module]]:
    """Provide the layers."""
    from . import Activation, BatchNorm, Dense, Dropout, Flatten, Sequential

    classes = (Activation, BatchNorm, Dense, Dropout, Flatten, Sequential)
    return {f"layers.{cls.__name__}": cls for cls in classes}


@hookimpl
def gradtape_ops() -> list[Op]:
    """Provide batch normalisation."""
    from .ops import OPS

    return OPS


@hookimpl
def gradtape_kernels() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide what is faster on NumPy than the portable kernel."""
    from .ops import KERNELS

    return KERNELS
