"""What files and texts may name: the optimizers, losses, metrics, schedules and callbacks."""

from __future__ import annotations

from typing import Any

from ..core.extend import Module, hookimpl, saved_classes
from . import callbacks, loss_scaling, losses, metrics, optimizers, schedules

#: The meaning of what files name has never changed.
gradtape_compatible_since = "0.1"


@hookimpl(trylast=True)
def gradtape_modules() -> dict[str, type[Module]]:
    """Provide the classes that have a name in files."""
    modules = optimizers, metrics, schedules, loss_scaling
    return saved_classes(*map(vars, modules))


@hookimpl(trylast=True)
def gradtape_names() -> dict[str, dict[str, Any]]:
    """Provide what ``fit`` and optimizers take by name."""
    return {
        "optimizer": optimizers.named(),
        "loss": losses.named(),
        "metric": metrics.named(),
        "schedule": schedules.named(),
        "callback": callbacks.named(),
    }
