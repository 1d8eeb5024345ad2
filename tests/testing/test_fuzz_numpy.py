"""The fuzzer of calls against NumPy: a short run, the differences that are kept, and its page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fuzz.commands import Clock, main
from fuzz.numpy_calls.arguments import Array
from fuzz.numpy_calls.differences import Difference, shown
from fuzz.numpy_calls.kept import DIFFERENCES
from fuzz.numpy_calls.run import fuzz, snippet
from fuzz.numpy_calls.shrink import reduced
from fuzz.numpy_calls.targets import Argument, Call, Target, find_targets

SCRIPT = Path(__file__).parents[2] / "docs" / "make_numpy_page.py"


def test_random_calls_give_what_numpy_gives() -> None:
    report = fuzz(7, Clock(count=2000))
    assert report.calls == 2000
    assert not report.findings, "\n\n".join(map(snippet, report.findings))


def test_every_function_with_a_namesake_has_a_generator() -> None:
    targets, missing = find_targets()
    assert not missing
    assert {"sum", "np.sum", "Tensor.sum", "linalg.det", "{0} + {1}"} <= {t.name for t in targets}


def test_a_seed_gives_the_same_calls_again() -> None:
    first, again = (fuzz(3, Clock(count=300), only="flip") for _ in range(2))
    assert (first.errors, first.kept) == (again.errors, again.kept)


@pytest.mark.parametrize("kept", DIFFERENCES, ids=lambda kept: kept.what)
def test_a_difference_that_is_kept_is_one(kept: Difference) -> None:
    theirs, ours = (shown(kept.example, tensors).text() for tensors in (False, True))
    assert "NameError" not in theirs + ours
    assert kept.varies or theirs != ours


def test_a_failure_is_reduced_to_the_smallest_call() -> None:
    target = Target("sum", np.sum, np.sum, lambda d: [], "{xp}.sum({args})")
    x = Array(np.array([[3.0, np.nan], [1.0, 2.0]]), layout="fortran")
    call = Call(target, (Argument(x), Argument(1, "axis", "axis", required=False, name="axis")))
    small = reduced(call, lambda c: bool(np.isnan(c.arrays[0].values).any()))
    assert small.text("np") == "np.sum(array(nan, 'float64'))"


def test_the_command_line_prints_a_program_for_what_it_finds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["numpy", "--calls", "20", "--only", "flip", "--seed", "5"]) == 0
    assert "0 unexplained differences" in capsys.readouterr().out
    monkeypatch.setattr(np, "cumsum", lambda a, **kwargs: np.asarray(a) * 0 + 41)
    assert main(["numpy", "--calls", "6", "--only", "cumsum", "--exact"]) == 1
    said = capsys.readouterr().out
    assert "import numpy as np, gradtape as gt" in said
    assert "# NumPy: " in said
    assert "# gradtape: " in said


def test_the_page_of_differences_is_up_to_date() -> None:
    # in a process of its own: it sets the default dtype
    found = subprocess.run([sys.executable, SCRIPT, "--check"], check=False)
    assert found.returncode == 0, "run: python docs/make_numpy_page.py"
