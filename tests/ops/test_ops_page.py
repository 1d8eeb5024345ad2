"""The table of ops in the documentation is that of the registry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / "make_ops_table.py"


def test_the_table_of_ops_is_up_to_date() -> None:
    # in a process of its own: other tests register plugins and pretend libraries
    found = subprocess.run([sys.executable, SCRIPT, "--check"], check=False)
    assert found.returncode == 0, "run: python docs/make_ops_table.py"
