"""More adaptive optimizers, with Keras's names, defaults and formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.extend import F, Variable, as_tensor, ops
from .classic import square
from .optimizer import Optimizer
from .options import above_zero, decays, sizes
from .rules import by_blocks

if TYPE_CHECKING:
    from typing import Unpack

    from .options import Options

__all__ = ["Adadelta", "Adamax", "Lion", "Nadam"]


class _Moments(Optimizer):
    """An optimizer with two moving averages, as Adam has."""

    _arguments = ("beta_1", "beta_2", "epsilon")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, name, **options)
        self.beta_1, self.beta_2 = decays(self, beta_1=beta_1, beta_2=beta_2)
        (self.epsilon,) = sizes(self, epsilon=epsilon)


class Adamax(_Moments, saved_as="training.Adamax"):
    """Adam with a decaying maximum of the gradients instead of the second moment.

    Parameters
    ----------
    beta_1, beta_2
        The decay of the moment and of the maximum, in ``[0, 1)``.
    epsilon
        Added to the maximum.

    Attributes
    ----------
    first_moments, largest : list of Variable
        One per trained variable.

    Raises
    ------
    ValueError
        If a decay is not in ``[0, 1)``, or ``epsilon`` or the learning rate is negative.

    Notes
    -----
    With gradient ``g``, learning rate ``r`` and step ``t`` from 1::

        m = m + (g - m) * (1 - beta_1)
        u = max(beta_2 * u, abs(g))
        w = w - r / (1 - beta_1**t) * m / (u + epsilon)

    References
    ----------
    D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, section 7.

    Examples
    --------
    >>> w = gt.Variable(1.0)
    >>> gt.training.Adamax(0.5).apply_gradients([(gt.constant(2.0), w)])
    >>> round(w.item(), 4)
    0.5
    """

    fixed_formula = True
    slots = ("first_moments", "largest")
    first_moments: list[Variable]
    largest: list[Variable]

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        """Return the learning rate, corrected because the moment starts at zero."""
        return (rate / (1.0 - self.beta_1**step),)

    @by_blocks
    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and state."""
        (rate,) = settings
        first = state[0] + (gradient - state[0]) * (1.0 - self.beta_1)
        most = F.maximum(state[1] * self.beta_2, F.abs(gradient))
        epsilon = above_zero(self.epsilon, value.dtype)
        return value - first / (most + epsilon) * rate, (first, most)


