"""The data sets that ship with gradtape, as a plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import hookimpl
from .digits import load_digits


@hookimpl(trylast=True)
def gradtape_datasets() -> dict[str, Callable[..., Any]]:
    """Provide the handwritten digits."""
    return {"digits": load_digits}
