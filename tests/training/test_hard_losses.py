"""Every loss where formulas break: values, and derivatives of two orders."""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradtape as gt
from gradtape.training import losses

Array = np.ndarray
EPSILON = np.longdouble(1e-7)
#: Kinks, numbers that cancel, and numbers whose exponentials overflow.
NEAR = [0.0, 1e-8, -1e-8, 1e-4, -1e-4, 1.0, -1.0, 30.0, -30.0, 100.0, -100.0, 1e4, -1e4]
FAR = [*NEAR, 1e30, -1e30]
LOGITS = [*NEAR, np.inf, -np.inf]
SHARES = [0.0, 1e-8, 1e-4, 0.5, 1.0 - 1e-4, 1.0]


def pairs(labels: list[float], predictions: list[float]) -> tuple[Array, Array]:
    """Return all pairs, as columns."""
    y, x = zip(*itertools.product(labels, predictions), strict=True)
    return np.array(y)[:, None], np.array(x)[:, None]


def rows(labels: list[list[float]], first: list[float], *rest: float) -> tuple[Array, Array]:
    y, x = zip(*itertools.product(labels, first), strict=True)
    return np.array(y), np.array([[value, *rest] for value in x])


def times(weight: Array, value: Array) -> Array:
    """Return a product that is 0 where the weight is 0, whatever the value."""
    return np.where(weight == 0, 0, weight * np.where(weight == 0, 0, value))


def softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


def binary(y: Array, z: Array) -> Array:
    return times(y, softplus(-z)) + times(1 - y, softplus(z))


def focal(y: Array, z: Array, gamma: float) -> Array:
    missed = times(y, np.exp(-softplus(z))) + times(1 - y, np.exp(-softplus(-z)))
    return times(missed**gamma, binary(y, z))


def clipped(p: Array) -> Array:
    return np.clip(p, EPSILON, 1 - EPSILON)


def binary_of_shares(y: Array, p: Array, gamma: float = 0.0) -> Array:
    p = clipped(p)
    missed = y * (1 - p) + (1 - y) * p
    return missed**gamma * -(y * np.log(p) + (1 - y) * np.log1p(-p))


def logs(z: Array) -> Array:
    return z - np.logaddexp.reduce(z, axis=-1, keepdims=True)


def categorical(y: Array, logs: Array, gamma: float = 0.0, alpha: float = 1.0) -> Array:
    missed = -np.expm1(logs)
    return times(y, alpha * times(missed**gamma, -logs)).sum(-1)


def of_shares(p: Array) -> Array:
    return np.log(clipped(p / p.sum(-1, keepdims=True)))


def unit(x: Array) -> Array:
    return x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), 1e-6)


def overlap(y: Array, p: Array, alpha: float, beta: float) -> Array:
    tp, fp, fn = (part.sum(-1) for part in (y * p, (1 - y) * p, y * (1 - p)))
    return 1 - tp / (tp + alpha * fp + beta * fn + EPSILON)


class Case(NamedTuple):
    """Labels and predictions for a loss, and its formula in long doubles."""

    points: tuple[Array, Array]
    formula: Callable[..., Array]
    settings: dict[str, Any] = {}  # noqa: RUF012


def mean(formula: Callable[..., Array]) -> Callable[..., Array]:
    return lambda y, x: formula(y, x).mean(-1)


NUMBERS, FAR_NUMBERS = pairs([0.0, 1e-4, 1.0, 30.0], NEAR), pairs([0.0, 1e-4, 1.0, 30.0], FAR)
SIGNS, CHANCES = pairs([-1.0, 1.0], FAR), pairs([0.0, 0.3, 1.0], SHARES)
ONE_HOT = [[1.0, 0, 0], [0, 1.0, 0], [0.2, 0.3, 0.5]]
FINITE = [z for z in LOGITS if z < np.inf]  # with two classes at infinity, there is no softmax
CLASSES, PARTS = rows(ONE_HOT, FINITE, 0.0, -1.0), rows([[1.0, 0], [0, 1.0], [0.3, 0.7]], SHARES, 0)
PARTS = PARTS[0], np.concatenate([PARTS[1][:, :1], 1 - PARTS[1][:, :1]], axis=1)
VECTORS = rows([[0.0, 0.0], [1.0, 0.0], [3.0, 4.0]], [0.0, 1e-8, 1.0, -1.0, 3.0, 1e4], 0.0)
MASKS = rows([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], SHARES, 0.0)
COUNTS = pairs([0.0, 1.0, 30.0], [0.0, 1e-8, 1e-4, 1.0, 30.0, 1e4])


