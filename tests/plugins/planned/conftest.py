"""The table of all ops' samples, packs of few updates, and groups that NumPy runs."""

import sys
from pathlib import Path
from typing import Any

import pytest

from gradtape.plugins.planned import LoopGroup, combining

sys.path.insert(0, str(Path(__file__).parents[2] / "ops"))


@pytest.fixture(autouse=True)
def packs_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let updates be packed that are too few to gain by it."""
    monkeypatch.setattr(combining, "_CALLS", 0)


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What NumPy does in the place of loops."""
    groups, by_numpy = list[str](), LoopGroup.by_numpy

    def noted(group: LoopGroup, *arrays: Any) -> None:
        groups.append(repr(group))
        by_numpy(group, *arrays)

    monkeypatch.setattr(LoopGroup, "by_numpy", noted)
    return groups
