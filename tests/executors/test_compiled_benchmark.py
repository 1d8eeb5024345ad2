"""The benchmarks of compiled functions, and of what makes programs faster, run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from executing import NAMES

FOLDER = Path(__file__).parents[2] / "docs" / "benchmarks"


def run(*told: str, script: str = "compiled.py") -> str:
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), *told],
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        env={k: x for k, x in os.environ.items() if k != "PYTHONSAFEPATH"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_quick_run_prints_its_tables_and_keeps_its_results(tmp_path: Path) -> None:
    names = ["default", *(name for name in NAMES if name != "fused"), "eager"]
    results = tmp_path / "results.json"
    told = run("--quick", "--contenders", *names, "--results", str(results))
    rows = {line.split(" | ")[0].strip("| "): line for line in told.splitlines()}
    for name in names:
        micros = float(rows[name].split(" | ")[1].replace(",", ""))
        assert 10.0 < micros < 1e6
    for title in ("100-op chain", "1,000 matrices of 4 by 4, gradient"):
        assert rows[title].count("|") == 9

    # the page's tables, from results with one thread and with two
    measured = json.loads(results.read_text())
    results.write_text(json.dumps({**measured, "2": measured["1"]}))
    tables = run("--summary", str(results))
    assert tables.startswith("1 thread / 2 threads\n\n| ÷ JAX, jit | default | plain | planned |")


def test_what_an_advice_is_worth_is_measured() -> None:
    told = run("--only", "function", "vmap", "--rounds", "1", script="faster.py")
    figures = [float(line.split("|")[2]) for line in told.splitlines()[2:]]
    assert len(figures) == 2
    assert min(figures) > 0.0
