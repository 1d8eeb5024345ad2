"""The optimizers and metrics that saved files may name: those that say how they are saved."""

from __future__ import annotations

from ..core.extend import Module, hookimpl, saved_classes
from . import loss_scaling, metrics, optimizers


@hookimpl
def gradtape_modules() -> dict[str, type[Module]]:
    """Provide the optimizers and the metrics."""
    return saved_classes(vars(optimizers), vars(metrics), vars(loss_scaling))
