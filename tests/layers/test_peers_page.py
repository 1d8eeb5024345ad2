"""The table of peers in the documentation is that of the suite, and leaves nothing out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "peers.md"


@pytest.mark.needs("weights", "compat")
def test_the_table_of_peers_is_up_to_date() -> None:
    pytest.importorskip("torch", reason="needs PyTorch: pip install torch")  # its tests are counted
    script = PAGE.with_name("make_peers_table.py")
    found = subprocess.run([sys.executable, script, "--check"], check=False)
    assert found.returncode == 0, "run: python docs/make_peers_table.py"


def test_everything_is_compared_with_something() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## Callbacks")[0]
    lines = [line for line in text.splitlines() if line[:3] == "| `"]
    assert len(lines) > 140
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")[1:]]
        assert cells.count("-") < len(cells), line
        if len(cells) == 3:  # a layer: values of one peer at least, or the reason in words
            assert cells[:2] != ["-", "-"] or " " in cells[2].replace(", ", ""), line
