"""Starting programs on several ranks, as ``mpiexec`` does it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"
INSTALL = 'pip install "gradtape[mpi]" mpich'


def mpiexec() -> str:
    """Return the launcher; skip the test where there is none."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip(f"needs a launcher of MPI, mpiexec: {INSTALL}")
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip(f"needs mpi4py: {INSTALL}")
    return found


def run(program: str, ranks: int, *arguments: str, seconds: int = 180) -> str:
    """Return what a program printed on so many ranks."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [mpiexec(), "-n", str(ranks), sys.executable, str(PROGRAMS / program), *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, **single, "PYTHONPATH": str(PROGRAMS)},  # for what they share
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@cache
def _printed(program: str, ranks: int, *arguments: str) -> tuple[str, str]:
    """Return what a program printed, and what went wrong; it is not started again then."""
    try:
        return run(program, ranks, *arguments), ""
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return "", str(error)


def found_by(program: str, ranks: int, *arguments: str) -> dict[str, Any]:
    """Return what the checks of a program found, by their names, on so many ranks."""
    text, failure = _printed(program, ranks, *arguments)
    assert not failure, failure
    lines = [x for x in text.splitlines() if x.startswith("{")]
    return {name: value for line in lines for name, value in json.loads(line).items()}
