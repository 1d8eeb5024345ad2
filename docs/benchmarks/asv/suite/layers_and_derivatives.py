"""Convolutions, an LSTM, Hessians, Jacobians and gradients of every example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import derivatives

import layers

from . import comparison
from .comparison import LARGE, SMALL, Comparison

PRODUCT = "NumPy, the matrix product"


class Convolution(Comparison):
    """A convolution and its gradients."""

    rows = (
        ("convolution, eager", "gradtape, eager", LARGE),
        ("convolution, function", "gradtape, function", LARGE),
    )
    needs = ("nn.conv",)

    def programs(self) -> dict[str, Callable[[], Any]]:
        name = next(iter(layers.CONVOLUTIONS))
        return {**comparison.steps(LARGE), **layers.gradtape_convolution(name)}

    def setup_cache(self) -> Any:
        return self.measured()


class Recurrent(Comparison):
    """An LSTM over 50 steps and its gradients."""

    rows = (("LSTM, function", "LSTM", LARGE),)
    needs = ("layers.LSTM",)

    def programs(self) -> dict[str, Callable[[], Any]]:
        return {**comparison.steps(LARGE), "LSTM": layers.gradtape_recurrent("LSTM")[0]}

    def setup_cache(self) -> Any:
        return self.measured()


class Hessian(Comparison):
    """The Hessian of a layer of 40 parameters."""

    rows = (
        ("Hessian of 40 parameters, tapes", "gradtape, tapes over layers", SMALL),
        ("Hessian of 40 parameters, function", "gradtape, function(hessian)", SMALL),
    )
    needs = ("hessian",)

    def programs(self) -> dict[str, Callable[[], Any]]:
        return {**comparison.steps(SMALL), **derivatives.gradtape_hessian()}

    def setup_cache(self) -> Any:
        return self.measured()


class BatchJacobian(Comparison):
    """Jacobians of 256 examples."""

    rows = (
        ("Jacobians of 256 examples, eager", "gradtape, batch_jacobian", SMALL),
        ("Jacobians of 256 examples, function", "gradtape, function(batch_jacobian)", SMALL),
        ("Jacobians of 256 examples, vmap(jacrev)", "gradtape, vmap(jacrev)", SMALL),
    )
    needs = ("vmap", "jacrev")

    def programs(self) -> dict[str, Callable[[], Any]]:
        return {**comparison.steps(SMALL), **derivatives.gradtape_batch()}

    def setup_cache(self) -> Any:
        return self.measured()


class LargeJacobian(Comparison):
    """The Jacobian of a layer of 1,000 by 1,000, compared with one product of that size."""

    rows = (("Jacobian of 1,000 by 1,000", "gradtape, jacobian of Dense(tanh)", PRODUCT),)

    def programs(self) -> dict[str, Callable[[], Any]]:
        return derivatives.large()

    def setup_cache(self) -> Any:
        return self.measured()


class ExampleGradients(Comparison):
    """The gradients of 256 examples."""

    rows = (("gradients of 256 examples, vmap(grad)", "gradtape, vmap(grad)", SMALL),)
    needs = ("vmap", "grad")

    def programs(self) -> dict[str, Callable[[], Any]]:
        return {**comparison.steps(SMALL), **derivatives.gradtape_examples()}

    def setup_cache(self) -> Any:
        return self.measured()
