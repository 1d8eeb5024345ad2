"""The examples: plain-NumPy programs whose gradients agree with their own finite differences."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

FOLDER = Path(__file__).parents[2] / "docs" / "examples"
FILES = sorted(FOLDER.glob("*.py"))
NAMES = [path.stem for path in FILES]


def load(path: Path) -> tuple[Any, dict[str, Any]]:
    scope = runpy.run_path(str(path))
    return scope["program"], scope["inputs"]()


def differences(program: Any, inputs: dict[str, Any], name: str) -> np.ndarray:
    """Return central differences of a program run by NumPy alone."""
    found = np.zeros_like(inputs[name])
    for index in np.ndindex(found.shape):
        values = []
        for step in (1e-5, -1e-5):
            moved = inputs[name].copy()
            moved[index] += step
            values.append(program(**{**inputs, name: moved}))
        found[index] = (values[0] - values[1]) / 2e-5
    return found


def test_the_examples_are_there() -> None:
    assert len(FILES) >= 5
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"({path.name})" in page for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_gradients_agree_with_finite_differences(path: Path) -> None:
    program, arrays = load(path)
    tensors = {name: gt.constant(value) for name, value in arrays.items()}
    with gt.GradientTape() as tape:
        tape.watch(tensors)
        value = program(**tensors)
    assert isinstance(value, gt.Tensor)
    assert value.dtype == np.float64
    np.testing.assert_allclose(value.numpy(), program(**arrays), rtol=1e-12)
    for name, gradient in tape.gradient(value, tensors).items():
        expected = differences(program, arrays, name)
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-6, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_the_traced_program_is_the_same(path: Path) -> None:
    program, arrays = load(path)
    tensors = {name: gt.constant(value) for name, value in arrays.items()}
    results = []
    for run in (program, gt.function(program)):
        with gt.GradientTape() as tape:
            tape.watch(tensors)
            value = run(**tensors)
        results.append([value, *tape.gradient(value, list(tensors.values()))])
    for eager, traced in zip(*results, strict=True):
        np.testing.assert_allclose(traced.numpy(), eager.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_an_example_imports_numpy_alone_and_runs(path: Path, capsys: Any) -> None:
    head, _, _ = path.read_text(encoding="utf-8").partition('if __name__ == "__main__":')
    assert "gradtape" not in head
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.count(":") >= 2
