"""Derivatives of programs without layers, and of a network in an equation.

A description takes the namespace to compute with: gradtape's, ``jax.numpy`` or PyTorch's, in which
the functions used here have the same names and arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rows import training
from rows.made import Made

__all__ = ["bodies", "equation", "gaussian_process", "small_matrices"]

#: Points of the Gaussian process, and their coordinates.
POINTS, COORDINATES = 200, 3
BODIES, STEPS, PACE = 32, 20, 0.01
MATRICES = 1000
#: The network of the equation, and the points at which the equation must hold.
UNITS, PLACES = (2, 32, 32, 1), 256


def _derivative(
    library: str, how: str, described: Callable[..., Any], inputs: Sequence[np.ndarray], count: int
) -> Made:
    """Return the value and the gradient with respect to the first ``count`` inputs."""
    numbers = tuple(range(count))
    if library == "gradtape":
        import gradtape as gt

        arrays = [gt.constant(a) for a in inputs]
        both = gt.value_and_grad(lambda *given: described(gt, *given), argnums=numbers)
        run = both if how == "eager" else gt.function(both)
    elif library == "jax":
        import jax
        import jax.numpy as jnp

        arrays = [jnp.asarray(a) for a in inputs]
        run = jax.jit(jax.value_and_grad(lambda *given: described(jnp, *given), argnums=numbers))
    else:
        import torch

        arrays = [torch.tensor(a) for a in inputs]
        wanted = [array.requires_grad_(True) for array in arrays[:count]]

        def value(*given: Any) -> Any:
            return described(torch, *given)

        forward = torch.compile(value) if how == "compiled" else value

        def run(*arrays: Any) -> Any:
            found = forward(*arrays)
            return found.detach(), torch.autograd.grad(found, wanted)

    def result() -> list[np.ndarray]:
        found, grads = run(*arrays)
        return [np.asarray(found), *map(np.asarray, grads)]

    return Made(lambda: run(*arrays), result)


# -- a Gaussian process ----------------------------------------------------------------------------


def _evidence(xp: Any, logs: Any, x: Any, y: Any) -> Any:
    """Return minus the log marginal likelihood; ``logs`` of length, amplitude and noise."""
    length, amplitude, noise = xp.exp(logs[0]), xp.exp(logs[1]), xp.exp(logs[2])
    squares = ((x[:, None] - x[None]) ** 2).sum(-1)
    kernel = amplitude**2 * xp.exp(-0.5 * squares / length**2)
    root = xp.linalg.cholesky(kernel + (noise**2 + 1e-6) * xp.eye(POINTS))
    solved = _solve_lower(xp, root, y)
    return 0.5 * (solved**2).sum() + xp.log(xp.linalg.diagonal(root)).sum()


def _solve_lower(xp: Any, root: Any, y: Any) -> Any:
    """Solve with a triangular matrix, for which there is no common name."""
    if xp.__name__ == "gradtape":
        return xp.linalg.solve_triangular(root, y, lower=True)
    if xp.__name__ == "torch":
        return xp.linalg.solve_triangular(root, y, upper=False)
    from jax.scipy.linalg import solve_triangular

    return solve_triangular(root, y, lower=True)


def gaussian_process(library: str, how: str) -> Made:
    """The log marginal likelihood by Cholesky, and its gradient by three hyperparameters."""
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, (POINTS, COORDINATES)).astype(np.float32)
    y = np.sin(2 * x.sum(1, keepdims=True)) + 0.3 * random.standard_normal((POINTS, 1))
    logs = np.log(np.array([0.8, 1.2, 0.3])).astype(np.float32)
    return _derivative(library, how, _evidence, [logs, x, y.astype(np.float32)], 1)


# -- bodies that attract each other ----------------------------------------------------------------


def _energy(xp: Any, places: Any, speeds: Any, masses: Any) -> Any:
    """Return the energy after leapfrog steps."""

    def attraction(places: Any) -> Any:
        apart = places[None] - places[:, None]
        squares = (apart**2).sum(-1) + 0.01
        return (masses[None, :, None] * apart / (squares * xp.sqrt(squares))[..., None]).sum(1)

    force = attraction(places)
    for _ in range(STEPS):
        speeds = speeds + 0.5 * PACE * force
        places = places + PACE * speeds
        force = attraction(places)
        speeds = speeds + 0.5 * PACE * force
    moving = 0.5 * (masses * (speeds**2).sum(-1)).sum()
    squares = ((places[None] - places[:, None]) ** 2).sum(-1) + 0.01
    return moving - 0.5 * (masses[:, None] * masses[None] / xp.sqrt(squares)).sum()


def bodies(library: str, how: str) -> Made:
    """The energy of bodies after some steps, and its gradient by where they began."""
    random = np.random.default_rng(0)
    places, speeds = random.standard_normal((2, BODIES, 3)).astype(np.float32)
    masses = random.uniform(0.5, 1.5, BODIES).astype(np.float32)
    return _derivative(library, how, _energy, [places, speeds, masses], 1)


# -- many small matrices ---------------------------------------------------------------------------


def _matrices(xp: Any, a: Any, b: Any, v: Any) -> Any:
    """Return a number that needs products, solutions and determinants of all matrices."""
    product = a @ b + 4.0 * xp.eye(4)
    solved = xp.linalg.solve(product, v)
    return (solved**2).sum() + xp.linalg.det(product).mean()


def small_matrices(library: str, how: str) -> Made:
    """Products, solutions and determinants of small matrices, and the gradient by both factors."""
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, MATRICES, 4, 4)).astype(np.float32) * np.float32(0.5)
    v = random.standard_normal((MATRICES, 4, 1)).astype(np.float32)
    return _derivative(library, how, _matrices, [a, b, v], 2)


# -- a network that satisfies an equation ----------------------------------------------------------


def _network(tanh: Callable[[Any], Any], weights: Sequence[Any], point: Any) -> Any:
    h = point
    for i in range(0, len(weights) - 2, 2):
        h = tanh(h @ weights[i] + weights[i + 1])
    return (h @ weights[-2] + weights[-1])[..., 0]


def _residuals(grad: Any, vmap: Any, u: Callable[..., Any]) -> Any:
    """Return u_t + 6 u u_x + u_xxx at points, for a function ``u`` of weights, x and t."""
    u_x = grad(u, 1)
    u_xxx = grad(grad(u_x, 1), 1)
    u_t = grad(u, 2)

    def residual(weights: Any, x: Any, t: Any) -> Any:
        return u_t(weights, x, t) + 6 * u(weights, x, t) * u_x(weights, x, t) + u_xxx(weights, x, t)

    return vmap(residual, (None, 0, 0))


def equation(library: str, how: str) -> Made:
    """A step of training a network to satisfy the Korteweg-de Vries equation."""
    random = np.random.default_rng(0)
    weights: list[np.ndarray] = []
    for n, m in pairwise(UNITS):
        weights.append((random.standard_normal((n, m)) / np.sqrt(n)).astype(np.float32))
        weights.append((0.1 * random.standard_normal(m)).astype(np.float32))
    data = random.uniform(-1, 1, (2, PLACES)).astype(np.float32)
    made = {"gradtape": _gradtape_equation, "jax": _jax_equation, "torch": _torch_equation}
    return made[library](weights, list(data), how)


def _gradtape_equation(weights: list[np.ndarray], data: list[np.ndarray], how: str) -> Made:
    import gradtape as gt
    from gradtape import layers

    model = layers.Sequential([*[layers.Dense(n, "tanh") for n in UNITS[1:-1]], layers.Dense(1)])

    def u(x: Any, t: Any) -> Any:
        return model(gt.stack([x, t])[None])[0, 0]

    u_x, u_t = gt.grad(u, argnums=0), gt.grad(u, argnums=1)
    u_xxx = gt.grad(gt.grad(u_x))
    residuals = gt.vmap(lambda x, t: u_t(x, t) + 6 * u(x, t) * u_x(x, t) + u_xxx(x, t))

    def loss_of(model: Any, x: Any, t: Any) -> Any:
        return gt.mean(residuals(x, t) ** 2)

    model(np.zeros((1, 2), np.float32))
    return training.gradtape(model, loss_of, data, lambda: model.trainable_variables, weights, how)


def _jax_equation(weights: list[np.ndarray], data: list[np.ndarray], how: str) -> Made:
    import jax
    import jax.numpy as jnp

    def u(weights: Any, x: Any, t: Any) -> Any:
        return _network(jnp.tanh, weights, jnp.stack([x, t]))

    residuals = _residuals(jax.grad, jax.vmap, u)
    return training.jax(lambda w, x, t: (residuals(w, x, t) ** 2).mean(), weights, data)


def _torch_equation(weights: list[np.ndarray], data: list[np.ndarray], how: str) -> Made:
    import torch

    def loss_of(weights: Any, x: Any, t: Any) -> Any:
        """By the graph of each derivative, as is usual in PyTorch."""
        x, t = x.requires_grad_(True), t.requires_grad_(True)

        def derivative(y: Any, x: Any) -> Any:
            return torch.autograd.grad(y.sum(), x, create_graph=True)[0]

        u = _network(torch.tanh, weights, torch.stack([x, t], -1))
        u_x = derivative(u, x)
        u_xxx = derivative(derivative(u_x, x), x)
        return ((derivative(u, t) + 6 * u * u_x + u_xxx) ** 2).mean()

    def point(weights: Any, x: Any, t: Any) -> Any:
        return _network(torch.tanh, weights, torch.stack([x, t]))

    residuals = _residuals(torch.func.grad, torch.func.vmap, point)
    # torch.compile cannot differentiate what it compiled twice: it is given the whole gradient
    gradients = torch.func.grad(lambda weights, x, t: (residuals(weights, x, t) ** 2).mean())
    return training.torch(loss_of, weights, data, how, turned=False, gradients=gradients)
