"""The optimizers that saved files may name."""

from __future__ import annotations

from ..core.extend import Module, hookimpl


@hookimpl
def gradtape_modules() -> dict[str, type[Module]]:
    """Provide the optimizers."""
    from .optimizers import SGD, Adam  # imported when the registry is built, not with the plugin

    return {"training.Adam": Adam, "training.SGD": SGD}
