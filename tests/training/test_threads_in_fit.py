"""``fit`` says once that threads wait for each other, with the line that mends it."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.errors import BackendUnavailable
from gradtape.training import threads


@pytest.fixture
def machine(monkeypatch: Any) -> Any:
    """Return a function that sets BLAS's threads, the cores, and the cost of all threads."""

    def is_like(blas: int | None, cores: float, cost: float = 1.0) -> list[Any]:
        asked: list[Any] = []
        monkeypatch.setattr(threads._Process, "looked", False)
        monkeypatch.setattr(threads, "blas_threads", lambda: blas)
        monkeypatch.setattr(threads, "usable_cores", lambda: cores)

        def cost_of_threads(sizes: Any) -> float:
            asked.append(sizes)
            return cost

        monkeypatch.setattr(threads, "cost_of_threads", cost_of_threads)
        return asked

    return is_like


def fit() -> list[str]:
    """Train for two epochs, twice; return the warnings about threads."""
    model = gt.layers.Sequential([gt.layers.Dense(1)])
    x = np.ones((4, 2), np.float32)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(2):
            gt.training.fit(model, (x, x[:, :1]), loss="mse", epochs=2, verbose=False)
    return [str(x.message) for x in found if issubclass(x.category, gt.errors.ThreadsWarning)]


def test_more_threads_than_cores_are_told_once(machine: Any) -> None:
    asked = machine(8, 2.5)
    (told,) = fit()
    assert "8 threads, but this process has 2.5 cores" in told
    assert "gt.limit_threads(2) before fit, or set OMP_NUM_THREADS=2" in told
    assert asked == []


def test_a_machine_that_others_load_is_told(machine: Any) -> None:
    asked = machine(2, 2, cost=6.0)
    (told,) = fit()
    assert "6.0 times as long with 2 threads as with one" in told
    assert "gt.limit_threads(1) before fit, or set OMP_NUM_THREADS=1" in told
    assert len(told) < 200
    assert asked == [(4, 2, 1)]  # of this model, once


@pytest.mark.parametrize(("blas", "cores"), [(1, 0.5), (1, 4), (None, 4), (0, 4)])
def test_nothing_is_measured_without_threads(machine: Any, blas: int | None, cores: float) -> None:
    assert (machine(blas, cores, cost=9.0), fit()) == ([], [])


def test_threads_that_pay_are_not_mentioned(machine: Any) -> None:
    machine(4, 4, cost=threads.COSTLY)
    assert fit() == []


def test_the_quota_of_a_container_counts(monkeypatch: Any) -> None:
    monkeypatch.setattr(threads, "cores", lambda: list(range(8)))
    monkeypatch.setattr(threads, "quota", lambda: None)
    assert threads.usable_cores() == 8
    monkeypatch.setattr(threads, "quota", lambda: 1.5)
    assert threads.usable_cores() == 1.5


def test_without_threadpoolctl_the_number_is_unknown(monkeypatch: Any) -> None:
    def missing() -> Any:
        raise BackendUnavailable("threadpoolctl is not installed")

    monkeypatch.setattr(threads, "pools", missing)
    assert threads.blas_threads() is None


def test_the_measurement_restores_the_threads(monkeypatch: Any) -> None:
    pytest.importorskip("threadpoolctl")
    before = threads.blas_threads()
    assert threads.cost_of_threads((128, 256, 256)) > 0
    assert threads.blas_threads() == before


def test_a_slow_product_ends_the_measurement(monkeypatch: Any) -> None:
    class Slow:
        count = 0

        def __matmul__(self, other: Any) -> None:
            Slow.count += 1
            time.sleep(2 * threads._TIME)

    assert threads._median_time(Slow(), Slow()) > threads._TIME
    assert Slow.count == 2


# -- when it matters ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "layers", "sizes"),
    [
        ((32, 64), [gt.layers.Dense(48), gt.layers.Dense(10)], (32, 64, 48)),
        ((8, 9, 9, 2), [gt.layers.Conv2D(4, 3)], (512, 18, 4)),  # as many rows as pixels, at most
        ((32, 900), [gt.layers.Dense(700)], (32, 512, 512)),
        ((32, 8), [gt.layers.BatchNorm()], None),
    ],
)
def test_the_sizes_are_the_models(shape: Any, layers: Any, sizes: Any) -> None:
    model, x = gt.layers.Sequential(layers), gt.zeros(shape)
    model(x)
    assert threads.largest_product(model.variables, x) == sizes


def test_a_model_without_products_is_not_measured(machine: Any) -> None:
    asked = machine(2, 2, cost=9.0)
    model = gt.layers.Sequential([gt.layers.BatchNorm()])
    x = np.ones((4, 2), np.float32)
    gt.training.fit(model, (x, x), loss="mse", verbose=False)  # warnings are errors here
    assert asked == []


def cost(times: list[float], monkeypatch: Any) -> tuple[float, list[float]]:
    """Return the cost for these times, with all threads and with one in turn; and those left."""
    pytest.importorskip("threadpoolctl")
    left = list(times)
    monkeypatch.setattr(threads, "_median_time", lambda a, b: left.pop(0))
    return threads.cost_of_threads((2, 2, 2)), left


def test_one_busy_moment_is_not_enough(monkeypatch: Any) -> None:
    assert cost([0.1, 0.001, 0.001, 0.001], monkeypatch) == (1.0, [])
    assert cost([0.1, 0.001, 0.002, 0.001], monkeypatch) == (2.0, [])
    assert cost([0.0006, 0.001, 9.0, 9.0], monkeypatch) == (1.0, [9.0, 9.0])


def test_a_few_microseconds_do_not_matter(monkeypatch: Any) -> None:
    assert cost([9e-6, 3e-6], monkeypatch) == (1.0, [])