class Nadam(_Moments, saved_as="training.Nadam"):
    """Adam with Nesterov's momentum.

    Parameters
    ----------
    beta_1, beta_2
        The decay of the moments' moving averages, in ``[0, 1)``. The coefficient ``b(t)`` below
        grows from about half of ``beta_1`` to ``beta_1``.
    epsilon
        Added to the square root of the second moment.

    Attributes
    ----------
    first_moments, second_moments : list of Variable
        One per trained variable.

    Raises
    ------
    ValueError
        If a decay is not in ``[0, 1)``, or ``epsilon`` or the learning rate is negative.

    Notes
    -----
    With gradient ``g``, learning rate ``r``, step ``t`` from 1, ``b(t) = beta_1 * (1 - 0.96**t /
    2)`` and ``p(t)`` the product of all ``b`` up to ``t``::

        m = m + (g - m) * (1 - beta_1)
        v = v + (g * g - v) * (1 - beta_2)
        s = b(t + 1) * m / (1 - p(t + 1)) + (1 - b(t)) * g / (1 - p(t))
        w = w - r * s / (sqrt(v / (1 - beta_2**t)) + epsilon)

    References
    ----------
    T. Dozat, "Incorporating Nesterov Momentum into Adam", ICLR workshop 2016.

    Examples
    --------
    >>> w = gt.Variable(1.0)
    >>> gt.training.Nadam(0.5).apply_gradients([(gt.constant(2.0), w)])
    >>> 0.3 < w.item() < 0.6
    True
    """

    fixed_formula = True
    slots = ("first_moments", "second_moments")
    first_moments: list[Variable]
    second_moments: list[Variable]

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        """Return the factors of the moment, the gradient and the second moment."""
        now = self.beta_1 * (1.0 - 0.5 * 0.96**step)
        next_ = self.beta_1 * (1.0 - 0.5 * 0.96 ** (step + 1))
        product = self.beta_1**step * _warming(step)
        return (
            rate * next_ / (1.0 - product * next_),
            rate * (1.0 - now) / (1.0 - product),
            1.0 / (1.0 - self.beta_2**step),
        )

    @by_blocks
    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and moments."""
        of_moment, of_gradient, of_square = settings
        first = state[0] + (gradient - state[0]) * (1.0 - self.beta_1)
        second = state[1] + (square(gradient) - state[1]) * (1.0 - self.beta_2)
        ahead = first * of_moment + gradient * of_gradient
        root = F.sqrt(second * of_square) + above_zero(self.epsilon, value.dtype)
        return value - ahead / root, (first, second)


_K = np.arange(1, 61, dtype="float64")
#: ``log(1 - x / 2)`` as a power series in ``x``; with ``x = 0.96**i``, a geometric one in ``i``.
_SERIES = 0.5**_K / _K * 0.96**_K / (1.0 - 0.96**_K)


def _warming(step: Any) -> Any:
    """Return the product of ``1 - 0.96**i / 2`` for ``i`` from 1 to ``step``, without a state."""
    if isinstance(step, (int, float)):
        return math.exp(-float(np.sum(_SERIES * (1.0 - 0.96 ** (_K * step)))))
    powers = ops["power"](as_tensor(0.96**_K), step)
    return ops["exp"](-ops["sum"](as_tensor(_SERIES) * (1.0 - powers)))


class Adadelta(Optimizer, saved_as="training.Adadelta"):
    """Steps scaled by the ratio of two root mean squares: of earlier steps, and of gradients.

    Parameters
    ----------
    learning_rate
        A number, a variable, or a function of the number of completed steps. The paper uses 1.
    rho
        The decay of the moving averages, in ``[0, 1)``.
    epsilon
        Added to both averages, inside the square roots.

    Attributes
    ----------
    accumulated_gradients, accumulated_changes : list of Variable
        The moving averages of squares, one per trained variable.

    Raises
    ------
    ValueError
        If ``rho`` is not in ``[0, 1)``, or ``epsilon`` or the learning rate is negative.

    Notes
    -----
    With gradient ``g`` and learning rate ``r``::

        v = rho * v + (1 - rho) * g * g
        d = g * sqrt(u + epsilon) / sqrt(v + epsilon)
        u = rho * u + (1 - rho) * d * d
        w = w - r * d

    References
    ----------
    M. D. Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.

    Examples
    --------
    >>> w = gt.Variable(1.0)
    >>> gt.training.Adadelta(1.0, rho=0.0).apply_gradients([(gt.constant(2.0), w)])
    >>> round(w.item(), 4)
    0.9997
    """

    fixed_formula = True
    _arguments = ("rho", "epsilon")
    slots = ("accumulated_gradients", "accumulated_changes")
    accumulated_gradients: list[Variable]
    accumulated_changes: list[Variable]

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-7,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, name, **options)
        (self.rho,) = decays(self, rho=rho)
        (self.epsilon,) = sizes(self, epsilon=epsilon)

    @by_blocks
    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and averages."""
        (rate,) = settings
        seen = state[0] * self.rho + square(gradient) * (1.0 - self.rho)
        epsilon = above_zero(self.epsilon, value.dtype)
        root = F.sqrt(state[1] + epsilon) / F.sqrt(seen + epsilon)
        change = gradient * root
        done = state[1] * self.rho + square(change) * (1.0 - self.rho)
        return value - change * rate, (seen, done)


class Lion(Optimizer, saved_as="training.Lion"):
    """Steps of a fixed size per element, in the direction of the momentum's sign.

    Parameters
    ----------
    beta_1
        The share of the momentum in the direction, in ``[0, 1)``; the gradient has the rest.
    beta_2
        The decay of the momentum, in ``[0, 1)``.

    Attributes
    ----------
    momenta : list of Variable
        One per trained variable.

    Raises
    ------
    ValueError
        If a decay is not in ``[0, 1)``, or the learning rate is negative.

    Notes
    -----
    With gradient ``g`` and learning rate ``r``::

        w = w - r * sign(beta_1 * m + (1 - beta_1) * g)
        m = beta_2 * m + (1 - beta_2) * g

    References
    ----------
    X. Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023.

    Examples
    --------
    >>> w = gt.Variable(1.0)
    >>> gt.training.Lion(0.25).apply_gradients([(gt.constant(-3.0), w)])
    >>> w.item()
    1.25
    """

    fixed_formula = True
    _arguments = ("beta_1", "beta_2")
    slots = ("momenta",)
    momenta: list[Variable]

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, name, **options)
        self.beta_1, self.beta_2 = decays(self, beta_1=beta_1, beta_2=beta_2)

    @by_blocks
    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and momentum."""
        (rate,) = settings
        direction = F.sign(state[0] * self.beta_1 + gradient * (1.0 - self.beta_1))
        momentum = state[0] * self.beta_2 + gradient * (1.0 - self.beta_2)
        return value - direction * rate, (momentum,)
