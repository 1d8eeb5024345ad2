"""The examples that use SciPy: they run, and find what is there to be found."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

pytest.importorskip("scipy.optimize", reason="SciPy is not installed")

FOLDER = Path(__file__).parents[2] / "docs" / "examples" / "with_scipy"
FILES = sorted(FOLDER.glob("*.py"))


def load(name: str) -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / name))


def test_the_page_names_every_example() -> None:
    page = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert len(FILES) == 2
    assert all(f"(with_scipy/{path.name})" in page for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.count(":") >= 4


def test_a_trust_region_ends_where_the_gradient_does() -> None:
    example = load("trust_region.py")
    gt.random.set_seed(0)
    x, y = example["data"]()
    model = example["network"]()
    before = gt.mean((model(x) - y) ** 2)
    found = example["train"](model, x, y, decay=1e-3)
    assert found.success
    assert np.abs(found.jac).max() < 1e-4
    assert gt.mean((model(x) - y) ** 2) < before / 20
    np.testing.assert_array_equal(gt.flatten(model.trainable_variables)[0], found.x)
    # there, the Hessian has no negative eigenvalue: it is a minimum
    weights, unflatten = gt.flatten(model.trainable_variables)

    def loss(vector: gt.Tensor) -> gt.Tensor:
        kernel, bias, last, shift = unflatten(vector)
        error = gt.tanh(x @ kernel + bias) @ last + shift - y
        return gt.mean(error**2) + 1e-3 * gt.sum(vector * vector)

    np.testing.assert_allclose(loss(weights), found.fun, rtol=1e-9)
    assert gt.linalg.eigvalsh(gt.hessian(loss)(weights)).numpy().min() > -1e-6


@pytest.mark.parametrize("mode", [gt.jacfwd, gt.jacrev])
def test_a_fit_finds_the_parameters_in_spite_of_outliers(mode: Any) -> None:
    example = load("least_squares.py")
    guess = {"amplitude": 1.0, "decay": 0.1, "frequency": 2.2, "phase": 0.0}
    found, report = example["fit"](guess, *example["data"](), mode)
    assert report.success
    assert found == pytest.approx(example["TRUTH"], abs=0.03)
