"""The optimizers: ``SGD`` and ``Adam``, with Keras' names, defaults and formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.extend import F, Variable
from .optimizer import Optimizer

__all__ = ["SGD", "Adam"]


class SGD(Optimizer):
    """Gradient descent with momentum.

    Parameters
    ----------
    learning_rate
        A number, a variable, or a function of the number of steps done.
    momentum
        In ``[0, 1]``.
    nesterov
        Whether to look ahead (Nesterov's momentum).
    name
        A Python identifier.

    Attributes
    ----------
    velocities : list of Variable
        One per trained variable, if there is momentum.

    Notes
    -----
    With velocity ``u``, gradient ``g`` and learning rate ``r``::

        u = momentum * u - r * g
        w = w + u                           (plain)
        w = w + momentum * u - r * g        (Nesterov)

    Examples
    --------
    >>> w = gt.Variable(1.0)
    >>> gt.training.SGD(0.5).apply_gradients([(gt.constant(1.0), w)])
    >>> w.item()
    0.5
    """

    slots = ("velocities",)
    velocities: list[Variable]

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        name: str | None = None,
    ) -> None:
        if not 0.0 <= momentum <= 1.0:
            raise ValueError(f"SGD: momentum must be in [0, 1], got {momentum!r}")
        if not momentum:
            vars(self)["slots"] = ()
        super().__init__(learning_rate, name)
        self.momentum = float(momentum)
        self.nesterov = bool(nesterov)

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        """Return the learning rate."""
        return (rate,)

    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and velocity."""
        (rate,) = settings
        change = gradient * rate
        if not state:
            return value - change, ()
        velocity = state[0] * self.momentum
        velocity -= change
        if not self.nesterov:
            return value + velocity, (velocity,)
        new = value + velocity * self.momentum
        new -= change
        return new, (velocity,)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**super().get_config(), "momentum": self.momentum, "nesterov": self.nesterov}


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015).

    Parameters
    ----------
    learning_rate
        A number, a variable, or a function of the number of steps done.
    beta_1, beta_2
        The decay of the moments' moving averages, in ``[0, 1)``.
    epsilon
        Added to the root of the second moment (the paper's "epsilon hat").
    name
        A Python identifier.

    Attributes
    ----------
    first_moments, second_moments : list of Variable
        One per trained variable.

    Notes
    -----
    With gradient ``g``, learning rate ``r`` and step ``t`` from 1::

        m = m + (g - m) * (1 - beta_1)
        v = v + (g * g - v) * (1 - beta_2)
        w = w - m * r * sqrt(1 - beta_2**t) / (1 - beta_1**t) / (sqrt(v) + epsilon)

    For a complex ``g``, ``g * g`` stands for ``abs(g)**2``.

    References
    ----------
    D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, section 2.
    """

    slots = ("first_moments", "second_moments")
    first_moments: list[Variable]
    second_moments: list[Variable]

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        name: str | None = None,
    ) -> None:
        for argument, beta in (("beta_1", beta_1), ("beta_2", beta_2)):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Adam: {argument} must be in [0, 1), got {beta!r}")
        super().__init__(learning_rate, name)
        self.beta_1 = float(beta_1)
        self.beta_2 = float(beta_2)
        self.epsilon = float(epsilon)

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        """Return the learning rate corrected for the moments' start from zero."""
        return (rate * (1.0 - self.beta_2**step) ** 0.5 / (1.0 - self.beta_1**step),)

    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and moments."""
        (rate,) = settings
        m, v = state
        # on tensors += makes a new one; on raw arrays it saves memory and time
        first = gradient - m
        first *= 1.0 - self.beta_1
        first += m
        second = gradient * (F.conj(gradient) if gradient.dtype.kind == "c" else gradient)
        second -= v
        second *= 1.0 - self.beta_2
        second += v
        root = F.sqrt(second)
        root += self.epsilon
        change = first / root
        change *= rate
        return value - change, (first, second)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
        }
