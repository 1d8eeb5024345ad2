"""The tables of ops and hooks in the documentation are those of the registry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    "script", ["make_ops_table.py", "make_special_table.py", "make_hooks_table.py"]
)
def test_a_generated_table_is_up_to_date(script: str) -> None:
    # in a process of its own: other tests register plugins and pretend libraries
    found = subprocess.run([sys.executable, DOCS / script, "--check"], check=False)
    assert found.returncode == 0, f"run: python docs/{script}"
