"""Schedules beside what Keras 3 gave for the same steps; ``OneCycle`` beside PyTorch's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.training import schedules

STEPS = [0, 1, 3, 5, 9, 10, 11, 15, 20, 29, 30, 31, 45, 70, 100]

#: The schedule, its settings, and the peer's learning rates.
PEERS: list[tuple[str, dict[str, Any], list[float]]] = [
    (
        "ExponentialDecay",
        {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5},
        [
            0.1,
            0.0933033,
            0.08122524,
            0.07071068,
            0.05358868,
            0.05,
            0.04665165,
            0.03535534,
            0.025,
            0.01339717,
            0.0125,
            0.01166291,
            0.00441942,
            0.00078125,
            9.766e-05,
        ],
    ),
    (
        "ExponentialDecay",
        {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5, "staircase": True},
        [
            0.1,
            0.1,
            0.1,
            0.1,
            0.1,
            0.05,
            0.05,
            0.05,
            0.025,
            0.025,
            0.0125,
            0.0125,
            0.00625,
            0.00078125,
            9.766e-05,
        ],
    ),
    (
        "InverseTimeDecay",
        {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5},
        [
            0.1,
            0.0952381,
            0.08695652,
            0.08,
            0.06896552,
            0.06666667,
            0.06451613,
            0.05714286,
            0.05,
            0.04081633,
            0.04,
            0.03921569,
            0.03076923,
            0.02222222,
            0.01666667,
        ],
    ),
    (
        "InverseTimeDecay",
        {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5, "staircase": True},
        [
            0.1,
            0.1,
            0.1,
            0.1,
            0.1,
            0.06666667,
            0.06666667,
            0.06666667,
            0.05,
            0.05,
            0.04,
            0.04,
            0.03333334,
            0.02222222,
            0.01666667,
        ],
    ),
    (
        "PolynomialDecay",
        {"initial_learning_rate": 0.1, "decay_steps": 30, "power": 2.0},
        [
            0.1,
            0.09345099,
            0.081019,
            0.069475,
            0.049051,
            0.0445,
            0.040171,
            0.025075,
            0.0112,
            0.000211,
            0.0001,
            0.0001,
            0.0001,
            0.0001,
            0.0001,
        ],
    ),
    (
        "PolynomialDecay",
        {"initial_learning_rate": 0.1, "decay_steps": 10, "end_learning_rate": 0.01, "cycle": True},
        [
            0.1,
            0.091,
            0.073,
            0.055,
            0.019,
            0.01,
            0.0505,
            0.0325,
            0.01,
            0.013,
            0.01,
            0.03025,
            0.019,
            0.01,
            0.01,
        ],
    ),
    (
        "PiecewiseConstantDecay",
        {"boundaries": [10, 30], "values": [0.1, 0.05, 0.01]},
        [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.01, 0.01, 0.01, 0.01],
    ),
    (
        "CosineDecay",
        {"initial_learning_rate": 0.1, "decay_steps": 30, "alpha": 0.1},
        [
            0.1,
            0.09975348,
            0.09779754,
            0.09397115,
            0.08145034,
            0.0775,
            0.07330316,
            0.055,
            0.0325,
            0.01024651,
            0.01,
            0.01,
            0.01,
            0.01,
            0.01,
        ],
    ),
    (
        "CosineDecay",
        {
            "initial_learning_rate": 0.01,
            "decay_steps": 30,
            "warmup_target": 0.2,
            "warmup_steps": 10,
        },
        [
            0.01,
            0.029,
            0.067,
            0.105,
            0.18099999,
            0.2,
            0.19945219,
            0.18660255,
            0.15000001,
            0.05932633,
            0.04999999,
            0.04122148,
            0.0,
            0.0,
            0.0,
        ],
    ),
    (
        "CosineDecayRestarts",
        {"initial_learning_rate": 0.1, "first_decay_steps": 10},
        [
            0.1,
            0.09755283,
            0.07938927,
            0.05,
            0.00244718,
            0.1,
            0.09938442,
            0.08535534,
            0.05,
            0.00061558,
            0.1,
            0.09984587,
            0.06913417,
            0.1,
            0.06913417,
        ],
    ),
    (
        "CosineDecayRestarts",
        {
            "initial_learning_rate": 0.1,
            "first_decay_steps": 10,
            "t_mul": 1.0,
            "m_mul": 0.5,
            "alpha": 0.2,
        },
        [
            0.1,
            0.09804226,
            0.08351141,
            0.06,
            0.02195774,
            0.06,
            0.05902113,
            0.04,
            0.04,
            0.02048943,
            0.03,
            0.02975528,
            0.0225,
            0.020625,
            0.02007813,
        ],
    ),
    (
        "OneCycle",
        {"max_learning_rate": 0.2, "total_steps": 101},
        [
            0.008,
            0.0085513,
            0.0129238,
            0.02146849,
            0.04933553,
            0.05809479,
            0.0673813,
            0.1076018,
            0.15609817,
            0.19995034,
            0.19995163,
            0.19971482,
            0.17663626,
            0.07645077,
            8e-07,
        ],
    ),
]


@pytest.mark.parametrize(("name", "settings", "expected"), PEERS)
def test_rates_are_the_peers(name: str, settings: dict[str, Any], expected: list[float]) -> None:
    schedule = getattr(schedules, name)(**settings)
    np.testing.assert_allclose([schedule(t).item() for t in STEPS], expected, rtol=2e-6, atol=1e-8)
    traced = gt.function(schedule)
    for t in STEPS:
        assert traced(gt.constant(t)).item() == pytest.approx(schedule(t).item(), abs=1e-12)


@pytest.mark.parametrize(("name", "settings", "expected"), PEERS)
def test_schedules_are_saved_with_their_optimizer(
    name: str, settings: dict[str, Any], expected: list[float], tmp_path: Path
) -> None:
    optimizer, w = gt.training.SGD(getattr(schedules, name)(**settings)), gt.Variable(1.0)
    for _ in range(3):
        optimizer.apply_gradients([(gt.constant(1.0), w)])
    gt.save(optimizer, tmp_path / "o.h5", golden=False)
    loaded = gt.load(tmp_path / "o.h5")
    assert type(loaded.learning_rate) is type(optimizer.learning_rate)
    assert loaded.learning_rate.get_config() == optimizer.learning_rate.get_config()
    twin = gt.Variable(w.numpy())
    optimizer.apply_gradients([(gt.constant(1.0), w)])
    loaded.apply_gradients([(gt.constant(1.0), twin)])
    assert twin.item() == w.item()


def test_steps_may_be_traced() -> None:
    rate = schedules.CosineDecay(0.1, 30, warmup_target=0.5, warmup_steps=4)
    eager, traced = gt.Variable(1.0), gt.Variable(1.0)
    one, two = gt.training.Adam(rate), gt.training.Adam(rate)
    two.build([traced])
    step = gt.function(lambda: two.apply_gradients([(gt.constant(1.0), traced)]))
    for _ in range(10):
        one.apply_gradients([(gt.constant(1.0), eager)])
        step()
    assert traced.item() == pytest.approx(eager.item(), rel=1e-6)


def test_every_schedule_is_compared() -> None:
    assert set(schedules.__all__) - {"LearningRateSchedule"} == {name for name, *_ in PEERS}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: schedules.ExponentialDecay(0.1, 0, 0.5), "decay_steps must be positive, got 0"),
        (lambda: schedules.ExponentialDecay(0.1, 9, -0.5), "decay_rate must not be negative"),
        (lambda: schedules.PiecewiseConstantDecay([1], [1.0]), "one more value than boundaries"),
        (lambda: schedules.PiecewiseConstantDecay([2, 1], [1.0] * 3), "boundaries must increase"),
        (lambda: schedules.CosineDecayRestarts(0.1, 5, t_mul=0.5), "t_mul must be at least 1"),
        (lambda: schedules.OneCycle(0.1, 1), "total_steps must be above 1"),
    ],
)
def test_settings_out_of_range_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()
