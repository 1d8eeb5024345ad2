"""The library that has what the array API standard has, and nothing else."""

from __future__ import annotations

from types import ModuleType

import array_api_strict
import pytest


@pytest.fixture
def strict() -> ModuleType:
    """The strict library."""
    return array_api_strict
