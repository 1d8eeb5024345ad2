"""The benchmark of compiled functions runs, each contender in a process that takes turns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from executing import NAMES

SCRIPT = Path(__file__).parents[2] / "docs" / "benchmarks" / "compiled.py"


def test_a_quick_run_prints_its_tables() -> None:
    names = [name for name in NAMES if name != "fused"]
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--contenders", *names, "eager"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        env={k: x for k, x in os.environ.items() if k != "PYTHONSAFEPATH"},
    )
    assert run.returncode == 0, run.stderr
    rows = {line.split(" | ")[0].strip("| "): line for line in run.stdout.splitlines()}
    for name in [*names, "eager"]:
        micros = float(rows[name].split(" | ")[1].replace(",", ""))
        assert 10.0 < micros < 1e6
    assert rows["100-op chain"].count("|") == 7
