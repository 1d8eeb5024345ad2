"""``tf.keras.optimizers``: names, defaults and formulas of Keras 3."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import gradtape
from gradtape.core.extend import F
from gradtape.training import Optimizer as _Optimizer

from ..names import adapts, lookup
from ..picking import clip_by_global_norm

__all__ = ["SGD", "Adagrad", "Adam", "Optimizer", "RMSprop", "get"]


@adapts("training.Optimizer")
class Optimizer(_Optimizer):
    """What the optimizers share: gradients that are None are left out, others may be clipped.

    Every optimizer takes ``clipnorm`` (each gradient's largest norm), ``clipvalue`` (its largest
    element) and ``global_clipnorm`` (the largest norm of all together). Other options of Keras are
    refused.
    """

    clipnorm: float | None = None
    clipvalue: float | None = None
    global_clipnorm: float | None = None

    def _options(self, options: dict[str, Any]) -> None:
        given = {key: value for key, value in options.items() if value not in (None, False)}
        for option in ("clipnorm", "clipvalue", "global_clipnorm"):
            setattr(self, option, given.pop(option, None))
        if given:
            raise TypeError(
                f"{type(self).__name__}: {', '.join(sorted(given))} not supported by gradtape; "
                "see docs/migration.md"
            )

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]], name: Any = None) -> None:
        """Do one step.

        Parameters
        ----------
        grads_and_vars
            Pairs of a gradient and its variable. A warning tells which have no gradient.
        name
            Ignored.

        Raises
        ------
        ValueError
            If no variable has a gradient.
        """
        pairs = list(grads_and_vars)
        kept = [(g, v) for g, v in pairs if g is not None]
        if not kept:
            raise ValueError(
                f"{type(self).__name__}: no gradients provided for any variable; "
                "tape.explain(target, variable) says why"
            )
        if len(kept) < len(pairs):
            names = [v.name for g, v in pairs if g is None]
            warnings.warn(f"no gradients for the variables {names}", stacklevel=2)
        grads = self._clipped([g for g, _ in kept])
        super().apply_gradients(zip(grads, [v for _, v in kept]))

    def _clipped(self, grads: list[Any]) -> list[Any]:
        if self.clipnorm is not None:
            return [gradtape.clip_by_norm(g, self.clipnorm) for g in grads]
        if self.global_clipnorm is not None:
            return clip_by_global_norm(grads, self.global_clipnorm)[0]
        if self.clipvalue is not None:
            return [gradtape.clip(g, -self.clipvalue, self.clipvalue) for g in grads]
        return grads

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any]) -> None:
        """Do one step with gradients and variables in lists."""
        self.apply_gradients(zip(grads, trainable_variables, strict=True))

    def minimize(self, loss: Any, var_list: Any, tape: Any = None) -> None:
        """Do one step for a loss: a function of no arguments, or a tensor and its ``tape``."""
        if callable(loss):
            with gradtape.GradientTape() as tape:
                loss = loss()
        elif tape is None:
            raise ValueError("minimize: a loss that is a tensor needs the tape that recorded it")
        variables = list(var_list() if callable(var_list) else var_list)
        self.apply_gradients(zip(tape.gradient(loss, variables), variables))


@adapts("training.SGD")
class SGD(Optimizer, gradtape.training.SGD):
    """Gradient descent with momentum; see :class:`gradtape.training.SGD`."""

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> None:
        gradtape.training.SGD.__init__(self, learning_rate, momentum, nesterov, name)
        self._options({"weight_decay": weight_decay, **options})


@adapts("training.Adam")
class Adam(Optimizer, gradtape.training.Adam):
    """Adam; see :class:`gradtape.training.Adam`. ``amsgrad`` is not supported."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        weight_decay: float | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> None:
        gradtape.training.Adam.__init__(self, learning_rate, beta_1, beta_2, epsilon, name)
        self._options({"amsgrad": amsgrad, "weight_decay": weight_decay, **options})


