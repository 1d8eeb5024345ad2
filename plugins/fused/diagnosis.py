"""What ``gradtape doctor`` reports about compiled loops: their cache, and why there are none."""

from __future__ import annotations

from typing import Any

from .compiler import CACHE, cache_folder, unavailable, unusable


def problem() -> str | None:
    """Return why loops cannot be compiled here; ``None`` if they can."""
    return unavailable() or unusable()


def diagnosis() -> dict[str, Any]:
    """Return the folder of the cache, why it cannot be used, if so, and what to do."""
    folder, told = (None, None) if unavailable() else cache_folder()
    advice = []
    if told:
        advice.append(
            f"Compiled loops cannot be cached in {folder} ({told}), so every process compiles them "
            f"again: set {CACHE} to a folder of your own, or to an empty string to turn the cache "
            "off."
        )
    return {
        "packages": {"llvmlite": "llvmlite"},
        "variables": [CACHE, "GRADTAPE_EXECUTOR"],
        "path": str(folder) if folder else None,
        "problem": told,
        "lines": [f"{folder or 'none'}: {told or 'ready'}"],
        "advice": advice,
    }
