"""Learning rate schedules: functions of the number of steps, with Keras's names and formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.extend import Module, as_tensor, complete_docstring, ops
from ..layers import with_own_arguments

__all__ = [
    "CosineDecay",
    "CosineDecayRestarts",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "OneCycle",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
]


def named() -> dict[str, Any]:
    """Return gradtape's schedules by name, as their plugin provides them."""
    return {x: globals()[x] for x in __all__ if x != "LearningRateSchedule"}


class LearningRateSchedule(Module):
    """Base class of schedules: ``call(step)`` returns the learning rate.

    Pass a schedule as the learning rate of an optimizer. It is saved with the optimizer.

    Parameters
    ----------
    name
        A Python identifier.

    Raises
    ------
    ValueError
        If ``name`` is not an identifier.

    Examples
    --------
    >>> class Halving(gt.training.schedules.LearningRateSchedule):
    ...     def call(self, step):
    ...         return 0.5**step
    >>> gt.training.SGD(Halving()).learning_rate(2).item()
    0.25
    """

    _gradtape_hooks = "call get_config"

    _family = """
    Parameters
    ----------
    initial_learning_rate
        The first learning rate.
    name
        A Python identifier.

    Raises
    ------
    ValueError
        If ``decay_steps`` is not positive.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete_docstring(cls)

    def call(self, step: Any) -> Any:
        """Return the learning rate for a float64 tensor ``step``, the number of completed steps."""
        raise NotImplementedError(f"{type(self).__name__}: define call(step)")

    def __call__(self, step: Any) -> Any:
        """Return the learning rate after a number of steps.

        Parameters
        ----------
        step
            The number of completed steps: an integer, or a scalar tensor.
        """
        return as_tensor(self.call(ops["cast"](as_tensor(step), dtype="float64")))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        given = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        return with_own_arguments(self, LearningRateSchedule, {**given, "name": self.name})


def _steps(schedule: Any, **given: Any) -> None:
    """Raise if a number of steps is not positive."""
    for setting, value in given.items():
        if not value > 0:
            raise ValueError(
                f"{type(schedule).__name__}: {setting} must be positive, got {value!r}"
            )


class _ByRate(LearningRateSchedule):
    """Base class of schedules with a decay rate per ``decay_steps``, continuous or in stairs."""

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        decay_rate: float,
        staircase: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        _steps(self, decay_steps=decay_steps)
        if decay_rate < 0:  # a power of it may be complex
            raise ValueError(
                f"{type(self).__name__}: decay_rate must not be negative, got {decay_rate!r}"
            )
        self.initial_learning_rate, self.decay_rate = initial_learning_rate, decay_rate
        self.decay_steps, self.staircase = decay_steps, bool(staircase)

    def _shares(self, step: Any) -> Any:
        """Return ``step / decay_steps``, rounded down with ``staircase``."""
        share = step / float(self.decay_steps)
        return ops["floor"](share) if self.staircase else share


class ExponentialDecay(_ByRate, saved_as="training.schedules.ExponentialDecay"):
    """``initial_learning_rate * decay_rate ** (step / decay_steps)``.

    Parameters
    ----------
    initial_learning_rate
        The learning rate at step 0.
    decay_steps
        The number of steps after which the learning rate is multiplied by ``decay_rate``.
    decay_rate
        The factor.
    staircase
        Whether the exponent is rounded down; false by default.
    name
        A Python identifier.

    Raises
    ------
    ValueError
        If ``decay_steps`` is not positive, or ``decay_rate`` is negative.

    Examples
    --------
    >>> gt.training.schedules.ExponentialDecay(0.5, 10, 0.5)(10).item()
    0.25
    """

    def call(self, step: Any) -> Any:
        """Return the learning rate."""
        return ops["power"](float(self.decay_rate), self._shares(step)) * self.initial_learning_rate


class InverseTimeDecay(_ByRate, saved_as="training.schedules.InverseTimeDecay"):
    """``initial_learning_rate / (1 + decay_rate * step / decay_steps)``.

    Parameters
    ----------
    decay_steps, decay_rate
        The numbers in the formula.
    staircase
        Whether ``step / decay_steps`` is rounded down; false by default.

    Examples
    --------
    >>> gt.training.schedules.InverseTimeDecay(0.5, 10, 1.0)(10).item()
    0.25
    """

    def call(self, step: Any) -> Any:
        """Return the learning rate."""
        return self.initial_learning_rate / (self._shares(step) * self.decay_rate + 1.0)


class PolynomialDecay(LearningRateSchedule, saved_as="training.schedules.PolynomialDecay"):
    """From one learning rate to another within ``decay_steps``, along a power of the rest.

    Parameters
    ----------
    initial_learning_rate, end_learning_rate
        The first learning rate, and the last, 0.0001 by default.
    decay_steps
        The number of steps between them.
    power
        The power; the default, 1, gives a straight line.
    cycle
        Whether to extend the decay to twice, three times ... ``decay_steps`` whenever its end is
        reached. By default the learning rate stays at the end.

    Examples
    --------
    >>> gt.training.schedules.PolynomialDecay(1.0, 10, 0.0)(5).item()
    0.5
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        _steps(self, decay_steps=decay_steps)
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.end_learning_rate, self.power, self.cycle = end_learning_rate, power, bool(cycle)

    def call(self, step: Any) -> Any:
        """Return the learning rate."""
        steps = as_tensor(float(self.decay_steps), "float64")
        if self.cycle:
            steps = steps * ops["maximum"](ops["ceil"](step / steps), 1.0)
        left = 1.0 - ops["minimum"](step, steps) / steps
        span = self.initial_learning_rate - self.end_learning_rate
        return ops["power"](left, float(self.power)) * span + self.end_learning_rate