def log_cosh(y: Array, x: Array) -> Array:
    e = np.abs(x - y)
    return np.where(
        e < 1, np.log1p(2 * np.sinh(np.minimum(e, 1) / 2) ** 2), e + softplus(-2 * e) - np.log(2.0)
    )


def huber(y: Array, x: Array) -> Array:
    e = np.abs(x - y)
    return np.where(e <= 1, 0.5 * e * e, e - 0.5)


def hinge_of_classes(y: Array, x: Array) -> Array:
    return np.maximum(((1 - y) * x).max(-1) - (y * x).sum(-1) + 1, 0)


def squared_logs(y: Array, x: Array) -> Array:
    y, x = np.maximum(y, EPSILON), np.maximum(x, EPSILON)
    return (np.log1p(y) - np.log1p(x)) ** 2


def divergence(y: Array, p: Array) -> Array:
    y, p = np.clip(y, EPSILON, 1), np.clip(p, EPSILON, 1)
    return (y * np.log(y / p)).sum(-1)


def sparse(y: Array, z: Array) -> Array:
    return -np.take_along_axis(logs(z), y.astype(int)[:, None], -1)[:, 0]


def both(name: str, gamma: float) -> list[Case]:
    """Return the cases of a focal loss, of logits and of probabilities."""
    shares = {"gamma": gamma, "from_logits": False}
    if name == "binary":
        return [
            Case(
                pairs([0.0, 0.3, 1.0], LOGITS),
                mean(lambda y, z: focal(y, z, gamma)),
                {"gamma": gamma},
            ),
            Case(CHANCES, mean(lambda y, p: binary_of_shares(y, p, gamma)), shares),
        ]
    return [
        Case(CLASSES, lambda y, z: categorical(y, logs(z), gamma, 0.25), {"gamma": gamma}),
        Case(PARTS, lambda y, p: categorical(y, of_shares(p), gamma, 0.25), shares),
    ]


INDICES = np.repeat([0, 1, 2], len(FINITE)).astype("int64"), CLASSES[1]
CASES: dict[str, list[Case]] = {
    "mean_squared_error": [Case(NUMBERS, mean(lambda y, x: (x - y) ** 2))],
    "mean_absolute_error": [Case(FAR_NUMBERS, mean(lambda y, x: np.abs(x - y)))],
    "mean_absolute_percentage_error": [
        Case(NUMBERS, mean(lambda y, x: 100 * np.abs((y - x) / np.maximum(np.abs(y), EPSILON))))
    ],
    "mean_squared_logarithmic_error": [Case(NUMBERS, mean(squared_logs))],
    "huber": [Case(FAR_NUMBERS, mean(huber))],
    "log_cosh": [Case(FAR_NUMBERS, mean(log_cosh))],
    "poisson": [Case(COUNTS, mean(lambda y, x: x - y * np.log(x + EPSILON)))],
    "hinge": [Case(SIGNS, mean(lambda y, x: np.maximum(1 - y * x, 0)))],
    "squared_hinge": [
        Case(pairs([-1.0, 1.0], NEAR), mean(lambda y, x: np.maximum(1 - y * x, 0) ** 2))
    ],
    "categorical_hinge": [
        Case(rows(ONE_HOT[:2], FAR, 0.0, -1.0), hinge_of_classes),
        Case(rows(ONE_HOT[:2], [-3.0, -1e4], -2.0, -1.0), hinge_of_classes),
    ],
    "cosine_similarity": [Case(VECTORS, lambda y, x: -(unit(y) * unit(x)).sum(-1))],
    "kl_divergence": [Case(PARTS, divergence)],
    "binary_crossentropy": [
        Case(pairs([0.0, 0.3, 1.0], LOGITS), mean(binary)),
        Case(CHANCES, mean(binary_of_shares), {"from_logits": False}),
    ],
    "categorical_crossentropy": [
        Case(CLASSES, lambda y, z: categorical(y, logs(z))),
        Case(PARTS, lambda y, p: categorical(y, of_shares(p)), {"from_logits": False}),
    ],
    "sparse_categorical_crossentropy": [Case(INDICES, sparse)],
    "sparse_categorical_crossentropy_from_logits": [Case(INDICES, sparse)],
    "binary_focal_crossentropy": [c for g in (0.0, 0.5, 1.0, 2.0, 3.0) for c in both("binary", g)],
    "categorical_focal_crossentropy": [
        c for g in (0.0, 0.5, 1.0, 2.0, 3.0) for c in both("classes", g)
    ],
    "dice": [
        Case(
            MASKS, lambda y, p: 1 - 2 * (y * p).sum(-1) / ((y + p).sum(-1) + EPSILON), {"axis": -1}
        )
    ],
    "tversky": [Case(MASKS, lambda y, p: overlap(y, p, 0.5, 0.5), {"axis": -1})],
}
FUNCTIONS = [name for name in losses.__all__ if inspect.isfunction(getattr(losses, name))]


