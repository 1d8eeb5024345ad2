"""Optimizers that know vectors alone: SciPy's, given derivatives of functions of containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")

#: From here all methods go to the same minimum; the function has another.
START = {"x": np.array([0.5, 1.4]), "rest": [np.array([[0.8], [0.7]])]}


def valley(p: Any) -> gt.Tensor:
    """Return Rosenbrock's function of four numbers in a container, 0 where all of them are 1."""
    x = gt.concatenate([p["x"], gt.reshape(p["rest"][0], (-1,))])
    return gt.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def on_vectors(fn: Callable[[Any], gt.Tensor], tree: Any) -> tuple[np.ndarray, Any, Any]:
    """Return the start of a search, the function of a vector, and the way back."""
    vector, unflatten = gt.flatten(tree)
    return vector.numpy(), lambda v: fn(unflatten(v)), unflatten


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("method", ["BFGS", "Newton-CG", "trust-ncg", "trust-krylov"])
def test_minimize_finds_the_end_of_a_valley(method: str, traced: bool) -> None:
    start, loss, unflatten = on_vectors(valley, START)
    both, product = gt.value_and_grad(loss), lambda v, d: gt.hvp(loss, v, d)
    if traced:
        both, product = gt.function(both), gt.function(product)

    def value(v: np.ndarray) -> tuple[float, np.ndarray]:
        result, slope = both(gt.constant(v))
        return result.item(), slope.numpy()

    def hessp(v: np.ndarray, d: np.ndarray) -> np.ndarray:
        return product(gt.constant(v), gt.constant(d)).numpy()

    wanted = {} if method == "BFGS" else {"hessp": hessp}
    found = optimize.minimize(value, start, method=method, jac=True, **wanted)
    np.testing.assert_allclose(found.x, np.ones(4), atol=1e-3)
    assert unflatten(found.x)["rest"][0].shape == (2, 1)


@pytest.mark.parametrize("method", ["dogleg", "trust-exact"])
def test_a_whole_hessian_will_do_too(method: str) -> None:
    start, loss, _ = on_vectors(
        lambda p: gt.sum(gt.cosh(p["x"])) + gt.sum(p["rest"][0] ** 2), START
    )
    found = optimize.minimize(
        loss, start, method=method, jac=gt.grad(loss), hess=gt.hessian(loss), options={"gtol": 1e-8}
    )
    assert found.success
    np.testing.assert_allclose(found.x, np.zeros(4), atol=1e-7)


def test_scipy_agrees_that_the_gradient_is_right() -> None:
    start, loss, _ = on_vectors(valley, START)
    slope = gt.grad(loss)
    off = optimize.check_grad(lambda v: loss(v).item(), lambda v: slope(v).numpy(), start)
    assert off < 1e-4 * np.abs(slope(start).numpy()).max()


@pytest.mark.parametrize("mode", [gt.jacfwd, gt.jacrev, gt.jacobian])
def test_least_squares_takes_a_jacobian_of_every_mode(mode: Any) -> None:
    t = np.linspace(0.0, 2.0, 20)
    values = 1.5 * np.exp(-0.7 * t) + 0.25
    vector, unflatten = gt.flatten({"a": np.float64(1.0), "k": np.float64(0.1), "c": 0.0})

    def residuals(v: Any) -> gt.Tensor:
        p = unflatten(v)
        return p["a"] * gt.exp(-p["k"] * t) + p["c"] - values

    slope = mode(residuals)
    found = optimize.least_squares(
        residuals, vector.numpy(), jac=lambda v: slope(v).numpy(), xtol=1e-14
    )
    got = {name: value.item() for name, value in unflatten(found.x).items()}
    assert got == pytest.approx({"a": 1.5, "k": 0.7, "c": 0.25}, abs=1e-5)


def test_roots_of_a_system_with_bands() -> None:
    linalg = pytest.importorskip("scipy.linalg")

    def residual(u: Any) -> gt.Tensor:
        left, right = gt.concatenate([[0.0], u[:-1]]), gt.concatenate([u[1:], [1.0]])
        return left - 2.0 * u + right - 0.05 * u**3

    slope = gt.jacobian(residual, structure="banded(1)", check=True)
    u = gt.constant(np.linspace(0.0, 1.0, 30))
    for _ in range(6):
        u = u - linalg.solve_banded((1, 1), slope(u).numpy(), residual(u).numpy())
    np.testing.assert_allclose(residual(u), np.zeros(30), atol=1e-12)


def test_a_vector_of_a_models_weights_goes_back_into_it() -> None:
    model = gt.layers.Sequential([gt.layers.Dense(3, activation="tanh"), gt.layers.Dense(1)])
    x = gt.random.normal((5, 2))
    y = model(x)
    vector, unflatten = gt.flatten(model.trainable_variables)
    assert vector.shape == (2 * 3 + 3 + 3 + 1,)
    for weight, value in zip(model.trainable_variables, unflatten(vector.numpy()), strict=True):
        assert (value.shape, value.dtype) == (weight.shape, weight.dtype)
        weight.assign(value)
    np.testing.assert_array_equal(model(x), y)


def test_a_vector_is_of_the_common_dtype_and_its_parts_of_their_own() -> None:
    tree = {"half": np.ones(2, np.float16), "double": np.ones(3)}
    vector, unflatten = gt.flatten(tree)
    assert vector.dtype == np.float64
    assert unflatten(vector)["half"].dtype == np.float16
    with pytest.raises(ValueError, match=r"unflatten: the vector must have shape \(5,\)"):
        unflatten(np.ones((5, 1)))
