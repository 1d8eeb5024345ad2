"""The tables of docs/migration.md are those of the names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / "make_migration_table.py"


def test_the_tables_of_names_are_up_to_date() -> None:
    # in a process of its own: other tests register gradients and plugins
    found = subprocess.run([sys.executable, SCRIPT, "--check"], check=False)
    assert found.returncode == 0, "run: python docs/make_migration_table.py"
