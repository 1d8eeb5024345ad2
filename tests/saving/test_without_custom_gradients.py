"""Saving without custom gradients: results are there, gradients through them are an error."""

from __future__ import annotations

import pytest

import gradtape as gt


@gt.custom_gradient
def clipped(y):
    return y * 1.0, lambda dy: gt.clip_by_norm(dy, 0.5)


class Model(gt.Module):
    def __init__(self):
        super().__init__()
        self.w = gt.Variable(3.0)

    @gt.function(input_signature=[gt.TensorSpec(None)])
    def with_custom(self, x):
        return clipped(x)

    @gt.function(input_signature=[gt.TensorSpec([])])
    def plain(self, x):
        return x * self.w


def gradient(f):
    v = gt.Variable(2.0)
    with gt.GradientTape() as tape:
        y = f(v * v)
    return y.item(), tape.gradient(y, v).item()


def test_the_results_are_there_and_a_gradient_raises_lookup_error(tmp_path) -> None:
    path = tmp_path / "model.h5"
    gt.save(Model(), path, custom_gradients=False)
    loaded = gt.load(path)
    assert loaded.with_custom(gt.constant(4.0)).item() == 4.0
    with pytest.raises(LookupError, match=r"no gradient is defined for 'clipped'.*without it"):
        gradient(loaded.with_custom)
    assert gradient(loaded.plain) == (12.0, 12.0)


def test_samples_are_kept_of_functions_without_custom_gradients(tmp_path) -> None:
    path = tmp_path / "model.h5"
    gt.save(Model(), path, custom_gradients=False)
    report = gt.saving.verify(path)
    assert report.ok
    gt.save(Model(), path)
    assert gradient(gt.load(path).with_custom) == (4.0, 2.0)


def test_saving_again_needs_the_same_choice(tmp_path) -> None:
    path = tmp_path / "model.h5"
    gt.save(Model(), path, custom_gradients=False)
    loaded = gt.load(path)
    with pytest.raises(gt.saving.UntraceableGradient, match="saved without it"):
        gt.save(loaded, path)
    gt.save(loaded, path, custom_gradients=False)
    assert gt.load(path).with_custom(gt.constant([1.0, 2.0])).tolist() == [1.0, 2.0]
