"""The layers that saved files may name: those of this package with a name in files."""

from __future__ import annotations

from .. import layers
from ..core.extend import Module, hookimpl, saved_classes

#: The meaning of what files name has never changed.
gradtape_compatible_since = "0.1"


@hookimpl
def gradtape_modules() -> dict[str, type[Module]]:
    """Provide the layers."""
    return saved_classes(vars(layers))