@adapts()
class RMSprop(Optimizer):
    """Gradients divided by the root of a moving average of their squares.

    Parameters
    ----------
    learning_rate
        A number, a variable, or a function of the number of steps done.
    rho
        The decay of the moving averages.
    momentum
        The decay of the steps' own sum.
    epsilon
        Added to the average before the root.
    centered
        Subtract the square of the average gradient: divide by an estimate of the deviation.
    weight_decay
        Not supported.
    name, options
        As for every optimizer.

    Notes
    -----
    With gradient ``g`` and learning rate ``r``::

        v = rho * v + (1 - rho) * g * g
        a = rho * a + (1 - rho) * g                       (centered; else a = 0)
        u = momentum * u + r * g / sqrt(v - a * a + epsilon)
        w = w - u

    References
    ----------
    T. Tieleman and G. Hinton, "Lecture 6.5: rmsprop", Coursera, 2012; A. Graves, "Generating
    Sequences With Recurrent Neural Networks", 2013, section 4.2 (centered).
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        weight_decay: float | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> None:
        if not 0.0 <= rho < 1.0 or not 0.0 <= momentum < 1.0:
            raise ValueError(f"RMSprop: rho and momentum are in [0, 1), got {rho!r}, {momentum!r}")
        slots = ["velocities"]
        slots += ["averages"] if centered else []
        slots += ["momenta"] if momentum else []
        vars(self)["slots"] = tuple(slots)
        super().__init__(learning_rate, name)
        self.rho, self.momentum, self.epsilon = float(rho), float(momentum), float(epsilon)
        self.centered = bool(centered)
        self._options({"weight_decay": weight_decay, **options})

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        """Return the learning rate."""
        return (rate,)

    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and state."""
        (rate,) = settings
        square = gradient * (F.conj(gradient) if gradient.dtype.kind == "c" else gradient)
        new = [state[0] * self.rho + square * (1.0 - self.rho)]
        spread = new[0]
        if self.centered:
            average = state[1] * self.rho + gradient * (1.0 - self.rho)
            new.append(average)
            spread = spread - average * average
        change = gradient / F.sqrt(spread + self.epsilon) * rate
        if self.momentum:
            change = state[-1] * self.momentum + change
            new.append(change)
        return value - change, tuple(new)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            **super().get_config(),
            "rho": self.rho,
            "momentum": self.momentum,
            "epsilon": self.epsilon,
            "centered": self.centered,
        }


@adapts()
class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of all their squares.

    Parameters
    ----------
    learning_rate
        A number, a variable, or a function of the number of steps done.
    initial_accumulator_value
        Where the sum begins.
    epsilon
        Added to the sum before the root.
    weight_decay
        Not supported.
    name, options
        As for every optimizer.

    Notes
    -----
    With gradient ``g`` and learning rate ``r``, and ``s`` from the initial value::

        s = s + g * g
        w = w - r * g / sqrt(s + epsilon)

    The slot holds what was added to the initial value.

    References
    ----------
    J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization", JMLR 12, 2011.
    """

    slots = ("accumulators",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        weight_decay: float | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> None:
        if initial_accumulator_value < 0.0:
            raise ValueError(
                "Adagrad: initial_accumulator_value must not be negative, got "
                f"{initial_accumulator_value!r}"
            )
        super().__init__(learning_rate, name)
        self.initial_accumulator_value = float(initial_accumulator_value)
        self.epsilon = float(epsilon)
        self._options({"weight_decay": weight_decay, **options})

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        """Return the learning rate."""
        return (rate,)

    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the new value and sum."""
        (rate,) = settings
        square = gradient * (F.conj(gradient) if gradient.dtype.kind == "c" else gradient)
        total = state[0] + square
        root = F.sqrt(total + (self.initial_accumulator_value + self.epsilon))
        return value - gradient / root * rate, (total,)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            **super().get_config(),
            "initial_accumulator_value": self.initial_accumulator_value,
            "epsilon": self.epsilon,
        }


_NAMES = {"adagrad": Adagrad, "adam": Adam, "rmsprop": RMSprop, "sgd": SGD}


@adapts()
def get(identifier: Any) -> Any:
    """Return an optimizer for a name, or the optimizer itself.

    Raises
    ------
    ValueError
        If nothing is known by that name.
    """
    if not isinstance(identifier, str):
        return identifier
    if identifier.lower() not in _NAMES:
        raise ValueError(f"unknown optimizer {identifier!r}; known: {', '.join(_NAMES)}")
    return _NAMES[identifier.lower()]()


__getattr__ = lookup(__name__)