class PiecewiseConstantDecay(
    LearningRateSchedule, saved_as="training.schedules.PiecewiseConstantDecay"
):
    """A sequence of constant learning rates.

    Parameters
    ----------
    boundaries
        The last step of each learning rate except the last one.
    values
        The learning rates, one more than there are boundaries.

    Raises
    ------
    ValueError
        If there is not exactly one more value than boundaries, or the boundaries do not increase.

    Examples
    --------
    >>> rate = gt.training.schedules.PiecewiseConstantDecay([10, 20], [1.0, 0.5, 0.25])
    >>> [rate(step).item() for step in (0, 10, 11, 21)]
    [1.0, 1.0, 0.5, 0.25]
    """

    def __init__(
        self, boundaries: Sequence[float], values: Sequence[float], name: str | None = None
    ) -> None:
        super().__init__(name)
        self.boundaries, self.values = list(boundaries), list(values)
        if len(self.values) != len(self.boundaries) + 1:
            raise ValueError(
                "PiecewiseConstantDecay: there must be one more value than boundaries, got "
                f"{len(self.values)} values and {len(self.boundaries)} boundaries"
            )
        if any(a >= b for a, b in zip(self.boundaries, self.boundaries[1:])):
            raise ValueError(f"PiecewiseConstantDecay: boundaries must increase, got {boundaries}")

    def call(self, step: Any) -> Any:
        """Return the learning rate."""
        rate = as_tensor(float(self.values[-1]), "float64")
        for boundary, value in zip(reversed(self.boundaries), reversed(self.values[:-1])):
            rate = ops["where"](ops["less_equal"](step, float(boundary)), float(value), rate)
        return rate


class _Cosine(LearningRateSchedule):
    """Base class of schedules along a cosine."""

    _family = """
    References
    ----------
    I. Loshchilov and F. Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", ICLR 2017.
    """


