"""Tiny ops, training steps, short runs of ``fit``, and what the compatibility layer adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import eager
import fitting
import training_step

import gradtape as gt

from . import comparison
from .comparison import BY_HAND, LARGE, SIZES, SMALL, Comparison


class TinyOps(Comparison):
    """50 times ``sin(y * 1.001)`` of ten numbers, forward and gradient."""

    rows = (
        ("100 tiny ops, eager", "gradtape, eager", BY_HAND),
        ("100 tiny ops, function", "gradtape, function", BY_HAND),
    )

    def programs(self) -> dict[str, Callable[[], Any]]:
        return {BY_HAND: eager.numpy_tiny, **eager.gradtape_tiny()}

    def setup_cache(self) -> Any:
        return self.measured()


class TinyOpsOfTensorFlow(Comparison):
    """The same, through TensorFlow's names."""

    rows = (("100 tiny ops, eager, by gradtape.compat", "gradtape, eager", BY_HAND),)
    needs = ("compat.tensorflow.GradientTape", "compat.tensorflow.function")

    def programs(self) -> dict[str, Callable[[], Any]]:
        import gradtape.compat.tensorflow as tf

        return {BY_HAND: eager.numpy_tiny, **eager.gradtape_tiny(tf)}

    def setup_cache(self) -> Any:
        return self.measured()


class TrainingSteps(Comparison):
    """A step of Dense, BatchNorm, relu and Adam."""

    rows = (
        ("step of 64-128-10, eager", "eager", SMALL),
        ("step of 64-128-10, function", "function", SMALL),
        ("step of 784-256-256-10, eager", "large, eager", LARGE),
        ("step of 784-256-256-10, function", "large, function", LARGE),
    )

    def programs(self) -> dict[str, Callable[[], Any]]:
        found = comparison.steps(SMALL, LARGE)
        for prefix, name in (("", SMALL), ("large, ", LARGE)):
            task = training_step.Task(**SIZES[name])
            for how in ("eager", "function"):
                made = training_step.gradtape(task, traced=how == "function")
                found[prefix + how] = made.step
        return found

    def setup_cache(self) -> Any:
        return self.measured()


class Fit(Comparison):
    """Five epochs of ``fit`` on the digits, validation included, compared with a step by hand."""

    rows = (("fit of 64-128-10, 5 epochs of 36 steps", "fit", SMALL),)
    needs = ("training.fit(compile)", "datasets.load_digits")
    rounds = 5

    def programs(self) -> dict[str, Callable[[], Any]]:
        data, _ = gt.datasets.load_digits()
        found = comparison.steps(SMALL)
        found["fit"] = lambda: fitting.run(fitting.digits_model, data, "auto", 5)
        return found

    def setup_cache(self) -> Any:
        return self.measured()
