"""The common optimizers: ``SGD``, ``Adam`` and others, with Keras's names and formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.extend import F, Variable, kind_of
from .optimizer import Optimizer
from .options import above_zero, decays, sizes
from .rules import by_blocks

if TYPE_CHECKING:
    from typing import Unpack

    from .options import MoreOptions, Options

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "RMSprop"]


def square(gradient: Any) -> Any:
    """Return ``abs(g)**2``, as ``g * g`` for real ``g``."""
    return gradient * (F.conj(gradient) if kind_of(gradient.dtype) == "c" else gradient)


class SGD(Optimizer, saved_as="training.SGD"):
    """Gradient descent with momentum.

    Parameters
    ----------
    momentum
        The decay of the velocity, in ``[0, 1]``; 0 for no momentum.
    nesterov
        Whether to use Nesterov's momentum.

    Attributes
    ----------
    velocities : list of Variable
        With ``momentum``, one per trained variable.

    Raises
    ------
    ValueError
        If ``momentum`` is not in ``[0, 1]``, or the learning rate is negative.

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

    fixed_formula = True
    _arguments = ("momentum", "nesterov")
    slots = ("velocities",)
    velocities: list[Variable]

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        if not 0.0 <= momentum <= 1.0:
            raise ValueError(f"SGD: momentum must be in [0, 1], got {momentum!r}")
        if not momentum:
            vars(self)["slots"] = ()
        super().__init__(learning_rate, name, **options)
        self.momentum = float(momentum)
        self.nesterov = bool(nesterov)

    @by_blocks
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


class Adam(Optimizer, saved_as="training.Adam"):
    """Adam (Kingma and Ba, 2015).

    Parameters
    ----------
    beta_1, beta_2
        The decay of the moments' moving averages, in ``[0, 1)``.
    epsilon
        Added to the square root of the second moment (the paper's "epsilon hat").
    amsgrad
        Whether to use the largest second moment so far instead of the current one.

    Attributes
    ----------
    first_moments, second_moments : list of Variable
        One per trained variable.
    largest_moments : list of Variable
        The largest second moments, with ``amsgrad``.

    Raises
    ------
    ValueError
        If a decay is not in ``[0, 1)``, or ``epsilon`` or the learning rate is negative.

    Notes
    -----
    With gradient ``g``, learning rate ``r`` and step ``t`` from 1::

        m = m + (g - m) * (1 - beta_1)
        v = v + (g * g - v) * (1 - beta_2)
        w = w - m * r * sqrt(1 - beta_2**t) / (1 - beta_1**t) / (sqrt(v) + epsilon)

    For a complex ``g``, ``g * g`` means ``abs(g)**2``.

    References
    ----------
    D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, section 2;
    S. J. Reddi, S. Kale and S. Kumar, "On the Convergence of Adam and Beyond", ICLR 2018 (amsgrad).

    Examples
    --------
    >>> w = gt.Variable(1.0)
    >>> gt.training.Adam(0.5).apply_gradients([(gt.constant(2.0), w)])
    >>> round(w.item(), 4)
    0.5
    """

    fixed_formula = True
    _arguments = ("beta_1", "beta_2", "epsilon")
    slots = ("first_moments", "second_moments")
    first_moments: list[Variable]
    second_moments: list[Variable]

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        if amsgrad:
            vars(self)["slots"] = (*Adam.slots, "largest_moments")
        super().__init__(learning_rate, name, **options)
        self.beta_1, self.beta_2 = decays(self, beta_1=beta_1, beta_2=beta_2)
        (self.epsilon,) = sizes(self, epsilon=epsilon)
        self.amsgrad = bool(amsgrad)

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        """Return the learning rate, corrected because the moments start at zero."""
        return (rate * (1.0 - self.beta_2**step) ** 0.5 / (1.0 - self.beta_1**step),)

    @by_blocks
    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and moments."""
        (rate,) = settings
        m, v, *rest = state
        # += creates a new tensor for tensors, and saves memory and time for raw arrays
        first = gradient - m
        first *= 1.0 - self.beta_1
        first += m
        second = square(gradient)
        second -= v
        second *= 1.0 - self.beta_2
        second += v
        most = [F.maximum(second, rest[0])] if rest else []
        root = F.sqrt(most[0] if rest else second)
        root += above_zero(self.epsilon, value.dtype)
        change = first / root
        change *= rate
        return value - change, (first, second, *most)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        config = super().get_config()
        # only if set: files without it are the same as those of older versions
        return {**config, "amsgrad": True} if self.amsgrad else config


class AdamW(Adam, saved_as="training.AdamW"):
    """Adam with weight decay that is decoupled from the gradients.

    Parameters
    ----------
    weight_decay
        The fraction of a variable that a step subtracts, times the learning rate.
    beta_1, beta_2
        The decay of the moments' moving averages, in ``[0, 1)``.
    epsilon
        Added to the square root of the second moment.
    amsgrad
        Whether to use the largest second moment so far instead of the current one.
    options
        ``clipnorm``, ``use_ema`` and others, as for :class:`Optimizer`.

    Raises
    ------
    ValueError
        If a decay is not in ``[0, 1)``, or ``weight_decay``, ``epsilon`` or the learning rate is
        negative.

    Notes
    -----
    Before the step of :class:`Adam`, ``w = w - r * weight_decay * w``. Variables that you pass to
    :meth:`exclude_from_weight_decay` do not decay.

    References
    ----------
    I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization", ICLR 2019.

    Examples
    --------
    >>> w = gt.Variable(1.0)
    >>> gt.training.AdamW(0.5, weight_decay=0.5).apply_gradients([(gt.constant(2.0), w)])
    >>> round(w.item(), 4)
    0.25
    """

    fixed_formula = True

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float | None = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str | None = None,
        **options: Unpack[MoreOptions],
    ) -> None:
        rest = beta_1, beta_2, epsilon, amsgrad, name
        super().__init__(learning_rate, *rest, weight_decay=weight_decay, **options)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**super().get_config(), "weight_decay": self.weight_decay}


class RMSprop(Optimizer, saved_as="training.RMSprop"):
    """Gradients divided by the square root of a moving average of their squares.

    Parameters
    ----------
    rho
        The decay of the moving averages, in ``[0, 1)``.
    momentum
        The decay of the sum of steps, in ``[0, 1)``; 0 for no momentum.
    epsilon
        Added to the average, inside the square root.
    centered
        Whether to divide by an estimate of the standard deviation: the square of the average
        gradient is subtracted.

    Attributes
    ----------
    velocities : list of Variable
        The averages of squares, one per trained variable.
    averages : list of Variable
        The averages of gradients, if ``centered``.
    momenta : list of Variable
        The sums of steps, with ``momentum``.

    Raises
    ------
    ValueError
        If ``rho`` or ``momentum`` is not in ``[0, 1)``, or ``epsilon`` is negative.

    Notes
    -----
    With gradient ``g`` and learning rate ``r``::

        v = rho * v + (1 - rho) * g * g
        a = rho * a + (1 - rho) * g                       (if centered, otherwise a = 0)
        u = momentum * u + r * g / sqrt(max(v - a * a, 0) + epsilon)
        w = w - u

    For a complex ``g``, ``g * g`` means ``abs(g)**2``.

    References
    ----------
    T. Tieleman and G. Hinton, "Lecture 6.5: rmsprop", Coursera, 2012; A. Graves, "Generating
    Sequences With Recurrent Neural Networks", 2013, section 4.2 (centered).

    Examples
    --------
    >>> w = gt.Variable(1.0)
    >>> gt.training.RMSprop(0.1, rho=0.0).apply_gradients([(gt.constant(5.0), w)])
    >>> round(w.item(), 4)
    0.9
    """

    fixed_formula = True
    _arguments = ("rho", "momentum", "epsilon", "centered")
    velocities: list[Variable]
    averages: list[Variable]
    momenta: list[Variable]

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        slots = ["velocities"]
        slots += ["averages"] if centered else []
        slots += ["momenta"] if momentum else []
        vars(self)["slots"] = tuple(slots)
        super().__init__(learning_rate, name, **options)
        self.rho, self.momentum = decays(self, rho=rho, momentum=momentum)
        (self.epsilon,) = sizes(self, epsilon=epsilon)
        self.centered = bool(centered)

    @by_blocks
    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and state."""
        (rate,) = settings
        new = [state[0] * self.rho + square(gradient) * (1.0 - self.rho)]
        spread = new[0]
        if self.centered:
            average = state[1] * self.rho + gradient * (1.0 - self.rho)
            new.append(average)
            # a mean of squares is no less than the square of the mean, except for rounding
            spread = F.maximum(spread - square(average), 0.0)
        epsilon = above_zero(self.epsilon, value.dtype)
        change = gradient / F.sqrt(spread + epsilon) * rate
        if self.momentum:
            change = state[-1] * self.momentum + change
            new.append(change)
        return value - change, tuple(new)


