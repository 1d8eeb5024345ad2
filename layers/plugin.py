"""What files and texts may name: the layers, activations, initializers, ..."""

from __future__ import annotations

from typing import Any

from .. import layers
from ..core.extend import Module, hookimpl, saved_classes
from . import activations, constraints, initializers, regularizers

#: The meaning of what files name has never changed.
gradtape_compatible_since = "0.1"


@hookimpl(trylast=True)
def gradtape_modules() -> dict[str, type[Module]]:
    """Provide the layers: those of this package with a name in files."""
    return saved_classes(vars(layers))


@hookimpl(trylast=True)
def gradtape_names() -> dict[str, dict[str, Any]]:
    """Provide what layers take by name."""
    others = {name: initializers.NAMES[of] for name, of in initializers.OTHER_NAMES.items()}
    return {
        "activation": activations.named(),
        "initializer": {**initializers.NAMES, **others},
        "regularizer": regularizers.NAMES,
        "constraint": constraints.NAMES,
    }
