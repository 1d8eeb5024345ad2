"""Rows that other benchmarks hold too: the chain, networks of Dense and BatchNorm, derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import derivatives
import numpy as np
import training_step

from rows.made import Made

__all__ = ["batch_jacobian", "chain", "hessian", "network"]


def _of(contenders: dict[str, Callable[[], Any]], name: str) -> Made:
    run = contenders[name]
    return Made(run, lambda: [np.asarray(run())])


def chain(library: str, how: str) -> Made:
    """50 times ``sin(y * 1.001)`` of ten numbers, forward and gradient."""
    import eager

    if library == "gradtape":
        name = "gradtape, eager" if how == "eager" else "gradtape, function"
        return _of(eager.gradtape_tiny(), name)
    if library == "jax":
        return _of(eager.jax_tiny(), "JAX, jit")
    return _of(eager.torch_tiny(how == "compiled"), "PyTorch, eager")


def network(library: str, how: str, inputs: int, hidden: Sequence[int], batch: int) -> Made:
    """A step of Dense, BatchNorm, relu and Adam."""
    task = training_step.Task(inputs, hidden, batch)
    if library == "gradtape":
        made = training_step.gradtape(task, how != "eager")
    elif library == "jax":
        made = training_step.jax(task)
    else:
        made = training_step.torch(task, how == "compiled")
    return Made(made.step, made.weights, made.arrays)


def hessian(library: str, how: str) -> Made:
    """The Hessian of a layer of 40 parameters."""
    if library == "gradtape":
        name = "gradtape, hessian" if how == "eager" else "gradtape, function(hessian)"
        return _of(derivatives.gradtape_hessian(), name)
    if library == "jax":
        return _of(derivatives.jax_hessian(), "JAX, jit(hessian)")
    name = (
        "PyTorch, torch.func.hessian" if how == "compiled" else "PyTorch, hessian(vectorize=True)"
    )
    return _of(derivatives.torch_hessian(how == "compiled"), name)


def batch_jacobian(library: str, how: str) -> Made:
    """Jacobians of 256 examples."""
    if library == "gradtape":
        name = (
            "gradtape, batch_jacobian" if how == "eager" else "gradtape, function(batch_jacobian)"
        )
        return _of(derivatives.gradtape_batch(), name)
    if library == "jax":
        return _of(derivatives.jax_batch(), "JAX, jit(vmap(jacrev))")
    return _of(derivatives.torch_batch(how == "compiled"), "PyTorch, vmap(jacrev)")
