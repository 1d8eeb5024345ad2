"""SciPy and scikit-learn on gradtape's arrays, by the array API standard: values and gradients."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from consumers import OUTCOMES, read
from consumers import __file__ as script

TABLE = read()
DOCS = Path(__file__).parents[2] / "docs"


#: The versions that the table was measured with.
MEASURED = {"scipy": "1.17", "sklearn": "1.9"}


@pytest.mark.parametrize("library", ["scipy", "sklearn"])
def test_libraries_compute_and_differentiate_as_the_table_says(library: str) -> None:
    version = ".".join(pytest.importorskip(library).__version__.split(".")[:2])
    if version != MEASURED[library]:
        pytest.skip(f"the table is of {library} {MEASURED[library]}, and {version} is installed")
    modules = [name for name in TABLE if name.partition(".")[0] == library]
    done = subprocess.run(
        [sys.executable, script, *modules],
        capture_output=True,
        text=True,
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name in modules:
        assert found[name] == list(map(str, TABLE[name])), f"run python {script}"


def test_the_page_is_up_to_date_and_its_code_runs() -> None:
    script = DOCS / "make_scipy_sklearn_page.py"
    done = subprocess.run([sys.executable, script, "--check"], check=False)
    assert done.returncode == 0, f"run: python {script}"
    for library in ("scipy", "sklearn"):
        pytest.importorskip(library)
    text = (DOCS / "scipy-sklearn.md").read_text("utf-8")
    blocks = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    subprocess.run([sys.executable, "-c", "\n".join(blocks)], check=True)


def test_no_row_loses_a_gradient_without_a_word() -> None:
    assert {row.outcome for rows in TABLE.values() for row in rows} == set(OUTCOMES)
    for rows in TABLE.values():
        assert all(bool(row.reason) == (row.outcome == "error") for row in rows)
