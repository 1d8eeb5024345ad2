"""The benchmark that trains on a file larger than memory, here on a small one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "benchmarks" / "larger_than_memory.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="the tests are not beside the sources")
@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_memory_does_not_grow_with_the_data_gone_through(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--gigabytes", "0.1", "--folder", str(tmp_path)]
    # what stands beside the script is imported from there; LLVM would be imported meanwhile, and
    # takes memory once, whatever the data are
    beside = {**os.environ, "PYTHONSAFEPATH": "", "GRADTAPE_EXECUTOR": "planned"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=beside)
    assert run.returncode == 0, run.stdout + run.stderr
    resident = [int(x) for x in re.findall(r"(\d+) MB \|$", run.stdout, re.MULTILINE)]
    assert len(resident) == 11
    assert resident[-1] < resident[1] + 20  # of 90 MB that went by between
