"""The layer classes that saved files may name."""

from __future__ import annotations

from ..core.extend import Module, hookimpl


@hookimpl
def gradtape_modules() -> dict[str, type[Module]]:
    """Provide the layers."""
    from . import Activation, BatchNorm, Dense, Dropout, Flatten, Sequential

    classes = (Activation, BatchNorm, Dense, Dropout, Flatten, Sequential)
    return {f"layers.{cls.__name__}": cls for cls in classes}
