"""The library that has what the array API standard has, and nothing else."""

from __future__ import annotations

from types import ModuleType

import array_api_strict
import pytest


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The strict library, its dtypes showing their kind as those of backends' arrays do."""
    kind = type(array_api_strict.float64)
    for attribute in ("kind", "char", "name"):
        show = property(lambda self, a=attribute: getattr(self._np_dtype, a))
        monkeypatch.setattr(kind, attribute, show, raising=False)
    monkeypatch.setattr(kind, "dtype", property(lambda self: self._np_dtype), raising=False)
    return array_api_strict