class Adagrad(Optimizer, saved_as="training.Adagrad"):
    """Gradients divided by the square root of the sum of all their squares.

    Parameters
    ----------
    initial_accumulator_value
        The initial value of the sum, not negative.
    epsilon
        Added to the sum, inside the square root.

    Attributes
    ----------
    accumulators : list of Variable
        The sums without the initial value, one per trained variable.

    Raises
    ------
    ValueError
        If ``initial_accumulator_value`` or ``epsilon`` is negative.

    Notes
    -----
    With gradient ``g``, learning rate ``r``, and ``s`` beginning with the initial value::

        s = s + g * g
        w = w - r * g / sqrt(s + epsilon)

    For a complex ``g``, ``g * g`` means ``abs(g)**2``.

    References
    ----------
    J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization", JMLR 12, 2011.

    Examples
    --------
    >>> w = gt.Variable(1.0)
    >>> optimizer = gt.training.Adagrad(0.5, initial_accumulator_value=0.0)
    >>> optimizer.apply_gradients([(gt.constant(5.0), w)])
    >>> round(w.item(), 4)
    0.5
    """

    fixed_formula = True
    _arguments = ("initial_accumulator_value", "epsilon")
    slots = ("accumulators",)
    accumulators: list[Variable]

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, name, **options)
        self.initial_accumulator_value, self.epsilon = sizes(
            self, initial_accumulator_value=initial_accumulator_value, epsilon=epsilon
        )

    @by_blocks
    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and sum."""
        (rate,) = settings
        total = state[0] + square(gradient)
        least = above_zero(self.initial_accumulator_value + self.epsilon, value.dtype)
        root = F.sqrt(total + least)
        return value - gradient / root * rate, (total,)
