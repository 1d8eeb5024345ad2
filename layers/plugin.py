"""The layers that saved files may name: those of this package with a name in files."""

from __future__ import annotations

from .. import layers
from ..core.extend import Module, hookimpl, saved_classes


@hookimpl
def gradtape_modules() -> dict[str, type[Module]]:
    """Provide the layers."""
    return saved_classes(vars(layers))
