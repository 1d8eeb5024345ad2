"""A training step of any loss, by Adam, in each library: forward, backward and the update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from training_step import BETA_1, BETA_2, RATE, adam_in_jax

from rows.made import Made

__all__ = ["gradtape", "jax", "torch"]

#: PyTorch adds it after its correction of the moments, the others before: it must not matter.
EPSILON = 1e-10


def gradtape(
    model: Any,
    loss_of: Callable[..., Any],
    data: Sequence[np.ndarray],
    variables: Callable[[], Sequence[Any]],
    weights: Sequence[np.ndarray],
    how: str,
) -> Made:
    """Return the step in gradtape, eager or as one traced function.

    Parameters
    ----------
    model
        What holds the variables.
    loss_of
        A function of the model and of tensors.
    data
        The arrays of a batch.
    variables
        Returns the model's variables in the order of ``weights``, after its first call.
    weights
        What the variables hold before the first step.
    how
        ``"eager"``, or an executor.
    """
    import gradtape as gt

    batch = [gt.constant(array) for array in data]
    loss_of(model, *batch)  # makes the variables
    for variable, value in zip(variables(), weights, strict=True):
        variable.assign(value.reshape(variable.shape))
    optimizer = gt.training.Adam(RATE, BETA_1, BETA_2, EPSILON)
    optimizer.build(model.trainable_variables)

    def step(*batch: Any) -> Any:
        with gt.GradientTape() as tape:
            loss = loss_of(model, *batch)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    run = step if how == "eager" else gt.function(step)
    shapes = [w.shape for w in weights]
    return Made(
        lambda: run(*batch),
        lambda: [np.reshape(v.numpy(), s) for v, s in zip(variables(), shapes, strict=True)],
        lambda: [v.array for v in variables()],
    )


def jax(
    loss_of: Callable[..., Any], weights: Sequence[np.ndarray], data: Sequence[np.ndarray]
) -> Made:
    """Return the step in JAX, compiled as one function of the state and the batch."""
    import jax
    import jax.numpy as jnp

    def update(state: Any, *batch: Any) -> Any:
        return adam_in_jax(state, jax.grad(loss_of)(state[0], *batch), EPSILON)

    run = jax.jit(update, donate_argnums=0)
    batch = [jnp.asarray(array) for array in data]
    zeros = [[jnp.zeros_like(w) for w in weights] for _ in range(2)]
    state = [([jnp.asarray(w) for w in weights], *zeros, jnp.zeros(()))]

    def step() -> None:
        state[0] = jax.block_until_ready(run(state[0], *batch))

    return Made(step, lambda: [np.asarray(w) for w in state[0][0]])


def torch(
    loss_of: Callable[..., Any],
    weights: Sequence[np.ndarray],
    data: Sequence[np.ndarray],
    how: str,
    turned: bool = True,
    gradients: Callable[..., Any] | None = None,
) -> Made:
    """Return the step in PyTorch, eager or with the loss by ``torch.compile``.

    Parameters
    ----------
    loss_of
        A function of the weights and of tensors.
    weights
        What the parameters hold before the first step.
    data
        The arrays of a batch.
    how
        ``"eager"`` or ``"compiled"``.
    turned
        Whether kernels have PyTorch's axes.
    gradients
        A function of the weights and of tensors that returns the gradients, to be compiled instead
        of the loss.
    """
    import torch

    batch = [torch.tensor(array) for array in data]
    parameters = [torch.tensor(to_torch(w) if turned else w).requires_grad_(True) for w in weights]
    # compiled, the update is one kernel too
    fused = True if how == "compiled" else None
    settings = {"lr": RATE, "betas": (BETA_1, BETA_2), "eps": EPSILON, "fused": fused}
    optimizer = torch.optim.Adam(parameters, **settings)
    run = torch.compile(gradients or loss_of) if how == "compiled" else loss_of

    def step() -> None:
        if gradients is not None and how == "compiled":
            for parameter, grad in zip(parameters, run(parameters, *batch), strict=True):
                parameter.grad = grad
        else:
            optimizer.zero_grad()
            run(parameters, *batch).backward()
        optimizer.step()

    def result() -> list[np.ndarray]:
        arrays = [parameter.detach().numpy() for parameter in parameters]
        return [from_torch(array) if turned else array for array in arrays]

    return Made(step, result)


def to_torch(w: np.ndarray) -> np.ndarray:
    """Return a kernel with PyTorch's order of axes."""
    return np.ascontiguousarray(w.transpose(3, 2, 0, 1) if w.ndim == 4 else w.T)


def from_torch(w: np.ndarray) -> np.ndarray:
    """Return a kernel of PyTorch with the order of axes of the others."""
    return w.transpose(2, 3, 1, 0) if w.ndim == 4 else w.T
