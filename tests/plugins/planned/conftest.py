"""The table of all ops' samples, and packs of few updates."""

import sys
from pathlib import Path

import pytest

from gradtape.plugins.planned import combining

sys.path.insert(0, str(Path(__file__).parents[2] / "ops"))


@pytest.fixture(autouse=True)
def packs_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let updates be packed that are too few to gain by it."""
    monkeypatch.setattr(combining, "_CALLS", 0)