def test_every_loss_has_cases() -> None:
    assert {*FUNCTIONS} - {"get"} == {*CASES}


def derivatives(loss: Callable[..., Any], y: Array, x: Array) -> tuple[Any, Any, Any]:
    """Return the values, and the first and second derivatives of their sum, along each axis."""
    x = gt.constant(x)
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as tape:
            tape.watch(x)
            values = loss(y, x)
        first = tape.gradient(values, x)
        seed = gt.constant(np.resize([1.0, 0.5, -2.0], x.shape).astype(x.dtype))
        total = gt.sum(first * seed)
    second = outer.gradient(total, x, unconnected_gradients="zero")
    return values.numpy(), first.numpy(), second.numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_values_and_two_orders_of_derivatives(name: str, dtype: str) -> None:
    for case in CASES[name]:
        loss = functools.partial(getattr(losses, name), **case.settings)
        y, x = (a if a.dtype.kind == "i" else a.astype(dtype) for a in case.points)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            values, first, second = derivatives(loss, y, x)
            long = [a if a.dtype.kind == "i" else a.astype(np.longdouble) for a in (y, x)]
            wanted = case.formula(*long).astype(dtype)
        tolerance = 2e-5 if dtype == "float32" else 1e-9
        if case.settings.get("from_logits") is False and dtype == "float32":
            tolerance = 2e-2  # 1 - 1e-7 is rounded
        near = 1e-6 if dtype == "float32" else 1e-12
        if name == "log_cosh":  # there are digits near 0
            near = 0.0
        told = f"{name} {case.settings} of {y.tolist()}, {x.tolist()}"
        np.testing.assert_allclose(values, wanted, tolerance, near, err_msg=told)
        for order, found in enumerate((first, second), 1):
            wrong = ~np.isfinite(found)
            assert not wrong.any(), (name, case.settings, order, y[wrong.any(-1)], x[wrong.any(-1)])
        if dtype == "float32" and case.settings.get("from_logits", True):
            wide = [a if a.dtype.kind == "i" else a.astype("float64") for a in (y, x)]
            with np.errstate(all="ignore"):
                _, *exact = derivatives(loss, *wide)
            np.testing.assert_allclose(first, exact[0], 1e-4, 1e-6, err_msg=told)
            if name != "huber":  # an error of 1 + 1e-8 is rounded to the kink
                np.testing.assert_allclose(second, exact[1], 1e-3, 1e-5, err_msg=told)
        traced = gt.function(lambda y, x, loss=loss: loss(y, x))(y, x).numpy()
        assert traced.dtype == values.dtype == dtype
        np.testing.assert_allclose(traced, values, 1e-6 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_examples_are_no_values(name: str) -> None:
    y, x = CASES[name][0].points
    loss = functools.partial(getattr(losses, name), **CASES[name][0].settings)
    values, first, _ = derivatives(loss, y[:0], x[:0])
    assert values.shape == (0,)
    assert first.shape == x[:0].shape