class CosineDecay(_Cosine, saved_as="training.schedules.CosineDecay"):
    """Half a period of a cosine, after a linear warm-up.

    Parameters
    ----------
    decay_steps
        The number of steps of the cosine.
    alpha
        The last learning rate, as a fraction of the largest; 0 by default.
    warmup_target
        The learning rate after the warm-up, where the cosine begins; no warm-up by default.
    warmup_steps
        The number of steps of the warm-up.

    Raises
    ------
    ValueError
        If ``decay_steps`` is not positive, or ``warmup_steps`` is negative.

    Examples
    --------
    >>> rate = gt.training.schedules.CosineDecay(1.0, 10)
    >>> [round(rate(step).item(), 3) for step in (0, 5, 10, 20)]
    [1.0, 0.5, 0.0, 0.0]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        alpha: float = 0.0,
        name: str | None = None,
        warmup_target: float | None = None,
        warmup_steps: float = 0,
    ) -> None:
        super().__init__(name)
        _steps(self, decay_steps=decay_steps)
        if not warmup_steps >= 0:
            raise ValueError(
                f"CosineDecay: warmup_steps must not be negative, got {warmup_steps!r}"
            )
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.alpha, self.warmup_target = alpha, warmup_target
        self.warmup_steps = warmup_steps

    def call(self, step: Any) -> Any:
        """Return the learning rate."""
        start, top = self.initial_learning_rate, self.warmup_target
        if top is None:
            return _cosine(step, self.decay_steps, start, self.alpha)
        warm = float(self.warmup_steps)
        falling = _cosine(ops["maximum"](step - warm, 0.0), self.decay_steps, top, self.alpha)
        rising = step * ((top - start) / warm) + start if warm else falling
        return ops["where"](ops["less"](step, warm), rising, falling)


def _cosine(step: Any, steps: float, top: float, alpha: float) -> Any:
    share = ops["minimum"](step, float(steps)) / float(steps)
    wave = (ops["cos"](share * math.pi) + 1.0) * 0.5
    return (wave * (1.0 - alpha) + alpha) * top


class CosineDecayRestarts(_Cosine, saved_as="training.schedules.CosineDecayRestarts"):
    """Half periods of a cosine, one after another.

    Parameters
    ----------
    first_decay_steps
        The number of steps of the first cosine.
    t_mul
        The factor for the number of steps at each restart, at least 1; 2 by default.
    m_mul
        The factor for the largest learning rate at each restart, 1 by default.
    alpha
        The lowest learning rate, as a fraction of the first one; 0 by default.

    Raises
    ------
    ValueError
        If ``first_decay_steps`` is not positive, or ``t_mul`` is below 1.

    Examples
    --------
    >>> rate = gt.training.schedules.CosineDecayRestarts(1.0, 10)
    >>> [round(rate(step).item(), 3) for step in (0, 5, 10, 20)]
    [1.0, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        first_decay_steps: float,
        t_mul: float = 2.0,
        m_mul: float = 1.0,
        alpha: float = 0.0,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        _steps(self, first_decay_steps=first_decay_steps)
        if not t_mul >= 1.0:
            raise ValueError(f"CosineDecayRestarts: t_mul must be at least 1, got {t_mul!r}")
        self.initial_learning_rate, self.first_decay_steps = (
            initial_learning_rate,
            first_decay_steps,
        )
        self.t_mul, self.m_mul, self.alpha = float(t_mul), float(m_mul), alpha

    def call(self, step: Any) -> Any:
        """Return the learning rate."""
        done = step / float(self.first_decay_steps)
        if self.t_mul == 1.0:
            restarts = ops["floor"](done)
            share = done - restarts
        else:
            grown = ops["log"](1.0 - done * (1.0 - self.t_mul)) / math.log(self.t_mul)
            restarts = ops["floor"](grown + 1e-12)  # a power of t_mul has an exact logarithm
            length = ops["power"](self.t_mul, restarts)
            share = (done - (1.0 - length) / (1.0 - self.t_mul)) / length
        top = ops["power"](self.m_mul, restarts)
        wave = top * 0.5 * (ops["cos"](share * math.pi) + 1.0)
        return (wave * (1.0 - self.alpha) + self.alpha) * self.initial_learning_rate


class OneCycle(LearningRateSchedule, saved_as="training.schedules.OneCycle"):
    """Up to a large learning rate, then down to a tiny one, along half cosines.

    Parameters
    ----------
    max_learning_rate
        The largest learning rate.
    total_steps
        The total number of steps.
    pct_start
        The fraction of them in which the learning rate grows, 0.3 by default.
    div_factor
        The first learning rate is the largest divided by this; 25 by default.
    final_div_factor
        The last learning rate is the first divided by this; 10,000 by default.

    Raises
    ------
    ValueError
        If ``total_steps`` is not above 1, or ``pct_start`` is not between 0 and 1.

    References
    ----------
    L. N. Smith and N. Topin, "Super-Convergence: Very Fast Training of Neural Networks Using Large
    Learning Rates", 2018. The formula is that of PyTorch's ``OneCycleLR``.

    Examples
    --------
    >>> rate = gt.training.schedules.OneCycle(1.0, 101)
    >>> [round(rate(step).item(), 4) for step in (0, 29.3, 100)]
    [0.04, 1.0, 0.0]
    """

    def __init__(
        self,
        max_learning_rate: float,
        total_steps: int,
        pct_start: float = 0.3,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        if not total_steps > 1:
            raise ValueError(f"OneCycle: total_steps must be above 1, got {total_steps!r}")
        if not 0.0 < pct_start < 1.0:
            raise ValueError(f"OneCycle: pct_start must be between 0 and 1, got {pct_start!r}")
        self.max_learning_rate, self.total_steps = max_learning_rate, total_steps
        self.pct_start, self.div_factor = float(pct_start), float(div_factor)
        self.final_div_factor = float(final_div_factor)

    def call(self, step: Any) -> Any:
        """Return the learning rate."""
        top, first = self.max_learning_rate, self.max_learning_rate / self.div_factor
        turn, last = self.pct_start * self.total_steps - 1.0, self.total_steps - 1.0
        step = ops["minimum"](step, last)
        up = _between(first, top, step / turn) if turn > 0 else as_tensor(top, "float64")
        down = _between(top, first / self.final_div_factor, (step - turn) / (last - turn))
        return ops["where"](ops["less_equal"](step, turn), up, down)


def _between(start: float, end: float, share: Any) -> Any:
    return (ops["cos"](share * math.pi) + 1.0) * ((start - end) / 2.0) + end
