"""The samples of what ships with gradtape, as a plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.extend import hookimpl
from . import tables
from .samples import Sample


@hookimpl(trylast=True)
def gradtape_samples() -> Mapping[str, Sequence[Sample]]:
    """Provide samples of ops, by name, and of functions, by their names under ``gt``."""
    functions = {f"gt.{name}": samples for name, samples in tables.FUNCTIONS.items()}
    return {**tables.SAMPLES, **functions}
