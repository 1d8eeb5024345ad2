"""The optimizers, metrics and schedules that saved files may name."""

from __future__ import annotations

from ..core.extend import Module, hookimpl, saved_classes
from . import loss_scaling, metrics, optimizers, schedules

#: The meaning of what files name has never changed.
gradtape_compatible_since = "0.1"


@hookimpl
def gradtape_modules() -> dict[str, type[Module]]:
    """Provide the classes that have a name in files."""
    modules = optimizers, metrics, schedules, loss_scaling
    return saved_classes(*map(vars, modules))
