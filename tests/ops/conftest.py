"""Makes the tables of this folder importable, and provides the strict backend."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradtape as gt

sys.path.insert(0, str(Path(__file__).parent))

from strict_backend import NAME, Plugin


@pytest.fixture
def strict() -> Iterator[None]:
    """The backend that has what the array API standard has."""
    gt.register_plugin(Plugin(), NAME)
    yield
    gt.unregister_plugin(NAME)
