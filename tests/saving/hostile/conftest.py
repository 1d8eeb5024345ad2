"""A sound file, and a copy of it for each test to damage."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # for what tests of sound files use too

from forge import good


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return good(tmp_path_factory.mktemp("good") / "good.h5").read_bytes()


@pytest.fixture
def path(template: bytes, tmp_path: Path) -> Path:
    (tmp_path / "victim.h5").write_bytes(template)
    return tmp_path / "victim.h5"
