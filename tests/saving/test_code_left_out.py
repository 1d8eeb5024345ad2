"""Functions and other code that a file does not hold: one warning says so."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import gradtape as gt


class Bag(gt.Module):
    pass


class WithStep(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = gt.Variable(2.0)

    @gt.function
    def step(self, x: Any) -> Any:
        return x * self.weight

    @gt.function(input_signature=[gt.TensorSpec(None)])
    def known(self, x: Any) -> Any:
        return x + self.weight


def warning_of(module: Any, path: Path) -> str:
    with pytest.warns(UserWarning, match="save: not saved: ") as caught:
        gt.save(module, path)
    (told,) = caught
    assert told.filename == __file__
    return str(told.message)


def test_a_function_that_was_never_called_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "bag.h5"
    bag = Bag()
    bag.nll = gt.function(lambda x: x * 2.0)
    assert "bag.nll (no input_signature, and never called" in warning_of(bag, path)
    assert "with_step.step (no input_signature" in warning_of(WithStep(), path)
    nested = Bag()
    nested.part = WithStep()
    text = warning_of(nested, path)
    assert "step (no input_signature" in text
    assert "known" not in text


def test_a_function_that_was_called_is_saved_without_a_warning(tmp_path: Path) -> None:
    bag, model = Bag(), WithStep()
    bag.nll = gt.function(lambda x: x * 2.0)
    bag.helper = abs  # the trace has what it computes
    bag.nll(gt.ones(3))
    model.step(gt.ones(3))
    with warnings.catch_warnings(action="error"):
        gt.save(bag, tmp_path / "bag.h5")
        gt.save(model, tmp_path / "model.h5")
    assert gt.load(tmp_path / "bag.h5").nll(gt.ones(3)).tolist() == [2.0] * 3
    assert gt.load(tmp_path / "model.h5").step(gt.ones(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize("make", [lambda: gt.layers.Dense(2), lambda: gt.training.Adam(0.1)])
def test_code_assigned_to_a_known_class_is_told_of(make: Any, tmp_path: Path) -> None:
    module = make()
    if isinstance(module, gt.layers.Dense):
        module(gt.ones((1, 3)))
    with warnings.catch_warnings(action="error"):
        gt.save(module, tmp_path / "module.h5")
    module.nll = gt.function(lambda x: x * 2.0)
    module.nll(gt.ones(2))
    module.helper = abs
    text = warning_of(module, tmp_path / "module.h5")
    assert ".nll (a function assigned to" in text
    assert ".helper (the code of 'abs')" in text
