"""Values and gradients at infinities, zeros and in the tails are limits, not nan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

INF = np.inf
DTYPES = ("float16", "float32", "float64")


def value_and_slopes(f: Callable[..., Any], x: float, dtype: str) -> list[float]:
    """Return a function of a number there, and its first and second derivative."""
    at = gt.constant(x, dtype)
    slope = gt.grad(f)
    return [f(at).item(), slope(at).item(), gt.grad(slope)(at).item()]


#: By activation: value and slope at -inf, and at inf.
ENDS: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "celu": ((-1, 0), (INF, 1)),
    "elu": ((-1, 0), (INF, 1)),
    "gelu": ((0, 0), (INF, 1)),
    "hard_shrink": ((-INF, 1), (INF, 1)),
    "hard_sigmoid": ((0, 0), (1, 0)),
    "hard_silu": ((0, 0), (INF, 1)),
    "hard_tanh": ((-1, 0), (1, 0)),
    "leaky_relu": ((-INF, 0.2), (INF, 1)),
    "log_sigmoid": ((-INF, 1), (0, 0)),
    "mish": ((0, 0), (INF, 1)),
    "relu": ((0, 0), (INF, 1)),
    "relu6": ((0, 0), (6, 0)),
    "selu": ((-1.7580993408473766, 0), (INF, 1.0507009873554805)),
    "sigmoid": ((0, 0), (1, 0)),
    "silu": ((0, 0), (INF, 1)),
    "soft_shrink": ((-INF, 1), (INF, 1)),
    "softplus": ((0, 0), (INF, 1)),
    "softsign": ((-1, 0), (1, 0)),
    "squareplus": ((0, 0), (INF, 1)),
    "tanh_shrink": ((-INF, 1), (INF, 1)),
}


def test_the_table_of_ends_holds_all_activations() -> None:
    module = type(gt.nn.gelu).__module__
    of_vectors = {"softmax", "log_softmax", "glu"}
    from gradtape.plugins.ops.network.activations import gates, rectifiers, shrinkage, sigmoids

    names = {n for room in (gates, rectifiers, shrinkage, sigmoids) for n in room.__all__}
    assert names - of_vectors == set(ENDS), module


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ENDS)
def test_activations_have_their_limits_at_infinities(name: str, dtype: str) -> None:
    f = getattr(gt.nn, name)
    for x, (value, slope) in zip((-INF, INF), ENDS[name], strict=True):
        for g in (f, gt.function(f), gt.vmap(f)):
            at = gt.constant([x], dtype)
            assert g(at).item() == pytest.approx(value, rel=1e-3)
        found = value_and_slopes(f, x, dtype)
        assert found == pytest.approx([value, slope, 0.0], rel=1e-3, nan_ok=False)


def test_the_approximate_gelu_has_its_limits_too() -> None:
    def f(x: Any) -> Any:
        return gt.nn.gelu(x, approximate=True)

    for dtype in DTYPES:
        assert value_and_slopes(f, -INF, dtype) == [0.0, 0.0, 0.0]
        assert value_and_slopes(f, INF, dtype) == [INF, 1.0, 0.0]


@pytest.mark.parametrize("x", [-1e200, -1e9, -30.0, -1.0, 0.0, 2.0, 1e9, 1e200])
def test_squareplus_is_exact_in_its_tails(x: float) -> None:
    wide = np.longdouble(x)
    root = np.sqrt(wide * wide + 4)
    value = (wide + root) / 2 if x > 0 else 2 / (root - wide)
    found = value_and_slopes(gt.nn.squareplus, x, "float64")
    want = [float(value), float(value / root), float(2 / root / root / root)]
    assert found == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize("window", [2, 3])
def test_the_gradient_of_a_pool_over_a_nan_goes_to_it(window: int) -> None:
    x = gt.constant(np.array([1.0, np.nan, 3.0, 4.0, 2.0, 7.0]).reshape(1, 6, 1))

    def f(x: Any) -> Any:
        return gt.nn.max_pool1d(x, window)

    assert np.isnan(f(x).numpy()[0, 0, 0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    want = {2: [0, 1, 0, 1, 0, 1], 3: [0, 1, 0, 0, 0, 1]}[window]
    assert tape.gradient(y, x).numpy().ravel().tolist() == want
    assert gt.jvp(f, (x,), (gt.ones_like(x),))[1].numpy().ravel().tolist() == [1] * (6 // window)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["float32", "float64", "bool", "int64"])
def test_sigmoid_cross_entropy_of_what_is_certain(dtype: str) -> None:
    labels = np.array([1, 0, 1, 0]).astype(dtype)
    logits = gt.constant([INF, -INF, -INF, INF])

    def loss(x: Any) -> Any:
        return gt.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=x)

    assert loss(logits).tolist() == [0.0, 0.0, INF, INF]
    assert gt.grad(lambda x: gt.sum(loss(x)))(logits).tolist() == [0.0, 0.0, -1.0, 1.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", DTYPES)
def test_probabilities_of_0_and_1_that_are_right_cost_nothing(dtype: str) -> None:
    labels, p = gt.constant([1.0, 0.0], dtype), gt.constant([1.0, 0.0], dtype)
    for epsilon in (0.0, 1e-7):
        losses = [
            gt.nn.binary_cross_entropy(labels=labels, probabilities=p, epsilon=epsilon),
            gt.nn.categorical_cross_entropy(labels=labels, probabilities=p, epsilon=epsilon),
            gt.nn.kl_divergence(labels=labels, probabilities=p, epsilon=epsilon),
        ]
        for loss in losses:
            np.testing.assert_allclose(loss.numpy(), 0.0, atol=2e-7)
    slopes = gt.grad(
        lambda p: gt.sum(gt.nn.binary_cross_entropy(labels=labels, probabilities=p, epsilon=0.0))
    )(p)
    assert slopes.tolist() == [-1.0, 1.0]
    halves = gt.constant([0.5, 0.5], dtype)
    by_labels = gt.grad(
        lambda y: gt.nn.categorical_cross_entropy(labels=y, probabilities=halves, epsilon=0.0)
    )(labels)
    np.testing.assert_allclose(by_labels.numpy(), np.log(2.0), rtol=1e-3)
