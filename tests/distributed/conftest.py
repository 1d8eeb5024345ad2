"""What the tests of this folder share: the checks that a job of several ranks has run."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jobs
import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of the tests see."""
    base = tmp_path_factory.getbasetemp()
    made = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "distributed"
    made.mkdir(exist_ok=True)
    return made


@pytest.fixture(scope="session")
def found_by(folder: Path) -> Callable[..., dict[str, Any]]:
    """Return what returns the results of checks, by the number of ranks: see jobs.py."""
    return lambda ranks, *names: jobs.found_by(folder, ranks, *names)
