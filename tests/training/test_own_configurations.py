"""Configurations of own classes have the arguments that a class adds, or say what is missing."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import gradtape as gt
from gradtape import training


class Optimizer(training.Optimizer, saved_as="example.ConfiguredOptimizer"):
    def __init__(self, learning_rate: Any = 0.1, beta: float = 0.9, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.beta = beta

    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        return value - settings[0] * self.beta * gradient, state


class Metric(training.metrics.Metric):
    def __init__(self, beta: float = 0.9, name: str | None = None) -> None:
        super().__init__(name)
        self.beta = beta


class Loss(training.losses.Loss):
    def __init__(self, beta: float = 0.9, **rest: Any) -> None:
        super().__init__(**rest)
        self.beta = beta


class Schedule(training.schedules.LearningRateSchedule):
    def __init__(self, beta: float = 0.9, name: str | None = None) -> None:
        super().__init__(name)
        self.beta = beta


class Layer(gt.layers.Layer):
    def __init__(self, beta: float = 0.9, **rest: Any) -> None:
        super().__init__(**rest)
        self.beta = beta


KINDS: list[Any] = [Optimizer, Metric, Loss, Schedule, Layer]


def made_by(kind: Any, config: dict[str, Any]) -> Any:
    return kind.from_config(config) if hasattr(kind, "from_config") else kind(**config)


@pytest.mark.parametrize("kind", KINDS)
def test_a_configuration_has_the_arguments_of_the_class(kind: Any) -> None:
    config = kind(beta=0.8).get_config()
    assert config["beta"] == 0.8
    assert made_by(kind, config).beta == 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_further_down_adds_its_own(kind: Any) -> None:
    class Further(kind):  # type: ignore[misc]
        def __init__(self, gamma: float = 0.5, **rest: Any) -> None:
            super().__init__(**rest)
            self.gamma = gamma

    config = Further(gamma=0.25, beta=0.8).get_config()
    again = made_by(Further, config)
    assert (again.gamma, again.beta) == (0.25, 0.8)


@pytest.mark.parametrize("kind", KINDS)
def test_an_argument_that_is_not_kept_is_an_error_that_names_it(kind: Any) -> None:
    class Careless(kind):  # type: ignore[misc]
        def __init__(self, gamma: float = 0.5, **rest: Any) -> None:
            super().__init__(**rest)
            self._kept = gamma

    with pytest.raises(TypeError, match=r"Careless: .*'gamma'.* set self\.gamma, or define get_co"):
        Careless(0.25).get_config()


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_that_defines_get_config_answers_for_it(kind: Any) -> None:
    class Careful(kind):  # type: ignore[misc]
        def __init__(self, gamma: float = 0.5, **rest: Any) -> None:
            super().__init__(**rest)
            self._kept = gamma

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "gamma": self._kept}

    class Plain(Careful):
        pass

    for made in (Careful(0.25), Plain(0.25)):
        assert made.get_config()["gamma"] == 0.25


def test_a_saved_optimizer_keeps_its_arguments(tmp_path: Path) -> None:
    class Parts:
        @gt.hookimpl
        def gradtape_modules(self) -> dict[str, type]:
            return {"example.ConfiguredOptimizer": Optimizer}

    with gt.register_plugin(Parts(), "example"):
        gt.save(Optimizer(beta=0.8), tmp_path / "optimizer.h5")
        assert gt.load(tmp_path / "optimizer.h5").beta == 0.8


def test_a_picture_of_a_layer_needs_no_configuration() -> None:
    class Careless(gt.layers.Layer):
        def __init__(self, gamma: float = 0.5) -> None:
            super().__init__()

        def call(self, x: Any) -> Any:
            return x

    model = gt.layers.Sequential([Careless(), gt.layers.Dense(2)])
    model(gt.ones((1, 3)))
    assert "Careless" in gt.plot.model(model).svg


def test_a_metric_whose_initial_value_a_reset_would_change() -> None:
    class Smallest(training.metrics.Metric):
        def __init__(self) -> None:
            super().__init__(name="smallest")
            self.least = self.add_weight((), gt.layers.initializers.Constant(9.0), name="least")

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            self.least.assign(gt.minimum(self.least, gt.min(gt.abs(y_true - y_pred))))

        def result(self) -> Any:
            return self.least.value

    class Restarted(Smallest):
        def reset_state(self) -> None:
            self.least.assign(9.0)

    with pytest.warns(UserWarning, match=r"metric Smallest: 'least' begins with 9\.0, but"):
        Smallest()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Restarted()
